import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { baseOffset, sizeInBytes } from "../../../lib/records/batch.ts";
import { createResources } from "../../../lib/storage/resources.ts";
import {
  append,
  batchOf,
  batchOfBytes,
  type Bench,
  failing,
  numbers,
  offsetsOf,
  produce,
  rangesOf,
  read,
  storageTest,
} from "./support.ts";

/** Bytes that reads asked for since the last call. */
function readCounter(bench: Bench): () => number {
  let before = 0;
  return () => {
    const since = bench.hooked.bytesAsked - before;
    before = bench.hooked.bytesAsked;
    return since;
  };
}

for (const how of ["recent", "cold"] as const) {
  /** A log of 40 batches in several segments; cold: nothing of it counts as recent. */
  const filled = async (bench: Bench) => {
    const resources = createResources({ recentBytes: how === "cold" ? -1 : 1 << 30 });
    const log = await bench.takeOver(1, { segmentBytes: 8_000 }, { resources });
    for (let i = 0; i < 40; i++) await produce(log, batchOfBytes(700));
    return log;
  };

  storageTest(`a ${how} read is ${how === "recent" ? "there at once" : "a promise"}`, async (bench) => {
    const log = await filled(bench);
    const outcome = log.read({ offset: 20, maxBytes: 5_000, minOneBatch: true, limit: "highWatermark" });
    assert.equal(outcome instanceof Promise, how === "cold");
    const settled = await outcome;
    assert.ok(settled.kind === "batches" && baseOffset(settled.bytes) === 20);
    await log.relinquish();
  });

  storageTest(`a ${how} read of any offset begins with its batch, in order, without a gap`, async (bench) => {
    const log = await filled(bench);
    for (let offset = 0; offset < 40; offset++) {
      const { bytes, release } = await read(log, { offset, maxBytes: 2_000 });
      assert.equal(baseOffset(bytes), offset);
      release();
    }
    assert.deepEqual(await offsetsOf(log), numbers(0, 40));
    await log.relinquish();
  });

  storageTest(`a ${how} read keeps to its limit but for one first batch`, async (bench) => {
    const log = await filled(bench);
    const size = sizeInBytes((await read(log)).bytes);
    const lengthOf = async (maxBytes: number, minOneBatch: boolean) => {
      return (await read(log, { offset: 1, maxBytes, minOneBatch })).bytes.byteLength;
    };
    assert.equal(await lengthOf(3 * size, true), 3 * size);
    assert.equal(await lengthOf(3 * size - 1, true), 2 * size);
    assert.equal(await lengthOf(1, true), size);
    assert.equal(await lengthOf(0, true), size);
    assert.equal(await lengthOf(size - 1, false), 0);
    assert.equal(await lengthOf(size, false), size);
    await log.relinquish();
  });

  storageTest(`a ${how} first batch that is far larger than the limit comes whole`, async (bench) => {
    const resources = createResources({ recentBytes: how === "cold" ? -1 : 1 << 30 });
    const log = await bench.takeOver(1, {}, { resources });
    await produce(log, batchOf(1));
    await produce(log, batchOfBytes(900_000));
    await produce(log, batchOf(1));
    const { bytes } = await read(log, { offset: 1, maxBytes: 10 });
    assert.deepEqual(rangesOf(bytes), [[1, 1]]);
    assert.ok(bytes.byteLength > 900_000);
    await log.relinquish();
  });
}

storageTest("an offset inside a batch is answered with that batch", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(10));
  await produce(log, batchOf(10));
  assert.deepEqual(rangesOf((await read(log, { offset: 17 })).bytes), [[10, 19]]);
  await log.relinquish();
});

storageTest("offsets outside of the log are refused, its end gives nothing", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(5));
  await log.deleteRecords(2);
  for (const offset of [-1, 0, 1, 6, Number.MAX_SAFE_INTEGER, NaN]) {
    const outcome = await log.read({ offset, maxBytes: 100, minOneBatch: true, limit: "logEnd" });
    assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE, `${offset}`);
  }
  assert.equal((await read(log, { offset: 5 })).bytes.byteLength, 0);
  assert.ok((await read(log, { offset: 2 })).bytes.byteLength > 0);
  await log.relinquish();
});

