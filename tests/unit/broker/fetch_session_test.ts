import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { type FetchPartition, FetchSessionCache, sessionKey } from "../../../lib/broker/fetch_session.ts";

function wanted(partition: number, fetchOffset = 0): FetchPartition {
  return {
    topic: "t",
    topicId: "",
    partition,
    fetchOffset,
    maxBytes: 1000,
    currentLeaderEpoch: -1,
    lastFetchedEpoch: -1,
    logStartOffset: -1,
    sentHighWatermark: -1,
    sentLogStartOffset: -1,
  };
}

function created(cache: FetchSessionCache, partitions: FetchPartition[], nowMs = 0) {
  const outcome = cache.open(0, 0, partitions, [], nowMs);
  assert(outcome.kind === "full");
  return outcome.session;
}

Deno.test("a full fetch makes a session that the next request continues with epoch 1", () => {
  const cache = new FetchSessionCache(10, 0.5);
  const session = created(cache, [wanted(0), wanted(1)]);
  assert(session !== null && session.id > 0);
  const next = cache.open(session.id, 1, [wanted(1, 7)], [], 0);
  assert(next.kind === "incremental");
  assert.equal(next.session.partitions.size, 2);
  assert.equal(next.session.partitions.get(sessionKey(wanted(1)))?.fetchOffset, 7);
  assert.equal(next.session.epoch, 2);
});

Deno.test("an unknown session is refused with 70 and a wrong epoch with 71", () => {
  const cache = new FetchSessionCache(10, 0);
  const session = created(cache, [wanted(0)])!;
  assert.deepEqual(cache.open(session.id + 1, 1, [], [], 0), {
    kind: "refused",
    errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  });
  assert.deepEqual(cache.open(session.id, 5, [], [], 0), {
    kind: "refused",
    errorCode: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
  });
});

Deno.test("epoch -1 closes the session and answers fully", () => {
  const cache = new FetchSessionCache(10, 0);
  const session = created(cache, [wanted(0)])!;
  assert.deepEqual(cache.open(session.id, -1, [wanted(0)], [], 0), { kind: "full", session: null });
  assert.equal(cache.open(session.id, 1, [], [], 0).kind, "refused");
  assert.equal(cache.size, 0);
});

Deno.test("forgotten partitions leave the session, and an emptied session ends", () => {
  const cache = new FetchSessionCache(10, 0);
  const session = created(cache, [wanted(0), wanted(1)])!;
  const next = cache.open(session.id, 1, [], [sessionKey(wanted(0))], 0);
  assert(next.kind === "incremental");
  assert.deepEqual([...next.session.partitions.values()].map((p) => p.partition), [1]);
  assert.equal(cache.open(session.id, 2, [], [sessionKey(wanted(1))], 0).kind, "full");
  assert.equal(cache.size, 0);
});

Deno.test("a full cache keeps its busy sessions and gives up idle ones", () => {
  const cache = new FetchSessionCache(1, 0);
  const first = created(cache, [wanted(0)], 0)!;
  assert.equal(created(cache, [wanted(0)], 1000), null);
  const second = created(cache, [wanted(0)], 200_000);
  assert(second !== null);
  assert.equal(cache.open(first.id, 1, [], [], 200_000).kind, "refused");
});

Deno.test("the partitions of all sessions together are bounded", () => {
  const cache = new FetchSessionCache(1000, 0);
  const many = (n: number) => Array.from({ length: n }, (_, partition) => wanted(partition));
  assert(created(cache, many(200_000)) !== null);
  assert.equal(created(cache, many(100_000)), null);
});

Deno.test("the epoch wraps from the largest int32 to 1", () => {
  const cache = new FetchSessionCache(10, 0);
  const session = created(cache, [wanted(0)])!;
  session.epoch = 0x7fff_ffff;
  assert.equal(cache.open(session.id, 0x7fff_ffff, [], [], 0).kind, "incremental");
  assert.equal(session.epoch, 1);
});

Deno.test("rotate moves a partition behind the others", () => {
  const cache = new FetchSessionCache(10, 0);
  const session = created(cache, [wanted(0), wanted(1), wanted(2)])!;
  session.rotate(sessionKey(wanted(0)));
  assert.deepEqual([...session.partitions.values()].map((p) => p.partition), [1, 2, 0]);
});
