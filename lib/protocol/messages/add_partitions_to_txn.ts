/**
 * AddPartitionsToTxn (KIP-98).
 *
 * v3 flexible · v4 several transactions, and verifying alone, for brokers (KIP-890) · v5 abortable errors.
 */

import { array, bool, int16, int32, int64, message, string, struct } from "../schema.ts";

const topics = () => array(struct({ name: string(), partitions: array(int32()) }));

const topicResults = () =>
  array(struct({
    name: string(),
    resultsByPartition: array(struct({ partitionIndex: int32(), partitionErrorCode: int16() })),
  }));

export const addPartitionsToTxnRequest = message(
  { name: "AddPartitionsToTxnRequest", apiKey: 24, type: "request", versions: "0-5", flexible: "3+" },
  {
    transactions: array(struct({
      transactionalId: string(),
      producerId: int64(),
      producerEpoch: int16(),
      verifyOnly: bool().default(false),
      topics: topics(),
    })).since(4),
    v3AndBelowTransactionalId: string().until(3),
    v3AndBelowProducerId: int64().until(3),
    v3AndBelowProducerEpoch: int16().until(3),
    v3AndBelowTopics: topics().until(3),
  },
);

export const addPartitionsToTxnResponse = message(
  { name: "AddPartitionsToTxnResponse", apiKey: 24, type: "response", versions: "0-5", flexible: "3+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16().since(4),
    resultsByTransaction: array(struct({ transactionalId: string(), topicResults: topicResults() })).since(4),
    resultsByTopicV3AndBelow: topicResults().until(3),
  },
);
