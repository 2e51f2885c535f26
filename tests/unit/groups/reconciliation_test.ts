/** One step of a member towards its target. */

import assert from "node:assert/strict";
import { type Current, NOTHING_YET } from "../../../lib/groups/consumer_member.ts";
import { reconcile } from "../../../lib/groups/reconciliation.ts";
import { type Partitions, PartitionsBuilder } from "../../../lib/groups/topic_partitions.ts";

function of(...indexes: number[]): Partitions {
  const builder = new PartitionsBuilder();
  for (const index of indexes) builder.add("t", index);
  return builder.build();
}

function current(epoch: number, assigned: Partitions, more: Partial<Current> = {}): Current {
  return { ...NOTHING_YET, epoch, previousEpoch: epoch - 1, assigned, ...more };
}

const free = () => false;

function shown({ epoch, previousEpoch, state, assigned, revoking }: Current) {
  const list = (partitions: Partitions) => [...partitions.get("t") ?? []].sort();
  return [epoch, previousEpoch, state, list(assigned), list(revoking)];
}

Deno.test("a member at its target stays as it is, whatever it says it has", () => {
  const before = current(5, of(1));
  for (const owned of [null, of(), of(1), of(9)]) {
    assert.equal(reconcile(before, { epoch: 5, partitions: of(1) }, owned, free), before);
  }
});

Deno.test("what is free is assigned with the new epoch at once", () => {
  const after = reconcile(current(5, of(1)), { epoch: 7, partitions: of(1, 2) }, null, free);
  assert.deepEqual(shown(after), [7, 5, "stable", [1, 2], []]);
});

Deno.test("what is to be given up comes first: until that is confirmed the epoch stays and nothing is gained", () => {
  const goal = { epoch: 7, partitions: of(2, 3) };
  const before = current(5, of(1, 2));
  const told = reconcile(before, goal, null, free);
  assert.deepEqual(shown(told), [5, 4, "unrevoked", [2], [1]]);
  assert.equal(reconcile(told, goal, null, free), told, "nothing said is nothing confirmed");
  assert.equal(reconcile(told, goal, of(1, 2), free), told);
  assert.deepEqual(shown(reconcile(told, goal, of(2), free)), [7, 5, "stable", [2, 3], []]);
});

Deno.test("a member that has already given up what it shall lose goes on at once", () => {
  const after = reconcile(current(5, of(1, 2)), { epoch: 6, partitions: of(3) }, of(), free);
  assert.deepEqual(shown(after), [6, 5, "stable", [3], []]);
});

Deno.test("a target that has changed meanwhile counts when the last revocation is confirmed", () => {
  const told = current(5, of(2), { state: "unrevoked", revoking: of(1) });
  const again = reconcile(told, { epoch: 8, partitions: of(1) }, of(2), free);
  assert.deepEqual(shown(again), [5, 4, "unrevoked", [], [2]]);
  assert.deepEqual(shown(reconcile(again, { epoch: 8, partitions: of(1) }, of(), free)), [8, 5, "stable", [1], []]);
});

Deno.test("what others still have is waited for, and gained piece by piece within the epoch", () => {
  const goal = { epoch: 6, partitions: of(1, 2, 3) };
  const taken = new Set([2, 3]);
  const isTaken = (_: string, partition: number) => taken.has(partition);
  const first = reconcile(current(5, of()), goal, null, isTaken);
  assert.deepEqual(shown(first), [6, 5, "unreleased", [1], []]);
  assert.equal(reconcile(first, goal, of(1), isTaken), first);
  taken.delete(2);
  const second = reconcile(first, goal, of(1), isTaken);
  assert.deepEqual(shown(second), [6, 5, "unreleased", [1, 2], []], "the epoch before stays good for a retry");
  taken.clear();
  assert.deepEqual(shown(reconcile(second, goal, null, isTaken)), [6, 5, "stable", [1, 2, 3], []]);
});

Deno.test("a member that waits can be told to give up what it has", () => {
  const waiting = current(6, of(1), { state: "unreleased" });
  const after = reconcile(waiting, { epoch: 7, partitions: of(2) }, null, free);
  assert.deepEqual(shown(after), [6, 5, "unrevoked", [], [1]]);
});