storageTest("a read up to the log's end sees what is not durable yet, others do not", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, batchOf(2));
  append(log, batchOf(3));
  const ranges = async (limit: "highWatermark" | "logEnd" | "lastStableOffset") => {
    return rangesOf((await read(log, { limit })).bytes);
  };
  assert.deepEqual(await ranges("highWatermark"), [[0, 1]]);
  assert.deepEqual(await ranges("logEnd"), [[0, 1], [2, 4]]);
  await log.relinquish();
});

storageTest("a read seeks: at most an index interval is read besides what is returned", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 2_000; i++) append(log, batchOfBytes(1_000));
  await log.flush();
  const taken = readCounter(bench);
  await log.relinquish();
  const again = await bench.takeOver(2);
  taken();
  const last = await read(again, { offset: 1_999, maxBytes: 1 });
  assert.deepEqual(rangesOf(last.bytes), [[1_999, 1_999]]);
  // The interval, the least that is read at a time, and the batch itself if it was cut.
  assert.ok(taken() <= 4_096 + 4_096 + 2_000);
  const middle = await read(again, { offset: 777, maxBytes: 100_000 });
  assert.equal(baseOffset(middle.bytes), 777);
  assert.ok(taken() <= middle.bytes.byteLength + 4_096 + 2_000);
  await again.relinquish();
});

storageTest("a reader that goes on where it stopped needs no look into an index", async (bench) => {
  const log = await bench.takeOver(1, { indexIntervalBytes: 1 << 30 });
  for (let i = 0; i < 500; i++) await produce(log, batchOf(1));
  const taken = readCounter(bench);
  await log.relinquish();
  const again = await bench.takeOver(2, { indexIntervalBytes: 1 << 30 });
  const first = await read(again, { offset: 400, maxBytes: 10 });
  taken();
  const next = await read(again, { offset: rangesOf(first.bytes)[0][1] + 1, maxBytes: 10 });
  assert.deepEqual(rangesOf(next.bytes), [[401, 401]]);
  assert.ok(taken() <= 4_096);
  await again.relinquish();
});

for (const harm of ["missing", "empty", "of another log", "full of junk", "cut"] as const) {
  storageTest(`an index that is ${harm} is made good`, async (bench) => {
    const config = { segmentBytes: 60_000, indexIntervalBytes: 1_000 };
    const log = await bench.takeOver(1, config);
    for (let i = 0; i < 200; i++) append(log, batchOfBytes(400 + (i % 7) * 100, { timestamp: 1_000 + i }));
    await log.flush();
    await log.relinquish();
    for (const name of bench.names()) {
      if (!name.endsWith("index")) continue;
      const path = bench.path(name);
      const bytes = Deno.readFileSync(path);
      if (harm === "missing") Deno.removeSync(path);
      if (harm === "empty") Deno.truncateSync(path);
      if (harm === "cut") Deno.truncateSync(path, Math.floor(bytes.byteLength / 2) + 1);
      if (harm === "full of junk") Deno.writeFileSync(path, bytes.map((byte, i) => byte ^ (i * 37)));
      if (harm === "of another log" && name.endsWith(".index")) {
        const view = new DataView(bytes.buffer);
        for (let at = 4; at < bytes.byteLength; at += 8) view.setUint32(at, view.getUint32(at) - 13);
        Deno.writeFileSync(path, bytes);
      }
    }
    const again = await bench.takeOver(2, config);
    for (let offset = 199; offset >= 0; offset -= 3) {
      assert.equal(baseOffset((await read(again, { offset, maxBytes: 1_000 })).bytes), offset);
    }
    assert.deepEqual(await offsetsOf(again), numbers(0, 200));
    assert.deepEqual(await again.offsetForTimestamp(1_123), { offset: 123, timestamp: 1_123, leaderEpoch: 1 });
    await again.relinquish();
  });
}

