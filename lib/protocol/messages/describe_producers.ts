/**
 * DescribeProducers (KIP-664): the producers a partition remembers.
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const describeProducersRequest = message(
  { name: "DescribeProducersRequest", apiKey: 61, type: "request", versions: "0", flexible: "0+" },
  {
    topics: array(struct({ name: string(), partitionIndexes: array(int32()) })),
  },
);

export const describeProducersResponse = message(
  { name: "DescribeProducersResponse", apiKey: 61, type: "response", versions: "0", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    topics: array(struct({
      name: string(),
      partitions: array(struct({
        partitionIndex: int32(),
        errorCode: int16(),
        errorMessage: string().nullable().default(null),
        activeProducers: array(struct({
          producerId: int64(),
          producerEpoch: int32(),
          lastSequence: int32().default(-1),
          lastTimestamp: int64().default(-1),
          coordinatorEpoch: int32(),
          currentTxnStartOffset: int64().default(-1),
        })),
      })),
    })),
  },
);
