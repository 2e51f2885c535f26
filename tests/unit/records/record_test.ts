import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import {
  checkBatch,
  Compression,
  HEADER_BYTES,
  lastOffsetDelta,
  maxTimestamp,
  recordsCount,
  sealCrc,
  setMaxTimestampAndType,
  writeInt32,
} from "../../../lib/records/batch.ts";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { type BatchRecord, buildBatch, forEachRecord, openRecords, recordsOf } from "../../../lib/records/record.ts";
import { damaged, javaBatch, seeded, smallRecords } from "./golden.ts";

const kinds = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
const decoder = new TextDecoder();
const readable = (bytes: Uint8Array | null) => bytes === null ? null : decoder.decode(bytes);

function readableRecords(found: BatchRecord[] | RecordsFault) {
  assert.ok(!(found instanceof RecordsFault), "expected records");
  return found.map(({ offset, timestamp, key, value, headers }) => ({
    offset,
    timestamp,
    key: readable(key),
    value: readable(value),
    headers: headers.map((header) => ({ key: header.key, value: readable(header.value) })),
  }));
}

const expected = smallRecords.map((record, offset) => ({ offset, ...record }));

for (const name of kinds) {
  Deno.test(`recordsOf reads what Java's producer wrote with ${name}`, () => {
    assert.deepEqual(readableRecords(recordsOf(javaBatch(`v2 ${name}`))), expected);
  });

  Deno.test(`buildBatch with ${name} gives a batch that reads back`, () => {
    const batch = buildBatch({ records: smallRecords, compression: Compression[name], baseOffset: 1000 });
    assert.equal(checkBatch(batch, 0), "whole");
    const moved = expected.map((record) => ({ ...record, offset: 1000 + record.offset }));
    assert.deepEqual(readableRecords(recordsOf(batch)), moved);
  });
}

Deno.test("buildBatch writes the very bytes that Java's producer writes", () => {
  assert.deepEqual(buildBatch({ records: smallRecords }), javaBatch("v2 none"));
  const transactional = buildBatch({
    records: smallRecords,
    producerId: 4711,
    producerEpoch: 3,
    baseSequence: 17,
    isTransactional: true,
  });
  assert.deepEqual(transactional, javaBatch("v2 transactional"));
});

Deno.test("records of a batch with append time all have it", () => {
  const found = readableRecords(recordsOf(javaBatch("v2 log append time")));
  assert.deepEqual(found.map((record) => record.timestamp), Array(4).fill(1700000009999));
  assert.deepEqual(found.map((record) => record.offset), [100, 101, 102, 103]);
});

Deno.test("buildBatch keeps gaps in the offsets and the given header fields", () => {
  const batch = buildBatch({
    records: [{ offsetDelta: 3, value: "a" }, { offsetDelta: 70_000, value: "b", timestamp: 8 }],
    baseOffset: 10,
    lastOffsetDelta: 70_005,
    maxTimestamp: 99,
    timestamp: 5,
  });
  assert.equal(lastOffsetDelta(batch), 70_005);
  assert.equal(maxTimestamp(batch), 99);
  assert.equal(recordsCount(batch), 2);
  const found = readableRecords(recordsOf(batch));
  assert.deepEqual(found.map((record) => [record.offset, record.timestamp]), [[13, 5], [70_010, 8]]);
});

Deno.test("a batch without records keeps its range and reads as none", () => {
  const batch = buildBatch({ records: [], lastOffsetDelta: 9 });
  assert.equal(checkBatch(batch, 0), "whole");
  assert.deepEqual(recordsOf(batch), []);
});

Deno.test("forEachRecord stops when the visitor says so", () => {
  const seen: number[] = [];
  const fault = forEachRecord(javaBatch("v2 zstd"), (record) => {
    seen.push(record.offset);
    return record.offset < 1;
  });
  assert.equal(fault, null);
  assert.deepEqual(seen, [0, 1]);
});

Deno.test("openRecords reads a batch in the middle of a buffer", () => {
  const batch = javaBatch("v2 lz4");
  const buffer = new Uint8Array(batch.length + 20);
  buffer.set(batch, 11);
  const cursor = openRecords(buffer, 11);
  assert.ok(!(cursor instanceof RecordsFault));
  const keys: (string | null)[] = [];
  while (cursor.next()) keys.push(readable(cursor.key()));
  assert.equal(cursor.fault, null);
  assert.deepEqual(keys, ["key-0", null, "gone", ""]);
});

Deno.test("a wrong records count is a fault, in both directions", () => {
  for (const count of [3, 5]) {
    const batch = javaBatch("v2 none");
    writeInt32(batch, 57, count);
    sealCrc(batch);
    const found = recordsOf(batch);
    assert.ok(found instanceof RecordsFault);
    assert.equal(found.errorCode, ErrorCode.INVALID_RECORD);
  }
});

Deno.test("records that unpack to more than the limit are a fault", () => {
  const batch = javaBatch("v2 gzip large");
  assert.ok(recordsOf(batch, 1000) instanceof RecordsFault);
});

Deno.test("wrong lengths inside a record are faults", () => {
  const good = buildBatch({ records: [{ key: "k", value: "v", headers: [{ key: "h", value: "x" }] }] });
  // length 24, attributes 0, time 0, offset 0, key 2 k, value 2 v, count 2, key 2 h, value 2 x (zigzag)
  assert.equal(good.length, HEADER_BYTES + 13);
  const broken: [string, number, number][] = [
    ["record longer than the batch", 0, 26],
    ["record shorter than its fields", 0, 22],
    ["key of length −2", 4, 3],
    ["key longer than the record", 4, 40],
    ["value of length −2", 6, 3],
    ["negative headers count", 8, 1],
    ["more headers than bytes", 8, 126],
    ["header key null", 9, 1],
    ["header value of length −2", 11, 3],
    ["header value cut", 11, 4],
    ["header value short", 11, 0],
  ];
  for (const [name, at, value] of broken) {
    const batch = good.slice();
    batch[HEADER_BYTES + at] = value;
    assert.ok(recordsOf(batch) instanceof RecordsFault, name);
  }
});

Deno.test("reading damaged records ends in records or a fault, never in an exception", () => {
  const random = seeded(31);
  const batch = javaBatch("v2 none");
  for (const payload of damaged(batch.slice(HEADER_BYTES), random, 3000)) {
    const broken = new Uint8Array(HEADER_BYTES + payload.length);
    broken.set(batch.subarray(0, HEADER_BYTES));
    broken.set(payload, HEADER_BYTES);
    writeInt32(broken, 8, broken.length - 12);
    const found = recordsOf(broken);
    assert.ok(found instanceof RecordsFault || found.length === 4);
  }
});

Deno.test("stamped append time is what readers see, also where records have times beyond 2^53", () => {
  const batch = buildBatch({ records: [{ timestamp: Number.MAX_SAFE_INTEGER }, { timestamp: 0 }] });
  setMaxTimestampAndType(batch, 0, 1234, "logAppendTime");
  assert.deepEqual(readableRecords(recordsOf(batch)).map((record) => record.timestamp), [1234, 1234]);
});
