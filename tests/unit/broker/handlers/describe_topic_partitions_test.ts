import assert from "node:assert/strict";
import { describeTopicPartitionsHandler } from "../../../../lib/broker/handlers/describe_topic_partitions.ts";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from "../../../../lib/protocol/messages/describe_topic_partitions.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: describeTopicPartitionsRequest, response: describeTopicPartitionsResponse };
type Cursor = { topicName: string; partitionIndex: number } | null;

function page(broker: AdminBroker, names: string[], limit: number, cursor: Cursor = null) {
  const topics = names.map((name) => ({ name }));
  return ask(describeTopicPartitionsHandler(broker), messages, 0, { topics, responsePartitionLimit: limit, cursor });
}

async function withTopics(topics: Record<string, number>, test: (broker: AdminBroker) => Promise<void>, settings = {}) {
  await withAdminBroker(async (broker) => {
    for (const [name, numPartitions] of Object.entries(topics)) {
      await createTopic(broker, { name, numPartitions, replicationFactor: 1, assignments: [], configs: [] });
    }
    await test(broker);
  }, { settings });
}

Deno.test("DescribeTopicPartitions describes all topics by name where none is named", async () => {
  await withTopics({ b: 1, a: 2 }, async (broker) => {
    const { topics, nextCursor } = await page(broker, [], 100);
    assert.deepEqual(
      topics.map(({ name, partitions }) => [name, partitions.map((p) => [p.partitionIndex, p.leaderId])]),
      [
        ["a", [[0, 0], [1, 0]]],
        ["b", [[0, 0]]],
      ],
    );
    assert.equal(nextCursor, null);
  });
});

Deno.test("DescribeTopicPartitions hands out each partition once over pages of any size", async () => {
  await withTopics({ a: 3, b: 1, c: 4 }, async (broker) => {
    for (let limit = 1; limit <= 9; limit++) {
      const seen: string[] = [];
      let cursor: Cursor = null;
      do {
        const reply = await page(broker, [], limit, cursor);
        const partitions = reply.topics.flatMap((topic) =>
          topic.partitions.map((p) => `${topic.name}/${p.partitionIndex}`)
        );
        assert.ok(partitions.length <= limit);
        seen.push(...partitions);
        cursor = reply.nextCursor;
      } while (cursor !== null);
      assert.deepEqual(seen, ["a/0", "a/1", "a/2", "b/0", "c/0", "c/1", "c/2", "c/3"], `limit ${limit}`);
    }
  });
});

Deno.test("the broker's own limit of partitions in a reply holds too", async () => {
  await withTopics({ a: 3 }, async (broker) => {
    const { nextCursor } = await page(broker, ["a"], 100);
    assert.deepEqual(nextCursor, { topicName: "a", partitionIndex: 2 });
  }, { "max.request.partition.size.limit": 2 });
});

Deno.test("DescribeTopicPartitions names unknown topics with their error", async () => {
  await withTopics({ b: 1 }, async (broker) => {
    const { topics } = await page(broker, ["nothere", "b", "a b"], 10);
    assert.deepEqual(topics.map(({ name, errorCode }) => [name, errorCode]), [
      ["a b", ErrorCode.INVALID_TOPIC_EXCEPTION],
      ["b", ErrorCode.NONE],
      ["nothere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]);
  });
});

Deno.test("DescribeTopicPartitions answers with lists where Kafka's client takes no null", async () => {
  await withTopics({ a: 1 }, async (broker) => {
    const { topics: [{ partitions: [partition] }] } = await page(broker, ["a"], 10);
    assert.deepEqual([partition.eligibleLeaderReplicas, partition.lastKnownElr], [[], []]);
  });
});
