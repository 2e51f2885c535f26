import assert from "node:assert/strict";
import { ErrorCode, KafkaError } from "../../../lib/errors.ts";
import { sizeInBytes } from "../../../lib/records/batch.ts";
import {
  append,
  batchOf,
  batchOfBytes,
  type Bench,
  consume,
  failing,
  numbers,
  offsetsOf,
  produce,
  storageTest,
} from "./support.ts";

function segmentName(epoch: number, base: number, suffix = "log"): string {
  return `${epoch.toString(16).padStart(8, "0")}-${String(base).padStart(20, "0")}.${suffix}`;
}

/** A log of single-record batches that was killed; returns the name of its one segment. */
async function killedLog(bench: Bench, batches: number): Promise<string> {
  const log = await bench.takeOver(1);
  for (let i = 0; i < batches; i++) await produce(log, batchOf(1));
  await bench.kill(log);
  return segmentName(1, 0);
}

function truncateBy(path: string, bytes: number): void {
  Deno.truncateSync(path, Deno.statSync(path).size - bytes);
}

function addTo(path: string, bytes: Uint8Array): void {
  Deno.writeFileSync(path, bytes, { append: true });
}

/** Turns one bit of a byte round. */
function damage(path: string, position: number): void {
  const bytes = Deno.readFileSync(path);
  bytes[position] ^= 0x10;
  Deno.writeFileSync(path, bytes);
}

/** Where batch number `index` begins in a file. */
function positionOf(path: string, index: number): number {
  const bytes = Deno.readFileSync(path);
  let at = 0;
  for (let i = 0; i < index; i++) at += sizeInBytes(bytes, at);
  return at;
}

storageTest("a last batch that was cut short is cut off, and offsets go on without a gap", async (bench) => {
  const name = await killedLog(bench, 10);
  truncateBy(bench.path(name), 7);
  const log = await bench.takeOver(2);
  assert.equal(log.logEndOffset, 9);
  assert.deepEqual(log.report.damages.map((found) => found.repair), ["cut"]);
  assert.equal((await produce(log, batchOf(1))).baseOffset, 9);
  await bench.kill(log);
  const again = await bench.takeOver(3);
  assert.deepEqual(await offsetsOf(again), numbers(0, 10));
  await again.relinquish();
});

storageTest("junk behind the last batch is cut off, and the next append survives one more restart", async (bench) => {
  const name = await killedLog(bench, 10);
  const size = Deno.statSync(bench.path(name)).size;
  addTo(bench.path(name), new Uint8Array(30).fill(0x5a));
  const log = await bench.takeOver(2);
  assert.equal(log.logEndOffset, 10);
  assert.equal(Deno.statSync(bench.path(name)).size, size);
  await produce(log, batchOf(1));
  await bench.kill(log);
  const again = await bench.takeOver(3);
  assert.deepEqual(await offsetsOf(again), numbers(0, 11));
  await again.relinquish();
});

storageTest("a zero-filled tail is cut off", async (bench) => {
  const name = await killedLog(bench, 4);
  addTo(bench.path(name), new Uint8Array(100_000));
  const log = await bench.takeOver(2);
  assert.deepEqual([log.logEndOffset, log.report.damages[0].behind], [4, "zeros"]);
  assert.ok(!bench.names().some((entry) => entry.includes("cut")));
  await log.relinquish();
});

storageTest("a leader that comes back under its own epoch continues its segment behind the cut", async (bench) => {
  const name = await killedLog(bench, 5);
  truncateBy(bench.path(name), 3);
  const log = await bench.takeOver(1);
  assert.equal((await produce(log, batchOf(2))).baseOffset, 4);
  assert.deepEqual(bench.names().filter((entry) => entry.endsWith(".log")), [name]);
  await bench.kill(log);
  const again = await bench.takeOver(1);
  assert.deepEqual(await offsetsOf(again), numbers(0, 6));
  await again.relinquish();
});

storageTest("a restart rebuilds the high watermark, cleanly closed or killed, epoch raised or not", async (bench) => {
  let log = await bench.takeOver(1);
  for (let i = 0; i < 50; i++) await produce(log, batchOf(1));
  for (const [epoch, kill] of [[1, true], [1, false], [2, true], [3, false]] as const) {
    if (kill) await bench.kill(log);
    else await log.relinquish();
    log = await bench.takeOver(epoch);
    assert.deepEqual([log.highWatermark, log.logEndOffset], [50, 50]);
  }
  await log.relinquish();
});

