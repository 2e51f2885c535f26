/**
 * Produce (0–13): appends one batch per partition, and answers when all of them are durable.
 *
 * The order is fixed when `handle` returns: every append of the request is in its log then, and the frame's bytes are no
 * longer needed. The reply follows when the syncs that cover the appends are over (acks 1 and −1 alike), or when the
 * request's timeout is (REQUEST_TIMED_OUT; a retry of an idempotent producer is then recognised). acks=0 has no reply.
 *
 * What belongs to a transaction is appended only where the coordinator knows, durably, that the partition is part of it:
 * versions 12 and up take it in by this request, which then waits for that before its appends.
 *
 * Versions: 0–2 carry message sets of magic 0 and 1; 3 record batches; 7 zstd; 8 errors per record; 10 the current leader;
 * 13 topic ids.
 */
import { ErrorCode } from "../../errors.ts";
import {
  type ProduceRequest,
  produceRequest,
  type ProduceResponse,
  produceResponse,
} from "../../protocol/messages/produce.ts";
import { HEADER_BYTES, isTransactional, magic, producerEpoch, producerId } from "../../records/batch.ts";
import type { ProducedOutcome, RecordError } from "../../records/validate.ts";
import type { PartitionLog } from "../../storage/log.ts";
import type { Broker } from "../broker.ts";
import { CloseConnection, type Handler, later, type Reply, type RequestContext } from "../handler.ts";
import { absence, currentLeader, nodeEndpoints, type WithLeader } from "../leader_hint.ts";
import { prepareBatch } from "../prepare_batch.ts";
import type { Partition } from "../partitions.ts";
import type { Topic } from "../topics.ts";
import { produceErrorFor } from "../transaction_errors.ts";
import { type Admission, participate } from "../transaction_participation.ts";
import type { ProducerIdentity, TopicPartition } from "../../transactions/transaction.ts";

type PartitionData = ProduceRequest["topicData"][number]["partitionData"][number];
type PartitionReply = ProduceResponse["responses"][number]["partitionResponses"][number];

/** From here on a transaction gains partitions by producing to them (KIP-890). */
const JOINS_SINCE = 12;

/** A partition's part of the request after its append. */
interface Appended {
  readonly reply: PartitionReply;
  /** Set where the reply has to wait for a sync. */
  readonly pending: { readonly topic: Topic; readonly log: PartitionLog; readonly ticket: number } | null;
}

/** Serves Produce. */
export function produceHandler(broker: Broker): Handler<ProduceRequest, ProduceResponse> {
  return {
    request: produceRequest,
    response: produceResponse,
    handle: (request, context) => new Production(broker, request, context).run(),
  };
}

/** One Produce request. */
class Production {
  readonly #responses: ProduceResponse["responses"] = [];
  /** Who writes for a transaction. */
  #producer: ProducerIdentity | null = null;
  readonly #pending: { reply: PartitionReply; topic: Topic; log: PartitionLog; ticket: number }[] = [];

  constructor(
    private readonly broker: Broker,
    private readonly request: ProduceRequest,
    private readonly context: RequestContext,
  ) {}

  run(): Reply<ProduceResponse> | Promise<Reply<ProduceResponse>> {
    const logs = this.#openLogs();
    return logs === null ? this.#whenAdmitted(null) : logs.then((opened) => this.#whenAdmitted(opened));
  }

