import assert from "node:assert/strict";
import { CommittedOffsets, type ExpiryRules } from "../../../lib/groups/offsets.ts";

const DAY_MS = 86_400_000;
const nowMs = 100 * DAY_MS;

function offsetsOf(commits: readonly (readonly [topic: string, committedAtMs: number, expiresAtMs?: number])[]) {
  const offsets = new CommittedOffsets();
  for (const [partition, [topic, committedAtMs, expiresAtMs = -1]] of commits.entries()) {
    offsets.set(topic, partition, { offset: 1, leaderEpoch: -1, metadata: "", committedAtMs, expiresAtMs });
  }
  return offsets;
}

function expired(offsets: CommittedOffsets, rules: Partial<ExpiryRules>): number[] {
  const all = { nowMs, retentionMs: 7 * DAY_MS, emptySinceMs: null, subscribed: new Set<string>(), ...rules };
  return offsets.expired(all).map(({ partition }) => partition);
}

Deno.test("offsets that nobody has joined for expire by their own age", () => {
  const offsets = offsetsOf([["t", nowMs - 8 * DAY_MS], ["t", nowMs - 7 * DAY_MS], ["t", nowMs - 7 * DAY_MS + 1]]);
  assert.deepEqual(expired(offsets, {}), [0, 1]);
});

Deno.test("once a group is empty, its offsets last as long again, and longer where they were committed later", () => {
  const offsets = offsetsOf([["t", nowMs - 90 * DAY_MS], ["t", nowMs - 2 * DAY_MS]]);
  assert.deepEqual(expired(offsets, { emptySinceMs: nowMs - 6 * DAY_MS }), []);
  assert.deepEqual(expired(offsets, { emptySinceMs: nowMs - 7 * DAY_MS }), [0]);
  assert.deepEqual(expired(offsets, { emptySinceMs: nowMs - 20 * DAY_MS }), [0]);
});

Deno.test("while a group has members, offsets of what they consume stay, others expire", () => {
  const offsets = offsetsOf([["used", 0], ["left", 0], ["left", nowMs]]);
  assert.deepEqual(expired(offsets, { subscribed: new Set(["used"]) }), [1]);
  assert.deepEqual(expired(offsets, { subscribed: "all" }), []);
});

Deno.test("an end that the client gave counts in place of the broker's retention", () => {
  const offsets = offsetsOf([["t", nowMs, nowMs], ["t", 0, nowMs + 1], ["t", nowMs, 0]]);
  assert.deepEqual(expired(offsets, { retentionMs: 1 }), [0, 2]);
  assert.deepEqual(expired(offsets, { emptySinceMs: nowMs }), [0, 2]);
});

Deno.test("a topic is there as long as one of its partitions is", () => {
  const offsets = offsetsOf([["a", 0], ["b", 0], ["b", 0]]);
  offsets.delete("a", 0);
  offsets.delete("b", 1);
  offsets.delete("b", 7);
  offsets.delete("c", 0);
  assert.deepEqual(Array.from(offsets.topics(), ([topic, partitions]) => [topic, [...partitions.keys()]]), [["b", [
    2,
  ]]]);
  assert.equal(offsets.get("b", 1), undefined);
  assert.equal(offsets.get("b", 2)?.offset, 1);
  assert.equal(offsets.isEmpty, false);
  offsets.delete("b", 2);
  assert.equal(offsets.isEmpty, true);
});