storageTest("everything that was acknowledged is there once after a kill", async (bench) => {
  let log = await bench.takeOver(1, { segmentBytes: 3_000 });
  let acknowledged = 0;
  for (let epoch = 2; epoch < 6; epoch++) {
    for (let i = 0; i < 20; i++) acknowledged = (await produce(log, batchOfBytes(200))).lastOffset + 1;
    append(log, batchOf(1));
    await bench.kill(log);
    log = await bench.takeOver(epoch, { segmentBytes: 3_000 });
    const offsets = await offsetsOf(log);
    assert.deepEqual(offsets, numbers(0, offsets.length));
    assert.ok(offsets.length >= acknowledged);
  }
  await log.relinquish();
});

storageTest(
  "side files never promise records: with empty segments the log goes on at the promised offset",
  async (bench) => {
    for (const base of [0, 700]) Deno.writeFileSync(bench.path(segmentName(0, base)), new Uint8Array(0));
    bench.writeJson("manifest.json", { epoch: 0, highWatermark: 1500, logStartOffset: 0 });
    const log = await bench.takeOver(1);
    assert.deepEqual([log.logStartOffset, log.highWatermark, log.logEndOffset], [1500, 1500, 1500]);
    assert.deepEqual(bench.names().filter((entry) => entry.endsWith(".log")), [segmentName(1, 1500)]);
    assert.equal((await produce(log, batchOf(1))).baseOffset, 1500);
    await bench.kill(log);
    const again = await bench.takeOver(2);
    assert.deepEqual(await offsetsOf(again), [1500]);
    await again.relinquish();
  },
);

storageTest("a manifest's high watermark is not believed over batches", async (bench) => {
  await killedLog(bench, 10);
  bench.writeJson("manifest.json", { epoch: 1, highWatermark: 1500, logStartOffset: 0 });
  const log = await bench.takeOver(2);
  assert.deepEqual([log.logStartOffset, log.highWatermark], [0, 10]);
  assert.ok(log.report.notes.some((note) => note.includes("1500")));
  await log.relinquish();
});

storageTest("a manifest that is older than the segments does not shorten the log", async (bench) => {
  await killedLog(bench, 10);
  bench.writeJson("manifest.json", { epoch: 0, highWatermark: 2, logStartOffset: 1 });
  const log = await bench.takeOver(2);
  assert.deepEqual([log.logStartOffset, log.highWatermark], [1, 10]);
  await log.relinquish();
});

storageTest("keys of the manifest that are not known are kept", async (bench) => {
  bench.writeJson("manifest.json", { epoch: 0, highWatermark: 0, logStartOffset: 0, note: { a: [1] } });
  const log = await bench.takeOver(2);
  await produce(log, batchOf(1));
  await log.relinquish();
  assert.deepEqual(bench.json("manifest.json"), { epoch: 2, highWatermark: 1, logStartOffset: 0, note: { a: [1] } });
});

storageTest("a log start past all records empties the log and reuses no offset", async (bench) => {
  await killedLog(bench, 10);
  bench.writeJson("manifest.json", { epoch: 1, highWatermark: 40, logStartOffset: 40 });
  const log = await bench.takeOver(1);
  assert.deepEqual([log.logStartOffset, log.logEndOffset], [40, 40]);
  assert.deepEqual(bench.names().filter((entry) => entry.endsWith(".log")), [segmentName(1, 40)]);
  await log.relinquish();
});

const checkpoints = {
  "names a byte past the end": { segmentBase: 0, bytePos: 1_000_000, highWatermark: 5_000 },
  "names a missing segment": { segmentBase: 900, bytePos: 12, highWatermark: 5_000 },
  "names no batch boundary": { segmentBase: 0, bytePos: 100, highWatermark: 3 },
  "belongs to a segment of another epoch": { segmentBase: 0, bytePos: 79, highWatermark: 3, leaderEpoch: 7 },
  "is older than everything": { segmentBase: 0, bytePos: 0, highWatermark: 0 },
  "has fields that cannot be": { segmentBase: -4, bytePos: "x", highWatermark: 3 },
};
for (const [what, checkpoint] of Object.entries(checkpoints)) {
  storageTest(`a checkpoint that ${what} changes nothing about the log`, async (bench) => {
    await killedLog(bench, 10);
    bench.writeJson("recovery-checkpoint.json", checkpoint);
    const log = await bench.takeOver(2);
    assert.equal(log.highWatermark, 10);
    assert.deepEqual(log.report.damages, []);
    assert.deepEqual(await offsetsOf(log), numbers(0, 10));
    await log.relinquish();
  });
}

