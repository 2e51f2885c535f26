import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { baseOffset, crc, leaderEpoch, maxTimestamp, sizeInBytes } from "../../../lib/records/batch.ts";
import { createResources } from "../../../lib/storage/resources.ts";
import { validateProduced } from "../../../lib/records/validate.ts";
import { append, batchOf, batchOfBytes, consume, failing, offsetsOf, produce, read, storageTest } from "./support.ts";
import { until } from "../../support/broker_process.ts";
import { openBelow } from "../../support/open_descriptors.ts";

storageTest("a log assigns offsets and epoch itself, whatever the producer wrote", async (bench) => {
  const log = await bench.takeOver(3);
  const batches = [batchOf(2), batchOf(1), batchOf(3)].map((batch) => {
    batch.set([0, 0, 0, 0, 0, 0, 4, 210, ...batch.subarray(8)], 0);
    return batch;
  });
  const crcs = batches.map((batch) => crc(batch));
  assert.deepEqual(batches.map((batch) => append(log, batch).baseOffset), [0, 2, 3]);
  assert.equal(await log.durable(6), ErrorCode.NONE);
  assert.equal(log.highWatermark, 6);
  const { bytes } = await read(log);
  const found: [number, number, number][] = [];
  for (let at = 0; at < bytes.byteLength; at += sizeInBytes(bytes, at)) {
    found.push([baseOffset(bytes, at), leaderEpoch(bytes, at), crc(bytes, at)]);
  }
  assert.deepEqual(found, [[0, 3, crcs[0]], [2, 3, crcs[1]], [3, 3, crcs[2]]]);
  await log.relinquish();
});

storageTest("nothing is acknowledged or consumed before its sync has returned", async (bench) => {
  const log = await bench.takeOver(1);
  let letGo!: () => void;
  const held = new Promise<void>((resolve) => letGo = resolve);
  bench.hooked.hook = (operation, path) => operation === "sync" && path.endsWith(".log") ? held : undefined;
  const { ticket } = append(log, batchOf(3));
  let acknowledged = false;
  const waiting = log.durable(ticket).then(() => acknowledged = true);
  await bench.disk.stat(bench.folder);
  assert.equal(acknowledged, false);
  assert.deepEqual([log.highWatermark, log.logEndOffset], [0, 3]);
  assert.equal((await read(log)).bytes.byteLength, 0);
  letGo();
  await waiting;
  assert.equal(log.highWatermark, 3);
  assert.equal((await offsetsOf(log)).length, 3);
  await log.relinquish();
});

storageTest("appends that wait share a sync", async (bench) => {
  const log = await bench.takeOver(1);
  const isSync = (operation: string) => /^sync .*\.log$/.test(operation);
  const before = bench.hooked.operations.filter(isSync).length;
  const tickets = Array.from({ length: 50 }, () => append(log, batchOf(1)).ticket);
  assert.deepEqual(new Set(await Promise.all(tickets.map((ticket) => log.durable(ticket)))), new Set([0]));
  // The first append's round may have begun alone.
  assert.ok(bench.hooked.operations.filter(isSync).length - before <= 2);
  await log.relinquish();
});

storageTest("a listener is called each time the high watermark has moved", async (bench) => {
  const log = await bench.takeOver(1);
  const seen: number[] = [];
  const stop = log.onHighWatermark(() => seen.push(log.highWatermark));
  await produce(log, batchOf(2));
  await produce(log, batchOf(2));
  stop();
  await produce(log, batchOf(2));
  assert.deepEqual(seen, [2, 4]);
  await log.relinquish();
});

storageTest("LogAppendTime stamps batches and keeps their checksums right", async (bench) => {
  const log = await bench.takeOver(1, { messageTimestampType: "LogAppendTime" });
  const outcome = await produce(log, batchOf(2), 77_000);
  assert.equal(outcome.logAppendTimeMs, 77_000);
  const { bytes } = await read(log);
  assert.equal(maxTimestamp(bytes), 77_000);
  const verdict = validateProduced(new Uint8Array(bytes), {
    apiVersion: 9,
    partition: "t-0",
    nowMs: 77_000,
    maxMessageBytes: 1 << 20,
    timestampType: "logAppendTime",
    timestampBeforeMaxMs: Infinity,
    timestampAfterMaxMs: Infinity,
    requiresKeys: false,
  });
  assert.equal(verdict.kind, "valid");
  await log.relinquish();
});

