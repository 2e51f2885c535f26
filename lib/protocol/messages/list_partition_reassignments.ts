/** ListPartitionReassignments (KIP-455). */

import { array, int16, int32, message, string, struct } from "../schema.ts";

export const listPartitionReassignmentsRequest = message(
  { name: "ListPartitionReassignmentsRequest", apiKey: 46, type: "request", versions: "0", flexible: "0+" },
  {
    timeoutMs: int32().default(60000),
    topics: array(struct({ name: string(), partitionIndexes: array(int32()) })).nullable().default(null),
  },
);

export const listPartitionReassignmentsResponse = message(
  { name: "ListPartitionReassignmentsResponse", apiKey: 46, type: "response", versions: "0", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    errorMessage: string().nullable(),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        replicas: array(int32()),
        addingReplicas: array(int32()),
        removingReplicas: array(int32()),
      })),
    })),
  },
);
