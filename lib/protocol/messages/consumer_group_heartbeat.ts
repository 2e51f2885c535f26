/**
 * ConsumerGroupHeartbeat (KIP-848): joining, staying in and leaving a consumer group. What is null has not changed.
 *
 * v1 subscription by regular expression; the client makes its member id (KIP-1082).
 */

import { array, int16, int32, message, string, struct, uuid } from "../schema.ts";

const topicPartitions = () => array(struct({ topicId: uuid(), partitions: array(int32()) }));

export const consumerGroupHeartbeatRequest = message(
  { name: "ConsumerGroupHeartbeatRequest", apiKey: 68, type: "request", versions: "0-1", flexible: "0+" },
  {
    groupId: string(),
    memberId: string(),
    memberEpoch: int32(),
    instanceId: string().nullable().default(null),
    rackId: string().nullable().default(null),
    rebalanceTimeoutMs: int32().default(-1),
    subscribedTopicNames: array(string()).nullable().default(null),
    subscribedTopicRegex: string().since(1).nullable(1).default(null),
    serverAssignor: string().nullable().default(null),
    topicPartitions: topicPartitions().nullable().default(null),
  },
);

export const consumerGroupHeartbeatResponse = message(
  { name: "ConsumerGroupHeartbeatResponse", apiKey: 68, type: "response", versions: "0-1", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    errorMessage: string().nullable().default(null),
    memberId: string().nullable().default(null),
    memberEpoch: int32(),
    heartbeatIntervalMs: int32(),
    assignment: struct({ topicPartitions: topicPartitions() }).nullable().default(null),
  },
);
