import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { buildEndTransactionMarker } from "../../../lib/records/control.ts";
import type { PartitionLog } from "../../../lib/storage/log.ts";
import { type Marker, type ProducedBatch, ProducerState } from "../../../lib/storage/producer_state.ts";
import { AbortedTransactions } from "../../../lib/storage/aborted_transactions.ts";
import { append, batchOf, failing, produce, read, storageTest } from "./support.ts";

const DAY_MS = 86_400_000;

function batch(baseSequence: number, changes: Partial<ProducedBatch> = {}): ProducedBatch {
  return { producerId: 7, producerEpoch: 0, baseSequence, lastOffsetDelta: 0, isTransactional: false, ...changes };
}

function marker(commits: boolean, changes: Partial<Marker> = {}): Marker {
  return { producerId: 7, producerEpoch: 0, coordinatorEpoch: 1, commits, ...changes };
}

function codeOf(verdict: ReturnType<ProducerState["classify"]>): number | string {
  return verdict.kind === "refused" ? verdict.errorCode : verdict.kind;
}

function classify(state: ProducerState, candidate: ProducedBatch, nowMs = 0): number | string {
  return codeOf(state.classify(candidate, nowMs, DAY_MS));
}

Deno.test("ProducerState remembers the last five batches of a producer and no more", () => {
  const state = new ProducerState();
  for (let i = 0; i < 6; i++) state.record(batch(i), 100 + i, 0);
  assert.deepEqual(state.classify(batch(3), 0, DAY_MS), { kind: "duplicate", baseOffset: 103, lastOffset: 103 });
  assert.equal(classify(state, batch(1)), "duplicate");
  assert.equal(classify(state, batch(0)), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
});

Deno.test("ProducerState takes the next sequence, refuses a gap and an older epoch", () => {
  const state = new ProducerState();
  state.record(batch(0, { lastOffsetDelta: 2, producerEpoch: 4 }), 0, 0);
  assert.equal(classify(state, batch(3, { producerEpoch: 4 })), "next");
  assert.equal(classify(state, batch(4, { producerEpoch: 4 })), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(classify(state, batch(3, { producerEpoch: 3 })), ErrorCode.INVALID_PRODUCER_EPOCH);
});

Deno.test("ProducerState begins a higher epoch at sequence 0 and forgets the old epoch's batches", () => {
  const state = new ProducerState();
  state.record(batch(0), 0, 0);
  assert.equal(classify(state, batch(1, { producerEpoch: 1 })), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(classify(state, batch(0, { producerEpoch: 1 })), "next");
  state.record(batch(0, { producerEpoch: 1 }), 9, 0);
  const again = state.classify(batch(0, { producerEpoch: 1 }), 0, DAY_MS);
  assert.deepEqual(again, { kind: "duplicate", baseOffset: 9, lastOffset: 9 });
});

Deno.test("ProducerState accepts any first sequence of a producer that it does not know", () => {
  assert.equal(classify(new ProducerState(), batch(1234)), "next");
});

Deno.test("ProducerState lets sequences wrap from 2³¹−1 to 0", () => {
  const state = new ProducerState();
  state.record(batch(0x7fff_fffe, { lastOffsetDelta: 3 }), 50, 0);
  assert.equal(classify(state, batch(2)), "next");
  assert.equal(classify(state, batch(0x7fff_fffe, { lastOffsetDelta: 3 })), "duplicate");
  state.record(batch(2, { lastOffsetDelta: 0x7fff_fffd }), 54, 0);
  assert.equal(classify(state, batch(0)), "next");
});

Deno.test("ProducerState changes nothing when it classifies", () => {
  const state = new ProducerState();
  for (let i = 0; i < 3; i++) assert.equal(classify(state, batch(i)), "next");
  assert.equal(state.size, 0);
});

Deno.test("ProducerState forgets a producer after its expiration time of silence, not before", () => {
  const state = new ProducerState();
  state.record(batch(0), 0, 1_000);
  assert.equal(classify(state, batch(9), 1_000 + DAY_MS - 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(classify(state, batch(9), 1_000 + DAY_MS), "next");
  state.record(batch(0, { producerId: 8 }), 0, 1_000);
  state.expire(1_000 + DAY_MS - 1, DAY_MS);
  assert.equal(state.size, 1);
  state.expire(1_000 + DAY_MS, DAY_MS);
  assert.equal(state.size, 0);
});

Deno.test("ProducerState never forgets a producer with an open transaction", () => {
  const state = new ProducerState();
  state.record(batch(0, { isTransactional: true }), 5, 0);
  state.expire(10 * DAY_MS, DAY_MS);
  assert.deepEqual([state.size, state.lastStableOffset(90)], [1, 5]);
});

Deno.test("ProducerState holds the last stable offset at the oldest open transaction until its marker is durable", () => {
  const state = new ProducerState();
  assert.equal(state.lastStableOffset(10), 10);
  state.record(batch(0, { isTransactional: true }), 10, 0);
  state.record(batch(0, { producerId: 8, isTransactional: true }), 11, 0);
  assert.equal(state.lastStableOffset(12), 10);
  assert.deepEqual(state.recordMarker(marker(false), 12, 0), {
    producerId: 7,
    firstOffset: 10,
    lastOffset: 12,
    lastStableOffset: 11,
  });
  assert.equal(state.lastStableOffset(12), 10);
  assert.equal(state.lastStableOffset(13), 11);
  assert.equal(state.recordMarker(marker(true, { producerId: 8 }), 13, 0), null);
  assert.equal(state.lastStableOffset(13), 11);
  assert.equal(state.lastStableOffset(14), 14);
});

Deno.test("ProducerState refuses a batch outside of the producer's open transaction", () => {
  const state = new ProducerState();
  state.record(batch(0, { isTransactional: true }), 0, 0);
  assert.equal(classify(state, batch(1)), ErrorCode.INVALID_TXN_STATE);
  assert.equal(classify(state, batch(1, { isTransactional: true })), "next");
});

Deno.test("ProducerState refuses markers of an older producer epoch or coordinator epoch", () => {
  const state = new ProducerState();
  state.record(batch(0, { isTransactional: true, producerEpoch: 2 }), 0, 0);
  state.recordMarker(marker(true, { producerEpoch: 2, coordinatorEpoch: 5 }), 1, 0);
  const older = marker(true, { producerEpoch: 1, coordinatorEpoch: 5 });
  assert.equal(codeOf(state.classifyMarker(older)), ErrorCode.INVALID_PRODUCER_EPOCH);
  const fenced = marker(true, { producerEpoch: 2, coordinatorEpoch: 4 });
  assert.equal(codeOf(state.classifyMarker(fenced)), ErrorCode.TRANSACTION_COORDINATOR_FENCED);
  assert.equal(codeOf(state.classifyMarker(marker(true, { producerEpoch: 3, coordinatorEpoch: 5 }))), "next");
});

Deno.test("ProducerState fences the old epoch from a marker of a higher one on", () => {
  const state = new ProducerState();
  state.record(batch(0, { isTransactional: true }), 0, 0);
  state.recordMarker(marker(false, { producerEpoch: 1 }), 1, 0);
  assert.equal(classify(state, batch(1, { isTransactional: true })), ErrorCode.INVALID_PRODUCER_EPOCH);
  assert.equal(classify(state, batch(0, { isTransactional: true, producerEpoch: 1 })), "next");
});

function idempotent(baseSequence: number, count = 1, changes: Parameters<typeof batchOf>[1] = {}): Uint8Array {
  return batchOf(count, { producerId: 7, producerEpoch: 0, baseSequence, ...changes });
}

storageTest("an exact resend gets its first offsets and appends nothing", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 7; i++) await produce(log, idempotent(2 * i, 2));
  const outcome = log.append(idempotent(6, 2), 5_000);
  assert.deepEqual(outcome, { kind: "duplicate", baseOffset: 6, lastOffset: 7, ticket: 8 });
  assert.equal(log.logEndOffset, 14);
  const tooOld = log.append(idempotent(2, 2), 5_000);
  assert.equal(tooOld.kind === "refused" && tooOld.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  await log.relinquish();
});

storageTest("a resend of a batch that is not durable yet waits for its sync", async (bench) => {
  const log = await bench.takeOver(1);
  append(log, idempotent(0));
  const outcome = log.append(idempotent(0), 5_000);
  assert.equal(outcome.kind, "duplicate");
  assert.equal(log.highWatermark, 0);
  assert.equal(await log.durable(outcome.kind === "duplicate" ? outcome.ticket : -1), 0);
  assert.equal(log.highWatermark, 1);
  await log.relinquish();
});

storageTest("a batch whose write failed leaves no trace in producer state", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, idempotent(0));
  bench.hooked.hook = (operation) => {
    if (operation === "writeSync") throw new (class extends Error {})("no");
  };
  assert.throws(() => log.append(idempotent(1), 5_000) && assert.fail(log.stalled?.message));
  bench.hooked.hook = () => {};
  await log.abandon();
  const again = await bench.takeOver(2);
  assert.equal((await produce(again, idempotent(1))).baseOffset, 1);
  await again.relinquish();
});

for (const ending of ["kill", "relinquish", "kill without snapshot"] as const) {
  storageTest(`the duplicate window survives a ${ending}`, async (bench) => {
    const log = await bench.takeOver(1, { checkpointIntervalBytes: 300, segmentBytes: 1_000 });
    for (let i = 0; i < 20; i++) await produce(log, idempotent(i));
    if (ending === "relinquish") await log.relinquish();
    else await bench.kill(log);
    if (ending === "kill without snapshot") Deno.removeSync(bench.path("producer-state.snapshot"));
    const again = await bench.takeOver(2);
    for (let i = 15; i < 20; i++) {
      const outcome = again.append(idempotent(i), 5_000);
      assert.equal(outcome.kind === "duplicate" && outcome.baseOffset, i);
    }
    const gap = again.append(idempotent(21), 5_000);
    assert.equal(gap.kind === "refused" && gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert.equal((await produce(again, idempotent(20))).baseOffset, 20);
    await again.relinquish();
  });
}

storageTest("a snapshot past the log's end is not believed: sequences go on where the log does", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 5; i++) await produce(log, idempotent(i));
  await log.relinquish();
  const name = bench.names().find((entry) => entry.endsWith(".log"))!;
  Deno.truncateSync(bench.path(name), Deno.statSync(bench.path(name)).size - 1);
  const again = await bench.takeOver(2);
  assert.equal((await produce(again, idempotent(4))).baseOffset, 4);
  await again.relinquish();
});

storageTest("a snapshot of a deposed leader is not believed", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 3; i++) await produce(log, idempotent(i));
  const successor = await bench.takeOver(2);
  await produce(successor, idempotent(3));
  await successor.abandon();
  for (let i = 3; i < 9; i++) append(log, idempotent(i));
  await log.abandon();
  bench.writeJson("producer-state.snapshot", {
    version: 1,
    offset: 9,
    leaderEpoch: 1,
    entries: [{ producer_id: 7, epoch: 0, recent: [{ first_seq: 8, last_seq: 8, base_offset: 8 }] }],
  });
  const third = await bench.takeOver(3);
  assert.equal((await produce(third, idempotent(4))).baseOffset, 4);
  await third.relinquish();
});

