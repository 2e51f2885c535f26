/**
 * Fetch: reads record batches, waiting for them if asked to.
 *
 * Request: v3 limit over all partitions (KIP-74) · v4 isolation level (KIP-98) · v5 log start offset of followers · v7
 * sessions (KIP-227) · v9 leader epoch (KIP-320) · v11 rack (KIP-392) · v12 flexible · v13 topic ids (KIP-516) · v15
 * replica state (KIP-903) · v17 replica directory (KIP-853) · v18 follower's high watermark (KIP-1166).
 *
 * Response: v1 throttle time · v4 last stable offset and aborted transactions · v7 top-level error and session · v10
 * zstd (KIP-110) · v12 diverging epoch, current leader (KIP-595) · v16 addresses of current leaders (KIP-951).
 */

import { array, int16, int32, int64, int8, message, records, string, struct, uuid } from "../schema.ts";

export const fetchRequest = message(
  { name: "FetchRequest", apiKey: 1, type: "request", versions: "0-18", flexible: "12+" },
  {
    clusterId: string().nullable(12).default(null).tagged(0, 12),
    replicaId: int32().until(14).default(-1),
    replicaState: struct({ replicaId: int32().default(-1), replicaEpoch: int64().default(-1) }).tagged(1, 15),
    maxWaitMs: int32(),
    minBytes: int32(),
    maxBytes: int32().since(3).default(0x7fffffff),
    isolationLevel: int8().since(4).default(0),
    sessionId: int32().since(7).default(0),
    sessionEpoch: int32().since(7).default(-1),
    topics: array(struct({
      topic: string().until(12),
      topicId: uuid().since(13),
      partitions: array(struct({
        partition: int32(),
        currentLeaderEpoch: int32().since(9).default(-1),
        fetchOffset: int64(),
        lastFetchedEpoch: int32().since(12).default(-1),
        logStartOffset: int64().since(5).default(-1),
        partitionMaxBytes: int32(),
        replicaDirectoryId: uuid().tagged(0, 17),
        highWatermark: int64().default(Number.MAX_SAFE_INTEGER).tagged(1, 18),
      })),
    })),
    forgottenTopicsData: array(struct({
      topic: string().until(12),
      topicId: uuid().since(13),
      partitions: array(int32()),
    })).since(7),
    rackId: string().since(11).default(""),
  },
);

export const fetchResponse = message(
  { name: "FetchResponse", apiKey: 1, type: "response", versions: "0-18", flexible: "12+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16().since(7),
    sessionId: int32().since(7).default(0),
    responses: array(struct({
      topic: string().until(12),
      topicId: uuid().since(13),
      partitions: array(struct({
        partitionIndex: int32(),
        errorCode: int16(),
        highWatermark: int64(),
        lastStableOffset: int64().since(4).default(-1),
        logStartOffset: int64().since(5).default(-1),
        divergingEpoch: struct({ epoch: int32().default(-1), endOffset: int64().default(-1) }).tagged(0, 12),
        currentLeader: struct({ leaderId: int32().default(-1), leaderEpoch: int32().default(-1) }).tagged(1, 12),
        snapshotId: struct({ endOffset: int64().default(-1), epoch: int32().default(-1) }).tagged(2, 12),
        abortedTransactions: array(struct({ producerId: int64(), firstOffset: int64() })).since(4).nullable(4),
        preferredReadReplica: int32().since(11).default(-1),
        records: records().nullable(),
      })),
    })),
    nodeEndpoints: array(struct({
      nodeId: int32(),
      host: string(),
      port: int32(),
      rack: string().nullable(16).default(null),
    })).tagged(0, 16),
  },
);
