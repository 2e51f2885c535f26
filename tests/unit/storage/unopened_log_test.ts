import assert from "node:assert/strict";
import { buildBatch } from "../../../lib/records/record.ts";
import { defaultLogConfig, type LogConfig } from "../../../lib/storage/log_config.ts";
import { mayBeDirty, mayBeOverdue } from "../../../lib/storage/unopened_log.ts";
import { batchOfBytes, type Bench, produce, storageTest } from "./support.ts";

const DAY = 86_400_000;
const NOW = 100 * DAY;
const config = (changed: Partial<LogConfig>): LogConfig => ({ ...defaultLogConfig, ...changed });

/** A closed log of batches with these time stamps, two to a segment, whose files were written at a time. */
async function closedLog(bench: Bench, timestamps: readonly number[], writtenMs: number): Promise<void> {
  bench.clock.nowMs = NOW;
  const log = await bench.takeOver(1, { segmentBytes: 1_000 });
  for (const timestamp of timestamps) await produce(log, batchOfBytes(400, { timestamp }));
  await log.relinquish();
  for (const name of bench.names()) Deno.utimeSync(bench.path(name), writtenMs / 1000, writtenMs / 1000);
}

function overdue(bench: Bench, changed: Partial<LogConfig>): Promise<boolean> {
  return mayBeOverdue(bench.disk, bench.folder, config({ retentionMs: -1, ...changed }), NOW);
}

storageTest("the oldest segment's newest time stamp says whether retention.ms may have passed", async (bench) => {
  await closedLog(bench, [NOW - 2 * DAY, NOW - DAY, NOW, NOW], NOW);
  assert.equal(await overdue(bench, { retentionMs: DAY }), false);
  assert.equal(await overdue(bench, { retentionMs: DAY - 1 }), true);
  assert.equal(await overdue(bench, { retentionMs: DAY - 1, deletes: false }), false);
  assert.equal(await overdue(bench, {}), false);
});

storageTest("without a time index the first batch speaks for a segment", async (bench) => {
  await closedLog(bench, [NOW - 2 * DAY], NOW);
  for (const name of bench.names()) if (name.endsWith(".timeindex")) Deno.removeSync(bench.path(name));
  assert.equal(await overdue(bench, { retentionMs: 3 * DAY }), false);
  assert.equal(await overdue(bench, { retentionMs: DAY }), true);
});

storageTest("without time stamps, or with ones in the future, the time of the last write does", async (bench) => {
  await closedLog(bench, [-1, -1], NOW - 2 * DAY);
  assert.equal(await overdue(bench, { retentionMs: 3 * DAY }), false);
  assert.equal(await overdue(bench, { retentionMs: DAY }), true);
  await closedLog(bench, [], NOW);
});

storageTest("a segment with time stamps in the future is as old as its file", async (bench) => {
  await closedLog(bench, [NOW + 50 * DAY, NOW], NOW - 2 * DAY);
  assert.equal(await overdue(bench, { retentionMs: 3 * DAY }), false);
  assert.equal(await overdue(bench, { retentionMs: DAY }), true);
});

storageTest("by size a log may be due while what would remain is at least retention.bytes", async (bench) => {
  await closedLog(bench, [NOW, NOW, NOW, NOW], NOW);
  const bytes = bench.names().filter((name) => name.endsWith(".log"))
    .reduce((sum, name) => sum + Deno.statSync(bench.path(name)).size, 0);
  assert.equal(await overdue(bench, { retentionBytes: bytes / 2 }), true);
  assert.equal(await overdue(bench, { retentionBytes: bytes / 2 + 1 }), false);
});

storageTest("an empty log is never due", async (bench) => {
  await closedLog(bench, [], NOW);
  assert.equal(await overdue(bench, { retentionMs: 0, retentionBytes: 0 }), false);
  assert.equal(await mayBeDirty(bench.disk, bench.folder, config({ compacts: true }), NOW), false);
});

storageTest("names, sizes and the cleaner's checkpoint say whether compaction may be due", async (bench) => {
  bench.clock.nowMs = NOW;
  const compacting = { deletes: false, compacts: true, segmentBytes: 600, minCleanableDirtyRatio: 0.5 };
  const log = await bench.takeOver(1, { ...compacting, deleteRetentionMs: DAY });
  const put = (key: string, value: string | null = "v".repeat(200)) =>
    produce(log, buildBatch({ records: [{ key, value }], timestamp: NOW }));
  for (const key of ["a", "b", "c", "d", "e", "f"]) await put(key);
  await put("a", null);
  for (const key of ["g", "h"]) await put(key);
  const dirty = (changed: Partial<LogConfig> = {}, nowMs = NOW) =>
    mayBeDirty(bench.disk, bench.folder, config({ ...compacting, ...changed }), nowMs);
  assert.equal(await dirty(), true);
  assert.equal(await dirty({ compacts: false }), false);
  const outcome = await log.clean({
    dedupeBytes: 10_000,
    loadFactor: 0.9,
    ioBufferBytes: 10_000,
    pace: { moved: () => {}, isDue: () => false, rest: () => Promise.resolve() },
    mayChange: () => true,
  });
  assert.equal(outcome.kind, "cleaned");
  await log.relinquish();
  assert.equal(await dirty(), false);
  assert.equal(await dirty({ minCleanableDirtyRatio: 0.01 }), true);
  assert.equal(await dirty({ maxCompactionLagMs: DAY }), true, "only the log itself knows how old its records are");
  assert.equal(await dirty({}, NOW + DAY - 1), false);
  assert.equal(await dirty({}, NOW + DAY), true, "a delete mark's time has come");
});
