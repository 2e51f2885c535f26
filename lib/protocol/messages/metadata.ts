/**
 * Metadata: brokers, and topics with their partitions' leaders.
 *
 * Request: v0 an empty topic list means all · v1 null means all, empty none · v4 auto creation may be forbidden · v8
 * authorized operations (KIP-430) · v9 flexible · v10 topic ids (KIP-516) · v11 no cluster operations (KIP-700) · v12
 * a topic may be asked for by id alone · v13 top-level error (KIP-1102).
 *
 * Response: v1 rack, controller, internal flag · v2 cluster id · v3 throttle time · v5 offline replicas (KIP-112) · v7
 * leader epoch (KIP-320).
 */

import { array, bool, int16, int32, message, string, struct, uuid } from "../schema.ts";

/** What "authorized operations" say when they were not asked for. */
const OPERATIONS_NOT_ASKED = -2147483648;

export const metadataRequest = message(
  { name: "MetadataRequest", apiKey: 3, type: "request", versions: "0-13", flexible: "9+" },
  {
    topics: array(struct({ topicId: uuid().since(10), name: string().nullable(10) })).nullable(1),
    allowAutoTopicCreation: bool().since(4).default(true),
    includeClusterAuthorizedOperations: bool().since(8).until(10),
    includeTopicAuthorizedOperations: bool().since(8),
  },
);

export const metadataResponse = message(
  { name: "MetadataResponse", apiKey: 3, type: "response", versions: "0-13", flexible: "9+" },
  {
    throttleTimeMs: int32().since(3),
    brokers: array(struct({
      nodeId: int32(),
      host: string(),
      port: int32(),
      rack: string().since(1).nullable(1).default(null),
    })),
    clusterId: string().since(2).nullable(2).default(null),
    controllerId: int32().since(1).default(-1),
    topics: array(struct({
      errorCode: int16(),
      name: string().nullable(12),
      topicId: uuid().since(10),
      isInternal: bool().since(1).default(false),
      partitions: array(struct({
        errorCode: int16(),
        partitionIndex: int32(),
        leaderId: int32(),
        leaderEpoch: int32().since(7).default(-1),
        replicaNodes: array(int32()),
        isrNodes: array(int32()),
        offlineReplicas: array(int32()).since(5),
      })),
      topicAuthorizedOperations: int32().since(8).default(OPERATIONS_NOT_ASKED),
    })),
    clusterAuthorizedOperations: int32().since(8).until(10).default(OPERATIONS_NOT_ASKED),
    errorCode: int16().since(13),
  },
);
