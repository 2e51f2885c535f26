import assert from "node:assert/strict";
import { dirtOf, groupsOf, type PlannedSegment } from "../../../lib/storage/cleaner_plan.ts";

/** Segments of ten offsets each, with these sizes and epochs. */
function segments(...sizes: readonly (number | readonly [bytes: number, epoch: number])[]): PlannedSegment[] {
  return sizes.map((size, i) => {
    const [sizeBytes, epoch] = typeof size === "number" ? [size, 1] : size;
    return { epoch, baseOffset: i * 10, endOffset: i * 10 + 10, sizeBytes };
  });
}

function grouped(from: PlannedSegment[], segmentBytes: number): number[][] {
  return groupsOf(from, segmentBytes).map((group) => group.map(({ sizeBytes }) => sizeBytes));
}

Deno.test("neighbours become one segment as long as they fit", () => {
  assert.deepEqual(grouped(segments(10, 20, 30, 40, 90, 200, 5, 5), 100), [[10, 20, 30, 40], [90], [200], [5, 5]]);
  assert.deepEqual(grouped([], 100), []);
});

Deno.test("a change of the leader epoch ends a group", () => {
  assert.deepEqual(grouped(segments([10, 1], [10, 1], [10, 2], [10, 2]), 100), [[10, 10], [10, 10]]);
});

Deno.test("a group spans no more offsets than a segment may", () => {
  const [first, second] = segments(1, 1);
  const far = { ...second, endOffset: 0x8000_0000 };
  assert.equal(groupsOf([first, far], 100).length, 2);
  assert.equal(groupsOf([first, { ...far, endOffset: 0x7fff_ffff }], 100).length, 1);
});

Deno.test("very many tiny segments become several", () => {
  assert.ok(groupsOf(segments(...Array<number>(500).fill(1)), 1_000_000).length > 5);
});

Deno.test("a segment is clean when passes have seen all of it", () => {
  const all = segments(10, 20, 30, 40);
  assert.deepEqual(dirtOf(all, 0), { cleanBytes: 0, dirtyBytes: 100, ratio: 1 });
  assert.deepEqual(dirtOf(all, 20), { cleanBytes: 30, dirtyBytes: 70, ratio: 0.7 });
  assert.deepEqual(dirtOf(all, 25), { cleanBytes: 30, dirtyBytes: 70, ratio: 0.7 });
  assert.deepEqual(dirtOf(all, 40), { cleanBytes: 100, dirtyBytes: 0, ratio: 0 });
  assert.deepEqual(dirtOf([], 0), { cleanBytes: 0, dirtyBytes: 0, ratio: 0 });
});