storageTest("flush.messages acknowledges from memory and syncs after that many records", async (bench) => {
  const log = await bench.takeOver(1, { flushMessages: 4 });
  const syncs = () => bench.hooked.operations.filter((operation) => /^sync .*\.log$/.test(operation)).length;
  const before = syncs();
  await produce(log, batchOf(2));
  assert.equal(log.highWatermark, 2);
  assert.equal(syncs(), before);
  append(log, batchOf(2));
  assert.equal(await log.flush(), 0);
  assert.equal(syncs(), before + 1);
  await log.relinquish();
});

storageTest("flush.ms acknowledges from memory and syncs when that time has passed", async (bench) => {
  const log = await bench.takeOver(1, { flushMs: 500 });
  const syncs = () => bench.hooked.operations.filter((operation) => /^sync .*\.log$/.test(operation)).length;
  const before = syncs();
  await produce(log, batchOf(2));
  bench.clock.advance(499);
  assert.equal(syncs(), before);
  bench.clock.advance(1);
  assert.equal(await log.flush(), 0);
  assert.equal(syncs(), before + 1);
  await log.relinquish();
});

storageTest("a high watermark never falls when flush settings are taken back", async (bench) => {
  const log = await bench.takeOver(1, { flushMs: 500 });
  await produce(log, batchOf(2));
  log.applyConfig({ ...(await import("../../../lib/storage/log_config.ts")).defaultLogConfig });
  assert.equal(log.highWatermark, 2);
  await produce(log, batchOf(1));
  assert.equal(log.highWatermark, 3);
  await log.relinquish();
});

storageTest("a log rolls by size, and reads cross the segments", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 2_000 });
  for (let i = 0; i < 12; i++) await produce(log, batchOfBytes(500));
  assert.equal(log.segmentBaseOffsets().length, 4);
  assert.deepEqual(log.segmentBaseOffsets(), [0, 3, 6, 9]);
  assert.deepEqual(await offsetsOf(log), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  await log.relinquish();
});

storageTest("a log rolls by the time stamps of its records", async (bench) => {
  const log = await bench.takeOver(1, { segmentMs: 1_000 });
  for (const timestamp of [100, 1_100, 1_101, 1_500]) await produce(log, batchOf(1, { timestamp }));
  assert.deepEqual(log.segmentBaseOffsets(), [0, 2]);
  await log.relinquish();
});

storageTest("records without time stamps let a log roll by the clock", async (bench) => {
  const log = await bench.takeOver(1, { segmentMs: 1_000 });
  const startMs = bench.clock.wallMs();
  for (const afterMs of [0, 1_000, 1_001]) await produce(log, batchOf(1, { timestamp: -1 }), startMs + afterMs);
  assert.deepEqual(log.segmentBaseOffsets(), [0, 2]);
  await log.relinquish();
});

storageTest("a log rolls when an index is full", async (bench) => {
  const log = await bench.takeOver(1, { indexIntervalBytes: 1, segmentIndexBytes: 24 });
  // Three entries of the offset index fit; the first batch of a segment has none.
  for (let i = 0; i < 6; i++) await produce(log, batchOf(1));
  assert.deepEqual(log.segmentBaseOffsets(), [0, 4]);
  await log.relinquish();
});

storageTest("a batch larger than a segment may be is refused", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 300 });
  const outcome = log.append(batchOfBytes(500), 0);
  assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.RECORD_LIST_TOO_LARGE);
  assert.equal(log.logEndOffset, 0);
  await log.relinquish();
});

storageTest(
  "before anything in a new segment is acknowledged, the old one is synced and the new name durable",
  async (bench) => {
    const log = await bench.takeOver(1, { segmentBytes: 700 });
    await produce(log, batchOfBytes(500));
    const before = bench.hooked.operations.length;
    await produce(log, batchOfBytes(500));
    const operations = bench.hooked.operations.slice(before);
    const [old, fresh] = [0, 1].map((base) => `00000001-${String(base).padStart(20, "0")}.log`);
    const folder = bench.folder.slice(bench.folder.lastIndexOf("/") + 1);
    const order = [`open-create ${fresh}`, `sync ${old}`, `syncFolder ${folder}`, `sync ${fresh}`];
    const places = order.map((operation) => operations.indexOf(operation));
    assert.ok(!places.includes(-1), operations.join("\n"));
    assert.deepEqual(places, [...places].sort((a, b) => a - b));
    assert.deepEqual(bench.json("recovery-checkpoint.json"), {
      segmentBase: 1,
      bytePos: 0,
      highWatermark: 1,
      leaderEpoch: 1,
    });
    await log.relinquish();
  },
);

