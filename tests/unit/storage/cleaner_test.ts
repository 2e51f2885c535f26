import assert from "node:assert/strict";
import { isControl, sizeInBytes } from "../../../lib/records/batch.ts";
import { buildEndTransactionMarker } from "../../../lib/records/control.ts";
import { buildBatch, type RecordInput, recordsOf } from "../../../lib/records/record.ts";
import type { CleaningOptions } from "../../../lib/storage/cleaner.ts";
import type { PartitionLog } from "../../../lib/storage/log.ts";
import { defaultLogConfig, type LogConfig } from "../../../lib/storage/log_config.ts";
import { append, batchOfBytes, type Bench, failing, offsetsOf, produce, read, storageTest } from "./support.ts";

/** Segments of two of the batches that `put` makes. */
const compacting = { deletes: false, compacts: true, segmentBytes: 700, indexIntervalBytes: 1 };
const value = "v".repeat(200);

const options: CleaningOptions = {
  dedupeBytes: 100_000,
  loadFactor: 0.9,
  ioBufferBytes: 100_000,
  pace: { moved: () => {}, isDue: () => false, rest: () => Promise.resolve() },
  mayChange: () => true,
};

function configOf(config: Partial<LogConfig>): LogConfig {
  return { ...defaultLogConfig, ...compacting, ...config };
}

function batchOf(key: string, record: Partial<RecordInput> = {}): Uint8Array {
  return buildBatch({ records: [{ key, value, timestamp: 1_000, ...record }] });
}

async function put(log: PartitionLog, ...keys: string[]): Promise<void> {
  for (const key of keys) await produce(log, batchOf(key));
}

async function clean(log: PartitionLog, changed: Partial<CleaningOptions> = {}) {
  const outcome = await log.clean({ ...options, ...changed });
  assert.equal(outcome.kind, "cleaned", JSON.stringify(outcome));
  return outcome.kind === "cleaned" ? outcome : assert.fail();
}

function segments(bench: Bench): string[] {
  return bench.names().filter((name) => name.endsWith(".log")).map((name) => String(Number(name.slice(9, 29))));
}

storageTest(
  "a pass keeps the last value of each key, merges small segments and leaves the active one alone",
  async (bench) => {
    const log = await bench.takeOver(1, compacting);
    await put(log, "a", "b", "a", "b", "a", "c", "a");
    assert.deepEqual(segments(bench), ["0", "2", "4", "6"]);
    const outcome = await clean(log);
    assert.equal(outcome.cleanedUpTo, 6);
    assert.ok(outcome.bytesAfter < outcome.bytesBefore);
    assert.deepEqual(await offsetsOf(log), [3, 4, 5, 6]);
    assert.deepEqual(segments(bench), ["0", "2", "4", "6"]);
    await clean(log); // now the first two fit one segment
    assert.deepEqual(segments(bench), ["0", "4", "6"]);
    assert.deepEqual(await offsetsOf(log), [3, 4, 5, 6]);
    assert.deepEqual(bench.json("cleaner-checkpoint.json"), { cleanedUpTo: 6 });
    await bench.kill(log);
    const again = await bench.takeOver(2, compacting);
    assert.deepEqual([await offsetsOf(again), again.logStartOffset, again.report.damages], [[3, 4, 5, 6], 0, []]);
    await again.relinquish();
  },
);

storageTest("a log is due once more than min.cleanable.dirty.ratio of it is dirty", async (bench) => {
  const log = await bench.takeOver(1, { ...compacting, minCleanableDirtyRatio: 0.5 });
  await put(log, "a", "b", "c", "d", "e");
  assert.deepEqual([(await log.cleanable()).isDue, (await log.cleanable()).ratio], [true, 1]);
  await clean(log);
  assert.deepEqual(await log.cleanable(), { isDue: false, ratio: 0, dirtyBytes: 0 });
  await put(log, "a", "b"); // one sealed segment is dirty, two are clean
  const { isDue, ratio } = await log.cleanable();
  assert.equal(isDue, false);
  assert.ok(ratio > 0.3 && ratio < 0.4, `${ratio}`);
  log.applyConfig(configOf({ minCleanableDirtyRatio: 0.1 }));
  assert.equal((await log.cleanable()).isDue, true);
  log.applyConfig(configOf({ minCleanableDirtyRatio: 0.1, compacts: false }));
  assert.equal((await log.cleanable()).isDue, false);
  await log.relinquish();
});

