import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import type { PartitionLog } from "../../../lib/storage/log.ts";
import { defaultLogConfig, type LogConfig } from "../../../lib/storage/log_config.ts";
import {
  append,
  batchOfBytes,
  type Bench,
  failing,
  numbers,
  offsetsOf,
  produce,
  read,
  storageTest,
} from "./support.ts";

const DAY = 86_400_000;
/** Segments of two batches each. */
const small = { segmentBytes: 1_000, retentionMs: -1, retentionBytes: -1 };

/** Ten batches of one record each, with these time stamps. */
async function tenBatches(log: PartitionLog, timestampOf: (i: number) => number): Promise<void> {
  for (let i = 0; i < 10; i++) await produce(log, batchOfBytes(400, { timestamp: timestampOf(i) }));
}

function lastWritten(bench: Bench, timeMs: number): void {
  for (const name of bench.names()) Deno.utimeSync(bench.path(name), timeMs / 1000, timeMs / 1000);
}

storageTest("segments leave once their newest record is older than retention.ms", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: 10_000 });
  await tenBatches(log, (i) => 100 * DAY + i * 1_000);
  bench.clock.advance(10_001);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  bench.clock.advance(1_000); // the newest record of the first segment is now too old
  const outcome = await log.enforceRetention();
  assert.deepEqual([outcome.removedSegments, outcome.logStartOffset, outcome.errorCode], [1, 2, 0]);
  bench.clock.advance(5_000);
  assert.equal((await log.enforceRetention()).logStartOffset, 6);
  assert.deepEqual(await offsetsOf(log), numbers(6, 4));
  assert.deepEqual(log.segmentBaseOffsets(), [6, 8]);
  await log.relinquish();
});

storageTest("the active segment leaves too, and offsets go on behind it, also after a restart", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: 0 });
  await tenBatches(log, () => 100 * DAY - 1);
  const outcome = await log.enforceRetention();
  assert.deepEqual([outcome.removedSegments, outcome.logStartOffset, log.sizeBytes], [5, 10, 0]);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  assert.deepEqual(bench.names().filter((name) => name.endsWith("log")), ["00000001-00000000000000000010.log"]);
  await bench.kill(log);
  const again = await bench.takeOver(2, small);
  assert.deepEqual([again.logStartOffset, (await produce(again, batchOfBytes(10))).baseOffset], [10, 10]);
  await again.relinquish();
});

storageTest("retention.ms of 0 spares what is no older than now", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: 0 });
  await tenBatches(log, () => 100 * DAY);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  bench.clock.advance(1);
  assert.equal((await log.enforceRetention()).logStartOffset, 10);
  await log.relinquish();
});

storageTest("retention.ms and retention.bytes of -1 keep everything for ever", async (bench) => {
  const log = await bench.takeOver(1, small);
  await tenBatches(log, () => 0);
  bench.clock.advance(1_000 * 365 * DAY);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  await log.relinquish();
});

storageTest("by size the oldest segments leave while what remains is at least retention.bytes", async (bench) => {
  const log = await bench.takeOver(1, { ...small, retentionBytes: 1_000 });
  await tenBatches(log, () => 0);
  const perSegment = log.sizeBytes / 5;
  await log.enforceRetention();
  assert.deepEqual([log.logStartOffset, log.sizeBytes], [6, 2 * perSegment]);
  log.applyConfig({ ...configOf(small), retentionBytes: perSegment });
  await log.enforceRetention();
  assert.deepEqual([log.logStartOffset, log.sizeBytes], [8, perSegment]);
  log.applyConfig({ ...configOf(small), retentionBytes: 0 });
  await log.enforceRetention();
  assert.deepEqual([log.logStartOffset, log.sizeBytes], [10, 0]);
  await log.relinquish();
});

storageTest("a log whose policy does not delete keeps old data and frees what is below its start", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, deletes: false, compacts: true, retentionMs: 0, retentionBytes: 0 });
  await tenBatches(log, () => 1);
  bench.hooked.hook = failing("remove", /0{19}[02]\.log/);
  await log.deleteRecords(5);
  bench.hooked.hook = () => {};
  await log.enforceRetention();
  assert.deepEqual([log.logStartOffset, log.segmentBaseOffsets()], [5, [5, 6, 8]]);
  await log.relinquish();
});