  /** Appends when the producer's transaction, if there is one, covers what it writes to. */
  #whenAdmitted(
    opened: Map<Partition, PartitionLog | ErrorCode> | null,
  ): Reply<ProduceResponse> | Promise<Reply<ProduceResponse>> {
    const admission = this.#admission();
    if (!(admission instanceof Promise)) return this.#appendAll(opened, admission);
    return admission.then((admitted) => {
      try {
        return this.#appendAll(opened, admitted);
      } finally {
        admitted.release();
      }
    });
  }

  /** Null where there is no transaction. */
  #admission(): Admission | null | Promise<Admission> {
    const { transactionalId, topicData } = this.request;
    if (transactionalId === null) return null;
    let producer: ProducerIdentity | null = null;
    const places: TopicPartition[] = [];
    for (const data of topicData) {
      const topic = this.#topicOf(data);
      if (topic === undefined) continue;
      for (const { index, records } of data.partitionData) {
        const writer = records === null ? null : transactionalProducerOf(records);
        if (writer === null || this.broker.partitions.get(topic.name, index) === undefined) continue;
        producer ??= writer;
        // A request has one producer; what another one would write is refused at the append.
        if (isSame(producer, writer)) places.push({ topic: topic.name, partition: index });
      }
    }
    if (producer === null) return null;
    this.#producer = producer;
    return participate(this.broker, transactionalId, producer, places, this.context.apiVersion >= JOINS_SINCE);
  }

  /** Opens the partitions that are not open yet, all at once; null where nothing has to be waited for. */
  #openLogs(): Promise<Map<Partition, PartitionLog | ErrorCode>> | null {
    let opening: Promise<[Partition, PartitionLog | ErrorCode]>[] | null = null;
    for (const topicData of this.request.topicData) {
      const topic = this.#topicOf(topicData);
      if (topic === undefined) continue;
      for (const { index } of topicData.partitionData) {
        const partition = this.broker.partitions.get(topic.name, index);
        const log = partition?.log();
        if (partition !== undefined && log instanceof Promise) {
          (opening ??= []).push(log.then((opened) => [partition, opened]));
        }
      }
    }
    return opening && Promise.all(opening).then((opened) => new Map(opened));
  }

  #appendAll(
    opened: Map<Partition, PartitionLog | ErrorCode> | null,
    admission: Admission | null,
  ): Reply<ProduceResponse> {
    let failed = false;
    for (const topicData of this.request.topicData) {
      const topic = this.#topicOf(topicData);
      const partitionResponses: PartitionReply[] = [];
      for (const data of topicData.partitionData) {
        const { reply, pending } = this.#append(topic, data, opened, admission);
        partitionResponses.push(reply);
        if (pending !== null) this.#pending.push({ reply, ...pending });
        failed ||= reply.errorCode !== 0;
      }
      this.#responses.push({ name: topicData.name, topicId: topicData.topicId, partitionResponses });
    }
    if (this.request.acks === 0) {
      // No reply can carry an error: the closed connection tells the producer to look again.
      if (failed) throw new CloseConnection("a produce request with acks=0 failed");
      return null;
    }
    return this.#pending.length === 0 ? this.#reply() : later(this.#whenDurable());
  }

  #topicOf({ name, topicId }: { readonly name: string; readonly topicId: string }): Topic | undefined {
    return this.context.apiVersion >= 13 ? this.broker.topics.getById(topicId) : this.broker.topics.get(name);
  }

  #append(
    topic: Topic | undefined,
    data: PartitionData,
    opened: Map<Partition, PartitionLog | ErrorCode> | null,
    admission: Admission | null,
  ): Appended {
    const { acks } = this.request;
    if (acks !== 0 && acks !== 1 && acks !== -1) return refuse(data, ErrorCode.INVALID_REQUIRED_ACKS);
    if (topic === undefined) return refuse(data, this.#unknownTopic());
    const partition = this.broker.partitions.get(topic.name, data.index);
    if (partition === undefined) return this.#refuseAbsent(data, topic);
    const log = opened?.get(partition) ?? partition.log();
    if (log instanceof Promise) return this.#refuseMoved(data, partition, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    if (typeof log === "number") return this.#refuseMoved(data, partition, log);
    const nowMs = this.broker.clock.wallMs();
    const prepared: ProducedOutcome = prepareBatch(data.records, topic, data.index, {
      apiVersion: this.context.apiVersion,
      nowMs,
    });
    if (prepared.kind === "refused") {
      return refuse(data, prepared.errorCode, prepared.message, prepared.recordErrors);
    }
    if (isTransactional(prepared.batch)) {
      const refusal = this.#transactionRefusal({ topic: topic.name, partition: data.index }, prepared.batch, admission);
      if (refusal !== ErrorCode.NONE) {
        return refuse(
          data,
          produceErrorFor(refusal, this.context.apiVersion),
          "The partition is not in the transaction",
        );
      }
    }
    const outcome = log.append(prepared.batch, nowMs);
    if (outcome.kind === "refused") {
      if (outcome.errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
        return this.#refuseMoved(data, partition, outcome.errorCode);
      }
      return refuse(data, outcome.errorCode, outcome.message);
    }
    const reply = replyOf(data.index, ErrorCode.NONE);
    reply.baseOffset = outcome.baseOffset;
    reply.logStartOffset = log.logStartOffset;
    if (outcome.kind === "appended") {
      reply.logAppendTimeMs = outcome.logAppendTimeMs;
      partition.appendedBytes += prepared.batch.length;
    }
    return { reply, pending: acks === 0 ? null : { topic, log, ticket: outcome.ticket } };
  }

  /** Asked at the very moment of the append: no record comes behind the end of its transaction. */
  #transactionRefusal(place: TopicPartition, batch: Uint8Array, admission: Admission | null): ErrorCode {
    if (this.request.transactionalId === null) return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    const writer = { producerId: producerId(batch), producerEpoch: producerEpoch(batch) };
    const isOwn = this.#producer !== null && isSame(this.#producer, writer);
    return admission === null || !isOwn ? ErrorCode.INVALID_PRODUCER_ID_MAPPING : admission.refusalOf(place);
  }

  #unknownTopic(): ErrorCode {
    return this.context.apiVersion >= 13 ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }

  #refuseAbsent(data: PartitionData, { name }: Topic): Appended {
    const errorCode = absence(this.broker, name, data.index);
    return this.#refuseMoved(data, { topic: name, index: data.index, state: "closed" }, errorCode);
  }

  #refuseMoved(
    data: PartitionData,
    partition: Pick<Partition, "topic" | "index" | "state">,
    errorCode: ErrorCode,
  ): Appended {
    const refused = refuse(data, errorCode);
    if (errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
      refused.reply.currentLeader = currentLeader(this.broker, partition);
    }
    return refused;
  }

  /** Waits for all syncs together, at most for the request's timeout. */
  async #whenDurable(): Promise<ProduceResponse> {
    let timedOut = false;
    const timeout = new Promise<void>((resolve) => {
      const timer = this.broker.clock.schedule(Math.max(this.request.timeoutMs, 0), () => {
        timedOut = true;
        resolve();
      });
      Promise.all(this.#pending.map((waiting) => this.#settle(waiting, () => timedOut))).then(() => {
        timer.cancel();
        resolve();
      });
    });
    await timeout;
    if (timedOut) {
      for (const { reply } of this.#pending) {
        if (!this.#settled.has(reply)) fail(reply, ErrorCode.REQUEST_TIMED_OUT);
      }
    }
    return this.#reply();
  }

  readonly #settled = new Set<PartitionReply>();

  /** An acknowledgement counts only if this broker could still lead after the sync had returned. */
  async #settle(
    { reply, topic, log, ticket }: {
      readonly reply: PartitionReply;
      readonly topic: Topic;
      readonly log: PartitionLog;
      readonly ticket: number;
    },
    isLate: () => boolean,
  ): Promise<void> {
    const errorCode = await log.durable(ticket);
    if (isLate()) return;
    this.#settled.add(reply);
    if (errorCode !== ErrorCode.NONE) {
      // Its log was closed, or its files have gone: there is no other leader to look for.
      const isDeleted = this.broker.topics.getById(topic.topicId) === undefined;
      fail(reply, isDeleted ? this.#unknownTopic() : errorCode);
    } else if (!this.broker.tenure.isValid()) fail(reply, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  }

  #reply(): ProduceResponse {
    return {
      responses: this.#responses,
      throttleTimeMs: 0,
      nodeEndpoints: nodeEndpoints(this.broker, this.context, this.#leaderHints()),
    };
  }

  *#leaderHints(): Iterable<WithLeader> {
    for (const { partitionResponses } of this.#responses) yield* partitionResponses;
  }
}

/** The producer of a transactional batch; null for any other, and for bytes that are none. */
function transactionalProducerOf(records: Uint8Array): ProducerIdentity | null {
  if (records.length < HEADER_BYTES || magic(records) !== 2 || !isTransactional(records)) return null;
  return { producerId: producerId(records), producerEpoch: producerEpoch(records) };
}

function isSame(a: ProducerIdentity, b: ProducerIdentity): boolean {
  return a.producerId === b.producerId && a.producerEpoch === b.producerEpoch;
}

function replyOf(index: number, errorCode: ErrorCode): PartitionReply {
  return {
    index,
    errorCode,
    baseOffset: -1,
    logAppendTimeMs: -1,
    logStartOffset: -1,
    recordErrors: [],
    errorMessage: null,
    currentLeader: { leaderId: -1, leaderEpoch: -1 },
  };
}

function refuse(data: PartitionData, errorCode: ErrorCode, message?: string, recordErrors?: RecordError[]): Appended {
  const reply = replyOf(data.index, errorCode);
  reply.errorMessage = message ?? null;
  for (const { batchIndex, message } of recordErrors ?? []) {
    reply.recordErrors.push({ batchIndex, batchIndexErrorMessage: message });
  }
  return { reply, pending: null };
}

/** Turns a reply that was to be a success into a refusal. */
function fail(reply: PartitionReply, errorCode: ErrorCode): void {
  reply.errorCode = errorCode;
  reply.baseOffset = -1;
  reply.logAppendTimeMs = -1;
  reply.logStartOffset = -1;
}
