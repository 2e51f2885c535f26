import assert from "node:assert/strict";
import {
  baseOffset,
  baseSequence,
  checkBatch,
  type Compression,
  hasDeleteHorizon,
  lastOffsetDelta,
  maxTimestamp,
  producerId,
  recordsCount,
} from "../../../lib/records/batch.ts";
import { buildEndTransactionMarker } from "../../../lib/records/control.ts";
import { type BatchInput, buildBatch, type RecordInput, recordsOf } from "../../../lib/records/record.ts";
import { deleteHorizonOf } from "../../../lib/records/rewrite.ts";
import { setBaseOffset } from "../../../lib/records/batch.ts";
import type { AbortedTransaction } from "../../../lib/storage/aborted_transactions.ts";
import { BatchCleaner, lastOfProducers } from "../../../lib/storage/batch_cleaner.ts";
import { CleanedTransactions } from "../../../lib/storage/cleaner_transactions.ts";
import { KeyOffsets } from "../../../lib/storage/key_offsets.ts";

interface Given {
  /** Newest offset of each key. */
  readonly newest?: Record<string, number>;
  readonly aborted?: AbortedTransaction[];
  readonly producers?: Parameters<typeof lastOfProducers>[0];
  readonly endOffset?: number;
  readonly nowMs?: number;
}

function cleanerOf({ newest = {}, aborted = [], producers = [], endOffset = 1_000, nowMs = 50_000 }: Given) {
  const keys = new KeyOffsets({ maxBytes: 100_000, loadFactor: 0.9, secret: [1, 2] });
  for (const [key, offset] of Object.entries(newest)) {
    const bytes = new TextEncoder().encode(key);
    keys.put(bytes, 0, bytes.length, offset);
  }
  return new BatchCleaner({
    keys,
    transactions: new CleanedTransactions(aborted),
    producers: lastOfProducers(producers),
    endOffset,
    nowMs,
    deleteRetentionMs: 1_000,
    pace: { moved: () => {}, isDue: () => true, rest: () => Promise.resolve() },
  });
}

const records: RecordInput[] = [
  { key: "a", value: "1", timestamp: 100 },
  { key: "b", value: null, timestamp: 101, headers: [{ key: "h", value: null }] },
  { key: "c", value: "", timestamp: 102 },
];

function batchAt(offset: number, input: Partial<BatchInput> = {}): Uint8Array {
  return buildBatch({ records, baseOffset: offset, ...input });
}

function offsetsIn(batch: Uint8Array): number[] {
  const found = recordsOf(batch);
  assert.ok(Array.isArray(found));
  return found.map(({ offset }) => offset);
}

async function changed(cleaner: BatchCleaner, batch: Uint8Array): Promise<Uint8Array> {
  const cleaned = await cleaner.clean(batch, 0);
  assert.equal(cleaned.kind, "changed");
  const bytes = cleaned.kind === "changed" ? cleaned.bytes : batch;
  assert.equal(checkBatch(bytes, 0), "whole");
  return bytes;
}

for (const compression of [0, 1, 2, 3, 4] as Compression[]) {
  Deno.test(`a rewritten batch keeps range, sequence, codec, nulls and headers (codec ${compression})`, async () => {
    const batch = batchAt(10, { compression, producerId: 7, producerEpoch: 1, baseSequence: 5, leaderEpoch: 3 });
    const bytes = await changed(cleanerOf({ newest: { a: 500, b: 11 } }), batch);
    assert.deepEqual(
      [baseOffset(bytes), lastOffsetDelta(bytes), producerId(bytes), baseSequence(bytes), recordsCount(bytes)],
      [10, 2, 7, 5, 2],
    );
    assert.equal(bytes[22] & 7, compression);
    assert.equal(maxTimestamp(bytes), 102);
    const before = recordsOf(batch);
    assert.ok(Array.isArray(before));
    assert.deepEqual(recordsOf(bytes), before.slice(1));
  });
}

Deno.test("a batch of which all stays is not touched", async () => {
  const cleaner = cleanerOf({ newest: { a: 10, c: 5 } });
  const batch = batchAt(10, { records: [{ key: "a", value: "1" }, { key: "z", value: "" }, { key: "c", value: "" }] });
  assert.deepEqual(await cleaner.clean(batch, 0), { kind: "same", aborted: null });
});

Deno.test("a record without a key goes; what lies at or past the end is not judged", async () => {
  const keyless = batchAt(10, { records: [{ key: null, value: "1" }, { key: "a", value: "1" }] });
  assert.deepEqual(offsetsIn(await changed(cleanerOf({}), keyless)), [11]);
  const cleaner = cleanerOf({ newest: { a: 999, b: 999, c: 999 }, endOffset: 11 });
  assert.deepEqual(offsetsIn(await changed(cleaner, batchAt(10))), [11, 12]);
  assert.equal((await cleaner.clean(batchAt(11), 0)).kind, "same");
});

Deno.test("a delete mark gets its horizon from the first pass, stays until then, and goes with the next one", async () => {
  const first = await changed(cleanerOf({ nowMs: 50_000 }), batchAt(10));
  assert.deepEqual([deleteHorizonOf(first), offsetsIn(first)], [51_000, [10, 11, 12]]);
  assert.deepEqual(recordsOf(first), recordsOf(batchAt(10)), "times and values are those of before");
  const early = cleanerOf({ nowMs: 50_999 });
  assert.deepEqual([(await early.clean(first, 0)).kind, early.latestHorizonMs], ["same", 51_000]);
  const due = cleanerOf({ nowMs: 51_000 });
  assert.deepEqual(offsetsIn(await changed(due, first)), [10, 12]);
});

