import assert from "node:assert/strict";
import { TimeIndex } from "../../../lib/storage/time_index.ts";

const wide = { endRelativeOffset: 0x1_0000_0000 };

function indexOf(entries: [timestamp: number, relativeOffset: number][]): TimeIndex {
  const index = new TimeIndex();
  for (const [timestamp, relativeOffset] of entries) index.add(timestamp, relativeOffset);
  return index;
}

Deno.test("TimeIndex knows up to where everything is older than a time", () => {
  const index = indexOf([[100, 9], [200, 19], [300, 29]]);
  assert.deepEqual([50, 100, 101, 200, 201, 301].map((time) => index.olderUpTo(time)), [-1, -1, 9, 9, 19, 29]);
  assert.equal(new TimeIndex().olderUpTo(5), -1);
});

Deno.test("TimeIndex leaves out entries that do not rise", () => {
  const index = indexOf([[100, 5], [100, 6], [90, 7], [101, 5], [110, 8]]);
  assert.deepEqual([index.count, index.lastTimestamp, index.lastRelativeOffset], [2, 110, 8]);
});

Deno.test("TimeIndex grows, and comes back from its file's bytes", () => {
  const index = new TimeIndex();
  for (let i = 0; i < 1_000; i++) index.add(1_700_000_000_000 + i, i * 3);
  const decoded = TimeIndex.decode(index.encode(), wide);
  assert.deepEqual(decoded.encode(), index.encode());
  assert.deepEqual([decoded.count, decoded.fileBytes], [1_000, 12_000]);
  assert.deepEqual(index.encode(999), index.encode().subarray(11_988));
});

Deno.test("TimeIndex is big-endian, time stamp first, as in Apache Kafka", () => {
  assert.deepEqual([...indexOf([[0x0102030405, 0x0a0b0c0d]]).encode()], [0, 0, 0, 1, 2, 3, 4, 5, 10, 11, 12, 13]);
});

Deno.test("TimeIndex believes a file up to its first implausible entry", () => {
  const bytes = indexOf([[100, 1], [200, 2]]).encode();
  const negative = new Uint8Array(12).fill(0xff, 0, 8);
  assert.equal(TimeIndex.decode(new Uint8Array([...bytes, ...new Uint8Array(12)]), wide).count, 2);
  assert.equal(TimeIndex.decode(new Uint8Array([...negative, ...bytes]), wide).count, 0);
  assert.equal(TimeIndex.decode(bytes.subarray(0, 23), wide).count, 1);
  assert.equal(TimeIndex.decode(bytes, { endRelativeOffset: 2 }).count, 1);
});

Deno.test("TimeIndex forgets what lies past a truncation", () => {
  const index = indexOf([[100, 1], [200, 2], [300, 3]]);
  index.truncate(2);
  assert.deepEqual([index.count, index.lastTimestamp], [1, 100]);
});
