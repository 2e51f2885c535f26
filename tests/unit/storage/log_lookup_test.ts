import assert from "node:assert/strict";
import { Compression } from "../../../lib/records/batch.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { append, batchOf, batchOfBytes, produce, storageTest } from "./support.ts";

function timed(timestamps: number[], compression: Compression = Compression.none): Uint8Array {
  return buildBatch({ compression, records: timestamps.map((timestamp) => ({ timestamp, value: "value" })) });
}

for (const [name, codec] of Object.entries(Compression)) {
  storageTest(`a lookup by time goes inside a ${name} batch`, async (bench) => {
    const log = await bench.takeOver(1);
    await produce(log, timed([100, 200, 300, 400], codec));
    assert.deepEqual(await log.offsetForTimestamp(250), { offset: 2, timestamp: 300, leaderEpoch: 1 });
    assert.deepEqual(await log.offsetForTimestamp(400), { offset: 3, timestamp: 400, leaderEpoch: 1 });
    assert.equal(await log.offsetForTimestamp(401), null);
    await log.relinquish();
  });
}

storageTest("a lookup finds the first record in offset order at or after the time", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, timed([1000]));
  await produce(log, timed([2000]));
  assert.deepEqual(await log.offsetForTimestamp(1500), { offset: 1, timestamp: 2000, leaderEpoch: 1 });
  assert.deepEqual(await log.offsetForTimestamp(0), { offset: 0, timestamp: 1000, leaderEpoch: 1 });
  assert.equal(await log.offsetForTimestamp(2001), null);
  await log.relinquish();
});

storageTest("a lookup copes with time stamps out of order, over segments and restarts", async (bench) => {
  const config = { segmentBytes: 3_000, indexIntervalBytes: 500 };
  const timestamps = Array.from({ length: 100 }, (_, i) => 10_000 + ((i * 37) % 50) * 100 + i * 20);
  const expected = (from: number) => {
    const offset = timestamps.findIndex((timestamp) => timestamp >= from);
    return offset < 0 ? null : { offset, timestamp: timestamps[offset], leaderEpoch: 1 };
  };
  let log = await bench.takeOver(1, config);
  for (const timestamp of timestamps) append(log, batchOfBytes(200, { timestamp }));
  await log.flush();
  for (let round = 0; round < 2; round++) {
    for (let from = 9_900; from < 18_000; from += 130) {
      assert.deepEqual(await log.offsetForTimestamp(from), expected(from));
    }
    const newest = Math.max(...timestamps);
    const offset = timestamps.indexOf(newest);
    assert.deepEqual(await log.maxTimestamp(), { offset, timestamp: newest, leaderEpoch: 1 });
    await log.relinquish();
    log = await bench.takeOver(2, config);
  }
  await log.relinquish();
});

storageTest("lookups see nothing that is not durable, nor below the log's start", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, timed([100, 200, 300]));
  append(log, timed([900]));
  assert.equal(await log.offsetForTimestamp(500), null);
  await log.flush();
  assert.equal((await log.offsetForTimestamp(500))?.offset, 3);
  await log.deleteRecords(2);
  assert.equal((await log.offsetForTimestamp(0))?.offset, 2);
  await log.relinquish();
});

storageTest("a log without time stamps, or without records, has no newest record", async (bench) => {
  const log = await bench.takeOver(1);
  assert.equal(await log.maxTimestamp(), null);
  await produce(log, batchOf(2, { timestamp: -1 }));
  assert.equal(await log.maxTimestamp(), null);
  assert.equal(await log.offsetForTimestamp(0), null);
  await log.relinquish();
});

storageTest("with append time, lookups speak of that time", async (bench) => {
  const log = await bench.takeOver(1, { messageTimestampType: "LogAppendTime" });
  await produce(log, timed([1, 2]), 5_000);
  await produce(log, timed([1, 2]), 6_000);
  assert.deepEqual(await log.offsetForTimestamp(5_500), { offset: 2, timestamp: 6_000, leaderEpoch: 1 });
  await log.relinquish();
});
