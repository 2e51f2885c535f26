/**
 * AddPartitionsToTxn (0–5): takes partitions into a producer's transaction; answered when that is durable. Versions 0 to 3
 * come from producers, with one transaction; 4 and 5 from brokers, with several, and with questions whether a partition
 * is part of one (KIP-890). Either all partitions of a transaction are taken in or none.
 */

import { ErrorCode } from "../../errors.ts";
import {
  addPartitionsToTxnRequest,
  addPartitionsToTxnResponse,
} from "../../protocol/messages/add_partitions_to_txn.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { ProducerIdentity, TopicPartition } from "../../transactions/transaction.ts";
import type { Broker } from "../broker.ts";
import { GROUP_SHARDS } from "../coordinator_shards.ts";
import { type Handler, later } from "../handler.ts";
import { transactionErrorFor } from "../transaction_errors.ts";

type Request = ValueOf<typeof addPartitionsToTxnRequest>;
type Response = InputOf<typeof addPartitionsToTxnResponse>;
type Topics = Request["v3AndBelowTopics"];
type TopicResults = Response["resultsByTopicV3AndBelow"] & unknown[];
type Serving = Pick<Broker, "transactions" | "topics">;

/** From here on a request is a broker's, with several transactions. */
const SEVERAL_SINCE = 4;
/** Before this a fenced producer is told that its epoch is invalid (KIP-588). */
const FENCED_SINCE = 2;
/** From here on TRANSACTION_ABORTABLE is known. */
const ABORTABLE_SINCE = 5;

/** Serves AddPartitionsToTxn. */
export function addPartitionsToTxnHandler(broker: Serving): Handler<Request, Response> {
  return {
    request: addPartitionsToTxnRequest,
    response: addPartitionsToTxnResponse,
    handle: (request, { apiVersion }) =>
      later(apiVersion < SEVERAL_SINCE ? one(broker, request, apiVersion) : several(broker, request, apiVersion)),
  };
}

async function one(broker: Serving, request: Request, apiVersion: number): Promise<Response> {
  const { v3AndBelowTransactionalId, v3AndBelowTopics, v3AndBelowProducerId, v3AndBelowProducerEpoch } = request;
  const producer = { producerId: v3AndBelowProducerId, producerEpoch: v3AndBelowProducerEpoch };
  const topicResults = await added(broker, v3AndBelowTransactionalId, producer, v3AndBelowTopics, apiVersion);
  return {
    throttleTimeMs: 0,
    errorCode: ErrorCode.NONE,
    resultsByTransaction: [],
    resultsByTopicV3AndBelow: topicResults,
  };
}

async function several(broker: Serving, request: Request, apiVersion: number): Promise<Response> {
  const resultsByTransaction = await Promise.all(request.transactions.map(async (asked) => {
    const { transactionalId, topics, verifyOnly } = asked;
    const topicResults = verifyOnly
      ? resultsOf(
        topics,
        (place) => errorFor(broker.transactions.verify(transactionalId, asked, [place]), apiVersion),
      )
      : await added(broker, transactionalId, asked, topics, apiVersion);
    return { transactionalId, topicResults };
  }));
  return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, resultsByTransaction, resultsByTopicV3AndBelow: [] };
}

async function added(
  { transactions, topics: known }: Serving,
  transactionalId: string,
  producer: ProducerIdentity,
  topics: Topics,
  apiVersion: number,
): Promise<TopicResults> {
  const countOf = (topic: string) => known.get(topic)?.partitionCount ?? 0;
  // Only brokers ask for the shards of groups, which take part as partitions do.
  const isThere = ({ topic, partition }: TopicPartition) =>
    partition >= 0 && (partition < countOf(topic) || (topic === GROUP_SHARDS && apiVersion >= SEVERAL_SINCE));
  const places = topics.flatMap(({ name, partitions }) => partitions.map((partition) => ({ topic: name, partition })));
  if (!places.every(isThere)) {
    return resultsOf(
      topics,
      (place) => isThere(place) ? ErrorCode.OPERATION_NOT_ATTEMPTED : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    );
  }
  const code = errorFor(
    await transactions.add(transactionalId, producer, places),
    apiVersion,
  );
  return resultsOf(topics, () => code);
}

function resultsOf(topics: Topics, codeOf: (place: TopicPartition) => ErrorCode): TopicResults {
  return topics.map(({ name, partitions }) => ({
    name,
    resultsByPartition: partitions.map((partitionIndex) => ({
      partitionIndex,
      partitionErrorCode: codeOf({ topic: name, partition: partitionIndex }),
    })),
  }));
}

function errorFor(errorCode: ErrorCode, apiVersion: number): ErrorCode {
  return transactionErrorFor(errorCode, {
    knowsFenced: apiVersion >= FENCED_SINCE,
    knowsAbortable: apiVersion >= ABORTABLE_SINCE,
  });
}
