import assert from "node:assert/strict";
import { createTopicsHandler } from "../../../../lib/broker/handlers/create_topics.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { createTopicsRequest, createTopicsResponse } from "../../../../lib/protocol/messages/create_topics.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import { ZERO_UUID } from "../../../../lib/protocol/schema.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: createTopicsRequest, response: createTopicsResponse };
type Wish = InputOf<typeof createTopicsRequest>["topics"][number];

function wish(changes: Partial<Wish> = {}): Wish {
  return { name: "t", numPartitions: -1, replicationFactor: -1, assignments: [], configs: [], ...changes };
}

function create(broker: AdminBroker, version: number, topics: Wish[], options: { validateOnly?: boolean } = {}) {
  return ask(createTopicsHandler(broker), messages, version, { topics, timeoutMs: 30000, ...options });
}

Deno.test("CreateTopics answers with the real numbers and an id that lasts over a restart", async () => {
  await withAdminBroker(async (broker, restart) => {
    const { topics: [topic] } = await create(broker, 7, [wish()]);
    assert.equal(topic.errorCode, ErrorCode.NONE);
    assert.equal(topic.numPartitions, 3);
    assert.equal(topic.replicationFactor, 1);
    assert.notEqual(topic.topicId, ZERO_UUID);
    const again = await restart();
    assert.equal(again.topics.get("t")?.topicId, topic.topicId);
    assert.equal(again.topics.get("t")?.partitionCount, 3);
  }, { settings: { "num.partitions": 3 } });
});

Deno.test("CreateTopics answers every version in its own layout", async () => {
  await withAdminBroker(async (broker) => {
    for (let version = createTopicsRequest.minVersion; version <= createTopicsRequest.maxVersion; version++) {
      const name = `v${version}`;
      const { topics } = await create(broker, version, [wish({ name }), wish({ name: "not a name" })]);
      assert.deepEqual(topics.map((topic) => [topic.name, topic.errorCode]), [
        [name, ErrorCode.NONE],
        ["not a name", ErrorCode.INVALID_TOPIC_EXCEPTION],
      ]);
    }
  });
});

Deno.test("CreateTopics lists the topic's settings with their sources from version 5 on", async () => {
  await withAdminBroker(async (broker) => {
    const configs = [{ name: "retention.ms", value: "1000" }];
    const { topics: [topic] } = await create(broker, 5, [wish({ configs })]);
    const retention = topic.configs?.find(({ name }) => name === "retention.ms");
    assert.deepEqual([retention?.value, retention?.configSource, retention?.readOnly], ["1000", 1, false]);
    const segment = topic.configs?.find(({ name }) => name === "segment.bytes");
    assert.deepEqual([segment?.value, segment?.configSource], ["1073741824", 5]);
  });
});

Deno.test("validate_only checks everything and creates nothing", async () => {
  await withAdminBroker(async (broker) => {
    const { topics: [good, bad] } = await create(broker, 7, [
      wish({ name: "good", numPartitions: 2 }),
      wish({ name: "bad", configs: [{ name: "no.such.key", value: "1" }] }),
    ], { validateOnly: true });
    assert.deepEqual([good.errorCode, good.numPartitions], [ErrorCode.NONE, 2]);
    assert.equal(bad.errorCode, ErrorCode.INVALID_CONFIG);
    assert.equal(broker.topics.size, 0);
  });
});

Deno.test("CreateTopics refuses wrong wishes one by one with Kafka's codes", async () => {
  await withAdminBroker(async (broker) => {
    await create(broker, 7, [wish({ name: "there.is" })]);
    const { topics } = await create(broker, 7, [
      wish({ name: "there.is" }),
      wish({ name: "there_is" }),
      wish({ name: "zero", numPartitions: 0 }),
      wish({ name: "many", replicationFactor: 2 }),
      wish({ name: "twice" }),
      wish({ name: "twice" }),
      wish({ name: "fine" }),
    ]);
    assert.deepEqual(Object.fromEntries(topics.map((topic) => [topic.name, topic.errorCode])), {
      "there.is": ErrorCode.TOPIC_ALREADY_EXISTS,
      "there_is": ErrorCode.INVALID_TOPIC_EXCEPTION,
      "zero": ErrorCode.INVALID_PARTITIONS,
      "many": ErrorCode.INVALID_REPLICATION_FACTOR,
      "twice": ErrorCode.INVALID_REQUEST,
      "fine": ErrorCode.NONE,
    });
    assert.ok(topics.every(({ errorCode, errorMessage }) => errorCode === 0 || errorMessage !== null));
  });
});

Deno.test("of two requests for one name at a time, one creates it", async () => {
  await withAdminBroker(async (broker) => {
    const replies = await Promise.all([create(broker, 7, [wish()]), create(broker, 7, [wish()])]);
    const codes = replies.map(({ topics }) => topics[0].errorCode).sort();
    assert.deepEqual(codes, [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]);
  });
});

Deno.test("of two requests for names that collide at a time, one creates its topic", async () => {
  await withAdminBroker(async (broker) => {
    const replies = await Promise.all([
      create(broker, 7, [wish({ name: "a.b" })]),
      create(broker, 7, [wish({ name: "a_b" })]),
    ]);
    const codes = replies.map(({ topics }) => topics[0].errorCode).sort();
    assert.deepEqual(codes, [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]);
  });
});

Deno.test("the longest name can be created, used after a restart, deleted and created again", async () => {
  await withAdminBroker(async (broker, restart) => {
    const name = "x".repeat(249);
    const first = await create(broker, 7, [wish({ name, numPartitions: 12 })]);
    assert.equal(first.topics[0].errorCode, ErrorCode.NONE);
    const again = await restart();
    const topic = again.topics.get(name);
    assert.equal(topic?.partitionCount, 12);
    assert.equal(await again.topics.delete(topic), null);
    const second = await create(again, 7, [wish({ name })]);
    assert.equal(second.topics[0].errorCode, ErrorCode.NONE);
    assert.notEqual(second.topics[0].topicId, first.topics[0].topicId);
  });
});
