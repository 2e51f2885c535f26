/**
 * Compaction of random histories (all codecs, delete marks, transactions, restarts in between) against a simple model.
 * `KAAS_SEEDS` sets how many histories are tried.
 */

import assert from "node:assert/strict";
import { PartitionLog } from "../../lib/storage/log.ts";
import { defaultLogConfig, type LogConfig } from "../../lib/storage/log_config.ts";
import { inspectPartition } from "../../lib/storage/partition_inspection.ts";
import { verifyPartition } from "../../lib/storage/partition_verification.ts";
import { createResources } from "../../lib/storage/resources.ts";
import { consumeCommitted, ModelHistory } from "./compaction_model.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

const SEEDS = Number(Deno.env.get("KAAS_SEEDS") ?? 150);
const FOLDER = "/data/topic/0";
const DELETE_RETENTION_MS = 10_000;

async function runHistory(seed: number): Promise<{ passes: number; removed: number }> {
  const random = new SeededRandom(seed);
  const clock = new SimulatedClock();
  const disk = new SimulatedDisk({ random: random.fork(), clock });
  await disk.makeFolder(FOLDER);
  const config: LogConfig = {
    ...defaultLogConfig,
    deletes: false,
    compacts: true,
    segmentBytes: random.pick([600, 2000, 10_000]),
    indexIntervalBytes: random.pick([1, 200, 4096]),
    checkpointIntervalBytes: 2000,
    deleteRetentionMs: DELETE_RETENTION_MS,
    minCleanableDirtyRatio: 0,
  };
  const logger = { info: () => {}, warn: () => {}, error: () => {} };
  const resources = createResources({ random, maxOpenHandles: 8 });
  let epoch = 0;
  const takeOver = () =>
    PartitionLog.takeOver(disk, FOLDER, { leaderEpoch: ++epoch, config, clock, logger, resources });
  let log = await takeOver();
  const history = new ModelHistory(random);
  let cleanedUpTo = 0;
  let passes = 0;
  let removed = 0;
  let longestMarkMs = -Infinity;
  const check = async () => {
    const marksMayGo = clock.wallMs() - longestMarkMs >= DELETE_RETENTION_MS;
    history.check(await consumeCommitted(log, random), cleanedUpTo, log.lastStableOffset, marksMayGo);
  };
  for (let round = random.between(2, 8); round > 0; round--) {
    for (let i = random.between(1, 40); i > 0; i--) history.append(log, clock.wallMs());
    if (round === 1) history.endAll(log, clock.wallMs());
    await log.flush();
    const outcome = await log.clean({
      dedupeBytes: random.pick([200, 2000, 100_000]),
      loadFactor: 0.9,
      ioBufferBytes: random.pick([1, 300, 100_000]),
      pace: { moved: () => {}, isDue: () => random.chance(0.1), rest: () => Promise.resolve() },
      mayChange: () => true,
    });
    assert.equal(outcome.kind, "cleaned", JSON.stringify(outcome));
    if (outcome.kind === "cleaned") {
      assert.ok(outcome.cleanedUpTo >= cleanedUpTo || outcome.bytesBefore === 0);
      if (longestMarkMs === -Infinity) longestMarkMs = clock.wallMs();
      cleanedUpTo = Math.max(cleanedUpTo, outcome.cleanedUpTo);
      removed += outcome.bytesBefore - outcome.bytesAfter;
      passes++;
    }
    await check();
    if (random.chance(0.3)) clock.advance(random.pick([1000, DELETE_RETENTION_MS + 1]));
    if (random.chance(0.4)) {
      random.chance(0.5) ? await log.relinquish() : await log.abandon();
      if (random.chance(0.5)) {
        for (const { name } of await disk.list(FOLDER)) {
          if (/snapshot|recovery|\.index|\.timeindex/.test(name)) await disk.remove(`${FOLDER}/${name}`);
        }
      }
      log = await takeOver();
      assert.deepEqual(log.report.damages, []);
      await check();
      const sequences = new Map(log.activeProducers().map((entry) => [entry.producerId, entry.window.at(-1)]));
      for (const [id, next] of history.sequences) {
        assert.equal(sequences.get(id)?.lastSequence, next - 1, `the sequence of producer ${id}`);
      }
    }
  }
  await log.relinquish();
  const inspection = await inspectPartition(disk, FOLDER);
  const verification = await verifyPartition(disk, inspection);
  assert.deepEqual([verification.damages, verification.gaps, inspection.leftovers, inspection.foreign], [
    [],
    [],
    [],
    [],
  ]);
  assert.equal(disk.openHandles, 0);
  return { passes, removed };
}

Deno.test("a compacted log shows each key's last value and nothing it should not, whatever its history", async () => {
  let removed = 0;
  const one = Deno.env.get("KAAS_SEED");
  for (let seed = one === undefined ? 0 : Number(one); seed < (one === undefined ? SEEDS : Number(one) + 1); seed++) {
    try {
      removed += (await runHistory(seed)).removed;
    } catch (error) {
      console.error(`reproduce with KAAS_SEED=${seed}`);
      throw error;
    }
  }
  assert.ok(removed > 0, "nothing was ever removed");
});