Deno.test("an empty value is no delete mark", async () => {
  const batch = batchAt(10, { records: [{ key: "c", value: "" }] });
  const cleaner = cleanerOf({});
  assert.deepEqual([(await cleaner.clean(batch, 0)).kind, cleaner.latestHorizonMs], ["same", null]);
});

Deno.test("a batch of which nothing stays goes; its stub has its range and no record", async () => {
  const cleaned = await cleanerOf({ newest: { a: 99, b: 99, c: 99 } }).clean(batchAt(10, { compression: 4 }), 0);
  assert.equal(cleaned.kind, "gone");
  const stub = cleaned.kind === "gone" ? cleaned.stub : new Uint8Array();
  assert.equal(checkBatch(stub, 0), "whole");
  assert.deepEqual([baseOffset(stub), lastOffsetDelta(stub), recordsCount(stub), maxTimestamp(stub)], [10, 2, 0, 102]);
});

Deno.test("the last batch of a producer stays, without its records, and is then left alone", async () => {
  const window = [{ firstSequence: 5, lastSequence: 7, baseOffset: 10 }];
  const producers = [{ ...entry, producerId: 7, window }];
  const given = { newest: { a: 99, b: 99, c: 99 }, producers };
  const batch = batchAt(10, { producerId: 7, producerEpoch: 0, baseSequence: 5 });
  const bytes = await changed(cleanerOf(given), batch);
  assert.deepEqual([recordsCount(bytes), baseSequence(bytes), lastOffsetDelta(bytes)], [0, 5, 2]);
  assert.equal((await cleanerOf(given).clean(bytes, 0)).kind, "same");
  const earlier = batchAt(7, { producerId: 7, producerEpoch: 0, baseSequence: 2 });
  assert.equal((await cleanerOf(given).clean(earlier, 0)).kind, "gone");
});

Deno.test("sequences that wrap around name the right last batch", () => {
  const window = [{ firstSequence: 0x7fff_ffff, lastSequence: 1, baseOffset: 40 }];
  assert.equal(lastOfProducers([{ ...entry, producerId: 7, window }]).get(7)?.lastOffset, 42);
});

const entry = { producerEpoch: 0, coordinatorEpoch: -1, lastTimestampMs: 0, transactionFirstOffset: -1 };
const transactional = { producerId: 7, producerEpoch: 0, baseSequence: 0, isTransactional: true };

function markerAt(offset: number, result: "commit" | "abort"): Uint8Array {
  const marker = { result, producerId: 7, producerEpoch: 0, coordinatorEpoch: 0 };
  const bytes = buildEndTransactionMarker(marker, 200);
  setBaseOffset(bytes, 0, offset);
  return bytes;
}

Deno.test("aborted data goes although its keys have no later record; the marker stays for as long as there was data", async () => {
  const aborted = [{ producerId: 7, firstOffset: 10, lastOffset: 13, lastStableOffset: 14 }];
  const cleaner = cleanerOf({ aborted });
  assert.equal((await cleaner.clean(batchAt(10, transactional), 0)).kind, "gone");
  assert.deepEqual(await cleaner.clean(markerAt(13, "abort"), 0), { kind: "same", aborted: aborted[0] });
  // The next transaction of this producer is none of that.
  assert.notEqual((await cleaner.clean(batchAt(14, transactional), 0)).kind, "gone");
});

Deno.test("a marker without data gets a horizon, and goes behind it, together with what it says of aborts", async () => {
  const aborted = [{ producerId: 7, firstOffset: 10, lastOffset: 13, lastStableOffset: 14 }];
  for (const result of ["abort", "commit"] as const) {
    const told = result === "abort" ? aborted : [];
    const dated = await cleanerOf({ aborted: told, nowMs: 50_000 }).clean(markerAt(13, result), 0);
    assert.equal(dated.kind, "changed");
    const bytes = dated.kind === "changed" ? dated.bytes : new Uint8Array();
    assert.deepEqual([hasDeleteHorizon(bytes), deleteHorizonOf(bytes)], [true, 51_000]);
    assert.deepEqual(dated.aborted, told[0] ?? null);
    assert.equal((await cleanerOf({ aborted: told, nowMs: 50_999 }).clean(bytes, 0)).kind, "same");
    assert.equal((await cleanerOf({ aborted: told, nowMs: 51_000 }).clean(bytes, 0)).kind, "gone");
  }
});

Deno.test("a committed transaction's marker stays while a batch of it was met, even one that goes", async () => {
  const cleaner = cleanerOf({ newest: { a: 99, b: 99, c: 99 } });
  assert.equal((await cleaner.clean(batchAt(10, transactional), 0)).kind, "gone");
  assert.equal((await cleaner.clean(markerAt(13, "commit"), 0)).kind, "same");
});

Deno.test("a batch whose records cannot be read stays as it is", async () => {
  const batch = batchAt(10, { compression: 1 });
  batch.fill(0xff, 61);
  const cleaner = cleanerOf({ newest: { a: 99 } });
  assert.deepEqual([(await cleaner.clean(batch, 0)).kind, cleaner.unreadable], ["same", 1]);
});