storageTest("deleting all records does not forget their producer", async (bench) => {
  const log = await bench.takeOver(1);
  for (let i = 0; i < 3; i++) await produce(log, idempotent(i));
  assert.equal((await log.deleteRecords(-1)).errorCode, 0);
  const gap = log.append(idempotent(9), 5_000);
  assert.equal(gap.kind === "refused" && gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  await bench.kill(log);
  const again = await bench.takeOver(2);
  assert.equal(again.append(idempotent(2), 5_000).kind, "duplicate");
  assert.equal((await produce(again, idempotent(3))).baseOffset, 3);
  await again.relinquish();
});

const transactional = { isTransactional: true } as const;

function end(producerId: number, result: "commit" | "abort"): Uint8Array {
  return buildEndTransactionMarker({ result, producerId, producerEpoch: 0, coordinatorEpoch: 0 }, 1_000);
}

async function readCommitted(log: PartitionLog, offset = 0, maxBytes = 1 << 20) {
  const request = { offset, maxBytes, limit: "lastStableOffset" } as const;
  const { bytes, abortedTransactions, lastStableOffset } = await read(log, request);
  return { bytes: bytes.byteLength, abortedTransactions, lastStableOffset };
}

storageTest(
  "read_committed ends at the oldest open transaction and names aborted ones, after restarts too",
  async (bench) => {
    const config = { segmentBytes: 400 };
    const log = await bench.takeOver(1, config);
    await produce(log, batchOf(1));
    await produce(log, idempotent(0, 2, transactional));
    await produce(log, batchOf(2, { producerId: 8, producerEpoch: 0, baseSequence: 0, ...transactional }));
    assert.equal(log.lastStableOffset, 1);
    assert.ok((await readCommitted(log)).bytes > 0);
    assert.equal((await readCommitted(log, 1)).bytes, 0);
    await produce(log, end(7, "abort"));
    await produce(log, batchOf(1));
    assert.equal(log.lastStableOffset, 3);
    assert.deepEqual((await readCommitted(log, 1)).abortedTransactions, [{ producerId: 7, firstOffset: 1 }]);

    await bench.kill(log);
    const second = await bench.takeOver(2, config);
    assert.equal(second.lastStableOffset, 3);
    assert.deepEqual((await readCommitted(second, 1)).abortedTransactions, [{ producerId: 7, firstOffset: 1 }]);
    await produce(second, end(8, "commit"));
    assert.equal(second.lastStableOffset, second.highWatermark);
    await second.relinquish();

    const third = await bench.takeOver(3, config);
    assert.equal(third.lastStableOffset, third.highWatermark);
    assert.deepEqual((await readCommitted(third, 0, 1)).abortedTransactions, []);
    assert.deepEqual((await readCommitted(third, 2)).abortedTransactions, [{ producerId: 7, firstOffset: 1 }]);
    assert.deepEqual((await readCommitted(third, 3)).abortedTransactions, [{ producerId: 7, firstOffset: 1 }]);
    await third.relinquish();
  },
);

storageTest("an open transaction is known again without any side file", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, idempotent(0, 2, transactional));
  await produce(log, end(7, "abort"));
  await produce(log, idempotent(2, 2, transactional));
  await log.relinquish();
  for (const name of bench.names()) if (!name.endsWith(".log")) Deno.removeSync(bench.path(name));
  const again = await bench.takeOver(2);
  assert.equal(again.lastStableOffset, 3);
  assert.deepEqual((await readCommitted(again)).abortedTransactions, [{ producerId: 7, firstOffset: 0 }]);
  assert.equal(again.activeProducers()[0].transactionFirstOffset, 3);
  await again.relinquish();
});

