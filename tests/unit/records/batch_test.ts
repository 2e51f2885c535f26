import assert from "node:assert/strict";
import * as batch from "../../../lib/records/batch.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { javaBatch } from "./golden.ts";

Deno.test("accessors read what Java's producer wrote", () => {
  const bytes = javaBatch("v2 transactional");
  assert.equal(batch.baseOffset(bytes), 0);
  assert.equal(batch.sizeInBytes(bytes), bytes.length);
  assert.equal(batch.batchLength(bytes), bytes.length - 12);
  assert.equal(batch.leaderEpoch(bytes), -1);
  assert.equal(batch.magic(bytes), 2);
  assert.equal(batch.attributes(bytes), 0x10);
  assert.equal(batch.lastOffsetDelta(bytes), 3);
  assert.equal(batch.baseTimestamp(bytes), 1700000000000);
  assert.equal(batch.maxTimestamp(bytes), 1700000000250);
  assert.equal(batch.producerId(bytes), 4711);
  assert.equal(batch.producerEpoch(bytes), 3);
  assert.equal(batch.baseSequence(bytes), 17);
  assert.equal(batch.lastSequence(bytes), 20);
  assert.equal(batch.recordsCount(bytes), 4);
  assert.equal(batch.crc(bytes), batch.computeCrc(bytes));
  assert.equal(batch.isTransactional(bytes), true);
  assert.equal(batch.isControl(bytes), false);
});

Deno.test("accessors read a batch that does not lie at the start of the buffer", () => {
  const bytes = javaBatch("v2 log append time");
  const moved = new Uint8Array(bytes.length + 7);
  moved.set(bytes, 7);
  assert.equal(batch.baseOffset(moved, 7), 100);
  assert.equal(batch.nextOffset(moved, 7), 104);
  assert.equal(batch.lastOffset(moved, 7), 103);
  assert.equal(batch.leaderEpoch(moved, 7), 5);
  assert.equal(batch.timestampTypeOf(moved, 7), "logAppendTime");
  assert.equal(batch.maxTimestamp(moved, 7), 1700000009999);
  assert.equal(batch.checkBatch(moved, 7), "whole");
});

Deno.test("int64 fields are exact up to 2^53 and keep their sign", () => {
  const bytes = new Uint8Array(8);
  for (const value of [0, 1, -1, -2, 2 ** 31, 2 ** 32, 2 ** 32 - 1, -(2 ** 32), 2 ** 53 - 1, -(2 ** 53) + 1]) {
    batch.writeInt64(bytes, 0, value);
    assert.equal(batch.readInt64(bytes, 0), value);
    assert.equal(new DataView(bytes.buffer).getBigInt64(0), BigInt(value));
  }
});

Deno.test("int16 and int32 fields keep their sign", () => {
  const bytes = new Uint8Array(4);
  for (const value of [0, 1, -1, 32767, -32768, 300, -300]) {
    batch.writeInt16(bytes, 0, value);
    assert.equal(batch.readInt16(bytes, 0), value);
  }
  for (const value of [0, -1, 2 ** 31 - 1, -(2 ** 31), 0x01020304]) {
    batch.writeInt32(bytes, 0, value);
    assert.equal(batch.readInt32(bytes, 0), value);
    assert.equal(batch.readUint32(bytes, 0), value >>> 0);
  }
});

Deno.test("stamping base offset and leader epoch leaves the CRC right", () => {
  const bytes = javaBatch("v2 none");
  batch.setBaseOffset(bytes, 0, 2 ** 40 + 5);
  batch.setLeaderEpoch(bytes, 0, 77);
  assert.equal(batch.baseOffset(bytes), 2 ** 40 + 5);
  assert.equal(batch.leaderEpoch(bytes), 77);
  assert.equal(batch.checkBatch(bytes, 0), "whole");
});

Deno.test("stamping append time sets the bit, the max timestamp and the CRC, and nothing else", () => {
  const bytes = javaBatch("v2 none");
  batch.applyTimestampType(bytes, 0, "logAppendTime", 1800000000000);
  assert.equal(batch.timestampTypeOf(bytes), "logAppendTime");
  assert.equal(batch.maxTimestamp(bytes), 1800000000000);
  assert.equal(batch.baseTimestamp(bytes), 1700000000000);
  assert.equal(batch.checkBatch(bytes, 0), "whole");
});

Deno.test("create time takes back a producer's claim of append time, and leaves an honest batch untouched", () => {
  const honest = javaBatch("v2 none");
  batch.applyTimestampType(honest, 0, "createTime", 5);
  assert.deepEqual(honest, javaBatch("v2 none"));
  const claimed = buildBatch({ records: [{ timestamp: 9 }], timestampType: "logAppendTime" });
  batch.applyTimestampType(claimed, 0, "createTime", 5);
  assert.deepEqual(claimed, buildBatch({ records: [{ timestamp: 9 }] }));
});

Deno.test("sequences wrap from 2^31-1 to 0", () => {
  assert.equal(batch.incrementSequence(2 ** 31 - 1, 1), 0);
  assert.equal(batch.incrementSequence(2 ** 31 - 2, 3), 1);
  const bytes = buildBatch({ records: [{}, {}], producerId: 1, producerEpoch: 0, baseSequence: 2 ** 31 - 1 });
  assert.equal(batch.lastSequence(bytes), 0);
  assert.equal(batch.lastSequence(buildBatch({ records: [{}] })), batch.NO_SEQUENCE);
});

Deno.test("checkBatch tells a cut batch from a corrupt one at every length and every flipped byte", () => {
  const bytes = javaBatch("v2 gzip");
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(batch.checkBatch(bytes.subarray(0, length), 0), "incomplete", `cut to ${length} bytes`);
  }
  for (let at = 16; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at] ^= 0x40;
    assert.equal(batch.checkBatch(flipped, 0), "corrupt", `byte ${at} flipped`);
  }
  assert.equal(batch.checkBatch(new Uint8Array(100), 0), "corrupt");
});