storageTest("missing side files are rebuilt from the segments", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 2_000 });
  for (let i = 0; i < 12; i++) {
    await produce(log, batchOfBytes(500, { producerId: 7, producerEpoch: 0, baseSequence: i }));
  }
  await log.relinquish();
  for (const name of bench.names()) if (!name.endsWith(".log")) Deno.removeSync(bench.path(name));
  const again = await bench.takeOver(2);
  assert.deepEqual(await offsetsOf(again), numbers(0, 12));
  const duplicate = again.append(batchOfBytes(500, { producerId: 7, producerEpoch: 0, baseSequence: 9 }), 0);
  assert.equal(duplicate.kind === "duplicate" && duplicate.baseOffset, 9);
  await again.relinquish();
});

storageTest("side files full of junk are done without", async (bench) => {
  await killedLog(bench, 10);
  for (const name of ["manifest.json", "recovery-checkpoint.json", "producer-state.snapshot"]) {
    Deno.writeFileSync(bench.path(name), new Uint8Array([0, 0xff, 0x7b]));
  }
  const log = await bench.takeOver(2);
  assert.equal(log.highWatermark, 10);
  assert.equal(log.report.notes.filter((note) => note.includes("damaged")).length, 3);
  await log.relinquish();
});

storageTest(
  "a damage in front of valid batches, all unsynced as far as is known, is cut and kept aside",
  async (bench) => {
    const name = await killedLog(bench, 10);
    const path = bench.path(name);
    const position = positionOf(path, 6);
    const tail = Deno.readFileSync(path).subarray(position);
    damage(path, position + 70);
    const log = await bench.takeOver(2);
    assert.equal(log.logEndOffset, 6);
    const [found] = log.report.damages;
    assert.deepEqual([found.repair, found.behind, found.position, found.offset], ["cut-aside", "batch", position, 6]);
    assert.equal(Deno.statSync(path).size, position);
    const aside = Deno.readFileSync(bench.path(`${name}.cut-2`));
    assert.equal(aside.byteLength, tail.byteLength);
    assert.deepEqual(aside.subarray(sizeInBytes(tail)), tail.subarray(sizeInBytes(tail)));
    assert.equal((await produce(log, batchOf(1))).baseOffset, 6);
    await bench.kill(log);
    const again = await bench.takeOver(3);
    assert.deepEqual(await offsetsOf(again), numbers(0, 7));
    await again.relinquish();
  },
);

storageTest("a damage below the checkpoint stays: its offsets are refused, the rest is served", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 10; i++) await produce(log, batchOf(1));
  await log.relinquish();
  const path = bench.path(segmentName(1, 0));
  // The magic byte: a reader of headers meets it too.
  damage(path, positionOf(path, 6) + 16);
  const again = await bench.takeOver(2);
  assert.equal(again.logEndOffset, 10);
  await produce(again, batchOf(1));
  const outcome = await again.read({ offset: 6, maxBytes: 1000, minOneBatch: true, limit: "highWatermark" });
  assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.CORRUPT_MESSAGE);
  assert.deepEqual(await offsetsOf(again, 7), [7, 8, 9, 10]);
  const { bytes } = await again.read({ offset: 0, maxBytes: 10000, minOneBatch: true, limit: "highWatermark" }) as {
    bytes: Uint8Array;
  };
  assert.equal(bytes.byteLength, positionOf(path, 6));
  await again.relinquish();
});

storageTest(
  "a damage below the manifest's high watermark is left in place: acknowledged records lie behind",
  async (bench) => {
    const name = await killedLog(bench, 10);
    const path = bench.path(name);
    damage(path, positionOf(path, 6) + 70);
    bench.writeJson("manifest.json", { epoch: 1, highWatermark: 10, logStartOffset: 0 });
    const log = await bench.takeOver(2);
    assert.equal(log.logEndOffset, 10);
    assert.deepEqual(log.report.damages.map((found) => found.repair), ["leave"]);
    const outcome = await log.read({ offset: 6, maxBytes: 1000, minOneBatch: true, limit: "highWatermark" });
    assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.CORRUPT_MESSAGE);
    assert.deepEqual(await offsetsOf(log, 7), [7, 8, 9]);
    await log.relinquish();
  },
);

