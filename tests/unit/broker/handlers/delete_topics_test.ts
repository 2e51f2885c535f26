import assert from "node:assert/strict";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { deleteTopicsHandler } from "../../../../lib/broker/handlers/delete_topics.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../../../lib/protocol/messages/delete_topics.ts";
import { ZERO_UUID } from "../../../../lib/protocol/schema.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: deleteTopicsRequest, response: deleteTopicsResponse };

async function created(broker: AdminBroker, name: string): Promise<string> {
  const wish = { name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };
  const topic = await createTopic(broker, wish);
  assert.ok("topicId" in topic);
  return topic.topicId;
}

function byName(broker: AdminBroker, version: number, ...names: string[]) {
  const input = version >= 6 ? { topics: names.map((name) => ({ name, topicId: ZERO_UUID })) } : { topicNames: names };
  return ask(deleteTopicsHandler(broker), messages, version, { topics: [], timeoutMs: 30000, ...input });
}

function byId(broker: AdminBroker, ...topicIds: string[]) {
  const topics = topicIds.map((topicId) => ({ name: null, topicId }));
  return ask(deleteTopicsHandler(broker), messages, 6, { topics, timeoutMs: 30000 });
}

Deno.test("DeleteTopics by name removes the topic in every version", async () => {
  await withAdminBroker(async (broker) => {
    for (let version = deleteTopicsRequest.minVersion; version <= deleteTopicsRequest.maxVersion; version++) {
      await created(broker, "t");
      const { responses } = await byName(broker, version, "t", "nothere");
      assert.deepEqual(responses.map(({ errorCode }) => errorCode), [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ]);
      assert.equal(broker.topics.get("t"), undefined);
      assert.equal(broker.partitions.get("t", 0), undefined);
    }
  });
});

Deno.test("DeleteTopics by id names the topic in its answer", async () => {
  await withAdminBroker(async (broker) => {
    const topicId = await created(broker, "t");
    const unknown = "11111111-1111-1111-1111-111111111111";
    const { responses } = await byId(broker, topicId, unknown);
    assert.deepEqual(responses.map(({ name, topicId, errorCode }) => [name, topicId, errorCode]), [
      ["t", topicId, ErrorCode.NONE],
      [null, unknown, ErrorCode.UNKNOWN_TOPIC_ID],
    ]);
  });
});

Deno.test("DeleteTopics refuses what is named twice, and deletes none of it", async () => {
  await withAdminBroker(async (broker) => {
    const topicId = await created(broker, "t");
    const topics = [{ name: "t", topicId: ZERO_UUID }, { name: null, topicId }];
    const { responses } = await ask(deleteTopicsHandler(broker), messages, 6, { topics, timeoutMs: 30000 });
    assert.deepEqual(responses.map(({ errorCode }) => errorCode), [
      ErrorCode.INVALID_REQUEST,
      ErrorCode.INVALID_REQUEST,
    ]);
    assert.ok(broker.topics.get("t") !== undefined);
  });
});

Deno.test("DeleteTopics wants a name or an id, not both and not neither", async () => {
  await withAdminBroker(async (broker) => {
    const topicId = await created(broker, "t");
    const topics = [{ name: "t", topicId }, { name: null, topicId: ZERO_UUID }];
    const { responses } = await ask(deleteTopicsHandler(broker), messages, 6, { topics, timeoutMs: 30000 });
    assert.deepEqual(responses.map(({ errorCode }) => errorCode), [
      ErrorCode.INVALID_REQUEST,
      ErrorCode.INVALID_REQUEST,
    ]);
    assert.ok(broker.topics.get("t") !== undefined);
  });
});

Deno.test("where deletion is disabled DeleteTopics says so, in the words of each version", async () => {
  await withAdminBroker(async (broker) => {
    await created(broker, "t");
    const codeIn = async (version: number) => (await byName(broker, version, "t")).responses[0].errorCode;
    assert.equal(await codeIn(2), ErrorCode.INVALID_REQUEST);
    assert.equal(await codeIn(3), ErrorCode.TOPIC_DELETION_DISABLED);
    assert.ok(broker.topics.get("t") !== undefined);
  }, { settings: { "delete.topic.enable": false } });
});

Deno.test("a deleted topic stays deleted after a restart, and its name starts empty with another id", async () => {
  await withAdminBroker(async (broker, restart) => {
    const first = await created(broker, "t");
    await byName(broker, 6, "t");
    const second = await created(broker, "t");
    assert.notEqual(second, first);
    await byName(broker, 6, "t");
    const again = await restart();
    assert.equal(again.topics.size, 0);
  });
});
