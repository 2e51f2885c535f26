/**
 * CreatePartitions (KIP-195).
 *
 * v2 flexible · v3 quota errors (KIP-599).
 */

import { array, bool, int16, int32, message, string, struct } from "../schema.ts";

export const createPartitionsRequest = message(
  { name: "CreatePartitionsRequest", apiKey: 37, type: "request", versions: "0-3", flexible: "2+" },
  {
    topics: array(struct({
      name: string(),
      count: int32(),
      assignments: array(struct({ brokerIds: array(int32()) })).nullable(),
    })),
    timeoutMs: int32(),
    validateOnly: bool(),
  },
);

export const createPartitionsResponse = message(
  { name: "CreatePartitionsResponse", apiKey: 37, type: "response", versions: "0-3", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    results: array(struct({
      name: string(),
      errorCode: int16(),
      errorMessage: string().nullable().default(null),
    })),
  },
);
