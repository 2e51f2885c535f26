/**
 * AlterPartitionReassignments (KIP-455).
 *
 * v1 whether the replication factor may change (KIP-860).
 */

import { array, bool, int16, int32, message, string, struct } from "../schema.ts";

export const alterPartitionReassignmentsRequest = message(
  { name: "AlterPartitionReassignmentsRequest", apiKey: 45, type: "request", versions: "0-1", flexible: "0+" },
  {
    timeoutMs: int32().default(60000),
    allowReplicationFactorChange: bool().since(1).default(true),
    topics: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), replicas: array(int32()).nullable().default(null) })),
    })),
  },
);

export const alterPartitionReassignmentsResponse = message(
  { name: "AlterPartitionReassignmentsResponse", apiKey: 45, type: "response", versions: "0-1", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    allowReplicationFactorChange: bool().since(1).default(true),
    errorCode: int16(),
    errorMessage: string().nullable(),
    responses: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), errorCode: int16(), errorMessage: string().nullable() })),
    })),
  },
);
