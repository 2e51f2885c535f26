/**
 * InitProducerId (KIP-98): an id and epoch for idempotent or transactional producing.
 *
 * v2 flexible · v3 a producer may present its own id and epoch (KIP-360) · v4 fencing has its own error (KIP-588) · v5
 * abortable errors (KIP-890) · v6 two-phase commit (KIP-939).
 */

import { bool, int16, int32, int64, message, string } from "../schema.ts";

export const initProducerIdRequest = message(
  { name: "InitProducerIdRequest", apiKey: 22, type: "request", versions: "0-6", flexible: "2+" },
  {
    transactionalId: string().nullable(),
    transactionTimeoutMs: int32(),
    producerId: int64().since(3).default(-1),
    producerEpoch: int16().since(3).default(-1),
    enable2Pc: bool().since(6).default(false),
    keepPreparedTxn: bool().since(6).default(false),
  },
);

export const initProducerIdResponse = message(
  { name: "InitProducerIdResponse", apiKey: 22, type: "response", versions: "0-6", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    producerId: int64().default(-1),
    producerEpoch: int16(),
    ongoingTxnProducerId: int64().since(6).default(-1),
    ongoingTxnProducerEpoch: int16().since(6).default(-1),
  },
);
