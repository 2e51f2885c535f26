/**
 * OffsetCommit.
 *
 * v1 generation and member, a time stamp per partition · v2 one retention time instead of the time stamps · v3 throttle
 * time · v5 no retention time (KIP-211) · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible · v9
 * member epochs (KIP-848) · v10 topic ids instead of names.
 */

import { array, int16, int32, int64, message, string, struct, uuid } from "../schema.ts";

export const offsetCommitRequest = message(
  { name: "OffsetCommitRequest", apiKey: 8, type: "request", versions: "0-10", flexible: "8+" },
  {
    groupId: string(),
    generationIdOrMemberEpoch: int32().since(1).default(-1),
    memberId: string().since(1),
    groupInstanceId: string().since(7).nullable(7).default(null),
    retentionTimeMs: int64().since(2).until(4).default(-1),
    topics: array(struct({
      name: string().until(9),
      topicId: uuid().since(10),
      partitions: array(struct({
        partitionIndex: int32(),
        committedOffset: int64(),
        committedLeaderEpoch: int32().since(6).default(-1),
        commitTimestamp: int64().since(1).until(1).default(-1),
        committedMetadata: string().nullable(),
      })),
    })),
  },
);

export const offsetCommitResponse = message(
  { name: "OffsetCommitResponse", apiKey: 8, type: "response", versions: "0-10", flexible: "8+" },
  {
    throttleTimeMs: int32().since(3),
    topics: array(struct({
      name: string().until(9),
      topicId: uuid().since(10),
      partitions: array(struct({ partitionIndex: int32(), errorCode: int16() })),
    })),
  },
);
