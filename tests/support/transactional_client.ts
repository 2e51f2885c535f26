/**
 * A transactional producer of the plainest kind against simulated brokers: each method is one request to whoever keeps
 * what it is about, and gives the code of the answer.
 */

import { ErrorCode } from "../../lib/errors.ts";
import { addOffsetsToTxnRequest, addOffsetsToTxnResponse } from "../../lib/protocol/messages/add_offsets_to_txn.ts";
import {
  addPartitionsToTxnRequest,
  addPartitionsToTxnResponse,
} from "../../lib/protocol/messages/add_partitions_to_txn.ts";
import { endTxnRequest, endTxnResponse } from "../../lib/protocol/messages/end_txn.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { txnOffsetCommitRequest, txnOffsetCommitResponse } from "../../lib/protocol/messages/txn_offset_commit.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { NO_PRODUCER, type ProducerIdentity, type TransactionProtocol } from "../../lib/transactions/transaction.ts";
import { groupPlaceOf, TRANSACTION_SHARDS, transactionShardOf } from "../../lib/broker/coordinator_shards.ts";
import type { Clock } from "../../lib/clock.ts";
import type { TopicPartition } from "../../lib/transactions/transaction.ts";
import type { SimulatedBroker } from "./simulated_broker.ts";

/** The versions of requests that clients of a protocol use. */
const versions = {
  1: { add: 3, addOffsets: 3, produce: 11, offsets: 4, end: 4, init: 4 },
  2: { add: 3, addOffsets: 3, produce: 12, offsets: 5, end: 5, init: 5 },
} as const;

/** Where requests go. */
export interface Servers {
  readonly clock: Clock;
  /** The broker that keeps a partition, or a shard of coordinators' state. */
  at(place: TopicPartition): Pick<SimulatedBroker, "call">;
  topicIdOf(topic: string): string;
}

export interface InitOptions {
  readonly timeoutMs?: number;
  /** Names its own id and epoch (KIP-360). */
  readonly again?: boolean;
  readonly version?: number;
}

/** See the file's head. */
export class TransactionalClient {
  identity: ProducerIdentity = NO_PRODUCER;
  readonly #sequences = new Map<string, number>();

  constructor(
    readonly servers: Servers,
    readonly transactionalId: string,
    readonly protocol: TransactionProtocol,
  ) {}

  async init({ timeoutMs = 60_000, again = false, version = versions[this.protocol].init }: InitOptions = {}) {
    const reply = await this.#coordinator.call(initProducerIdRequest, initProducerIdResponse, version, {
      transactionalId: this.transactionalId,
      transactionTimeoutMs: timeoutMs,
      ...(again ? this.identity : NO_PRODUCER),
    });
    if (reply.errorCode === ErrorCode.NONE) this.#become(reply);
    return reply.errorCode;
  }

  async add(topic: string, partitions: number[], version: number = versions[this.protocol].add) {
    const reply = await this.#coordinator.call(addPartitionsToTxnRequest, addPartitionsToTxnResponse, version, {
      v3AndBelowTransactionalId: this.transactionalId,
      v3AndBelowProducerId: this.identity.producerId,
      v3AndBelowProducerEpoch: this.identity.producerEpoch,
      v3AndBelowTopics: [{ name: topic, partitions }],
      transactions: [],
    });
    return reply.resultsByTopicV3AndBelow[0].resultsByPartition.map(({ partitionErrorCode }) => partitionErrorCode);
  }

  async addOffsets(groupId: string, version: number = versions[this.protocol].addOffsets) {
    const reply = await this.#coordinator.call(addOffsetsToTxnRequest, addOffsetsToTxnResponse, version, {
      ...this.#named(),
      groupId,
    });
    return reply.errorCode;
  }

  /** Writes one batch with these values. */
  async produce(topic: string, partition: number, values: string[], version: number = versions[this.protocol].produce) {
    const place = `${topic}/${partition}`;
    const baseSequence = this.#sequences.get(place) ?? 0;
    const records = buildBatch({
      ...this.identity,
      baseSequence,
      isTransactional: true,
      timestamp: this.servers.clock.wallMs(),
      records: values.map((value) => ({ value })),
    });
    const topicId = this.servers.topicIdOf(topic);
    const reply = await this.servers.at({ topic, partition }).call(produceRequest, produceResponse, version, {
      transactionalId: this.transactionalId,
      acks: -1,
      timeoutMs: 1_000_000,
      topicData: [{ name: topic, topicId, partitionData: [{ index: partition, records }] }],
    });
    const { errorCode } = reply.responses[0].partitionResponses[0];
    if (errorCode === ErrorCode.NONE) this.#sequences.set(place, baseSequence + values.length);
    return errorCode;
  }

  async commitOffset(
    groupId: string,
    topic: string,
    partition: number,
    offset: number,
    member: { generationId?: number; memberId?: string; groupInstanceId?: string | null; version?: number } = {},
  ) {
    const { version = versions[this.protocol].offsets, ...named } = member;
    const reply = await this.servers.at(groupPlaceOf(groupId)).call(
      txnOffsetCommitRequest,
      txnOffsetCommitResponse,
      version,
      {
        ...this.#named(),
        groupId,
        ...named,
        topics: [{
          name: topic,
          partitions: [{ partitionIndex: partition, committedOffset: offset, committedMetadata: "" }],
        }],
      },
    );
    return reply.topics[0].partitions[0].errorCode;
  }

  async end(committed: boolean, version: number = versions[this.protocol].end) {
    const reply = await this.#coordinator.call(endTxnRequest, endTxnResponse, version, { ...this.#named(), committed });
    if (reply.errorCode === ErrorCode.NONE && version >= 5) this.#become(reply);
    return reply.errorCode;
  }

  get #coordinator() {
    return this.servers.at({ topic: TRANSACTION_SHARDS, partition: transactionShardOf(this.transactionalId) });
  }

  #named() {
    return { transactionalId: this.transactionalId, ...this.identity };
  }

  #become({ producerId, producerEpoch }: ProducerIdentity): void {
    if (producerId === this.identity.producerId && producerEpoch === this.identity.producerEpoch) return;
    this.identity = { producerId, producerEpoch };
    this.#sequences.clear();
  }
}
