/**
 * OffsetForLeaderEpoch: where a leader epoch ends (KIP-101).
 *
 * v1 the epoch that was found (KIP-279) · v2 current leader epoch, throttle time (KIP-320) · v3 replica id (KIP-320),
 * -2 for a consumer · v4 flexible.
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const offsetForLeaderEpochRequest = message(
  { name: "OffsetForLeaderEpochRequest", apiKey: 23, type: "request", versions: "0-4", flexible: "4+" },
  {
    replicaId: int32().since(3).default(-2),
    topics: array(struct({
      topic: string(),
      partitions: array(struct({
        partition: int32(),
        currentLeaderEpoch: int32().since(2).default(-1),
        leaderEpoch: int32(),
      })),
    })),
  },
);

export const offsetForLeaderEpochResponse = message(
  { name: "OffsetForLeaderEpochResponse", apiKey: 23, type: "response", versions: "0-4", flexible: "4+" },
  {
    throttleTimeMs: int32().since(2),
    topics: array(struct({
      topic: string(),
      partitions: array(struct({
        errorCode: int16(),
        partition: int32(),
        leaderEpoch: int32().since(1).default(-1),
        endOffset: int64().default(-1),
      })),
    })),
  },
);
