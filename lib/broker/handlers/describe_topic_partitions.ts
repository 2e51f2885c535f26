/**
 * DescribeTopicPartitions (KIP-966): partitions of topics in the order of topic names, a page at a time. The cursor in a
 * reply names the first partition that did not fit; sent back, it continues there.
 */

import { ErrorCode } from "../../errors.ts";
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from "../../protocol/messages/describe_topic_partitions.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ZERO_UUID } from "../../protocol/schema.ts";
import { ALL_TOPIC_OPERATIONS, NOT_ASKED } from "../authorized_operations.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { placeOf } from "../topic_metadata.ts";
import { topicNameProblem } from "../topic_name.ts";
import type { Topic } from "../topics.ts";

type Request = ValueOf<typeof describeTopicPartitionsRequest>;
type Response = InputOf<typeof describeTopicPartitionsResponse>;
type TopicPartitions = Response["topics"][number];
type DescribingBroker = Pick<Broker, "cluster" | "config" | "nodeId" | "topics">;

export function describeTopicPartitionsHandler(broker: DescribingBroker): Handler<Request, Response> {
  return {
    request: describeTopicPartitionsRequest,
    response: describeTopicPartitionsResponse,
    handle(request) {
      const most = Math.min(broker.config.get("max.request.partition.size.limit"), request.responsePartitionLimit);
      return page(broker, namesFrom(broker, request), { cursor: request.cursor, limit: Math.max(1, most) });
    },
  };
}

/** The names to describe, sorted, those before the cursor left out. */
function namesFrom(broker: DescribingBroker, { topics, cursor }: Request): string[] {
  const asked = topics.length === 0
    ? Array.from(broker.topics.all(), ({ name }) => name)
    : topics.map(({ name }) => name);
  const first = cursor === null ? "" : cursor.topicName;
  return [...new Set(asked)].filter((name) => name >= first).sort();
}

function page(
  broker: DescribingBroker,
  names: readonly string[],
  { cursor, limit }: { readonly cursor: Request["cursor"]; readonly limit: number },
): Response {
  const topics: TopicPartitions[] = [];
  let room = limit;
  for (const name of names) {
    const topic = broker.topics.get(name);
    if (topic === undefined) {
      topics.push(unknown(name));
      continue;
    }
    const first = name === cursor?.topicName ? Math.max(0, cursor.partitionIndex) : 0;
    if (room === 0) return { throttleTimeMs: 0, topics, nextCursor: { topicName: name, partitionIndex: first } };
    const end = Math.min(topic.partitionCount, first + room);
    topics.push(described(broker, topic, { first, end }));
    room -= Math.max(0, end - first);
    if (end < topic.partitionCount) {
      return { throttleTimeMs: 0, topics, nextCursor: { topicName: name, partitionIndex: end } };
    }
  }
  return { throttleTimeMs: 0, topics, nextCursor: null };
}

function described(
  broker: DescribingBroker,
  topic: Topic,
  { first, end }: { readonly first: number; readonly end: number },
): TopicPartitions {
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.topicId,
    isInternal: topic.internal,
    partitions: Array.from({ length: Math.max(0, end - first) }, (_, index) => ({
      partitionIndex: first + index,
      ...placeOf(broker, topic, first + index),
      // Nullable, but Kafka's own client takes only lists.
      eligibleLeaderReplicas: [],
      lastKnownElr: [],
    })),
    topicAuthorizedOperations: ALL_TOPIC_OPERATIONS,
  };
}

function unknown(name: string): TopicPartitions {
  const errorCode = topicNameProblem(name) === null
    ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    : ErrorCode.INVALID_TOPIC_EXCEPTION;
  return {
    errorCode,
    name,
    topicId: ZERO_UUID,
    isInternal: false,
    partitions: [],
    topicAuthorizedOperations: NOT_ASKED,
  };
}
