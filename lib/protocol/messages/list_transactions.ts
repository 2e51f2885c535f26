/**
 * ListTransactions (KIP-664).
 *
 * v1 filter by duration (KIP-994) · v2 filter by a pattern for transactional ids (KIP-1152).
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const listTransactionsRequest = message(
  { name: "ListTransactionsRequest", apiKey: 66, type: "request", versions: "0-2", flexible: "0+" },
  {
    stateFilters: array(string()),
    producerIdFilters: array(int64()),
    durationFilter: int64().since(1).default(-1),
    transactionalIdPattern: string().since(2).nullable(2).default(null),
  },
);

export const listTransactionsResponse = message(
  { name: "ListTransactionsResponse", apiKey: 66, type: "response", versions: "0-2", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    unknownStateFilters: array(string()),
    transactionStates: array(struct({ transactionalId: string(), producerId: int64(), transactionState: string() })),
  },
);
