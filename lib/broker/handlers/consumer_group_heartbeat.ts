/**
 * ConsumerGroupHeartbeat (0–1): a member of a group of the consumer protocol joins, is alive, changes its subscription,
 * gives up, and goes (KIP-848). From version 1 on members make their ids themselves (KIP-1082) and may subscribe by a
 * pattern.
 */

import { ErrorCode } from "../../errors.ts";
import type { HeartbeatReply } from "../../groups/consumer_replies.ts";
import { type Partitions, PartitionsBuilder } from "../../groups/topic_partitions.ts";
import {
  consumerGroupHeartbeatRequest,
  consumerGroupHeartbeatResponse,
} from "../../protocol/messages/consumer_group_heartbeat.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";

type Request = ValueOf<typeof consumerGroupHeartbeatRequest>;
type Response = InputOf<typeof consumerGroupHeartbeatResponse>;

/** Serves ConsumerGroupHeartbeat. */
export function consumerGroupHeartbeatHandler({ groups }: Pick<Broker, "groups">): Handler<Request, Response> {
  return {
    request: consumerGroupHeartbeatRequest,
    response: consumerGroupHeartbeatResponse,
    handle(request, { apiVersion, clientId, clientHost }) {
      const reply = groups.consumerHeartbeat(
        request.groupId,
        {
          memberId: request.memberId,
          memberEpoch: request.memberEpoch,
          instanceId: request.instanceId,
          rackId: request.rackId,
          clientId: clientId ?? "",
          clientHost: `/${clientHost}`,
          rebalanceTimeoutMs: request.rebalanceTimeoutMs,
          topicNames: request.subscribedTopicNames,
          regex: request.subscribedTopicRegex,
          assignor: request.serverAssignor,
          owned: ownedOf(request.topicPartitions),
        },
        apiVersion,
      );
      const answer = (given: HeartbeatReply) => responseOf(given, groups.heartbeatIntervalMs);
      return reply instanceof Promise ? later(reply.then(answer)) : answer(reply);
    },
  };
}

function responseOf({ assignment, ...reply }: HeartbeatReply, intervalMs: number): Response {
  const topicPartitions = Array.from(assignment ?? [], ([topicId, partitions]) => ({
    topicId,
    partitions: [...partitions],
  }));
  return {
    throttleTimeMs: 0,
    ...reply,
    heartbeatIntervalMs: reply.errorCode === ErrorCode.NONE ? intervalMs : 0,
    assignment: assignment === null ? null : { topicPartitions },
  };
}

function ownedOf(given: Request["topicPartitions"]): Partitions | null {
  if (given === null) return null;
  const owned = new PartitionsBuilder();
  for (const { topicId, partitions } of given) for (const partition of partitions) owned.add(topicId, partition);
  return owned.build();
}
