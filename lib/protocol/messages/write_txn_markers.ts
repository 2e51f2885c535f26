/**
 * WriteTxnMarkers (KIP-98): a coordinator has control records written to the partitions of a transaction.
 *
 * v1 flexible · v2 transaction version (KIP-1228).
 */

import { array, bool, int16, int32, int64, int8, message, string, struct } from "../schema.ts";

export const writeTxnMarkersRequest = message(
  { name: "WriteTxnMarkersRequest", apiKey: 27, type: "request", versions: "0-2", flexible: "1+" },
  {
    markers: array(struct({
      producerId: int64(),
      producerEpoch: int16(),
      transactionResult: bool(),
      topics: array(struct({ name: string(), partitionIndexes: array(int32()) })),
      coordinatorEpoch: int32(),
      transactionVersion: int8().since(2).default(0),
    })),
  },
);

export const writeTxnMarkersResponse = message(
  { name: "WriteTxnMarkersResponse", apiKey: 27, type: "response", versions: "0-2", flexible: "1+" },
  {
    markers: array(struct({
      producerId: int64(),
      topics: array(struct({
        name: string(),
        partitions: array(struct({ partitionIndex: int32(), errorCode: int16() })),
      })),
    })),
  },
);
