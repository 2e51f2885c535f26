import assert from "node:assert/strict";
import { SegmentIndexes } from "../../../lib/storage/segment_indexes.ts";
import { type Bench, failing, storageTest } from "./support.ts";

const end = { offset: 1_000, position: 100_000 };
const unsynced = { sync: false };

function segmentOf(bench: Bench) {
  return { baseOffset: 100, indexPath: bench.path("s.index"), timeIndexPath: bench.path("s.timeindex") };
}

/** Ten batches of 1,000 bytes and one record, whose time stamps are 5000, 4000, 7000, 6000, 9000 … */
function fill(indexes: SegmentIndexes, from = 0, count = 10): void {
  for (let i = from; i < from + count; i++) indexes.add(i * 1_000, 100 + i, 5_000 + i * 1_000 - (i % 2) * 2_000, 2_500);
}

function picture(indexes: SegmentIndexes): unknown {
  const { offsets, times, maxTimestamp } = indexes;
  return [[...offsets.encode()], [...times.encode()], maxTimestamp];
}

storageTest("indexes get an entry at the first batch that is an interval behind the last one", async (bench) => {
  const indexes = SegmentIndexes.afresh(segmentOf(bench));
  fill(indexes);
  assert.deepEqual([0, 1, 2].map((i) => indexes.offsets.positionAt(i)), [3_000, 6_000, 9_000]);
  assert.deepEqual([0, 1, 2].map((i) => indexes.offsets.relativeOffsetAt(i)), [3, 6, 9]);
  assert.deepEqual([indexes.times.count, indexes.times.lastTimestamp, indexes.times.lastRelativeOffset], [
    3,
    13_000,
    8,
  ]);
  await indexes.save(bench.disk, unsynced);
  assert.deepEqual(picture(await SegmentIndexes.load(bench.disk, segmentOf(bench), end)), picture(indexes));
});

storageTest("sealing adds the newest time stamp", (bench) => {
  const indexes = SegmentIndexes.afresh(segmentOf(bench));
  indexes.add(0, 100, 5_000, 2_500);
  assert.equal(indexes.times.count, 0);
  indexes.seal();
  indexes.seal();
  assert.deepEqual([indexes.times.count, indexes.times.lastTimestamp], [1, 5_000]);
  return Promise.resolve();
});

storageTest("saving writes only what is new; loading goes on where it ended", async (bench) => {
  const whole = SegmentIndexes.afresh(segmentOf(bench));
  fill(whole, 0, 20);
  const first = SegmentIndexes.afresh(segmentOf(bench));
  fill(first, 0, 10);
  await first.save(bench.disk, unsynced);
  const loaded = await SegmentIndexes.load(bench.disk, segmentOf(bench), end);
  // The batches behind the last entry are met again, as a scan does.
  fill(loaded, 9, 11);
  const before = bench.hooked.operations.length;
  await loaded.save(bench.disk, unsynced);
  assert.ok(!bench.hooked.operations.slice(before).some((operation) => operation.startsWith("truncate")));
  assert.deepEqual(picture(await SegmentIndexes.load(bench.disk, segmentOf(bench), end)), picture(whole));
});

storageTest("what a file holds beyond a segment's end is replaced with the next save", async (bench) => {
  const indexes = SegmentIndexes.afresh(segmentOf(bench));
  fill(indexes, 0, 20);
  await indexes.save(bench.disk, unsynced);
  const cut = await SegmentIndexes.load(bench.disk, segmentOf(bench), { offset: 107, position: 7_000 });
  assert.equal(cut.offsets.count, 2);
  await cut.save(bench.disk, unsynced);
  assert.equal(Deno.statSync(bench.path("s.index")).size, 16);
  indexes.truncate(107, 7_000);
  await indexes.save(bench.disk, unsynced);
  assert.equal(Deno.statSync(bench.path("s.index")).size, 16);
});

storageTest("a save that failed is made good by the next one", async (bench) => {
  const indexes = SegmentIndexes.afresh(segmentOf(bench));
  fill(indexes);
  bench.hooked.hook = failing("writeSync", /timeindex/, "no-space");
  await assert.rejects(indexes.save(bench.disk, unsynced), { name: "DiskError" });
  bench.hooked.hook = () => {};
  await indexes.save(bench.disk, { sync: true });
  assert.deepEqual(picture(await SegmentIndexes.load(bench.disk, segmentOf(bench), end)), picture(indexes));
  assert.ok(bench.hooked.operations.includes("sync s.index") && bench.hooked.operations.includes("sync s.timeindex"));
});

storageTest("missing index files are empty ones", async (bench) => {
  const loaded = await SegmentIndexes.load(bench.disk, segmentOf(bench), end);
  assert.deepEqual([loaded.offsets.count, loaded.times.count, loaded.maxTimestamp], [0, 0, -1]);
});