storageTest("how far passes came is known after a restart; without that everything is dirty again", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "c", "d", "e");
  await clean(log);
  await log.relinquish();
  const again = await bench.takeOver(2, compacting);
  const clean4 = await again.cleanable();
  assert.ok(clean4.ratio < 0.4, `${clean4.ratio}`);
  await again.relinquish();
  for (const broken of ["{", JSON.stringify({ cleanedUpTo: 99 })]) {
    Deno.writeTextFileSync(bench.path("cleaner-checkpoint.json"), broken);
    const without = await bench.takeOver(3, compacting);
    assert.equal((await without.cleanable()).ratio, 1);
    await without.relinquish();
  }
});

storageTest("records younger than min.compaction.lag.ms, and all behind them, are left alone", async (bench) => {
  const log = await bench.takeOver(1, { ...compacting, minCompactionLagMs: 5_000 });
  bench.clock.nowMs = 10_000;
  const at = (key: string, timestamp: number) => produce(log, batchOf(key, { timestamp }));
  for (const key of ["a", "a"]) await at(key, 1_000);
  for (const key of ["a", "a"]) await at(key, 8_000);
  for (const key of ["a", "a", "a"]) await at(key, 1_000);
  assert.equal((await clean(log)).cleanedUpTo, 2);
  assert.deepEqual(await offsetsOf(log), [1, 2, 3, 4, 5, 6]);
  bench.clock.nowMs = 13_000;
  assert.equal((await clean(log)).cleanedUpTo, 6);
  assert.deepEqual(await offsetsOf(log), [5, 6]);
  await log.relinquish();
});

storageTest("a record older than max.compaction.lag.ms is due, also out of the active segment", async (bench) => {
  const config = { ...compacting, minCleanableDirtyRatio: 1, maxCompactionLagMs: 60_000 };
  const log = await bench.takeOver(1, config);
  await put(log, "a");
  await produce(log, batchOf("a", { timestamp: 2_000 }));
  bench.clock.nowMs = 61_000;
  assert.equal((await log.cleanable()).isDue, false);
  bench.clock.nowMs = 61_001;
  assert.equal((await log.cleanable()).isDue, true);
  assert.equal((await clean(log)).cleanedUpTo, 2);
  assert.deepEqual(await offsetsOf(log), [1]);
  assert.equal((await log.cleanable()).isDue, false);
  await log.relinquish();
});

storageTest("nothing at or past the last stable offset is compacted", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "a");
  const transaction = { producerId: 7, producerEpoch: 0, baseSequence: 0, isTransactional: true };
  await produce(log, buildBatch({ records: [{ key: "t", value }], timestamp: 1_000, ...transaction }));
  await put(log, "a", "a", "a", "a");
  assert.equal(log.lastStableOffset, 2);
  assert.equal((await clean(log)).cleanedUpTo, 2);
  assert.deepEqual(await offsetsOf(log), [1, 2, 3, 4, 5, 6]);
  await log.relinquish();
});

