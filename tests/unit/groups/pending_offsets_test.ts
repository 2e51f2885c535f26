import assert from "node:assert/strict";
import { pendingOffsetEntry, pendingOffsetRemoval, readEntry } from "../../../lib/groups/group_store.ts";
import type { CommittedOffset } from "../../../lib/groups/offsets.ts";
import { PendingOffsets } from "../../../lib/groups/pending_offsets.ts";

function at(offset: number): CommittedOffset {
  return { offset, leaderEpoch: -1, metadata: "m", committedAtMs: 1, expiresAtMs: -1 };
}

Deno.test("offsets are kept by producer, the latest of a partition only", () => {
  const pending = new PendingOffsets();
  pending.set(1, "t", 0, at(5));
  pending.set(1, "t", 0, at(6));
  pending.set(2, "t", 1, at(7));
  assert.deepEqual(pending.of(1), [{ topic: "t", partition: 0, offset: at(6) }]);
  assert.deepEqual(pending.of(3), []);
  assert.deepEqual([pending.has("t", 0), pending.has("t", 1), pending.has("t", 2)], [true, true, false]);
});

Deno.test("the end of a transaction leaves those of other producers", () => {
  const pending = new PendingOffsets();
  pending.set(1, "t", 0, at(5));
  pending.set(2, "t", 0, at(7));
  pending.delete(1);
  assert.equal(pending.has("t", 0), true);
  pending.delete(2);
  assert.equal(pending.isEmpty, true);
});

Deno.test("a deleted topic takes its offsets along, and says which", () => {
  const pending = new PendingOffsets();
  pending.set(1, "t", 0, at(5));
  pending.set(1, "u", 0, at(6));
  pending.set(2, "t", 3, at(7));
  assert.deepEqual(pending.deleteTopic("t").map(({ producerId, partition }) => [producerId, partition]), [[1, 0], [
    2,
    3,
  ]]);
  assert.deepEqual([...pending.all()].map(({ topic }) => topic), ["u"]);
});

Deno.test("a pending offset is read back from its entry, and its removal has the same key", () => {
  const one = { topic: "t", partition: 3, offset: at(2 ** 40) };
  const entry = pendingOffsetEntry("g", 2 ** 41, one);
  assert.deepEqual(readEntry(entry), { kind: "pending-offset", groupId: "g", producerId: 2 ** 41, ...one });
  assert.deepEqual(pendingOffsetRemoval("g", 2 ** 41, one), { key: entry.key, value: null });
});
