/** Incremental fetch sessions (KIP-227) as a consumer meets them. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { type ValueOf, ZERO_UUID } from "../../lib/protocol/schema.ts";
import { fetchedValues, type WireBroker, withWireBroker } from "../support/wire_broker.ts";

type FetchReply = ValueOf<typeof fetchResponse>;

interface Ask {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  /** Fetch offsets by partition. */
  readonly offsets?: Readonly<Record<number, number>>;
  readonly forget?: number[];
}

function ask(wire: WireBroker, { sessionId, sessionEpoch, offsets = {}, forget = [] }: Ask): Promise<FetchReply> {
  const partitions = Object.entries(offsets).map(([partition, fetchOffset]) => ({
    partition: Number(partition),
    fetchOffset,
    partitionMaxBytes: 1 << 20,
  }));
  return wire.client.call(fetchRequest, fetchResponse, 12, {
    maxWaitMs: 0,
    minBytes: 0,
    sessionId,
    sessionEpoch,
    topics: partitions.length === 0 ? [] : [{ topic: "t", topicId: ZERO_UUID, partitions }],
    forgottenTopicsData: forget.length === 0 ? [] : [{ topic: "t", topicId: ZERO_UUID, partitions: forget }],
  });
}

function answered(reply: FetchReply): number[] {
  return reply.responses.flatMap(({ partitions }) => partitions.map(({ partitionIndex }) => partitionIndex));
}

Deno.test("A session answers with all partitions first, then only with those that have something new", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t", {}, 3);
    await wire.append("t", { records: [{ value: "a" }] });
    const full = await ask(wire, { sessionId: 0, sessionEpoch: 0, offsets: { 0: 0, 1: 0, 2: 0 } });
    const { sessionId } = full;
    assert.notEqual(sessionId, 0);
    assert.deepEqual(answered(full), [0, 1, 2]);
    const moved = await ask(wire, { sessionId, sessionEpoch: 1, offsets: { 0: 1 } });
    assert.deepEqual([moved.errorCode, answered(moved)], [ErrorCode.NONE, []]);
    await wire.append("t", { records: [{ value: "b" }] });
    const changed = await ask(wire, { sessionId, sessionEpoch: 2 });
    assert.deepEqual(answered(changed), [0]);
    assert.deepEqual(fetchedValues(changed.responses[0].partitions[0].records), ["b"]);
    await wire.append("t", { records: [{ value: "c" }] });
    const forgotten = await ask(wire, { sessionId, sessionEpoch: 3, forget: [0] });
    assert.deepEqual(answered(forgotten), []);
    const added = await ask(wire, { sessionId, sessionEpoch: 4, offsets: { 0: 2 } });
    assert.deepEqual(fetchedValues(added.responses[0].partitions[0].records), ["c"]);
  });
});

Deno.test("A session that is unknown or out of step is refused as a whole", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t", {}, 2);
    const { sessionId } = await ask(wire, { sessionId: 0, sessionEpoch: 0, offsets: { 0: 0 } });
    const skipped = await ask(wire, { sessionId, sessionEpoch: 5 });
    assert.equal(skipped.errorCode, ErrorCode.INVALID_FETCH_SESSION_EPOCH);
    const unknown = await ask(wire, { sessionId: sessionId + 1, sessionEpoch: 1 });
    assert.equal(unknown.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
    const closed = await ask(wire, { sessionId, sessionEpoch: -1, offsets: { 0: 0 } });
    assert.deepEqual([closed.errorCode, closed.sessionId, answered(closed)], [ErrorCode.NONE, 0, [0]]);
    const gone = await ask(wire, { sessionId, sessionEpoch: 1 });
    assert.equal(gone.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  });
});

Deno.test("Without room for another session a consumer is served without one", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const first = await ask(wire, { sessionId: 0, sessionEpoch: 0, offsets: { 0: 0 } });
    const second = await ask(wire, { sessionId: 0, sessionEpoch: 0, offsets: { 0: 0 } });
    assert.notEqual(first.sessionId, 0);
    assert.deepEqual([second.errorCode, second.sessionId, answered(second)], [ErrorCode.NONE, 0, [0]]);
    const still = await ask(wire, { sessionId: first.sessionId, sessionEpoch: 1 });
    assert.equal(still.errorCode, ErrorCode.NONE);
  }, { "max.incremental.fetch.session.cache.slots": 1 });
});
