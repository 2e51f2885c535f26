import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { batchOfBytes, failing, numbers, offsetsOf, produce, storageTest } from "./support.ts";

const config = { segmentBytes: 1_000 };

storageTest("deleting records raises the log's start, frees whole segments and survives a restart", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 10; i++) await produce(log, batchOfBytes(400));
  assert.deepEqual(await log.deleteRecords(5), { errorCode: 0, lowWatermark: 5 });
  assert.deepEqual(log.segmentBaseOffsets(), [5, 6, 8]);
  assert.deepEqual(await offsetsOf(log), numbers(5, 5));
  await bench.kill(log);
  const again = await bench.takeOver(2, config);
  assert.equal(again.logStartOffset, 5);
  assert.deepEqual(await offsetsOf(again), numbers(5, 5));
  await again.relinquish();
});

storageTest("offsets at or below the log's start, or out of range, change nothing", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 4; i++) await produce(log, batchOfBytes(400));
  await log.deleteRecords(2);
  const before = bench.names();
  for (const offset of [0, 1, 2]) assert.deepEqual(await log.deleteRecords(offset), { errorCode: 0, lowWatermark: 2 });
  for (const offset of [-2, 5, 1_000]) {
    assert.equal((await log.deleteRecords(offset)).errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  }
  assert.deepEqual([log.logStartOffset, bench.names()], [2, before]);
  await log.relinquish();
});

storageTest("deleting up to the high watermark frees the active segment too; offsets go on", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 3; i++) await produce(log, batchOfBytes(400));
  for (let i = 0; i < 3; i++) assert.deepEqual(await log.deleteRecords(-1), { errorCode: 0, lowWatermark: 3 });
  assert.equal(log.sizeBytes, 0);
  assert.deepEqual(bench.names().filter((name) => name.endsWith("log")), ["00000001-00000000000000000003.log"]);
  assert.equal((await produce(log, batchOfBytes(400))).baseOffset, 3);
  await bench.kill(log);
  const again = await bench.takeOver(2);
  assert.deepEqual([again.logStartOffset, await offsetsOf(again)], [3, [3]]);
  await again.relinquish();
});

storageTest("a log that was emptied is empty at the same offset after a restart", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 3; i++) await produce(log, batchOfBytes(400));
  await log.deleteRecords(3);
  await bench.kill(log);
  const again = await bench.takeOver(2);
  assert.deepEqual([again.logStartOffset, again.highWatermark], [3, 3]);
  await again.relinquish();
});

storageTest("the new start is durable before the first file goes", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 10; i++) await produce(log, batchOfBytes(400));
  const before = bench.hooked.operations.length;
  await log.deleteRecords(6);
  const operations = bench.hooked.operations.slice(before);
  const renamed = operations.indexOf("rename manifest.json");
  assert.match(operations[renamed + 1], /^syncFolder/);
  assert.ok(operations.findIndex((operation) => operation.startsWith("remove")) > renamed + 1);
  await log.relinquish();
});

storageTest("a start that cannot be made durable deletes nothing", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 10; i++) await produce(log, batchOfBytes(400));
  bench.hooked.hook = failing("rename", /manifest/, "no-space");
  assert.equal((await log.deleteRecords(6)).errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.deepEqual(await offsetsOf(log), numbers(0, 10));
  bench.hooked.hook = () => {};
  assert.equal((await log.deleteRecords(6)).errorCode, 0);
  await log.relinquish();
});

storageTest("what a crash left below the log's start is removed by the next takeover", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 10; i++) await produce(log, batchOfBytes(400));
  bench.hooked.hook = failing("remove", /\.log$/);
  await log.deleteRecords(6);
  bench.hooked.hook = () => {};
  await bench.kill(log);
  const again = await bench.takeOver(2, config);
  assert.deepEqual(bench.names().filter((name) => /0000[0-5]\.log/.test(name)), []);
  assert.deepEqual(await offsetsOf(again), numbers(6, 4));
  await again.relinquish();
});

storageTest("producing goes on while records are deleted", async (bench) => {
  const log = await bench.takeOver(1, config);
  for (let i = 0; i < 5; i++) await produce(log, batchOfBytes(400));
  const deleted = log.deleteRecords(-1);
  const produced = [1, 2, 3].map(() => produce(log, batchOfBytes(400)));
  assert.equal((await deleted).lowWatermark, 5);
  assert.deepEqual((await Promise.all(produced)).map((outcome) => outcome.baseOffset), [5, 6, 7]);
  assert.deepEqual(await offsetsOf(log), [5, 6, 7]);
  await log.relinquish();
});

storageTest("segments stay until a producer snapshot stands for their records", async (bench) => {
  const log = await bench.takeOver(1, config);
  const batch = (baseSequence: number) => batchOfBytes(400, { producerId: 7, producerEpoch: 0, baseSequence });
  bench.hooked.hook = failing("rename", /producer-state/);
  for (let i = 0; i < 6; i++) await produce(log, batch(i));
  const logs = () => bench.names().filter((name) => name.endsWith(".log")).length;
  assert.deepEqual(await log.deleteRecords(4), { errorCode: 0, lowWatermark: 4 });
  assert.equal(logs(), 3);
  bench.hooked.hook = () => {};
  assert.deepEqual(await log.deleteRecords(5), { errorCode: 0, lowWatermark: 5 });
  assert.equal(logs(), 1);
  await bench.kill(log);
  const again = await bench.takeOver(2, config);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((sequence) => again.append(batch(sequence), 5_000).kind),
    new Array(5).fill("duplicate"),
  );
  await again.relinquish();
});

storageTest(
  "an open transaction that lost its first records does not hold offsets below the log's start",
  async (bench) => {
    const log = await bench.takeOver(1);
    await produce(log, batchOfBytes(10, { producerId: 7, producerEpoch: 0, baseSequence: 0, isTransactional: true }));
    await produce(log, batchOfBytes(10));
    await log.deleteRecords(-1);
    await produce(log, batchOfBytes(10));
    assert.deepEqual([log.logStartOffset, log.lastStableOffset, log.highWatermark], [2, 2, 3]);
    await log.relinquish();
  },
);

storageTest("a deposed leader that wants to delete records learns so, and changes nothing", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOfBytes(10));
  const successor = await bench.takeOver(2);
  assert.equal((await log.deleteRecords(1)).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  assert.equal(log.stalled?.kind, "superseded");
  assert.deepEqual(bench.json("manifest.json"), { epoch: 2, highWatermark: 1, logStartOffset: 0 });
  await log.relinquish();
  await successor.relinquish();
});
