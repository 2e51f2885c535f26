/**
 * OffsetFetch.
 *
 * v0 and v1 look alike · v2 null topics mean all; top-level error (KIP-88) · v3 throttle time · v5 leader epoch
 * (KIP-320) · v6 flexible · v7 unstable offsets may be refused (KIP-447) · v8 several groups at once (KIP-709) · v9
 * member epochs (KIP-848) · v10 topic ids instead of names.
 */

import { array, bool, int16, int32, int64, message, string, struct, uuid } from "../schema.ts";

export const offsetFetchRequest = message(
  { name: "OffsetFetchRequest", apiKey: 9, type: "request", versions: "0-10", flexible: "6+" },
  {
    groupId: string().until(7),
    topics: array(struct({ name: string(), partitionIndexes: array(int32()) })).until(7).nullable(2),
    groups: array(struct({
      groupId: string(),
      memberId: string().since(9).nullable(9).default(null),
      memberEpoch: int32().since(9).default(-1),
      topics: array(struct({
        name: string().until(9),
        topicId: uuid().since(10),
        partitionIndexes: array(int32()),
      })).nullable(8),
    })).since(8),
    requireStable: bool().since(7).default(false),
  },
);

export const offsetFetchResponse = message(
  { name: "OffsetFetchResponse", apiKey: 9, type: "response", versions: "0-10", flexible: "6+" },
  {
    throttleTimeMs: int32().since(3),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        committedOffset: int64(),
        committedLeaderEpoch: int32().since(5).default(-1),
        metadata: string().nullable(),
        errorCode: int16(),
      })),
    })).until(7),
    errorCode: int16().since(2).until(7).default(0),
    groups: array(struct({
      groupId: string(),
      topics: array(struct({
        name: string().until(9),
        topicId: uuid().since(10),
        partitions: array(struct({
          partitionIndex: int32(),
          committedOffset: int64(),
          committedLeaderEpoch: int32().default(-1),
          metadata: string().nullable(8),
          errorCode: int16(),
        })),
      })),
      errorCode: int16().default(0),
    })).since(8),
  },
);
