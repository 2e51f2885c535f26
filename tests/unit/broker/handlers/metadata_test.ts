import assert from "node:assert/strict";
import { metadataHandler } from "../../../../lib/broker/handlers/metadata.ts";
import { getOrCreateTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { metadataRequest, metadataResponse } from "../../../../lib/protocol/messages/metadata.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import { ZERO_UUID } from "../../../../lib/protocol/schema.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: metadataRequest, response: metadataResponse };
const NOT_ASKED = -2147483648;

type Request = InputOf<typeof metadataRequest>;

function metadata(broker: AdminBroker, version: number, request: Partial<Request>) {
  const plain = { topics: null, includeClusterAuthorizedOperations: false, includeTopicAuthorizedOperations: false };
  return ask(metadataHandler(broker), messages, version, { ...plain, ...request });
}

function named(...names: string[]): Request["topics"] {
  return names.map((name) => ({ name, topicId: ZERO_UUID }));
}

Deno.test("Metadata names this broker by the address of the listener that was asked, in every version", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    for (let version = metadataRequest.minVersion; version <= metadataRequest.maxVersion; version++) {
      const reply = await metadata(broker, version, { topics: named("t") });
      assert.deepEqual(reply.brokers.map(({ nodeId, host, port }) => ({ nodeId, host, port })), [
        { nodeId: 0, host: "advertised", port: 19092 },
      ]);
      const [topic] = reply.topics;
      assert.deepEqual([topic.name, topic.errorCode], ["t", ErrorCode.NONE]);
      assert.deepEqual(
        topic.partitions.map((
          { errorCode, leaderId, replicaNodes, isrNodes },
        ) => [errorCode, leaderId, replicaNodes, isrNodes]),
        [[ErrorCode.NONE, 0, [0], [0]]],
      );
      if (version >= 7) assert.equal(topic.partitions[0].leaderEpoch, broker.partitions.get("t", 0)?.leaderEpoch);
      if (version >= 10) assert.equal(topic.topicId, broker.topics.get("t")?.topicId);
    }
  });
});

Deno.test("an empty list means all topics in version 0 and none later, null means all", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "a");
    await getOrCreateTopic(broker, "b");
    const count = async (version: number, topics: Request["topics"]) =>
      (await metadata(broker, version, { topics })).topics.length;
    assert.equal(await count(0, []), 2);
    assert.equal(await count(1, []), 0);
    assert.equal(await count(1, null), 2);
    assert.equal(await count(13, []), 0);
    assert.equal(await count(13, null), 2);
  });
});

Deno.test("asking for an unknown topic creates it where client and broker allow that", async () => {
  await withAdminBroker(async (broker) => {
    const forbidden = await metadata(broker, 4, { topics: named("t"), allowAutoTopicCreation: false });
    assert.equal(forbidden.topics[0].errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    assert.equal(broker.topics.get("t"), undefined);
    const allowed = await metadata(broker, 4, { topics: named("t") });
    assert.equal(allowed.topics[0].errorCode, ErrorCode.NONE);
    assert.deepEqual(allowed.topics[0].partitions.map(({ leaderId }) => leaderId), [0, 0]);
  }, { settings: { "num.partitions": 2 } });
});

Deno.test("asking for an unknown topic creates nothing where the broker forbids it", async () => {
  await withAdminBroker(async (broker) => {
    for (const version of [0, 1, 4, 12, 13]) {
      const { topics: [topic] } = await metadata(broker, version, { topics: named("t") });
      assert.deepEqual([topic.name, topic.errorCode, topic.partitions], [
        "t",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        [],
      ]);
    }
    assert.equal(broker.topics.size, 0);
  }, { settings: { "auto.create.topics.enable": false } });
});

Deno.test("many requests for one unknown topic at a time create it once and all succeed", async () => {
  await withAdminBroker(async (broker) => {
    const replies = await Promise.all(Array.from({ length: 8 }, () => metadata(broker, 12, { topics: named("t") })));
    const ids = new Set(replies.map(({ topics }) => topics[0].topicId));
    assert.equal(ids.size, 1);
    assert.ok(replies.every(({ topics }) => topics[0].errorCode === ErrorCode.NONE));
  });
});

Deno.test("names that no topic can have are refused, whether or not topics may be created", async () => {
  await withAdminBroker(async (broker) => {
    for (const allowAutoTopicCreation of [true, false]) {
      const { topics } = await metadata(broker, 5, { topics: named("a b", ""), allowAutoTopicCreation });
      assert.deepEqual(topics.map(({ errorCode }) => errorCode), [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
      ]);
    }
    await getOrCreateTopic(broker, "a.b");
    const { topics: [collides] } = await metadata(broker, 5, { topics: named("a_b") });
    assert.equal(collides.errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
  });
});

Deno.test("topics can be asked for by id from version 12 on", async () => {
  await withAdminBroker(async (broker) => {
    const topic = await getOrCreateTopic(broker, "t");
    assert.ok("topicId" in topic);
    const unknown = "11111111-1111-1111-1111-111111111111";
    const asked = [{ name: null, topicId: topic.topicId }, { name: null, topicId: unknown }];
    const { topics } = await metadata(broker, 12, { topics: asked });
    assert.deepEqual(topics.map(({ name, topicId, errorCode }) => [name, topicId, errorCode]), [
      ["t", topic.topicId, ErrorCode.NONE],
      [null, unknown, ErrorCode.UNKNOWN_TOPIC_ID],
    ]);
  });
});

Deno.test("a topic that is asked for twice is answered once", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const { topics } = await metadata(broker, 9, { topics: named("t", "t") });
    assert.equal(topics.length, 1);
  });
});

Deno.test("authorized operations are told only when asked for", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const silent = await metadata(broker, 8, { topics: named("t") });
    assert.deepEqual([silent.clusterAuthorizedOperations, silent.topics[0].topicAuthorizedOperations], [
      NOT_ASKED,
      NOT_ASKED,
    ]);
    const told = await metadata(broker, 8, {
      topics: named("t"),
      includeClusterAuthorizedOperations: true,
      includeTopicAuthorizedOperations: true,
    });
    const bits = (...operations: number[]) => operations.reduce((set, operation) => set | (1 << operation), 0);
    assert.equal(told.topics[0].topicAuthorizedOperations, bits(3, 4, 5, 6, 7, 8, 10, 11));
    assert.equal(told.clusterAuthorizedOperations, bits(5, 7, 8, 9, 10, 11, 12));
  });
});

Deno.test("a deleted topic is unknown at once and has another id when it is created again", async () => {
  await withAdminBroker(async (broker) => {
    const first = await getOrCreateTopic(broker, "t");
    assert.ok("topicId" in first);
    await broker.topics.delete(first);
    const gone = await metadata(broker, 12, { topics: named("t"), allowAutoTopicCreation: false });
    assert.equal(gone.topics[0].errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    const again = await metadata(broker, 12, { topics: named("t") });
    assert.equal(again.topics[0].errorCode, ErrorCode.NONE);
    assert.notEqual(again.topics[0].topicId, first.topicId);
  });
});

Deno.test("one reply of a connection at a time is built, since all topics may be many", async () => {
  await withAdminBroker((broker) => {
    assert.equal(metadataHandler(broker).largeReplies, true);
    return Promise.resolve();
  });
});
