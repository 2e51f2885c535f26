import assert from "node:assert/strict";
import { baseOffset, setBaseOffset } from "../../../lib/records/batch.ts";
import { findBatchBehind, scanBatches, type ScanRange, type ScanSource } from "../../../lib/storage/batch_scan.ts";
import { batchOf, batchOfBytes, numbers } from "./support.ts";

/** Bytes as a file; keeps the sizes of the reads. */
class Source implements ScanSource {
  readonly reads: number[] = [];
  constructor(readonly bytes: Uint8Array) {}
  read(position: number, into: Uint8Array): Promise<number> {
    const part = this.bytes.subarray(position, position + into.byteLength);
    into.set(part);
    this.reads.push(part.byteLength);
    return Promise.resolve(part.byteLength);
  }
}

function concat(...parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.byteLength), 0);
  return all;
}

/** Single-record batches at offsets from `first` on. */
function batches(first: number, count: number, make = () => batchOf(1)): Uint8Array[] {
  return numbers(first, count).map((offset) => {
    const batch = make();
    setBaseOffset(batch, 0, offset);
    return batch;
  });
}

async function scan(bytes: Uint8Array, changes: Partial<ScanRange> = {}) {
  const source = new Source(bytes);
  const found: number[] = [];
  const range = {
    position: 0,
    endPosition: bytes.byteLength,
    endOffset: Infinity,
    minOffset: 0,
    verify: "checksums",
    ...changes,
  } as const;
  const result = await scanBatches(source, range, (at, start) => void found.push(baseOffset(at, start)));
  return { ...result, found, reads: source.reads };
}

Deno.test("scanBatches meets every batch, over many chunks, whatever their sizes", async () => {
  const sizes = [10, 300_000, 70_000, 900_000, 1, 600_000, 5_000];
  const parts = sizes.flatMap((size, i) => batches(i, 1, () => batchOfBytes(size)));
  const bytes = concat(...parts);
  for (const verify of ["checksums", "headers"] as const) {
    const { stop, position, nextOffset, found } = await scan(bytes, { verify });
    assert.deepEqual([stop, position, nextOffset], ["complete", bytes.byteLength, 7]);
    assert.deepEqual(found, numbers(0, 7));
  }
});

Deno.test("scanBatches reads little where only headers matter", async () => {
  const bytes = concat(...batches(0, 20, () => batchOfBytes(500_000)));
  const { reads } = await scan(bytes, { verify: "headers" });
  assert.ok(reads.reduce((sum, size) => sum + size, 0) <= 20 * 64 * 1024);
});

Deno.test("scanBatches stops in front of a torn batch, a wrong checksum, an offset that falls", async () => {
  const good = concat(...batches(0, 3));
  const next = batches(3, 1)[0];
  const wrong = new Uint8Array(next);
  wrong[70] ^= 1;
  const cases = [
    [concat(good, next.subarray(0, 60)), "incomplete"],
    [concat(good, next.subarray(0, next.byteLength - 1)), "incomplete"],
    [concat(good, wrong, ...batches(4, 1)), "corrupt"],
    [concat(good, ...batches(2, 1)), "corrupt"],
    [concat(good, new Uint8Array(100)), "corrupt"],
  ] as const;
  for (const [bytes, stop] of cases) {
    const result = await scan(bytes);
    assert.deepEqual([result.stop, result.position, result.nextOffset], [stop, good.byteLength, 3]);
  }
});

Deno.test("scanBatches takes no memory for a length that the file does not have", async () => {
  const bytes = concat(batchOf(1), new Uint8Array(61));
  new DataView(bytes.buffer).setInt32(batchOf(1).byteLength + 8, 100_000_000);
  bytes[batchOf(1).byteLength + 16] = 2;
  setBaseOffset(bytes, batchOf(1).byteLength, 1);
  const { stop, reads } = await scan(bytes);
  assert.equal(stop, "incomplete");
  assert.ok(Math.max(...reads) <= bytes.byteLength);
});

Deno.test("scanBatches ends in front of batches that do not count", async () => {
  const { stop, found, nextOffset } = await scan(concat(...batches(0, 5)), { endOffset: 3 });
  assert.deepEqual([stop, found, nextOffset], ["past-end-offset", [0, 1, 2], 3]);
});

Deno.test("scanBatches stops where the visitor says so", async () => {
  const bytes = concat(...batches(0, 5));
  const range = {
    position: 0,
    endPosition: bytes.byteLength,
    endOffset: Infinity,
    minOffset: 0,
    verify: "headers",
  } as const;
  const result = await scanBatches(new Source(bytes), range, (at, start) => baseOffset(at, start) === 2);
  assert.deepEqual([result.stop, result.position, result.nextOffset], ["stopped", bytes.byteLength / 5 * 2, 2]);
});

Deno.test("scanBatches reports a file that became shorter", async () => {
  const bytes = concat(...batches(0, 3));
  assert.equal((await scan(bytes, { endPosition: bytes.byteLength + 500 })).stop, "incomplete");
});

async function behind(bytes: Uint8Array, position = 0, minOffset = 0, endOffset = Infinity) {
  return await findBatchBehind(new Source(bytes), { position, endPosition: bytes.byteLength, minOffset, endOffset });
}

Deno.test("findBatchBehind finds the next valid batch at any distance", async () => {
  for (const junk of [1, 61, 1_000, 512 * 1024 - 30, 512 * 1024, 1_300_000]) {
    const noise = new Uint8Array(junk).fill(0x32);
    const found = await behind(concat(noise, ...batches(7, 2)));
    assert.deepEqual(found, { kind: "batch", position: junk, baseOffset: 7 }, `${junk}`);
  }
});

Deno.test("findBatchBehind passes over zeros and damaged batches", async () => {
  const damaged = batches(5, 1)[0];
  damaged[damaged.byteLength - 1] ^= 1;
  const bytes = concat(damaged, new Uint8Array(5_000), ...batches(8, 1));
  assert.deepEqual(await behind(bytes), { kind: "batch", position: damaged.byteLength + 5_000, baseOffset: 8 });
});

Deno.test("findBatchBehind takes no batch outside of the offsets that may come", async () => {
  const bytes = concat(new Uint8Array(9).fill(1), ...batches(3, 1), ...batches(9, 1));
  assert.equal((await behind(bytes, 0, 4) as { baseOffset: number }).baseOffset, 9);
  assert.deepEqual(await behind(bytes, 0, 4, 9), { kind: "junk" });
});

Deno.test("findBatchBehind tells zeros from junk", async () => {
  assert.deepEqual(await behind(new Uint8Array(2_000_000)), { kind: "zeros" });
  const junk = new Uint8Array(2_000_000);
  junk[1_999_999] = 1;
  assert.deepEqual(await behind(junk), { kind: "junk" });
  assert.deepEqual(await behind(concat(batchOf(1).subarray(0, 30))), { kind: "junk" });
});
