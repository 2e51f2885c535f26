/**
 * CreateTopics. From version 4 on -1 partitions and replicas mean the broker's defaults; 5 answers with the real numbers
 * and the topic's settings, 7 with its id.
 */

import { ErrorCode } from "../../errors.ts";
import { createTopicsRequest, createTopicsResponse } from "../../protocol/messages/create_topics.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ZERO_UUID } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { describeTopicConfig, describeValues } from "../config_description.ts";
import type { Handler } from "../handler.ts";
import { isRefusal, type Refusal, refuse } from "../refusal.ts";
import { effectiveSettings } from "../topic_config.ts";
import { clusterFacts, createTopic, timedOut, within } from "../topic_creation.ts";
import { isInternalTopic } from "../topic_name.ts";
import { planTopic } from "../topic_plan.ts";
import type { Topic } from "../topics.ts";

type CreateTopicsRequest = ValueOf<typeof createTopicsRequest>;
type CreateTopicsResponse = InputOf<typeof createTopicsResponse>;
type TopicResult = CreateTopicsResponse["topics"][number];
type CreatingBroker = Pick<Broker, "clock" | "cluster" | "config" | "topics">;

export function createTopicsHandler(broker: CreatingBroker): Handler<CreateTopicsRequest, CreateTopicsResponse> {
  return {
    request: createTopicsRequest,
    response: createTopicsResponse,
    async handle(request) {
      const wishes = new Map(request.topics.map((wish) => [wish.name, wish]));
      const repeated = new Set(request.topics.filter((wish) => wishes.get(wish.name) !== wish).map(({ name }) => name));
      const topics = await Promise.all([...wishes.values()].map(async (wish) => {
        if (repeated.has(wish.name)) {
          return refused(wish.name, refuse(ErrorCode.INVALID_REQUEST, `topic ${wish.name} is named more than once`));
        }
        const outcome = request.validateOnly
          ? preview(broker, wish)
          : await within(broker.clock, request.timeoutMs, createTopic(broker, wish), timedOut);
        return isRefusal(outcome) ? refused(wish.name, outcome) : created(broker, outcome);
      }));
      return { throttleTimeMs: 0, topics };
    },
  };
}

/** What the topic would be. */
function preview(broker: CreatingBroker, wish: CreateTopicsRequest["topics"][number]): Topic | Refusal {
  const plan = planTopic(wish, clusterFacts(broker));
  if (isRefusal(plan)) return plan;
  const settings = effectiveSettings(plan.overrides, broker.config);
  return { ...plan, topicId: ZERO_UUID, internal: isInternalTopic(plan.name), settings };
}

function created(broker: CreatingBroker, topic: Topic): TopicResult {
  return {
    name: topic.name,
    topicId: topic.topicId,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    topicConfigErrorCode: ErrorCode.NONE,
    numPartitions: topic.partitionCount,
    replicationFactor: 1,
    configs: describeTopicConfig(topic, broker.config, describeValues),
  };
}

function refused(name: string, { errorCode, message }: Refusal): TopicResult {
  return {
    name,
    topicId: ZERO_UUID,
    errorCode,
    errorMessage: message,
    topicConfigErrorCode: ErrorCode.NONE,
    numPartitions: -1,
    replicationFactor: -1,
    configs: [],
  };
}
