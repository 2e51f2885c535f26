/**
 * CreateTopics.
 *
 * v1 validate only, error messages · v2 throttle time · v4 -1 partitions or replicas mean the broker's defaults
 * (KIP-464) · v5 flexible; the reply tells what was made (KIP-525) · v6 quota errors (KIP-599) · v7 topic id (KIP-516).
 */

import { array, bool, int16, int32, int8, message, string, struct, uuid } from "../schema.ts";

export const createTopicsRequest = message(
  { name: "CreateTopicsRequest", apiKey: 19, type: "request", versions: "0-7", flexible: "5+" },
  {
    topics: array(struct({
      name: string(),
      numPartitions: int32(),
      replicationFactor: int16(),
      assignments: array(struct({ partitionIndex: int32(), brokerIds: array(int32()) })),
      configs: array(struct({ name: string(), value: string().nullable() })),
    })),
    timeoutMs: int32().default(60000),
    validateOnly: bool().since(1).default(false),
  },
);

export const createTopicsResponse = message(
  { name: "CreateTopicsResponse", apiKey: 19, type: "response", versions: "0-7", flexible: "5+" },
  {
    throttleTimeMs: int32().since(2),
    topics: array(struct({
      name: string(),
      topicId: uuid().since(7),
      errorCode: int16(),
      errorMessage: string().since(1).nullable(1),
      topicConfigErrorCode: int16().tagged(0, 5),
      numPartitions: int32().since(5).default(-1),
      replicationFactor: int16().since(5).default(-1),
      configs: array(struct({
        name: string(),
        value: string().nullable(5),
        readOnly: bool(),
        configSource: int8().default(-1),
        isSensitive: bool(),
      })).since(5).nullable(5),
    })),
  },
);
