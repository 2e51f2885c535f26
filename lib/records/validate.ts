/**
 * Whether what a producer sent may be appended (Produce v3 and later): exactly one batch of magic 2 that is whole,
 * consistent and checksummed, and that fits the topic's rules.
 *
 * Only the header is looked at and the CRC computed, nothing is unpacked. Kafka also unpacks compressed batches and checks each
 * record; here a client that lies about the inside of its batch deceives its own readers only. Records are read in two
 * cases: the topic is compacted (each record needs a key), or a timestamp limit is broken or cannot be judged from the
 * header (`message.timestamp.before.max.ms`: the header does not hold the smallest timestamp).
 *
 * Kafka refuses a base offset other than 0; here it is overwritten by the append like any other.
 */
import { ErrorCode } from "../errors.ts";
import {
  baseSequence,
  Compression,
  compressionOf,
  computeCrc,
  crc,
  HEADER_BYTES,
  HEADER_BYTES_UP_TO_MAGIC,
  isControl,
  isTransactional,
  lastOffsetDelta,
  MAGIC,
  magic,
  maxTimestamp,
  NO_PRODUCER_ID,
  NO_TIMESTAMP,
  producerEpoch,
  producerId,
  recordsCount,
  sizeInBytes,
  type TimestampType,
} from "./batch.ts";
import { isKnownCompression, MAX_UNPACKED_BYTES } from "./compression.ts";
import { RecordsFault } from "./fault.ts";
import { openRecords, type RecordCursor } from "./record.ts";

/** First Produce version that may carry zstd (KIP-110). */
const ZSTD_SINCE_PRODUCE_VERSION = 7;
/** Smallest entry of any message format: what Kafka calls corrupt below it. */
const MIN_ENTRY_BYTES = 14;

/** Records named in one refusal at most, so that a batch of bad records does not blow up the reply. */
const MAX_RECORD_ERRORS = 1000;

/** What the topic, the request and the moment ask of a batch. */
export interface ProduceRules {
  /** Version of the Produce request. */
  apiVersion: number;
  /** `topic-partition`, for messages. */
  partition: string;
  /** Wall-clock time in ms. */
  nowMs: number;
  /** `max.message.bytes`: the largest batch in bytes, inclusive. */
  maxMessageBytes: number;
  /** `message.timestamp.type`; append time takes no notice of what the producer wrote. */
  timestampType: TimestampType;
  /** `message.timestamp.before.max.ms`; Infinity (or Long.MAX) for no limit. */
  timestampBeforeMaxMs: number;
  /** `message.timestamp.after.max.ms`; Infinity (or Long.MAX) for no limit. */
  timestampAfterMaxMs: number;
  /** Whether each record needs a key (`cleanup.policy` includes compact). */
  requiresKeys: boolean;
  /** Most bytes a batch may unpack to where its records are read; {@link MAX_UNPACKED_BYTES} when absent. */
  maxUnpackedBytes?: number;
}

/** A refused record: its index in the batch and why (Produce v8 and later tell the client). */
export interface RecordError {
  batchIndex: number;
  message: string;
}

/** The batch may not be appended. `message` and `recordErrors` go into the reply from v8 on. */
export interface RefusedRecords {
  kind: "refused";
  errorCode: ErrorCode;
  message: string;
  recordErrors: RecordError[];
}

/** Outcome of {@link validateProduced}; `batch` is the one batch without whatever lay behind it. */
export type ProducedOutcome = { kind: "valid"; batch: Uint8Array } | RefusedRecords;