storageTest(
  "aborted data leaves the volume at once, its marker and what tells of it after two horizons",
  async (bench) => {
    const log = await bench.takeOver(1, { ...compacting, segmentBytes: 1_200, deleteRetentionMs: 1_000 });
    const transaction = { producerId: 7, producerEpoch: 0, isTransactional: true };
    const abort = { result: "abort", producerId: 7, producerEpoch: 0, coordinatorEpoch: 0 } as const;
    const transact = async (key: string, baseSequence: number) => {
      const records = [{ key, value }];
      await produce(log, buildBatch({ records, timestamp: 1_000, ...transaction, baseSequence }));
      await produce(log, buildEndTransactionMarker(abort, 1_000));
    };
    await put(log, "a");
    await transact("a", 0);
    await put(log, "b", "c", "d");
    await transact("e", 1); // so that the first transaction does not hold this producer's last batch
    await put(log, "f", "g", "h");
    const inside = async () => {
      const { bytes, release, abortedTransactions } = await read(log, { limit: "lastStableOffset", maxBytes: 1 });
      const batches: string[] = [];
      release();
      for (let offset = 0; offset < log.highWatermark;) {
        const outcome = await read(log, { offset, maxBytes: 1 });
        const found = recordsOf(outcome.bytes);
        assert.ok(Array.isArray(found));
        const kind = isControl(outcome.bytes) ? "marker" : found.length === 0 ? "empty" : "data";
        batches.push(`${kind} ${found[0]?.offset ?? "-"}`);
        offset = found[0]?.offset ?? offset;
        offset = Number(new DataView(outcome.bytes.buffer, outcome.bytes.byteOffset).getBigInt64(0)) +
          new DataView(outcome.bytes.buffer, outcome.bytes.byteOffset).getInt32(23) + 1;
        outcome.release();
      }
      return { batches, told: abortedTransactions.length, size: sizeInBytes(bytes) };
    };
    await clean(log);
    let found = (await inside()).batches;
    assert.ok(!found.includes("data 1") && found.includes("marker 2"), found.join());
    await clean(log); // no data is in front of the marker any more: its time begins
    assert.equal((await log.cleanable()).isDue, false);
    bench.clock.advance(1_000);
    assert.equal((await log.cleanable()).isDue, true, "an idle log is due when its horizons have passed");
    await clean(log);
    found = (await inside()).batches;
    assert.ok(!found.includes("marker 2") && found.includes("marker 7"), found.join());
    const { abortedTransactions, release } = await read(log, {
      offset: 0,
      maxBytes: 1 << 20,
      limit: "lastStableOffset",
    });
    release();
    assert.deepEqual(abortedTransactions.map(({ firstOffset }) => firstOffset).filter((offset) => offset < 6), []);
    assert.equal((await log.cleanable()).isDue, false);
    await log.relinquish();
  },
);

storageTest("an idle log's delete marks leave by themselves when their time has come", async (bench) => {
  const log = await bench.takeOver(1, { ...compacting, deleteRetentionMs: 60_000 });
  await put(log, "a", "b");
  await produce(log, batchOf("a", { value: null }));
  await put(log, "c", "d", "e");
  await clean(log);
  assert.ok((await offsetsOf(log)).includes(2), "the mark is there for now");
  assert.deepEqual((await offsetsOf(log)).includes(0), false);
  bench.clock.advance(60_000);
  assert.equal((await log.cleanable()).isDue, true);
  await clean(log);
  assert.ok(!(await offsetsOf(log)).includes(2));
  await log.relinquish();
});

storageTest("a table of keys that is too small for all makes several passes of one", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  for (let i = 0; i < 30; i++) await put(log, `key ${i % 10}`);
  let passes = 0;
  while ((await log.cleanable()).dirtyBytes > 0 && passes < 50) {
    await clean(log, { dedupeBytes: 200 });
    passes++;
  }
  assert.ok(passes > 3 && passes < 50, `${passes} passes`);
  const kept = await offsetsOf(log);
  await clean(log);
  assert.deepEqual((await offsetsOf(log)).length <= kept.length, true);
  assert.deepEqual((await offsetsOf(log)).slice(-10), [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
  await log.relinquish();
});

storageTest("reads that come while segments are swapped wait and are answered from the new ones", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "a", "b", "a", "b", "a");
  bench.clock.advance(1_000_000); // nothing is recent
  let reading: Promise<number[]> | null = null;
  bench.hooked.hook = (operation, path) => {
    if (operation === "rename" && path.endsWith("2.log")) reading ??= offsetsOf(log);
  };
  await clean(log);
  assert.deepEqual(await reading, [4, 5, 6]);
  assert.equal((await log.maxTimestamp())?.offset, 4);
  assert.equal((await log.offsetForTimestamp(0))?.offset, 4);
  await log.relinquish();
});

