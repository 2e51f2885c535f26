/** Fetch as it travels: limits, waiting, epochs, old formats. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { metadataRequest, metadataResponse } from "../../lib/protocol/messages/metadata.ts";
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from "../../lib/protocol/messages/offset_for_leader_epoch.ts";
import { Compression } from "../../lib/records/batch.ts";
import { batchesOf, fetchedValues, fetchOf, type WireBroker, withWireBroker } from "../support/wire_broker.ts";

const record = (value: string) => ({ records: [{ value }] });

async function leaderEpochOf(wire: WireBroker, name: string): Promise<number> {
  const { topics } = await wire.client.call(metadataRequest, metadataResponse, 12, {
    topics: [{ name, topicId: "00000000-0000-0000-0000-000000000000" }],
    allowAutoTopicCreation: false,
    includeTopicAuthorizedOperations: false,
  });
  return topics[0].partitions[0].leaderEpoch;
}

Deno.test("Every version of Fetch gives the records and the fields that it has", async () => {
  await withWireBroker(async (wire) => {
    const topicId = await wire.createTopic("t");
    for (const value of ["a", "b", "c"]) await wire.append("t", record(value));
    for (let version = 0; version <= 18; version++) {
      const fetched = await wire.fetch(version >= 13 ? topicId : "t", 1, { version });
      assert.equal(fetched.errorCode, ErrorCode.NONE, `version ${version}`);
      assert.equal(fetched.highWatermark, 3);
      assert.equal(fetched.lastStableOffset, version >= 4 ? 3 : -1);
      assert.equal(fetched.logStartOffset, version >= 5 ? 0 : -1);
      assert.equal(fetched.preferredReadReplica, -1);
      assert.ok(fetched.records !== null && fetched.records.length > 0);
      if (version >= 4) assert.deepEqual(fetchedValues(fetched.records), ["b", "c"]);
    }
  });
});

Deno.test("Versions before 10 do not get zstd, and say so", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t", { "compression.type": "zstd" });
    await wire.append("t", { ...record("a"), compression: Compression.zstd });
    assert.equal((await wire.fetch("t", 0, { version: 9 })).errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
    assert.deepEqual(fetchedValues((await wire.fetch("t", 0, { version: 10 })).records), ["a"]);
  });
});

Deno.test("The first batch comes whole whatever the limits; more only as far as they allow", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    for (const value of ["a", "b", "c"]) await wire.append("t", record(value.repeat(1000)));
    const one = await wire.fetch("t", 0, { partitionMaxBytes: 10 });
    assert.equal(batchesOf(one.records).length, 1);
    const few = await wire.fetch("t", 0, { partitionMaxBytes: 2500 });
    assert.equal(batchesOf(few.records).length, 2);
    const byResponse = await wire.fetch("t", 0, { maxBytes: 10 });
    assert.equal(batchesOf(byResponse.records).length, 1);
  });
});

Deno.test("A partition behind the response's limit gets nothing this time", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("one");
    await wire.createTopic("two");
    for (const topic of ["one", "two"]) await wire.append(topic, record("x".repeat(1000)));
    const request = fetchOf("one", 0, 12, { maxBytes: 500 });
    const both = { ...request, topics: [...request.topics, ...fetchOf("two", 0, 12).topics] };
    const { responses } = await wire.client.call(fetchRequest, fetchResponse, 12, both);
    assert.deepEqual(responses.map(({ partitions }) => batchesOf(partitions[0].records).length), [1, 0]);
  });
});

Deno.test("An offset outside of the log is refused, the log's end is not", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    await wire.append("t", record("a"));
    assert.equal((await wire.fetch("t", 1)).errorCode, ErrorCode.NONE);
    assert.equal((await wire.fetch("t", 2)).errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
    assert.equal((await wire.fetch("t", -1)).errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  });
});

Deno.test("A fetch waits until min_bytes have come, over several appends", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    using consumer = await wire.connect();
    let answered = false;
    const waiting = wire.fetch("t", 0, { client: consumer, maxWaitMs: 60_000, minBytes: 3000 })
      .finally(() => answered = true);
    await wire.append("t", record("a".repeat(1000)));
    await wire.append("t", record("b".repeat(1000)));
    assert.equal(answered, false, "there is not enough yet");
    await wire.append("t", record("c".repeat(1000)));
    assert.equal(batchesOf((await waiting).records).length, 3);
  });
});

Deno.test("A fetch that waits in vain is answered with nothing when its time is over", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const fetched = await wire.fetch("t", 0, { maxWaitMs: 50, minBytes: 1 });
    assert.deepEqual([fetched.errorCode, fetched.records?.length], [ErrorCode.NONE, 0]);
  });
});

Deno.test("A fetch that waits on a topic that is deleted is answered", async () => {
  await withWireBroker(async (wire) => {
    const topicId = await wire.createTopic("t");
    using byName = await wire.connect();
    using byId = await wire.connect();
    const waiting = [
      wire.fetch("t", 0, { client: byName, maxWaitMs: 60_000, minBytes: 1 }),
      wire.fetch(topicId, 0, { client: byId, version: 16, maxWaitMs: 60_000, minBytes: 1 }),
    ];
    await wire.deleteTopic("t");
    const codes = (await Promise.all(waiting)).map(({ errorCode }) => errorCode);
    assert.deepEqual(codes, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]);
  });
});

Deno.test("Topics and partitions that are not there are named by their codes", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    assert.equal((await wire.fetch("nowhere", 0)).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    const unknownId = "00000000-0000-4000-8000-000000000001";
    assert.equal((await wire.fetch(unknownId, 0, { version: 13 })).errorCode, ErrorCode.UNKNOWN_TOPIC_ID);
  });
});

Deno.test("A consumer behind or ahead of the leader's epoch is told which", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    await wire.append("t", record("a"));
    const epoch = await leaderEpochOf(wire, "t");
    const ask = async (currentLeaderEpoch: number) => (await wire.fetch("t", 0, { currentLeaderEpoch })).errorCode;
    assert.equal(await ask(epoch), ErrorCode.NONE);
    assert.equal(await ask(epoch + 1), ErrorCode.UNKNOWN_LEADER_EPOCH);
    if (epoch > 0) assert.equal(await ask(epoch - 1), ErrorCode.FENCED_LEADER_EPOCH);
    const [listed] = await Promise.all([wire.listOffset("t", -1, { currentLeaderEpoch: epoch + 1 })]);
    assert.equal(listed.errorCode, ErrorCode.UNKNOWN_LEADER_EPOCH);
  });
});

Deno.test("The end of an epoch is told, and where a consumer's log leaves ours", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    await wire.append("t", record("a"));
    const epoch = await leaderEpochOf(wire, "t");
    const endOf = async (leaderEpoch: number) => {
      const { topics } = await wire.client.call(offsetForLeaderEpochRequest, offsetForLeaderEpochResponse, 4, {
        replicaId: -1,
        topics: [{ topic: "t", partitions: [{ partition: 0, currentLeaderEpoch: -1, leaderEpoch }] }],
      });
      const { errorCode, leaderEpoch: found, endOffset } = topics[0].partitions[0];
      return { errorCode, found, endOffset };
    };
    assert.deepEqual(await endOf(epoch), { errorCode: ErrorCode.NONE, found: epoch, endOffset: 1 });
    assert.deepEqual(await endOf(epoch + 5), { errorCode: ErrorCode.NONE, found: -1, endOffset: -1 });
    const diverging = await wire.fetch("t", 5, { lastFetchedEpoch: epoch });
    assert.deepEqual(diverging.divergingEpoch, { epoch, endOffset: 1 });
  });
});
