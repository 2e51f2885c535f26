/**
 * Reading several partitions for one Fetch request, in order, within its limits.
 *
 * The first batch of the first partition that has one is returned whole even above the limits (KIP-74); later batches and
 * partitions keep to them. Recent records are read on the spot, cold ones off the event loop: the reading is then a
 * promise.
 */
import { ErrorCode } from "../errors.ts";
import { downConvert, type LegacyMagic } from "../records/legacy.ts";
import { Compression } from "../records/batch.ts";
import type { PartitionLog } from "../storage/log.ts";
import type { ReadOutcome } from "../storage/log_reader.ts";
import type { Broker } from "./broker.ts";
import type { FetchPartition } from "./fetch_session.ts";
import { absence, checkLeaderEpoch, currentLeader } from "./leader_hint.ts";
import type { Partition } from "./partitions.ts";
import { storedCodec } from "./prepare_batch.ts";
import type { Topic } from "./topics.ts";

/** First Fetch version that may carry record batches as they are stored. */
const RECORD_BATCHES_SINCE = 4;
/** First Fetch version that may carry zstd (KIP-110). */
const ZSTD_SINCE = 10;
/** First Fetch version that names topics by id (KIP-516). */
export const TOPIC_IDS_SINCE = 13;

const noLeader = { leaderId: -1, leaderEpoch: -1 } as const;
const noDivergence = { epoch: -1, endOffset: -1 } as const;
const noRecords = new Uint8Array(0);

/** What a Fetch request says about all its partitions. */
export interface FetchTerms {
  readonly apiVersion: number;
  readonly maxBytes: number;
  readonly isolation: "readUncommitted" | "readCommitted";
}

/** One partition's part of the reply. */
export interface PartitionRead {
  readonly wanted: FetchPartition;
  /** The partition that was read; null where there is none. */
  readonly partition: Partition | null;
  readonly errorCode: ErrorCode;
  readonly highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: number };
  readonly currentLeader: { readonly leaderId: number; readonly leaderEpoch: number };
  readonly abortedTransactions: readonly { readonly producerId: number; readonly firstOffset: number }[] | null;
  readonly records: Uint8Array;
  /** Gives the buffer of `records` back; null where it needs no giving back. */
  readonly release: (() => void) | null;
}

/** The outcome for all partitions, in the order asked. */
export class FetchReading {
  readonly parts: PartitionRead[] = [];
  bytes = 0;
  /** Whether some partition has something to say besides records: a refusal, or that the client's log diverges. */
  urgent = false;

  /** Gives all buffers back. To be called once, when the records are not needed any more. */
  release(): void {
    for (const { release } of this.parts) release?.();
  }
}

/** Reads once. */
export function readPartitions(
  broker: Broker,
  terms: FetchTerms,
  wanted: Iterable<FetchPartition>,
): FetchReading | Promise<FetchReading> {
  const reading = new FetchReading();
  const rest = wanted[Symbol.iterator]();
  const proceed = (): FetchReading | Promise<FetchReading> => {
    for (let next = rest.next(); !next.done; next = rest.next()) {
      const part = readPartition(broker, terms, next.value, reading.bytes);
      if (part instanceof Promise) {
        return part.then((settled) => {
          add(reading, settled);
          return proceed();
        }, (error) => {
          reading.release();
          throw error;
        });
      }
      add(reading, part);
    }
    return reading;
  };
  return proceed();
}

function add(reading: FetchReading, part: PartitionRead): void {
  reading.parts.push(part);
  reading.bytes += part.records.length;
  reading.urgent ||= part.errorCode !== ErrorCode.NONE || part.divergingEpoch.endOffset !== -1;
}

/** The topic that a client means; an id outlives a name. */
export function topicOf(
  broker: Pick<Broker, "topics">,
  apiVersion: number,
  named: { readonly topic: string; readonly topicId: string },
): Topic | undefined {
  return apiVersion >= TOPIC_IDS_SINCE ? broker.topics.getById(named.topicId) : broker.topics.get(named.topic);
}

function unknownTopic(apiVersion: number): ErrorCode {
  return apiVersion >= TOPIC_IDS_SINCE ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
}