storageTest("a rolled segment whose predecessor lost its unsynced end is set aside", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 1_000 });
  await produce(log, batchOfBytes(400));
  await bench.kill(log);
  const [saved, first] = [bench.json("recovery-checkpoint.json"), bench.path(segmentName(1, 0))];
  const more = await bench.takeOver(1, { segmentBytes: 1_000 });
  for (let i = 0; i < 4; i++) await produce(more, batchOfBytes(400));
  await bench.kill(more);
  // As after a crash that lost what was written behind the first batch, and the later checkpoint.
  bench.writeJson("recovery-checkpoint.json", saved);
  Deno.truncateSync(first, positionOf(first, 1));
  const again = await bench.takeOver(2);
  assert.equal(again.logEndOffset, 1);
  assert.deepEqual(bench.names().filter((entry) => entry.includes(".log")), [
    segmentName(1, 0),
    `${segmentName(1, 2)}.cut-2`,
    `${segmentName(1, 4)}.cut-2`,
    segmentName(2, 1),
  ]);
  await produce(again, batchOf(1));
  assert.deepEqual(await offsetsOf(again), [0, 1]);
  await again.relinquish();
});

storageTest("an empty active segment of a lower epoch is replaced, not stacked", async (bench) => {
  await (await bench.takeOver(1)).relinquish();
  const log = await bench.takeOver(2);
  assert.deepEqual(bench.names().filter((entry) => entry.endsWith(".log")), [segmentName(2, 0)]);
  await produce(log, batchOf(3));
  await log.relinquish();
  await (await bench.takeOver(3)).relinquish();
  const last = await bench.takeOver(4);
  assert.deepEqual(bench.names().filter((entry) => entry.endsWith(".log")), [segmentName(2, 0), segmentName(4, 3)]);
  await last.relinquish();
});

storageTest(
  "dead segments, orphaned indexes and unfinished replacements are removed; foreign files stay",
  async (bench) => {
    await killedLog(bench, 3);
    const log = await bench.takeOver(3);
    await produce(log, batchOf(1));
    await bench.kill(log);
    Deno.writeFileSync(bench.path(segmentName(2, 5)), batchOf(1));
    for (const name of [segmentName(2, 5, "index"), segmentName(9, 9, "timeindex"), ".manifest.json.abc-1.tmp"]) {
      Deno.writeTextFileSync(bench.path(name), "x");
    }
    Deno.writeTextFileSync(bench.path("notes.txt"), "mine");
    const again = await bench.takeOver(4);
    assert.deepEqual(await offsetsOf(again), numbers(0, 4));
    const names = bench.names();
    assert.ok(names.includes("notes.txt"));
    assert.deepEqual(names.filter((name) => /^0000000[29]|tmp$/.test(name)), []);
    await again.relinquish();
  },
);

storageTest("a takeover under an epoch below the volume's is refused and leaves no handle", async (bench) => {
  const log = await bench.takeOver(5);
  await log.relinquish();
  await assert.rejects(bench.takeOver(4), (error) => {
    return error instanceof KafkaError && error.code === ErrorCode.FENCED_LEADER_EPOCH;
  });
  bench.assertClosed();
});

storageTest("a takeover that the volume fails leaves no handle, and trying again is safe", async (bench) => {
  await killedLog(bench, 5);
  for (const operation of ["list", "readFile", "read", "sync", "open-create", "rename", "syncFolder"]) {
    bench.hooked.hook = failing(operation, /./);
    await assert.rejects(bench.takeOver(2), { name: "DiskError" }, operation);
    bench.assertClosed();
  }
  bench.hooked.hook = () => {};
  const log = await bench.takeOver(2);
  assert.deepEqual(await offsetsOf(log), numbers(0, 5));
  await log.relinquish();
});

storageTest("before its own segment is named, a takeover syncs what it found, names included", async (bench) => {
  await killedLog(bench, 5);
  const before = bench.hooked.operations.length;
  const log = await bench.takeOver(2);
  const operations = bench.hooked.operations.slice(before);
  const folder = bench.folder.slice(bench.folder.lastIndexOf("/") + 1);
  const order = [`sync ${segmentName(1, 0)}`, `syncFolder ${folder}`, `open-create ${segmentName(2, 5)}`];
  const places = order.map((operation) => operations.indexOf(operation));
  assert.ok(!places.includes(-1));
  assert.deepEqual(places, [...places].sort((a, b) => a - b));
  await log.relinquish();
});