storageTest(
  "a failed sync stalls the partition: durable records stay readable, nothing more is accepted",
  async (bench) => {
    const log = await bench.takeOver(1);
    await produce(log, batchOf(2));
    bench.hooked.hook = failing("sync", /\.log$/);
    const { ticket } = append(log, batchOf(1));
    assert.equal(await log.durable(ticket), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(log.stalled?.kind, "io");
    // A second sync would report success for pages that the first one lost.
    bench.hooked.hook = () => {};
    const refused = log.append(batchOf(1), 0);
    assert.equal(refused.kind === "refused" && refused.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(await log.durable(ticket), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(await log.durable(2), ErrorCode.NONE);
    assert.deepEqual([log.highWatermark, await offsetsOf(log)], [2, [0, 1]]);
    await log.relinquish();
    assert.equal(log.ending, "stalled");
  },
);

storageTest(
  "a write that the volume has no room for is cut back, and a takeover heals the partition",
  async (bench) => {
    const log = await bench.takeOver(1);
    await produce(log, batchOf(2));
    const size = log.sizeBytes;
    bench.hooked.hook = failing("writeSync", /\.log$/, "no-space");
    const outcome = log.append(batchOf(5), 0);
    assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(log.stalled?.kind, "no-space");
    assert.equal(Deno.statSync(bench.path("00000001-00000000000000000000.log")).size, size);
    assert.deepEqual(await offsetsOf(log), [0, 1]);
    bench.hooked.hook = () => {};
    await log.abandon();
    const healed = await bench.takeOver(2);
    assert.equal((await produce(healed, batchOf(1))).baseOffset, 2);
    assert.deepEqual(await offsetsOf(healed), [0, 1, 2]);
    await healed.relinquish();
  },
);

storageTest("a segment that cannot be begun stalls the partition", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 700 });
  await produce(log, batchOfBytes(500));
  bench.hooked.hook = failing("open-create", /\.log$/, "no-space");
  const outcome = log.append(batchOfBytes(500), 0);
  assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.deepEqual(await offsetsOf(log), [0]);
  await log.abandon();
});

storageTest(
  "relinquishing makes durable what was accepted, writes the side files and closes every handle",
  async (bench) => {
    const log = await bench.takeOver(1);
    const { ticket } = append(log, batchOf(3));
    const waiting = log.durable(ticket);
    await log.relinquish();
    assert.equal(await waiting, ErrorCode.NONE);
    assert.equal(log.ending, "clean");
    bench.assertClosed();
    assert.deepEqual(bench.json("manifest.json"), { epoch: 1, highWatermark: 3, logStartOffset: 0 });
    assert.equal(bench.json("producer-state.snapshot").offset, 3);
    const refused = log.append(batchOf(1), 0);
    assert.equal(refused.kind === "refused" && refused.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    const outcome = await log.read({ offset: 0, maxBytes: 100, minOneBatch: true, limit: "highWatermark" });
    assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  },
);

storageTest("a superseded leader writes nothing when it relinquishes, and closes all the same", async (bench) => {
  const old = await bench.takeOver(1);
  await produce(old, batchOf(2));
  const successor = await bench.takeOver(2);
  await produce(successor, batchOf(1));
  append(old, batchOf(4));
  await old.relinquish();
  assert.equal(old.ending, "superseded");
  assert.deepEqual(bench.json("manifest.json"), { epoch: 2, highWatermark: 2, logStartOffset: 0 });
  assert.deepEqual(await offsetsOf(successor), [0, 1, 2]);
  await successor.relinquish();
  const third = await bench.takeOver(3);
  assert.equal(third.logEndOffset, 3);
  assert.deepEqual((await consume(third)).map((record) => record.value), ["value 0", "value 1", "value 0"]);
  await third.relinquish();
});

storageTest("a deposed leader that goes on writing, and even rolls, never becomes visible", async (bench) => {
  const config = { segmentBytes: 900, checkpointIntervalBytes: 1 };
  const zombie = await bench.takeOver(1, config);
  await produce(zombie, batchOf(2));
  const leader = await bench.takeOver(2, config);
  await produce(leader, batchOf(1));
  for (let i = 0; i < 6; i++) {
    const outcome = zombie.append(batchOfBytes(400), 0);
    if (outcome.kind === "appended") await zombie.durable(outcome.ticket);
  }
  await zombie.abandon();
  assert.deepEqual((await consume(leader)).map((record) => record.value), ["value 0", "value 1", "value 0"]);
  await bench.kill(leader);
  const next = await bench.takeOver(3, config);
  assert.deepEqual((await consume(next)).map((record) => record.value), ["value 0", "value 1", "value 0"]);
  assert.equal((await produce(next, batchOf(1))).baseOffset, 3);
  await next.relinquish();
});

storageTest("abandoning closes every handle, writes nothing and answers who waits", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(1));
  const { ticket } = append(log, batchOf(1));
  const waiting = log.durable(ticket);
  const names = bench.names();
  const manifest = bench.json("manifest.json");
  let woken = 0;
  log.onHighWatermark(() => woken++);
  const gone = log.abandon();
  assert.equal(await waiting, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  await gone;
  bench.assertClosed();
  assert.deepEqual([bench.names(), bench.json("manifest.json")], [names, manifest]);
  assert.ok(woken > 0);
});