/** Checks the records of one partition of a Produce request. Never throws, whatever the bytes. */
export function validateProduced(records: Uint8Array | null, rules: ProduceRules): ProducedOutcome {
  if (records === null || records.length < HEADER_BYTES_UP_TO_MAGIC) {
    return refused(ErrorCode.INVALID_RECORD, `${request(rules)} must have at least one record batch per partition`);
  }
  const refusal = checkEnvelope(records, rules) ?? checkHeader(records, rules) ?? checkProducer(records);
  if (refusal !== null) return refusal;
  const batch = records.subarray(0, sizeInBytes(records));
  if (computeCrc(batch) !== crc(batch)) {
    return refused(
      ErrorCode.CORRUPT_MESSAGE,
      `Record is corrupt (stored crc = ${crc(batch)}, computed crc = ${computeCrc(batch)}) in ${rules.partition}`,
    );
  }
  return checkRecords(batch, rules) ?? { kind: "valid", batch };
}

/** A refusal without a list of records. */
export function refused(errorCode: ErrorCode, message: string): RefusedRecords {
  return { kind: "refused", errorCode, message, recordErrors: [] };
}

function request(rules: ProduceRules): string {
  return `Produce requests with version ${rules.apiVersion}`;
}

/** Magic, lengths, and that no second batch follows. */
function checkEnvelope(records: Uint8Array, rules: ProduceRules): RefusedRecords | null {
  const size = sizeInBytes(records);
  if (size < MIN_ENTRY_BYTES || magic(records) < 0 || magic(records) > MAGIC) {
    return refused(ErrorCode.CORRUPT_MESSAGE, `Record size or magic is out of bounds in ${rules.partition}`);
  }
  if (magic(records) !== MAGIC) {
    return refused(
      ErrorCode.INVALID_RECORD,
      `${request(rules)} are only allowed to contain record batches with magic version ${MAGIC}`,
    );
  }
  if (size > records.length) {
    return refused(ErrorCode.INVALID_RECORD, `${request(rules)} must have at least one record batch per partition`);
  }
  if (size < HEADER_BYTES) {
    return refused(ErrorCode.CORRUPT_MESSAGE, `Record batch of ${size} bytes is smaller than its header`);
  }
  const rest = records.length - size;
  if (rest >= HEADER_BYTES_UP_TO_MAGIC) {
    const next = sizeInBytes(records, size);
    if (next < MIN_ENTRY_BYTES) {
      return refused(ErrorCode.CORRUPT_MESSAGE, `Record size ${next} is out of bounds in ${rules.partition}`);
    }
    if (next <= rest) {
      return refused(
        ErrorCode.INVALID_RECORD,
        `${request(rules)} are only allowed to contain exactly one record batch per partition`,
      );
    }
  }
  if (size > rules.maxMessageBytes) {
    return refused(
      ErrorCode.MESSAGE_TOO_LARGE,
      `The record batch size in the append to ${rules.partition} is ${size} bytes which exceeds the maximum ` +
        `configured value of ${rules.maxMessageBytes}.`,
    );
  }
  return null;
}

function checkHeader(batch: Uint8Array, rules: ProduceRules): RefusedRecords | null {
  const compression = compressionOf(batch);
  if (!isKnownCompression(compression)) {
    return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, `Unknown compression type ${compression}`);
  }
  if (compression === Compression.zstd && rules.apiVersion < ZSTD_SINCE_PRODUCE_VERSION) {
    return refused(
      ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
      `${request(rules)} are not allowed to use ZStandard compression`,
    );
  }
  const count = recordsCount(batch);
  if (count <= 0) {
    return refused(ErrorCode.INVALID_RECORD, `Invalid reported count for record batch: ${count}`);
  }
  if (lastOffsetDelta(batch) !== count - 1) {
    return refused(
      ErrorCode.INVALID_RECORD,
      `Inconsistent batch offset range [0, ${lastOffsetDelta(batch)}] and count of records ${count}`,
    );
  }
  if (isControl(batch)) {
    return refused(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records");
  }
  return null;
}