storageTest(
  "an aborted transaction that could not be saved with one checkpoint is saved with the next",
  async (bench) => {
    const config = { segmentBytes: 300 };
    const log = await bench.takeOver(1, config);
    await produce(log, idempotent(0, 1, transactional));
    await produce(log, end(7, "abort"));
    bench.hooked.hook = failing("open-create", /txnindex/);
    for (let i = 0; i < 3; i++) await produce(log, batchOf(1));
    assert.ok(bench.hooked.operations.some((operation) => /open-create .*txnindex/.test(operation)));
    bench.hooked.hook = () => {};
    for (let i = 0; i < 9; i++) await produce(log, batchOf(1));
    await bench.kill(log);
    const again = await bench.takeOver(2, config);
    assert.deepEqual((await readCommitted(again)).abortedTransactions, [{ producerId: 7, firstOffset: 0 }]);
    await again.relinquish();
  },
);

storageTest("an aborted transaction whose marker a crash took is not aborted any more", async (bench) => {
  const log = await bench.takeOver(1);
  await produce(log, idempotent(0, 1, transactional));
  await bench.kill(log);
  const lost = new AbortedTransactions();
  lost.add({ producerId: 7, firstOffset: 0, lastOffset: 1, lastStableOffset: 2 });
  const name = bench.names().find((found) => found.endsWith(".log"))!;
  Deno.writeFileSync(bench.path(name.replace(".log", ".txnindex")), lost.encode());
  const second = await bench.takeOver(2);
  assert.equal(second.lastStableOffset, 0);
  await produce(second, end(7, "commit"));
  await second.relinquish();
  const third = await bench.takeOver(3);
  assert.deepEqual((await readCommitted(third)).abortedTransactions, []);
  await third.relinquish();
});