storageTest("a takeover writes anew what a failed sync may have lost, before it syncs", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(3));
  bench.hooked.hook = failing("sync", /\.log$/);
  const { ticket } = append(log, batchOf(2));
  assert.equal(await log.durable(ticket), ErrorCode.KAFKA_STORAGE_ERROR);
  await log.abandon();
  bench.hooked.hook = () => {};
  const before = bench.hooked.operations.length;
  const again = await bench.takeOver(2);
  const operations = bench.hooked.operations.slice(before);
  const written = operations.indexOf(`writeSync ${segmentName(1, 0)}`);
  assert.ok(written >= 0 && written < operations.indexOf(`sync ${segmentName(1, 0)}`), operations.join("\n"));
  assert.deepEqual(await offsetsOf(again), numbers(0, 5));
  await again.relinquish();
});

storageTest("a segment of the same epoch is written on although damaged ones lay behind it", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 300 });
  for (let i = 0; i < 6; i++) await produce(log, batchOf(1));
  await bench.kill(log);
  const [first, second] = bench.names().filter((name) => name.endsWith(".log"));
  assert.ok(second !== undefined);
  truncateBy(bench.path(first), 1);
  for (const name of ["recovery-checkpoint.json", "manifest.json"]) Deno.removeSync(bench.path(name));
  const again = await bench.takeOver(1, { segmentBytes: 300 });
  const end = again.logEndOffset;
  assert.ok(end > 0 && end < 6);
  assert.equal((await produce(again, batchOf(1))).baseOffset, end);
  assert.deepEqual(await offsetsOf(again), numbers(0, end + 1));
  await again.relinquish();
});

storageTest("a takeover that a crash ends at any operation is completed by the next one", async (bench) => {
  const name = await killedLog(bench, 6);
  const path = bench.path(name);
  damage(path, positionOf(path, 4) + 70);
  const original = new Map(bench.names().map((entry) => [entry, Deno.readFileSync(bench.path(entry))]));
  let crashed = true;
  for (let after = 1; crashed; after++) {
    for (const entry of bench.names()) Deno.removeSync(bench.path(entry));
    for (const [entry, bytes] of original) Deno.writeFileSync(bench.path(entry), bytes);
    let left = after;
    bench.hooked.hook = (operation, at) => {
      if (--left <= 0) failing(operation, /./)(operation, at);
    };
    crashed = await bench.takeOver(2).then((log) => bench.kill(log).then(() => false), () => true);
    bench.hooked.hook = () => {};
    const log = await bench.takeOver(3);
    await produce(log, batchOf(1));
    assert.deepEqual(await offsetsOf(log), numbers(0, 5), `after operation ${after}`);
    await bench.kill(log);
  }
});

storageTest("the epochs of a log are those of its segments", async (bench) => {
  const first = await bench.takeOver(1);
  await produce(first, batchOf(3));
  await first.relinquish();
  const second = await bench.takeOver(3);
  await produce(second, batchOf(2));
  assert.deepEqual(second.endOffsetForEpoch(1), { epoch: 1, endOffset: 3 });
  assert.deepEqual(second.endOffsetForEpoch(2), { epoch: 1, endOffset: 3 });
  assert.deepEqual(second.endOffsetForEpoch(3), { epoch: 3, endOffset: 5 });
  assert.deepEqual(second.endOffsetForEpoch(4), { epoch: -1, endOffset: -1 });
  assert.deepEqual([0, 2, 3, 5].map((offset) => second.epochAt(offset)), [1, 1, 3, 3]);
  await second.relinquish();
});

storageTest(
  "a takeover after a clean end scans nothing, after a kill only what lies behind the checkpoint",
  async (bench) => {
    const log = await bench.takeOver(1, { checkpointIntervalBytes: 20_000 });
    for (let i = 0; i < 50; i++) await produce(log, batchOfBytes(1_000));
    await bench.kill(log);
    const killed = await bench.takeOver(2);
    assert.ok(killed.report.scannedBytes > 0 && killed.report.scannedBytes < 25_000, `${killed.report.scannedBytes}`);
    await produce(killed, batchOf(1));
    await killed.relinquish();
    const clean = await bench.takeOver(3);
    assert.equal(clean.report.scannedBytes, 0);
    assert.equal((await consume(clean)).length, 51);
    await clean.relinquish();
  },
);

storageTest("while a takeover scans a long log, everything else gets its turns", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 24; i++) append(log, batchOfBytes(1 << 20));
  await log.flush();
  await bench.kill(log);
  let turns = 0;
  let scanning = true;
  const others = (async () => {
    for (; scanning; turns++) await new Promise((resolve) => setImmediate(resolve));
  })();
  const next = await bench.takeOver(2);
  scanning = false;
  await others;
  assert.ok(next.report.scannedBytes > 24 << 20, "there is something to scan");
  assert.ok(turns >= 24, `${turns} turns`);
  await next.relinquish();
});
