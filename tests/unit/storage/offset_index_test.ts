import assert from "node:assert/strict";
import { OffsetIndex } from "../../../lib/storage/offset_index.ts";

const wide = { endPosition: 0x1_0000_0000, endRelativeOffset: 0x1_0000_0000 };

function indexOf(entries: [relativeOffset: number, position: number][]): OffsetIndex {
  const index = new OffsetIndex();
  for (const [relativeOffset, position] of entries) index.add(relativeOffset, position);
  return index;
}

function entriesOf(index: OffsetIndex): [number, number][] {
  return Array.from({ length: index.count }, (_, i) => [index.relativeOffsetAt(i), index.positionAt(i)]);
}

Deno.test("OffsetIndex finds the last entry at or before an offset or a position", () => {
  const index = indexOf([[9, 100], [19, 200], [29, 300]]);
  assert.deepEqual([8, 9, 18, 19, 1000].map((offset) => index.floorByOffset(offset)), [-1, 0, 0, 1, 2]);
  assert.deepEqual([99, 100, 250, 300].map((position) => index.floorByPosition(position)), [-1, 0, 1, 2]);
  assert.equal(index.lastPosition, 300);
  assert.equal(new OffsetIndex().lastPosition, -1);
  assert.equal(new OffsetIndex().floorByOffset(5), -1);
});

Deno.test("OffsetIndex leaves out entries that do not rise", () => {
  assert.deepEqual(entriesOf(indexOf([[5, 10], [5, 20], [6, 10], [4, 30], [7, 40]])), [[5, 10], [7, 40]]);
});

Deno.test("OffsetIndex grows, and comes back from its file's bytes", () => {
  const entries = Array.from({ length: 1_000 }, (_, i): [number, number] => [i * 7, i * 4096 + 1]);
  const index = indexOf(entries);
  assert.equal(index.fileBytes, 8_000);
  const bytes = index.encode();
  assert.deepEqual(entriesOf(OffsetIndex.decode(bytes, wide)), entries);
  assert.deepEqual(index.encode(990), bytes.subarray(7_920));
});

Deno.test("OffsetIndex is big-endian, relative offset first, as in Apache Kafka", () => {
  assert.deepEqual([...indexOf([[0x01020304, 0x05060708]]).encode()], [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(entriesOf(indexOf([[0xffff_fffe, 0x7fff_ffff]])), [[0xffff_fffe, 0x7fff_ffff]]);
});

Deno.test("OffsetIndex believes a file up to its first implausible entry", () => {
  const good: [number, number][] = [[1, 10], [2, 20], [3, 30]];
  const bytes = new Uint8Array([...indexOf(good).encode(), ...new Uint8Array(16)]);
  assert.deepEqual(entriesOf(OffsetIndex.decode(bytes, wide)), good);
  assert.deepEqual(entriesOf(OffsetIndex.decode(bytes.subarray(0, 21), wide)), good.slice(0, 2));
  assert.deepEqual(entriesOf(OffsetIndex.decode(bytes, { ...wide, endPosition: 30 })), good.slice(0, 2));
  assert.deepEqual(entriesOf(OffsetIndex.decode(bytes, { ...wide, endRelativeOffset: 2 })), good.slice(0, 1));
});

Deno.test("OffsetIndex forgets what lies past a truncation", () => {
  const index = indexOf([[1, 10], [2, 20], [3, 30]]);
  index.truncate({ endRelativeOffset: 3, endPosition: 1000 });
  assert.deepEqual(entriesOf(index), [[1, 10], [2, 20]]);
  index.truncate({ endRelativeOffset: 3, endPosition: 20 });
  assert.deepEqual(entriesOf(index), [[1, 10]]);
});
