/**
 * AddOffsetsToTxn (KIP-98): a group's offsets become part of a transaction.
 *
 * v3 flexible · v4 abortable errors (KIP-890).
 */

import { int16, int32, int64, message, string } from "../schema.ts";

export const addOffsetsToTxnRequest = message(
  { name: "AddOffsetsToTxnRequest", apiKey: 25, type: "request", versions: "0-4", flexible: "3+" },
  {
    transactionalId: string(),
    producerId: int64(),
    producerEpoch: int16(),
    groupId: string(),
  },
);

export const addOffsetsToTxnResponse = message(
  { name: "AddOffsetsToTxnResponse", apiKey: 25, type: "response", versions: "0-4", flexible: "3+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
  },
);