storageTest("a volume that fails a read refuses that read and nothing else", async (bench) => {
  const log = await bench.takeOver(1, {}, { resources: createResources({ recentBytes: -1 }) });
  await produce(log, batchOf(3));
  bench.hooked.hook = failing("read", /\.log$/);
  const outcome = await log.read({ offset: 0, maxBytes: 100, minOneBatch: true, limit: "highWatermark" });
  assert.equal(outcome.kind === "refused" && outcome.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(log.stalled, null);
  bench.hooked.hook = () => {};
  assert.equal((await produce(log, batchOf(1))).baseOffset, 3);
  assert.equal((await offsetsOf(log)).length, 4);
  await log.relinquish();
});

storageTest("read buffers come back, and are used again", async (bench) => {
  const resources = createResources({ readBufferBytes: 1 << 20 });
  const log = await bench.takeOver(1, {}, { resources });
  for (let i = 0; i < 30; i++) await produce(log, batchOfBytes(1_000));
  await offsetsOf(log);
  assert.equal(resources.buffers.lentBytes, 0);
  const kept = resources.buffers.freeBytes;
  await offsetsOf(log);
  assert.equal(resources.buffers.freeBytes, kept);
  for (const offset of [30, 31, -1]) await log.read({ offset, maxBytes: 10, minOneBatch: true, limit: "logEnd" });
  assert.equal(resources.buffers.lentBytes, 0);
  await log.relinquish();
});

storageTest("handles are bounded over all segments, and what is evicted is read again all the same", async (bench) => {
  const resources = createResources({ maxOpenHandles: 3, recentBytes: -1 });
  const log = await bench.takeOver(1, { segmentBytes: 1_000 }, { resources });
  for (let i = 0; i < 20; i++) await produce(log, batchOfBytes(700));
  for (let round = 0; round < 3; round++) {
    for (let offset = 0; offset < 20; offset += 2) {
      assert.equal(baseOffset((await read(log, { offset, maxBytes: 1 })).bytes), offset);
      assert.ok(bench.registry.openCount <= 3, `${bench.registry.openCount}`);
    }
  }
  await log.relinquish();
});

storageTest("many readers at once get each what they asked for", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 5_000 }, { resources: createResources({ recentBytes: -1 }) });
  for (let i = 0; i < 30; i++) await produce(log, batchOfBytes(700));
  const firsts = await Promise.all(
    numbers(0, 30).map(async (offset) => {
      const { bytes } = await read(log, { offset, maxBytes: 3_000 });
      return baseOffset(bytes);
    }),
  );
  assert.deepEqual(firsts, numbers(0, 30));
  await log.relinquish();
});

storageTest("readers in the middle of a removal finish, or are told that the offset is gone", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 1_000 }, { resources: createResources({ recentBytes: -1 }) });
  for (let i = 0; i < 30; i++) await produce(log, batchOfBytes(700));
  const reads = numbers(0, 30).map((offset) => {
    return log.read({ offset, maxBytes: 1_000, minOneBatch: true, limit: "highWatermark" });
  });
  const deleted = log.deleteRecords(25);
  for (const [offset, outcome] of (await Promise.all(reads)).entries()) {
    if (outcome.kind === "batches") assert.equal(baseOffset(outcome.bytes), offset);
    else assert.equal(outcome.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  }
  assert.deepEqual(await deleted, { errorCode: 0, lowWatermark: 25 });
  assert.deepEqual(await offsetsOf(log), numbers(25, 5));
  await log.relinquish();
});

storageTest("a gap between segments is read over", async (bench) => {
  const log = await bench.takeOver(1, { segmentBytes: 1_000 });
  for (let i = 0; i < 6; i++) await produce(log, batchOfBytes(400));
  await log.relinquish();
  const [, second] = bench.names().filter((name) => name.endsWith(".log"));
  for (const suffix of ["log", "index", "timeindex"]) {
    Deno.removeSync(bench.path(second.replace(/log$/, suffix)));
  }
  const again = await bench.takeOver(2);
  assert.deepEqual(await offsetsOf(again), [0, 1, 4, 5]);
  assert.deepEqual(rangesOf((await read(again, { offset: 3, maxBytes: 1 })).bytes), [[4, 4]]);
  await again.relinquish();
});
