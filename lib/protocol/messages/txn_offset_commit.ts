/**
 * TxnOffsetCommit (KIP-98): commits offsets as part of a transaction.
 *
 * v2 leader epoch (KIP-320) · v3 flexible; generation and member (KIP-447) · v4 abortable errors (KIP-890) · v5 the
 * group joins the transaction by this request.
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const txnOffsetCommitRequest = message(
  { name: "TxnOffsetCommitRequest", apiKey: 28, type: "request", versions: "0-5", flexible: "3+" },
  {
    transactionalId: string(),
    groupId: string(),
    producerId: int64(),
    producerEpoch: int16(),
    generationId: int32().since(3).default(-1),
    memberId: string().since(3).default(""),
    groupInstanceId: string().since(3).nullable(3).default(null),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        committedOffset: int64(),
        committedLeaderEpoch: int32().since(2).default(-1),
        committedMetadata: string().nullable(),
      })),
    })),
  },
);

export const txnOffsetCommitResponse = message(
  { name: "TxnOffsetCommitResponse", apiKey: 28, type: "response", versions: "0-5", flexible: "3+" },
  {
    throttleTimeMs: int32(),
    topics: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), errorCode: int16() })),
    })),
  },
);
