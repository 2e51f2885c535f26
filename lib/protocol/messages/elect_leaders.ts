/**
 * ElectLeaders (KIP-183).
 *
 * v1 kind of election, error of the whole (KIP-460) · v2 flexible.
 */

import { array, int16, int32, int8, message, string, struct } from "../schema.ts";

export const electLeadersRequest = message(
  { name: "ElectLeadersRequest", apiKey: 43, type: "request", versions: "0-2", flexible: "2+" },
  {
    electionType: int8().since(1).default(0),
    topicPartitions: array(struct({ topic: string(), partitions: array(int32()) })).nullable(),
    timeoutMs: int32().default(60000),
  },
);

export const electLeadersResponse = message(
  { name: "ElectLeadersResponse", apiKey: 43, type: "response", versions: "0-2", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16().since(1).default(0),
    replicaElectionResults: array(struct({
      topic: string(),
      partitionResult: array(struct({
        partitionId: int32(),
        errorCode: int16(),
        errorMessage: string().nullable(),
      })),
    })),
  },
);
