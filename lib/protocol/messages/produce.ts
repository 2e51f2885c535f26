/**
 * Produce: appends record batches.
 *
 * v0–2 message sets of magic 0 or 1 · v1 throttle time · v2 log append time · v3 magic 2, transactional id (KIP-98) ·
 * v5 log start offset · v7 zstd (KIP-110) · v8 errors per record (KIP-467) · v9 flexible · v10 current leader and its
 * address (KIP-951) · v11 abortable errors (KIP-890) · v12 transactions gain partitions by producing · v13 topic ids
 * instead of names (KIP-516).
 */

import { array, int16, int32, int64, message, records, string, struct, uuid, type ValueOf } from "../schema.ts";

export const produceRequest = message(
  { name: "ProduceRequest", apiKey: 0, type: "request", versions: "0-13", flexible: "9+" },
  {
    transactionalId: string().since(3).nullable(3).default(null),
    acks: int16(),
    timeoutMs: int32(),
    topicData: array(struct({
      name: string().until(12),
      topicId: uuid().since(13),
      partitionData: array(struct({ index: int32(), records: records().nullable() })),
    })),
  },
);

export const produceResponse = message(
  { name: "ProduceResponse", apiKey: 0, type: "response", versions: "0-13", flexible: "9+" },
  {
    responses: array(struct({
      name: string().until(12),
      topicId: uuid().since(13),
      partitionResponses: array(struct({
        index: int32(),
        errorCode: int16(),
        baseOffset: int64(),
        logAppendTimeMs: int64().since(2).default(-1),
        logStartOffset: int64().since(5).default(-1),
        recordErrors: array(struct({
          batchIndex: int32(),
          batchIndexErrorMessage: string().nullable(8).default(null),
        })).since(8),
        errorMessage: string().since(8).nullable(8).default(null),
        currentLeader: struct({ leaderId: int32().default(-1), leaderEpoch: int32().default(-1) }).tagged(0, 10),
      })),
    })),
    throttleTimeMs: int32().since(1).default(0),
    nodeEndpoints: array(struct({
      nodeId: int32(),
      host: string(),
      port: int32(),
      rack: string().nullable(10).default(null),
    })).tagged(0, 10),
  },
);

/** A whole request, as it was read. */
export type ProduceRequest = ValueOf<typeof produceRequest>;
/** A whole response, which its handler fills in piece by piece. */
export type ProduceResponse = ValueOf<typeof produceResponse>;
