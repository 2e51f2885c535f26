/**
 * DescribeCluster (KIP-700): brokers, controller and cluster id.
 *
 * v1 brokers (endpoint type 1) or controllers (2) (KIP-919) · v2 fenced brokers too (KIP-1073).
 */

import { array, bool, int16, int32, int8, message, string, struct } from "../schema.ts";

/** What "authorized operations" say when they were not asked for. */
const OPERATIONS_NOT_ASKED = -2147483648;

export const describeClusterRequest = message(
  { name: "DescribeClusterRequest", apiKey: 60, type: "request", versions: "0-2", flexible: "0+" },
  {
    includeClusterAuthorizedOperations: bool(),
    endpointType: int8().since(1).default(1),
    includeFencedBrokers: bool().since(2),
  },
);

export const describeClusterResponse = message(
  { name: "DescribeClusterResponse", apiKey: 60, type: "response", versions: "0-2", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    errorMessage: string().nullable().default(null),
    endpointType: int8().since(1).default(1),
    clusterId: string(),
    controllerId: int32().default(-1),
    brokers: array(struct({
      brokerId: int32(),
      host: string(),
      port: int32(),
      rack: string().nullable().default(null),
      isFenced: bool().since(2),
    })),
    clusterAuthorizedOperations: int32().default(OPERATIONS_NOT_ASKED),
  },
);
