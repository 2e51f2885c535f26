/**
 * Whether something may be written for a transaction: asks its coordinator, here or on another broker, and lets places
 * join where the request says so (KIP-890).
 *
 * The answer is an {@link Admission}, which has to be asked at the very moment of the writing: the transaction may have
 * ended since, and nothing may be written behind its end.
 */

import { ErrorCode } from "../errors.ts";
import { addPartitionsToTxnRequest, addPartitionsToTxnResponse } from "../protocol/messages/add_partitions_to_txn.ts";
import type { ProducerIdentity, TopicPartition } from "../transactions/transaction.ts";
import type { Broker } from "./broker.ts";
import { TRANSACTION_SHARDS, transactionShardOf } from "./coordinator_shards.ts";
import type { TransactionGuard } from "./transaction_guards.ts";

/** See the file's head. */
export interface Admission {
  /** Why nothing may be written to a place now; NONE where it may. */
  refusalOf(place: TopicPartition): ErrorCode;
  /** To be called when everything is written. */
  release(): void;
}

type ParticipatingBroker = Pick<Broker, "transactions" | "cluster" | "links" | "guards" | "nodeId" | "partitions">;

const ADD_PARTITIONS_VERSION = 5;

/** Asks for all places together. At once where the coordinator is here and the places are known to it. */
export function participate(
  broker: ParticipatingBroker,
  transactionalId: string,
  producer: ProducerIdentity,
  places: readonly TopicPartition[],
  joins: boolean,
): Admission | Promise<Admission> {
  const { transactions, cluster, nodeId } = broker;
  const keeper = cluster.coordinatorOf(TRANSACTION_SHARDS, transactionShardOf(transactionalId));
  if (keeper === nodeId || keeper === null) {
    const admission: Admission = {
      refusalOf: (place) => transactions.verify(transactionalId, producer, [place]),
      release: () => {},
    };
    const joined = joins && places.length > 0 ? transactions.add(transactionalId, producer, places) : ErrorCode.NONE;
    return joined instanceof Promise ? joined.then(() => admission) : admission;
  }
  // Where the transaction has begun already, its coordinator knows of the place.
  const unknown = places.filter((place) => !hasBegun(broker, producer, place));
  const begun: Admission = {
    refusalOf: (place) => hasBegun(broker, producer, place) ? ErrorCode.NONE : ErrorCode.CONCURRENT_TRANSACTIONS,
    release: () => {},
  };
  if (unknown.length === 0) return begun;
  return ask(broker, keeper, transactionalId, producer, unknown, joins).then((asked) => ({
    refusalOf: (place) => asked.refusalOf(place) ?? begun.refusalOf(place),
    release: asked.release,
  }));
}

function hasBegun({ partitions }: ParticipatingBroker, producer: ProducerIdentity, place: TopicPartition): boolean {
  const known = partitions.get(place.topic, place.partition)?.openLog?.producer(producer.producerId);
  return known !== undefined && known.transactionFirstOffset !== -1 && known.producerEpoch === producer.producerEpoch;
}

async function ask(
  { guards, links }: ParticipatingBroker,
  keeper: number,
  transactionalId: string,
  { producerId, producerEpoch }: ProducerIdentity,
  places: readonly TopicPartition[],
  joins: boolean,
): Promise<{ refusalOf(place: TopicPartition): ErrorCode | null; release(): void }> {
  const taken = new Map<string, TransactionGuard>();
  const topics = new Map<string, number[]>();
  for (const place of places) {
    if (taken.has(keyOf(place))) continue;
    taken.set(keyOf(place), guards.take(place, producerId));
    topics.set(place.topic, [...topics.get(place.topic) ?? [], place.partition]);
  }
  const reply = await links.call(
    keeper,
    addPartitionsToTxnRequest,
    addPartitionsToTxnResponse,
    ADD_PARTITIONS_VERSION,
    {
      transactions: [{
        transactionalId,
        producerId,
        producerEpoch,
        verifyOnly: !joins,
        topics: Array.from(topics, ([name, partitions]) => ({ name, partitions })),
      }],
      v3AndBelowTransactionalId: "",
      v3AndBelowProducerId: -1,
      v3AndBelowProducerEpoch: -1,
      v3AndBelowTopics: [],
    },
  );
  const codes = new Map<string, ErrorCode>();
  for (const { name, resultsByPartition } of reply?.resultsByTransaction[0]?.topicResults ?? []) {
    for (const { partitionIndex, partitionErrorCode } of resultsByPartition) {
      codes.set(keyOf({ topic: name, partition: partitionIndex }), partitionErrorCode as ErrorCode);
    }
  }
  return {
    refusalOf(place) {
      const key = keyOf(place);
      if (!taken.has(key)) return null;
      const code = codes.get(key) ?? ErrorCode.COORDINATOR_NOT_AVAILABLE;
      return code === ErrorCode.NONE && taken.get(key)?.isTripped ? ErrorCode.CONCURRENT_TRANSACTIONS : code;
    },
    release() {
      for (const guard of taken.values()) guard.release();
    },
  };
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