storageTest("a file is closed before another takes its name", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "a", "b", "a");
  await offsetsOf(log);
  bench.clock.advance(1_000_000);
  await offsetsOf(log); // opens all segments
  let swaps = 0;
  bench.hooked.hook = (operation, path) => {
    if (!(operation === "rename" || operation === "remove") || !path.endsWith(".log")) return;
    swaps++;
    assert.ok(!bench.registry.openPaths(bench.folder).includes(path), `${path} is open`);
  };
  await clean(log);
  await clean(log);
  assert.ok(swaps >= 3, `${swaps}`);
  await log.relinquish();
});

storageTest("records that are deleted during a pass end it, and nothing comes back", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "c", "d", "e", "f", "g");
  await produce(log, batchOf("a"));
  let deleting: Promise<unknown> | null = null;
  bench.hooked.hook = (operation, path) => {
    if (operation === "open-create" && path.endsWith(".tmp") && path.includes(".log.")) {
      deleting ??= log.deleteRecords(4);
    }
  };
  log.applyConfig(configOf({ deletes: true }));
  const outcome = await log.clean({ ...options, ioBufferBytes: 1 });
  await deleting;
  bench.hooked.hook = () => {};
  assert.equal(log.logStartOffset, 4);
  if (outcome.kind !== "cleaned") assert.equal(outcome.kind, "interrupted");
  assert.deepEqual(await offsetsOf(log), [4, 5, 6, 7]);
  assert.deepEqual(bench.names().filter((name) => name.endsWith(".tmp")), []);
  await log.relinquish();
});

storageTest("a log that is closed during a pass leaves nothing open and no unfinished file", async (bench) => {
  for (const end of ["relinquish", "abandon"] as const) {
    const log = await bench.takeOver(1, compacting);
    await put(log, "a", "b", "a", "b", "a");
    let ending: Promise<void> | null = null;
    bench.hooked.hook = (operation, path) => {
      if (operation === "open-create" && path.includes(".log.")) ending ??= log[end]();
    };
    assert.equal((await log.clean(options)).kind, "interrupted");
    await ending;
    bench.hooked.hook = () => {};
    bench.assertClosed();
    assert.deepEqual(bench.names().filter((name) => name.endsWith(".tmp")), []);
  }
});

storageTest("a leader whose session is over changes nothing", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "a", "b", "a");
  const before = bench.names();
  assert.equal((await log.clean({ ...options, mayChange: () => false })).kind, "interrupted");
  assert.deepEqual(bench.names(), before);
  await log.relinquish();
});

storageTest("a log whose durability is relaxed is made durable first", async (bench) => {
  const log = await bench.takeOver(1, { ...compacting, flushMessages: 1_000_000 });
  for (const key of ["a", "b", "a", "b", "a"]) append(log, batchOf(key));
  assert.equal((await log.cleanable()).isDue, true);
  assert.equal((await clean(log)).cleanedUpTo, 4);
  assert.deepEqual(await offsetsOf(log), [2, 3, 4]);
  await bench.kill(log);
  const again = await bench.takeOver(2, compacting);
  assert.deepEqual(await offsetsOf(again), [2, 3, 4]);
  await again.relinquish();
});

storageTest("a volume without room fails the pass and nothing else", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "a", "b", "a");
  bench.hooked.hook = failing("writeSync", /\.tmp$/, "no-space");
  const outcome = await log.clean(options);
  assert.equal(outcome.kind, "failed");
  bench.hooked.hook = () => {};
  await put(log, "b");
  assert.deepEqual(await offsetsOf(log), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(bench.names().filter((name) => name.endsWith(".tmp")), []);
  await clean(log);
  assert.deepEqual((await offsetsOf(log)).slice(-3), [3, 4, 5]);
  await log.relinquish();
});

storageTest(
  "a damaged segment, and what lies behind it, is never touched; what is in front is compacted",
  async (bench) => {
    const log = await bench.takeOver(1, compacting);
    await put(log, "a", "a", "a", "a", "a", "a", "a");
    const file = Deno.openSync(bench.path("00000001-00000000000000000004.log"), { write: true });
    file.seekSync(100, Deno.SeekMode.Start);
    file.writeSync(new Uint8Array(20));
    file.close();
    const outcome = await log.clean(options);
    assert.equal(outcome.kind, "failed");
    assert.match(outcome.kind === "failed" ? outcome.problem : "", /0{19}4\.log: no valid batch at byte 0/);
    assert.equal((await clean(log)).cleanedUpTo, 4);
    assert.deepEqual((await log.cleanable()).dirtyBytes, 0);
    await log.relinquish();
  },
);

