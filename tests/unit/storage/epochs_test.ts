import assert from "node:assert/strict";
import { endOffsetForEpoch, epochOfOffset } from "../../../lib/storage/epochs.ts";

const segments = [
  { epoch: 1, baseOffset: 0 },
  { epoch: 1, baseOffset: 2 },
  { epoch: 3, baseOffset: 3 },
  { epoch: 4, baseOffset: 9 },
];
const end = { startOffset: 0, endOffset: 12 };

Deno.test("endOffsetForEpoch gives an epoch's end, or that of the largest one below", () => {
  assert.deepEqual(endOffsetForEpoch(segments, end, 1), { epoch: 1, endOffset: 3 });
  assert.deepEqual(endOffsetForEpoch(segments, end, 2), { epoch: 1, endOffset: 3 });
  assert.deepEqual(endOffsetForEpoch(segments, end, 3), { epoch: 3, endOffset: 9 });
  assert.deepEqual(endOffsetForEpoch(segments, end, 4), { epoch: 4, endOffset: 12 });
});

Deno.test("endOffsetForEpoch does not know epochs above the newest, nor negative ones", () => {
  for (const epoch of [5, 1000, -1]) {
    assert.deepEqual(endOffsetForEpoch(segments, end, epoch), { epoch: -1, endOffset: -1 });
  }
});

Deno.test("endOffsetForEpoch lets an epoch that is gone end where the log begins", () => {
  const left = [{ epoch: 5, baseOffset: 40 }, { epoch: 6, baseOffset: 60 }];
  assert.deepEqual(endOffsetForEpoch(left, { startOffset: 45, endOffset: 70 }, 3), { epoch: 3, endOffset: 45 });
});

Deno.test("epochOfOffset gives the epoch of the segment that holds the offset", () => {
  assert.deepEqual([0, 2, 3, 8, 9, 12].map((offset) => epochOfOffset(segments, offset)), [1, 1, 3, 3, 4, 4]);
});