function readPartition(
  broker: Broker,
  terms: FetchTerms,
  wanted: FetchPartition,
  bytesBefore: number,
): PartitionRead | Promise<PartitionRead> {
  const topic = topicOf(broker, terms.apiVersion, wanted);
  if (topic === undefined) return refuse(wanted, null, unknownTopic(terms.apiVersion));
  const partition = broker.partitions.get(topic.name, wanted.partition);
  if (partition === undefined) {
    const elsewhere = { topic: topic.name, index: wanted.partition, state: "closed" } as const;
    return {
      ...refuse(wanted, null, absence(broker, topic.name, wanted.partition)),
      currentLeader: currentLeader(broker, elsewhere),
    };
  }
  const refusal = checkLeaderEpoch(partition, wanted.currentLeaderEpoch);
  if (refusal !== ErrorCode.NONE) return refuse(wanted, partition, refusal, broker);
  if (terms.apiVersion < ZSTD_SINCE && storedCodec(topic.settings) === Compression.zstd) {
    return refuse(wanted, partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
  }
  const log = partition.log();
  if (log instanceof Promise) {
    return log.then((opened) => readLog(broker, terms, wanted, partition, opened, bytesBefore));
  }
  return readLog(broker, terms, wanted, partition, log, bytesBefore);
}

function readLog(
  broker: Broker,
  terms: FetchTerms,
  wanted: FetchPartition,
  partition: Partition,
  log: PartitionLog | ErrorCode,
  bytesBefore: number,
): PartitionRead | Promise<PartitionRead> {
  if (typeof log === "number") {
    // It may have been deleted while it was opened.
    const isGone = topicOf(broker, terms.apiVersion, wanted) === undefined;
    return isGone ? refuse(wanted, null, unknownTopic(terms.apiVersion)) : refuse(wanted, partition, log, broker);
  }
  const diverging = divergingEpoch(log, wanted);
  if (diverging !== null) {
    return { ...refuse(wanted, partition, ErrorCode.NONE), ...offsetsOf(log), divergingEpoch: diverging };
  }
  const outcome = log.read({
    offset: wanted.fetchOffset,
    maxBytes: Math.max(0, Math.min(wanted.maxBytes, terms.maxBytes - bytesBefore)),
    minOneBatch: bytesBefore === 0,
    limit: terms.isolation === "readCommitted" ? "lastStableOffset" : "highWatermark",
  });
  if (outcome instanceof Promise) {
    return outcome.then((settled) => partOf(broker, terms, wanted, partition, log, settled));
  }
  return partOf(broker, terms, wanted, partition, log, outcome);
}

function partOf(
  broker: Broker,
  terms: FetchTerms,
  wanted: FetchPartition,
  partition: Partition,
  log: PartitionLog,
  outcome: ReadOutcome,
): PartitionRead {
  if (outcome.kind === "refused") {
    return { ...refuse(wanted, partition, outcome.errorCode, broker), ...offsetsOf(log) };
  }
  const { bytes, abortedTransactions, release, highWatermark, lastStableOffset, logStartOffset } = outcome;
  const part = {
    wanted,
    partition,
    errorCode: ErrorCode.NONE,
    highWatermark,
    lastStableOffset,
    logStartOffset,
    divergingEpoch: noDivergence,
    currentLeader: noLeader,
    abortedTransactions: terms.isolation === "readCommitted" ? abortedTransactions : null,
  };
  if (terms.apiVersion >= RECORD_BATCHES_SINCE || bytes.length === 0) return { ...part, records: bytes, release };
  const magic: LegacyMagic = terms.apiVersion >= 2 ? 1 : 0;
  const converted = downConvert(bytes, magic, wanted.fetchOffset);
  release();
  if (converted instanceof Uint8Array) return { ...part, records: converted, release: null };
  return { ...refuse(wanted, partition, converted.errorCode), ...offsetsOf(log) };
}

/** Where the client's log leaves ours: set if the epoch of its last record ended here before its fetch offset. */
function divergingEpoch(log: PartitionLog, { lastFetchedEpoch, fetchOffset }: FetchPartition) {
  if (lastFetchedEpoch < 0) return null;
  const end = log.endOffsetForEpoch(lastFetchedEpoch);
  const diverges = end.epoch !== -1 && (end.epoch < lastFetchedEpoch || end.endOffset < fetchOffset);
  return diverges ? end : null;
}

function offsetsOf({ highWatermark, lastStableOffset, logStartOffset }: PartitionLog) {
  return { highWatermark, lastStableOffset, logStartOffset };
}

/** @param leaderHint given where the reply should name the present leader */
function refuse(
  wanted: FetchPartition,
  partition: Partition | null,
  errorCode: ErrorCode,
  leaderHint?: Broker,
): PartitionRead {
  const namesLeader = errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER || errorCode === ErrorCode.FENCED_LEADER_EPOCH;
  return {
    wanted,
    partition,
    errorCode,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    divergingEpoch: noDivergence,
    currentLeader: leaderHint && partition && namesLeader ? currentLeader(leaderHint, partition) : noLeader,
    abortedTransactions: null,
    records: noRecords,
    release: null,
  };
}
