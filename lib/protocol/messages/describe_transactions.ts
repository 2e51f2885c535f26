/**
 * DescribeTransactions (KIP-664).
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const describeTransactionsRequest = message(
  { name: "DescribeTransactionsRequest", apiKey: 65, type: "request", versions: "0", flexible: "0+" },
  {
    transactionalIds: array(string()),
  },
);

export const describeTransactionsResponse = message(
  { name: "DescribeTransactionsResponse", apiKey: 65, type: "response", versions: "0", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    transactionStates: array(struct({
      errorCode: int16(),
      transactionalId: string(),
      transactionState: string(),
      transactionTimeoutMs: int32(),
      transactionStartTimeMs: int64(),
      producerId: int64(),
      producerEpoch: int16(),
      topics: array(struct({ topic: string(), partitions: array(int32()) })),
    })),
  },
);