storageTest(
  "an idle partition that moves costs no sync of its segment and no side file but the manifest",
  async (bench) => {
    const first = await bench.takeOver(1);
    await produce(first, batchOf(1));
    await first.relinquish();
    const before = bench.hooked.operations.length;
    const second = await bench.takeOver(2);
    await second.relinquish();
    const written = bench.hooked.operations.slice(before).filter((operation) => operation.startsWith("rename"));
    assert.deepEqual(written, ["rename manifest.json"]);
  },
);

storageTest("the process holds no descriptor of a partition that it relinquished or abandoned", async (bench) => {
  const open = () => openBelow(bench.folder);
  for (const [epoch, ending] of [[1, "relinquish"], [2, "abandon"]] as const) {
    const log = await bench.takeOver(epoch, { segmentBytes: 1_000 }, {
      resources: createResources({ recentBytes: -1 }),
    });
    for (let i = 0; i < 6; i++) await produce(log, batchOfBytes(400));
    await offsetsOf(log);
    assert.ok(open().length > 1);
    await log[ending]();
    assert.deepEqual(open(), []);
  }
});

storageTest("nothing is acknowledged any more when the folder was removed under the log", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(1));
  const aside = `${bench.folder}-aside`;
  Deno.renameSync(bench.folder, aside);
  try {
    bench.clock.advance(1_000);
    const { ticket } = append(log, batchOf(1));
    assert.equal(await log.durable(ticket), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(log.stalled?.kind, "gone");
    assert.ok(bench.messages.some((message) => /partition stalled.*files are gone/.test(message)), "said in the log");
    assert.deepEqual([log.highWatermark, await offsetsOf(log)], [1, [0]], "what was acknowledged is still read");
    await log.abandon();
    await assert.rejects(bench.takeOver(2), { kind: "not-found" }, "no empty log takes its place");
    assert.throws(() => Deno.statSync(bench.folder), Deno.errors.NotFound);
  } finally {
    Deno.renameSync(aside, bench.folder);
  }
});

storageTest("nothing is acknowledged any more when the active segment alone was removed", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(1));
  for (const name of bench.names().filter((name) => name.endsWith(".log"))) Deno.removeSync(bench.path(name));
  bench.clock.advance(1_000);
  assert.equal(await log.durable(append(log, batchOf(1)).ticket), ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(log.stalled?.kind, "gone");
  await log.relinquish();
  assert.equal(log.ending, "stalled");
});

storageTest("a look at the segment that fails for another reason than its absence changes nothing", async (bench) => {
  const log = await bench.takeOver(1);
  bench.hooked.hook = failing("stat", /\.log$/, "stale");
  bench.clock.advance(1_000);
  await produce(log, batchOf(1));
  assert.equal(log.stalled, null);
  await log.relinquish();
});

storageTest("the active segment is looked for once in a while, not at each sync", async (bench) => {
  const log = await bench.takeOver(1);
  const looks = () => bench.hooked.operations.filter((operation) => /^stat .*\.log$/.test(operation)).length;
  const before = looks();
  for (let i = 0; i < 5; i++) await produce(log, batchOf(1));
  assert.equal(looks() - before, 0);
  bench.clock.advance(1_000);
  for (let i = 0; i < 5; i++) await produce(log, batchOf(1));
  assert.equal(looks() - before, 1);
  await log.relinquish();
});

storageTest("a checkpoint or a roll that finds no folder stalls the log", async (bench) => {
  const checkpointing = await bench.takeOver(1, { checkpointIntervalBytes: 1 });
  bench.hooked.hook = failing("list", /./, "not-found");
  append(checkpointing, batchOf(1));
  await until(() => checkpointing.stalled?.kind === "gone", "the checkpoint to find no folder");
  await checkpointing.abandon();

  bench.hooked.hook = () => {};
  const rolling = await bench.takeOver(2, { segmentBytes: 1_000 });
  append(rolling, batchOfBytes(800));
  bench.hooked.hook = failing("open-create", /\.log$/, "not-found");
  const refusal = rolling.append(batchOfBytes(800), 5_000);
  assert.ok(refusal.kind === "refused" && refusal.errorCode === ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(rolling.stalled?.kind, "gone");
  await rolling.relinquish();
});