storageTest("records without time stamps are as old as their file", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: DAY });
  await tenBatches(log, () => -1);
  lastWritten(bench, 99 * DAY + 1);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  lastWritten(bench, 99 * DAY - 1);
  assert.equal((await log.enforceRetention()).logStartOffset, 10);
  await log.relinquish();
});

storageTest("a segment with times in the future is judged by when it was written, and that is told", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: DAY });
  await tenBatches(log, (i) => i < 2 ? 5_000 * DAY : 1);
  lastWritten(bench, 100 * DAY);
  const kept = await log.enforceRetention();
  assert.deepEqual([kept.removedSegments, kept.futureTimestampMs], [0, 5_000 * DAY]);
  lastWritten(bench, 98 * DAY);
  const gone = await log.enforceRetention();
  assert.deepEqual([gone.logStartOffset, gone.futureTimestampMs], [10, 5_000 * DAY]);
  assert.equal((await log.enforceRetention()).futureTimestampMs, null);
  await log.relinquish();
});

storageTest("a young segment in front keeps old ones behind it", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: DAY });
  await tenBatches(log, (i) => i < 2 ? 100 * DAY : 1);
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  await log.relinquish();
});

storageTest("a segment that grows while it is judged stays", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, segmentBytes: 1 << 20, retentionMs: DAY });
  await produce(log, batchOfBytes(400, { timestamp: -1 }));
  lastWritten(bench, DAY);
  bench.hooked.hook = (operation) => {
    if (operation === "stat") append(log, batchOfBytes(400, { timestamp: 100 * DAY }));
  };
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  bench.hooked.hook = () => {};
  await log.flush();
  assert.deepEqual(await offsetsOf(log), [0, 1]);
  await log.relinquish();
});

storageTest("what is not durable yet does not leave", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: 0 });
  const outcome = append(log, batchOfBytes(400, { timestamp: 1 }));
  assert.equal((await log.enforceRetention()).removedSegments, 0);
  await log.durable(outcome.ticket);
  assert.equal((await log.enforceRetention()).removedSegments, 1);
  await log.relinquish();
});

storageTest("a start that cannot be made durable removes nothing; the next look does", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: 0 });
  await tenBatches(log, () => 1);
  bench.hooked.hook = failing("rename", /manifest/, "no-space");
  const failed = await log.enforceRetention();
  assert.deepEqual([failed.errorCode, failed.removedSegments], [ErrorCode.KAFKA_STORAGE_ERROR, 0]);
  assert.deepEqual(await offsetsOf(log), numbers(0, 10));
  bench.hooked.hook = () => {};
  assert.equal((await log.enforceRetention()).logStartOffset, 10);
  await log.relinquish();
});

storageTest("a reader in the middle of a segment that leaves finishes or is told it is out of range", async (bench) => {
  bench.clock.nowMs = 100 * DAY;
  const log = await bench.takeOver(1, { ...small, retentionMs: -1 });
  await tenBatches(log, () => 1);
  bench.clock.advance(DAY); // nothing is recent: reads go to the files
  const release = Promise.withResolvers<void>();
  bench.hooked.hook = (operation, path) =>
    operation === "read" && /0{20}\.log/.test(path) ? release.promise : undefined;
  const reading = log.read({ offset: 0, maxBytes: 1 << 20, minOneBatch: true, limit: "highWatermark" });
  log.applyConfig({ ...configOf(small), retentionMs: 0 });
  const retention = log.enforceRetention();
  setTimeout(() => release.resolve(), 20);
  const outcome = await reading;
  assert.equal((await retention).logStartOffset, 10);
  if (outcome.kind === "batches") outcome.release();
  else assert.equal(outcome.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  const late = await log.read({ offset: 0, maxBytes: 1 << 20, minOneBatch: true, limit: "highWatermark" });
  assert.deepEqual(late, { kind: "refused", errorCode: ErrorCode.OFFSET_OUT_OF_RANGE });
  (await read(log, { offset: 10 })).release();
  await log.relinquish();
});

function configOf(config: Partial<LogConfig>): LogConfig {
  return { ...defaultLogConfig, ...config };
}
