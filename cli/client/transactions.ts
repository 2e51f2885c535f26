/** Questions about transactions: to the coordinators about ids, to leaders about producers. */

import { ErrorCode } from "../../lib/errors.ts";
import { describeProducersRequest, describeProducersResponse } from "../../lib/protocol/messages/describe_producers.ts";
import {
  describeTransactionsRequest,
  describeTransactionsResponse,
} from "../../lib/protocol/messages/describe_transactions.ts";
import { listTransactionsRequest, listTransactionsResponse } from "../../lib/protocol/messages/list_transactions.ts";
import { CommandFailure } from "../exit.ts";
import { type ClusterClient, Refused } from "./cluster_client.ts";
import type { PartitionKey } from "./partitions.ts";

export interface ListedTransaction {
  readonly transactionalId: string;
  readonly state: string;
  readonly producerId: number;
  /** Node id. */
  readonly coordinator: number;
}

export interface TransactionFilter {
  readonly states?: readonly string[] | undefined;
  readonly producerIds?: readonly number[] | undefined;
  readonly longerThanMs?: number | undefined;
  readonly idPattern?: string | undefined;
}

export interface DescribedTransaction {
  readonly transactionalId: string;
  readonly state: string;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly timeoutMs: number;
  /** Null while none goes on. */
  readonly startedAtMs: number | null;
  readonly partitions: readonly PartitionKey[];
}

/** A producer as a partition's log knows it. */
export interface ActiveProducer extends PartitionKey {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly lastTimestamp: number;
  readonly coordinatorEpoch: number;
  /** Where its transaction begins; -1 while none goes on. */
  readonly transactionStart: number;
}

/** The transactional ids of all coordinators that the filter lets through, by id. @throws {CommandFailure} */
export async function listTransactions(
  client: ClusterClient,
  { states = [], producerIds = [], longerThanMs = -1, idPattern }: TransactionFilter,
): Promise<ListedTransaction[]> {
  const listed: ListedTransaction[] = [];
  for (const coordinator of await client.nodeIds()) {
    const reply = await client.node(coordinator, listTransactionsRequest, listTransactionsResponse, {
      stateFilters: [...states],
      producerIdFilters: [...producerIds],
      durationFilter: longerThanMs,
      transactionalIdPattern: idPattern ?? null,
    });
    const { errorCode, unknownStateFilters } = reply;
    if (errorCode !== ErrorCode.NONE) throw new Refused(`transactions of broker ${coordinator}`, errorCode);
    if (unknownStateFilters.length > 0) {
      throw new CommandFailure(
        `there is no state ${unknownStateFilters.join(", ")}; there is Ongoing, CompleteCommit, …`,
      );
    }
    for (const { transactionalId, transactionState, producerId } of reply.transactionStates) {
      listed.push({ transactionalId, state: transactionState, producerId, coordinator });
    }
  }
  return listed.sort((a, b) => a.transactionalId < b.transactionalId ? -1 : 1);
}

/** One transactional id. @throws {Refused} when there is none */
export async function describeTransaction(client: ClusterClient, id: string): Promise<DescribedTransaction> {
  const reply = await client.coordinator(
    id,
    describeTransactionsRequest,
    describeTransactionsResponse,
    { transactionalIds: [id] },
    ({ transactionStates }) => transactionStates[0].errorCode,
    "transactional id",
  );
  const [found] = reply.transactionStates;
  if (found.errorCode !== ErrorCode.NONE) throw new Refused(`transactional id ${id}`, found.errorCode);
  return {
    transactionalId: id,
    state: found.transactionState,
    producerId: found.producerId,
    producerEpoch: found.producerEpoch,
    timeoutMs: found.transactionTimeoutMs,
    startedAtMs: found.transactionStartTimeMs < 0 ? null : found.transactionStartTimeMs,
    partitions: found.topics.flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition }))),
  };
}

/** The producers that the logs of these partitions know. @throws {Refused} */
export async function activeProducers(client: ClusterClient, keys: readonly PartitionKey[]): Promise<ActiveProducer[]> {
  const producers: ActiveProducer[] = [];
  const codes = await client.leaders(keys, async (nodeId, led) => {
    const reply = await client.node(nodeId, describeProducersRequest, describeProducersResponse, {
      topics: [...Map.groupBy(led, ({ topic }) => topic)].map(([name, partitions]) => ({
        name,
        partitionIndexes: partitions.map(({ partition }) => partition),
      })),
    });
    const answered = new Map<PartitionKey, number>();
    for (const key of led) {
      const found = reply.topics.find(({ name }) => name === key.topic)?.partitions
        .find(({ partitionIndex }) => partitionIndex === key.partition);
      answered.set(key, found?.errorCode ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      if (found?.errorCode !== ErrorCode.NONE) continue;
      for (const producer of found.activeProducers) {
        const { producerId, producerEpoch, lastTimestamp, coordinatorEpoch, currentTxnStartOffset } = producer;
        const { topic, partition } = key;
        producers.push({
          ...{ topic, partition, producerId, producerEpoch, lastTimestamp, coordinatorEpoch },
          transactionStart: currentTxnStartOffset,
        });
      }
    }
    return answered;
  });
  for (const [{ topic, partition }, code] of codes) {
    if (code !== ErrorCode.NONE) throw new Refused(`${topic}/${partition}`, code);
  }
  return producers;
}
