/**
 * DescribeTopicPartitions (KIP-966): topics and partitions in pages, with a cursor to go on from.
 */

import { array, bool, int16, int32, message, string, struct, uuid } from "../schema.ts";

/** What "authorized operations" say when they were not asked for. */
const OPERATIONS_NOT_ASKED = -2147483648;

/** Where a listing stopped, and so where the next one begins. */
const cursor = () => struct({ topicName: string(), partitionIndex: int32() }).nullable().default(null);

export const describeTopicPartitionsRequest = message(
  { name: "DescribeTopicPartitionsRequest", apiKey: 75, type: "request", versions: "0", flexible: "0+" },
  {
    topics: array(struct({ name: string() })),
    responsePartitionLimit: int32().default(2000),
    cursor: cursor(),
  },
);

export const describeTopicPartitionsResponse = message(
  { name: "DescribeTopicPartitionsResponse", apiKey: 75, type: "response", versions: "0", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    topics: array(struct({
      errorCode: int16(),
      name: string().nullable(),
      topicId: uuid(),
      isInternal: bool().default(false),
      partitions: array(struct({
        errorCode: int16(),
        partitionIndex: int32(),
        leaderId: int32(),
        leaderEpoch: int32().default(-1),
        replicaNodes: array(int32()),
        isrNodes: array(int32()),
        eligibleLeaderReplicas: array(int32()).nullable().default(null),
        lastKnownElr: array(int32()).nullable().default(null),
        offlineReplicas: array(int32()),
      })),
      topicAuthorizedOperations: int32().default(OPERATIONS_NOT_ASKED),
    })),
    nextCursor: cursor(),
  },
);
