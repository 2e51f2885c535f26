/**
 * DeleteTopics: by name, from version 6 on also by topic id. Resolves when the names are free again.
 */

import { ErrorCode } from "../../errors.ts";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../protocol/messages/delete_topics.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ZERO_UUID } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { type Refusal, refuse } from "../refusal.ts";
import { timedOut, within } from "../topic_creation.ts";
import type { Topic } from "../topics.ts";

type DeleteTopicsRequest = ValueOf<typeof deleteTopicsRequest>;
type DeleteTopicsResponse = InputOf<typeof deleteTopicsResponse>;
type TopicResult = DeleteTopicsResponse["responses"][number];
type DeletingBroker = Pick<Broker, "clock" | "config" | "topics">;

interface Wish {
  readonly name: string | null;
  readonly topicId: string;
}

export function deleteTopicsHandler(broker: DeletingBroker): Handler<DeleteTopicsRequest, DeleteTopicsResponse> {
  return {
    request: deleteTopicsRequest,
    response: deleteTopicsResponse,
    async handle(request, context) {
      const wishes = context.apiVersion >= 6
        ? request.topics
        : request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }));
      if (!broker.config.get("delete.topic.enable")) return disabled(wishes, context.apiVersion);
      const targets = wishes.map((wish) => ({ wish, topic: find(broker, wish) }));
      const responses = await Promise.all(targets.map(async ({ wish, topic }) => {
        if ("errorCode" in topic) return result(wish, topic);
        const same = targets.filter((target) => target.topic === topic);
        if (same.length > 1) {
          return result(wish, refuse(ErrorCode.INVALID_REQUEST, `topic ${topic.name} is named more than once`));
        }
        const refusal = await within(broker.clock, request.timeoutMs, broker.topics.delete(topic), timedOut);
        return result(topic, refusal);
      }));
      return { throttleTimeMs: 0, responses };
    },
  };
}

function find(broker: DeletingBroker, { name, topicId }: Wish): Topic | Refusal {
  if (topicId === ZERO_UUID) {
    if (name === null) return refuse(ErrorCode.INVALID_REQUEST, "neither a topic name nor a topic id is given");
    return broker.topics.get(name) ??
      refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `topic ${name} does not exist`);
  }
  if (name !== null) return refuse(ErrorCode.INVALID_REQUEST, "both a topic name and a topic id are given");
  return broker.topics.getById(topicId) ?? refuse(ErrorCode.UNKNOWN_TOPIC_ID, `no topic has the id ${topicId}`);
}

function disabled(wishes: readonly Wish[], apiVersion: number): DeleteTopicsResponse {
  const errorCode = apiVersion < 3 ? ErrorCode.INVALID_REQUEST : ErrorCode.TOPIC_DELETION_DISABLED;
  const refusal = refuse(errorCode, "delete.topic.enable is false");
  return { throttleTimeMs: 0, responses: wishes.map((wish) => result(wish, refusal)) };
}

function result({ name, topicId }: Wish, refusal: Refusal | null): TopicResult {
  return {
    name,
    topicId,
    errorCode: refusal === null ? ErrorCode.NONE : refusal.errorCode,
    errorMessage: refusal === null ? null : refusal.message,
  };
}