storageTest("appends go on during a pass, and segments sealed meanwhile wait for the next one", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "b", "a", "b", "a");
  let more = 0;
  const pace = {
    moved: () => {},
    isDue: () => more < 6,
    rest: () => Promise.resolve(void append(log, batchOf(`new ${more++}`))),
  };
  assert.equal((await clean(log, { pace })).cleanedUpTo, 4);
  await log.flush();
  assert.deepEqual(await offsetsOf(log), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await log.relinquish();
});

storageTest("with compact and delete, old segments leave a compacted log", async (bench) => {
  bench.clock.nowMs = 10_000_000;
  const log = await bench.takeOver(1, { ...compacting, deletes: true, retentionMs: 60_000 });
  await put(log, "a", "b", "c", "d");
  for (const key of ["a", "b", "c"]) await produce(log, batchOf(key, { timestamp: 9_990_000 }));
  await clean(log);
  await log.enforceRetention();
  assert.equal(log.logStartOffset, 4);
  assert.deepEqual(await offsetsOf(log), [4, 5, 6]);
  await log.relinquish();
});

storageTest("the newest record is found although compaction removed a newer one", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "b");
  await produce(log, batchOf("a", { timestamp: 4_000 }));
  await produce(log, batchOf("c", { timestamp: 3_000 }));
  await put(log, "a", "d");
  await clean(log);
  assert.deepEqual(await offsetsOf(log), [0, 2, 3, 4]);
  assert.deepEqual(await log.maxTimestamp(), { offset: 2, timestamp: 3_000, leaderEpoch: 1 });
  assert.equal(await log.offsetForTimestamp(3_500), null);
  await log.relinquish();
});

storageTest("a segment of which nothing is left to remove is not written again", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  await put(log, "a", "a", "b", "b", "a", "b", "c");
  await clean(log);
  await clean(log);
  const before = bench.hooked.operations.length;
  await clean(log);
  const renamed = bench.hooked.operations.slice(before).filter((operation) => /rename .*\.log/.test(operation));
  assert.deepEqual(renamed, []);
  await log.relinquish();
});

storageTest("a batch that is larger than the buffer passes through whole", async (bench) => {
  const log = await bench.takeOver(1, { ...compacting, segmentBytes: 1 << 20 });
  const large = buildBatch({ records: [{ key: "l", value: new Uint8Array(50_000) }], timestamp: 1_000 });
  await produce(log, large);
  await put(log, "a", "a");
  await log.relinquish();
  const again = await bench.takeOver(2, compacting);
  assert.equal((await clean(again, { ioBufferBytes: 10 })).cleanedUpTo, 3);
  assert.deepEqual(await offsetsOf(again), [0, 2]);
  await again.relinquish();
});

storageTest(
  "segments of different leader epochs are not merged: a name tells the epoch of all in it",
  async (bench) => {
    for (let epoch = 1; epoch <= 3; epoch++) {
      const log = await bench.takeOver(epoch, { ...compacting, segmentBytes: 1 << 20 });
      await put(log, "a");
      await log.relinquish();
    }
    const log = await bench.takeOver(4, compacting);
    await clean(log);
    await clean(log);
    assert.deepEqual(segments(bench), ["0", "1", "2", "3"]);
    assert.deepEqual(await offsetsOf(log), [2]);
    assert.deepEqual([log.endOffsetForEpoch(1), log.endOffsetForEpoch(2)], [
      { epoch: 1, endOffset: 1 },
      { epoch: 2, endOffset: 2 },
    ]);
    await log.relinquish();
  },
);

storageTest("records without keys, from before the topic was compacted, go", async (bench) => {
  const log = await bench.takeOver(1, compacting);
  for (let i = 0; i < 2; i++) await produce(log, batchOfBytes(300));
  await put(log, "a", "b", "c");
  await clean(log);
  assert.deepEqual(await offsetsOf(log), [2, 3, 4]);
  await log.relinquish();
});
