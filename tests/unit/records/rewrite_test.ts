import assert from "node:assert/strict";
import * as header from "../../../lib/records/batch.ts";
import { Compression } from "../../../lib/records/batch.ts";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { buildBatch, recordsOf } from "../../../lib/records/record.ts";
import { deleteHorizonOf, filterBatch, recompressBatch } from "../../../lib/records/rewrite.ts";
import { javaBatch, smallRecords } from "./golden.ts";

const kinds = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

function ok<T>(result: T | RecordsFault): T {
  assert.ok(!(result instanceof RecordsFault));
  return result;
}

function source(compression: Compression): Uint8Array {
  return buildBatch({
    records: smallRecords,
    compression,
    baseOffset: 900,
    leaderEpoch: 6,
    producerId: 12,
    producerEpoch: 1,
    baseSequence: 40,
    isTransactional: true,
  });
}

for (const name of kinds) {
  Deno.test(`filterBatch with ${name} keeps the range, the producer and the kept records as they were`, () => {
    const batch = source(Compression[name]);
    const before = ok(recordsOf(batch));
    const after = ok(filterBatch(batch, 0, (record) => record.offset === 901 || record.offset === 902));
    assert.equal(header.checkBatch(after, 0), "whole");
    assert.deepEqual(ok(recordsOf(after)), before.slice(1, 3));
    assert.equal(header.baseOffset(after), 900);
    assert.equal(header.lastOffsetDelta(after), 3);
    assert.equal(header.recordsCount(after), 2);
    assert.equal(header.leaderEpoch(after), 6);
    assert.equal(header.producerId(after), 12);
    assert.equal(header.producerEpoch(after), 1);
    assert.equal(header.lastSequence(after), 43);
    assert.equal(header.maxTimestamp(after), 1700000000250);
    assert.equal(header.compressionOf(after), Compression[name]);
    assert.equal(header.isTransactional(after), true);
  });

  Deno.test(`filterBatch with ${name} sets a delete horizon without changing the records' times`, () => {
    const batch = source(Compression[name]);
    const after = ok(filterBatch(batch, 0, () => true, { deleteHorizonMs: 1800000000000 }));
    assert.equal(header.checkBatch(after, 0), "whole");
    assert.deepEqual(ok(recordsOf(after)), ok(recordsOf(batch)));
    assert.equal(deleteHorizonOf(batch), null);
    assert.equal(deleteHorizonOf(after), 1800000000000);
    const again = ok(filterBatch(after, 0, (record) => record.keyLength >= 0));
    assert.equal(deleteHorizonOf(again), 1800000000000);
    assert.deepEqual(ok(recordsOf(again)).map((record) => record.offset), [900, 902, 903]);
  });

  for (const target of kinds) {
    Deno.test(`recompressBatch turns ${name} into ${target} with the same records and header`, () => {
      const batch = source(Compression[name]);
      const after = ok(recompressBatch(batch, 0, Compression[target]));
      assert.equal(header.checkBatch(after, 0), "whole");
      assert.equal(header.compressionOf(after), Compression[target]);
      assert.deepEqual(ok(recordsOf(after)), ok(recordsOf(batch)));
      assert.deepEqual(after.subarray(23, 61), batch.subarray(23, 61));
    });
  }
}

Deno.test("a batch whose records all go keeps its range", () => {
  for (const name of kinds) {
    const after = ok(filterBatch(source(Compression[name]), 0, () => false));
    assert.equal(header.checkBatch(after, 0), "whole");
    assert.equal(after.length, header.HEADER_BYTES);
    assert.equal(header.nextOffset(after), 904);
    assert.equal(header.maxTimestamp(after), header.NO_TIMESTAMP);
    assert.deepEqual(recordsOf(after), []);
  }
});

Deno.test("append time stays when records go", () => {
  const batch = javaBatch("v2 log append time");
  const after = ok(filterBatch(batch, 0, (record) => record.offset === 103));
  assert.equal(header.maxTimestamp(after), 1700000009999);
  assert.equal(ok(recordsOf(after))[0].timestamp, 1700000009999);
});

Deno.test("filterBatch leaves the batch it reads as it was", () => {
  const batch = source(Compression.none);
  const copy = batch.slice();
  ok(filterBatch(batch, 0, () => true, { deleteHorizonMs: 5 }));
  assert.deepEqual(batch, copy);
});

Deno.test("records that cannot be read are a fault", () => {
  const batch = source(Compression.gzip);
  batch.fill(7, 61);
  assert.ok(filterBatch(batch, 0, () => true) instanceof RecordsFault);
  assert.ok(recompressBatch(batch, 0, Compression.none) instanceof RecordsFault);
});
