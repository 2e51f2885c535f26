/**
 * ListOffsets: offsets by time stamp; special time stamps ask for ends of the log.
 *
 *     -1 latest   -2 earliest   -3 largest time stamp (KIP-734, v7)   -4 earliest local (KIP-405, v8)
 *     -5 latest tiered (KIP-1005, v9)   -6 earliest pending upload (KIP-1023, v11)
 *
 * v0 several offsets per partition, newest first · v1 one offset with its time stamp (KIP-79) · v2 isolation level,
 * throttle time · v4 leader epoch (KIP-320) · v6 flexible · v10 time limit for remote lookups (KIP-1075).
 */

import { array, int16, int32, int64, int8, message, string, struct } from "../schema.ts";

export const listOffsetsRequest = message(
  { name: "ListOffsetsRequest", apiKey: 2, type: "request", versions: "0-11", flexible: "6+" },
  {
    replicaId: int32(),
    isolationLevel: int8().since(2),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        currentLeaderEpoch: int32().since(4).default(-1),
        timestamp: int64(),
        maxNumOffsets: int32().until(0).default(1),
      })),
    })),
    timeoutMs: int32().since(10),
  },
);

export const listOffsetsResponse = message(
  { name: "ListOffsetsResponse", apiKey: 2, type: "response", versions: "0-11", flexible: "6+" },
  {
    throttleTimeMs: int32().since(2),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        errorCode: int16(),
        oldStyleOffsets: array(int64()).until(0),
        timestamp: int64().since(1).default(-1),
        offset: int64().since(1).default(-1),
        leaderEpoch: int32().since(4).default(-1),
      })),
    })),
  },
);
