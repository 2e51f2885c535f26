/**
 * EndTxn (KIP-98): commits or aborts.
 *
 * v3 flexible · v4 abortable errors (KIP-890) · v5 every end raises the producer epoch; the answer tells it.
 */

import { bool, int16, int32, int64, message, string } from "../schema.ts";

export const endTxnRequest = message(
  { name: "EndTxnRequest", apiKey: 26, type: "request", versions: "0-5", flexible: "3+" },
  {
    transactionalId: string(),
    producerId: int64(),
    producerEpoch: int16(),
    committed: bool(),
  },
);

export const endTxnResponse = message(
  { name: "EndTxnResponse", apiKey: 26, type: "response", versions: "0-5", flexible: "3+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    producerId: int64().since(5).default(-1),
    producerEpoch: int16().since(5).default(-1),
  },
);
