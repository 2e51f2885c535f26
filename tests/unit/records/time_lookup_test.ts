import assert from "node:assert/strict";
import { applyTimestampType, Compression, setBaseOffset } from "../../../lib/records/batch.ts";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { firstRecordAtOrAfter, newestRecord } from "../../../lib/records/time_lookup.ts";

const kinds = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
const batchOf = (timestamps: number[], compression: Compression = Compression.none, baseOffset = 0) =>
  buildBatch({ records: timestamps.map((timestamp) => ({ timestamp, value: "v" })), compression, baseOffset });

for (const name of kinds) {
  Deno.test(`firstRecordAtOrAfter finds the record inside the batch (${name})`, () => {
    const batch = batchOf([100, 200, 300, 400], Compression[name]);
    assert.deepEqual(firstRecordAtOrAfter(batch, 0, 250), { offset: 2, timestamp: 300 });
    assert.deepEqual(firstRecordAtOrAfter(batch, 0, 300), { offset: 2, timestamp: 300 });
    assert.deepEqual(firstRecordAtOrAfter(batch, 0, 0), { offset: 0, timestamp: 100 });
    assert.equal(firstRecordAtOrAfter(batch, 0, 401), null);
  });
}

Deno.test("firstRecordAtOrAfter goes by offset, not by time, and starts where the log starts", () => {
  const batch = batchOf([300, 100, 250], Compression.none, 50);
  assert.deepEqual(firstRecordAtOrAfter(batch, 0, 200), { offset: 50, timestamp: 300 });
  assert.deepEqual(firstRecordAtOrAfter(batch, 0, 200, 51), { offset: 52, timestamp: 250 });
  assert.equal(firstRecordAtOrAfter(batch, 0, 200, 53), null);
});

Deno.test("newestRecord finds the first of the newest records", () => {
  assert.deepEqual(newestRecord(batchOf([100, 400, 300, 400]), 0), { offset: 1, timestamp: 400 });
  assert.deepEqual(newestRecord(batchOf([100, 400, 300, 400]), 0, 2), { offset: 3, timestamp: 400 });
  assert.equal(newestRecord(batchOf([100]), 0, 1), null);
});

Deno.test("with append time every record has the batch's time, and the first one is found", () => {
  const batch = batchOf([100, 400, 300]);
  applyTimestampType(batch, 0, "logAppendTime", 1000);
  setBaseOffset(batch, 0, 7);
  assert.deepEqual(firstRecordAtOrAfter(batch, 0, 999), { offset: 7, timestamp: 1000 });
  assert.equal(firstRecordAtOrAfter(batch, 0, 1001), null);
  assert.deepEqual(newestRecord(batch, 0), { offset: 7, timestamp: 1000 });
});

Deno.test("a batch without records has no record at any time", () => {
  const batch = buildBatch({ records: [], lastOffsetDelta: 5 });
  assert.equal(firstRecordAtOrAfter(batch, 0, 0), null);
  assert.equal(newestRecord(batch, 0), null);
});

Deno.test("records that cannot be read are a fault", () => {
  const batch = batchOf([100], Compression.gzip);
  batch.fill(0, 61);
  assert.ok(firstRecordAtOrAfter(batch, 0, 0) instanceof RecordsFault);
  assert.ok(newestRecord(batch, 0) instanceof RecordsFault);
});