function checkProducer(batch: Uint8Array): RefusedRecords | null {
  const id = producerId(batch);
  if (id === NO_PRODUCER_ID) {
    return isTransactional(batch)
      ? refused(ErrorCode.INVALID_RECORD, "A transactional record batch needs a producer id")
      : null;
  }
  if (id < 0 || producerEpoch(batch) < 0) {
    return refused(ErrorCode.INVALID_RECORD, `Invalid producer id ${id} or epoch ${producerEpoch(batch)}`);
  }
  if (baseSequence(batch) < 0) {
    return refused(
      ErrorCode.INVALID_RECORD,
      `Invalid sequence number ${baseSequence(batch)} in record batch with producerId ${id}`,
    );
  }
  return null;
}

/** The rules about single records: keys of compacted topics, and timestamps. */
function checkRecords(batch: Uint8Array, rules: ProduceRules): RefusedRecords | null {
  const limits = timestampLimits(rules);
  const newest = maxTimestamp(batch);
  const isTooNew = newest > limits.latest;
  if (!isTooNew && !rules.requiresKeys && limits.earliest === -Infinity) return null;

  const cursor = openRecords(batch, 0, rules.maxUnpackedBytes ?? MAX_UNPACKED_BYTES);
  if (cursor instanceof RecordsFault) return refused(cursor.errorCode, cursor.message);
  const found = findRecordErrors(cursor, rules, limits);
  if (cursor.fault !== null) return refused(cursor.fault.errorCode, cursor.fault.message);
  if (found.errors.length > 0) {
    return found.hasTimestampError
      ? refusedFor(
        ErrorCode.INVALID_TIMESTAMP,
        "One or more records have been rejected due to invalid timestamp",
        found,
      )
      : refusedFor(
        ErrorCode.INVALID_RECORD,
        `One or more records have been rejected due to ${found.errors.length} record errors in total`,
        found,
      );
  }
  return isTooNew
    ? refused(ErrorCode.INVALID_TIMESTAMP, `Max timestamp ${newest} of the record batch is out of range`)
    : null;
}

interface TimestampLimits {
  earliest: number;
  latest: number;
}

interface FoundErrors {
  errors: RecordError[];
  hasTimestampError: boolean;
}

/** Limits at or beyond 2⁵³ (Kafka's defaults reach Long.MAX) are none. */
function timestampLimits(rules: ProduceRules): TimestampLimits {
  if (rules.timestampType === "logAppendTime") return { earliest: -Infinity, latest: Infinity };
  const { nowMs, timestampBeforeMaxMs: before, timestampAfterMaxMs: after } = rules;
  return {
    earliest: before >= Number.MAX_SAFE_INTEGER ? -Infinity : nowMs - before,
    latest: after >= Number.MAX_SAFE_INTEGER ? Infinity : nowMs + after,
  };
}

function findRecordErrors(cursor: RecordCursor, rules: ProduceRules, limits: TimestampLimits): FoundErrors {
  const errors: RecordError[] = [];
  let hasTimestampError = false;
  for (let batchIndex = 0; errors.length < MAX_RECORD_ERRORS && cursor.next(); batchIndex++) {
    if (rules.requiresKeys && cursor.keyLength < 0) {
      errors.push({
        batchIndex,
        message: `Compacted topic cannot accept message without key in topic partition ${rules.partition}.`,
      });
      continue;
    }
    const timestamp = cursor.baseTimestamp + cursor.timestampDelta;
    if (timestamp === NO_TIMESTAMP || (timestamp >= limits.earliest && timestamp <= limits.latest)) continue;
    hasTimestampError = true;
    errors.push({
      batchIndex,
      message: `Timestamp ${timestamp} of message with offset ${cursor.offset} is out of range. ` +
        `The timestamp should be within [${limits.earliest}, ${limits.latest}]`,
    });
  }
  return { errors, hasTimestampError };
}

function refusedFor(errorCode: ErrorCode, message: string, found: FoundErrors): RefusedRecords {
  return { kind: "refused", errorCode, message, recordErrors: found.errors };
}
