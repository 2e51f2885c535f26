/**
 * The header of a record batch (magic 2), read and written in place without allocating. The bytes of a batch are the
 * same on the wire and on disk:
 *
 *     0  base offset        int64      17  CRC-32C of all from 21 on  uint32     43  producer id     int64
 *     8  batch length       int32      21  attributes                 int16      51  producer epoch  int16
 *    12  leader epoch       int32      23  last offset delta          int32      53  base sequence   int32
 *    16  magic              int8       27  base timestamp (ms)        int64      57  records count   int32
 *                                      35  max timestamp (ms)         int64      61  records
 *
 * Attributes: bits 0–2 compression, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete horizon.
 *
 * Invariants: base offset and leader epoch lie before what the CRC covers, so a broker stamps them freely; every other
 * setter here ends with a right CRC. The accessors trust their caller for `start + HEADER_BYTES <= bytes.length`;
 * bytes from a client or a disk go through `validate.ts` or `checkBatch` first. Base offset, length and magic stand at
 * the same places in message sets of magic 0 and 1.
 *
 * An int64 is read as a `number`: exact up to 2⁵³, beyond it the nearest double, which serves for comparing.
 */
import { crc32c } from "./crc32c.ts";

/** Bytes of a magic-2 batch header; the records follow. */
export const HEADER_BYTES = 61;
/** Bytes of base offset and length, which the length field does not count. */
export const LOG_OVERHEAD_BYTES = 12;
/** Bytes needed to know an entry's offset, length and magic, in every message format. */
export const HEADER_BYTES_UP_TO_MAGIC = 17;
/** First byte that the CRC-32C covers. */
export const CRC_COVERS_FROM = 21;
/** The only magic that is stored; 0 and 1 are converted (`legacy.ts`). */
export const MAGIC = 2;

/** Producer id of a batch whose producer is not idempotent. */
export const NO_PRODUCER_ID = -1;
/** Producer epoch beside {@link NO_PRODUCER_ID}. */
export const NO_PRODUCER_EPOCH = -1;
/** Base sequence of a batch whose producer is not idempotent. */
export const NO_SEQUENCE = -1;
/** Timestamp of a record that has none. */
export const NO_TIMESTAMP = -1;

/** Compression of a batch's records, as numbered in the attributes. */
export const Compression = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const;
/** Number of a compression kind that kaas knows. */
export type Compression = (typeof Compression)[keyof typeof Compression];

/** Whose clock a batch's timestamps come from, as in `message.timestamp.type`. */
export type TimestampType = "createTime" | "logAppendTime";

const COMPRESSION_MASK = 0x07;
const TIMESTAMP_TYPE_BIT = 0x08;
const TRANSACTIONAL_BIT = 0x10;
const CONTROL_BIT = 0x20;
/** Attribute bit: the base timestamp is a delete horizon. */
export const DELETE_HORIZON_BIT = 0x40;

/** Big-endian int16 at `at`. */
export function readInt16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] << 24) >> 16) | bytes[at + 1];
}

/** Big-endian int32 at `at`. */
export function readInt32(bytes: Uint8Array, at: number): number {
  return (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
}

/** Big-endian uint32 at `at`. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) >>> 0;
}

/** Big-endian int64 at `at`, as a double. */
export function readInt64(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) * 0x1_0000_0000 + (readInt32(bytes, at + 4) >>> 0);
}

/** Writes a big-endian int16 at `at`. */
export function writeInt16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value;
}

/** Writes a big-endian int32 (or uint32) at `at`. */
export function writeInt32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 24;
  bytes[at + 1] = value >> 16;
  bytes[at + 2] = value >> 8;
  bytes[at + 3] = value;
}

/** Writes an integer of at most 53 bits as a big-endian int64 at `at`. */
export function writeInt64(bytes: Uint8Array, at: number, value: number): void {
  writeInt32(bytes, at, Math.floor(value / 0x1_0000_0000));
  writeInt32(bytes, at + 4, value >>> 0);
}

/** Offset of the batch's first record (of the place it had before compaction). */
export function baseOffset(bytes: Uint8Array, start = 0): number {
  return readInt64(bytes, start);
}

/** The length field: bytes of the batch after base offset and length. Negative or huge in corrupt bytes. */
export function batchLength(bytes: Uint8Array, start = 0): number {
  return readInt32(bytes, start + 8);
}

/** Bytes of the whole batch: 12 + its length field. This is what `max.message.bytes` limits. */
export function sizeInBytes(bytes: Uint8Array, start = 0): number {
  return LOG_OVERHEAD_BYTES + readInt32(bytes, start + 8);
}

/** Epoch of the leader that appended the batch; −1 in a batch from a producer. */
export function leaderEpoch(bytes: Uint8Array, start = 0): number {
  return readInt32(bytes, start + 12);
}

/** Message format: 0, 1 or 2; needs {@link HEADER_BYTES_UP_TO_MAGIC} bytes. */
export function magic(bytes: Uint8Array, start = 0): number {
  return (bytes[start + 16] << 24) >> 24;
}

/** The stored CRC-32C. */
export function crc(bytes: Uint8Array, start = 0): number {
  return readUint32(bytes, start + 17);
}

/** The attribute bits (see the head of this file). */
export function attributes(bytes: Uint8Array, start = 0): number {
  return readInt16(bytes, start + 21);
}

/** Offset of the last record relative to the base offset; compaction keeps it when it removes records. */
export function lastOffsetDelta(bytes: Uint8Array, start = 0): number {
  return readInt32(bytes, start + 23);
}

/** Timestamp (ms) that record timestamps are relative to. */
export function baseTimestamp(bytes: Uint8Array, start = 0): number {
  return readInt64(bytes, start + 27);
}

/** Largest record timestamp (ms), or the append time where the broker stamped it. */
export function maxTimestamp(bytes: Uint8Array, start = 0): number {
  return readInt64(bytes, start + 35);
}

/** Producer id, or {@link NO_PRODUCER_ID}. */
export function producerId(bytes: Uint8Array, start = 0): number {
  return readInt64(bytes, start + 43);
}

/** Producer epoch, or {@link NO_PRODUCER_EPOCH}. */
export function producerEpoch(bytes: Uint8Array, start = 0): number {
  return readInt16(bytes, start + 51);
}

/** Sequence number of the first record, or {@link NO_SEQUENCE}. */
export function baseSequence(bytes: Uint8Array, start = 0): number {
  return readInt32(bytes, start + 53);
}

/** Number of records in the batch; 0 in a batch that compaction kept for its range only. */
export function recordsCount(bytes: Uint8Array, start = 0): number {
  return readInt32(bytes, start + 57);
}

/** Offset of the batch's last record. */
export function lastOffset(bytes: Uint8Array, start = 0): number {
  return baseOffset(bytes, start) + lastOffsetDelta(bytes, start);
}

/** Offset after the batch's last record. */
export function nextOffset(bytes: Uint8Array, start = 0): number {
  return baseOffset(bytes, start) + lastOffsetDelta(bytes, start) + 1;
}

/** Sequence number of the last record; sequences wrap from 2³¹−1 to 0. */
export function lastSequence(bytes: Uint8Array, start = 0): number {
  const base = baseSequence(bytes, start);
  return base === NO_SEQUENCE ? NO_SEQUENCE : incrementSequence(base, lastOffsetDelta(bytes, start));
}

/** `sequence + increment` in the ring 0 … 2³¹−1. */
export function incrementSequence(sequence: number, increment: number): number {
  return (sequence + increment) % 0x8000_0000;
}

/** Number of the batch's compression: a {@link Compression}, or 5 to 7 in bytes nobody has checked. */
export function compressionOf(bytes: Uint8Array, start = 0): number {
  return bytes[start + 22] & COMPRESSION_MASK;
}

/** Whether a broker (log append time) or a producer set the timestamps. */
export function timestampTypeOf(bytes: Uint8Array, start = 0): TimestampType {
  return (bytes[start + 22] & TIMESTAMP_TYPE_BIT) === 0 ? "createTime" : "logAppendTime";
}

/** Whether the batch belongs to a transaction. */
export function isTransactional(bytes: Uint8Array, start = 0): boolean {
  return (bytes[start + 22] & TRANSACTIONAL_BIT) !== 0;
}

/** Whether the batch holds a control record (a transaction marker) instead of data. */
export function isControl(bytes: Uint8Array, start = 0): boolean {
  return (bytes[start + 22] & CONTROL_BIT) !== 0;
}

/** Whether the base timestamp is the time from which compaction may drop delete marks (KIP-534). */
export function hasDeleteHorizon(bytes: Uint8Array, start = 0): boolean {
  return (bytes[start + 22] & DELETE_HORIZON_BIT) !== 0;
}

/** The attribute bits for a batch. */
export function attributesOf(
  flags: {
    compression: Compression;
    timestampType: TimestampType;
    isTransactional: boolean;
    isControl: boolean;
    hasDeleteHorizon: boolean;
  },
): number {
  return flags.compression | (flags.timestampType === "logAppendTime" ? TIMESTAMP_TYPE_BIT : 0) |
    (flags.isTransactional ? TRANSACTIONAL_BIT : 0) | (flags.isControl ? CONTROL_BIT : 0) |
    (flags.hasDeleteHorizon ? DELETE_HORIZON_BIT : 0);
}

/** Stamps the base offset; the CRC does not cover it. */
export function setBaseOffset(bytes: Uint8Array, start: number, offset: number): void {
  writeInt64(bytes, start, offset);
}

/** Stamps the leader epoch; the CRC does not cover it. */
export function setLeaderEpoch(bytes: Uint8Array, start: number, epoch: number): void {
  writeInt32(bytes, start + 12, epoch);
}

/** Makes the base timestamp the delete horizon (ms); the records' times must be relative to it, and the CRC follows. */
export function setDeleteHorizon(bytes: Uint8Array, start: number, horizonMs: number): void {
  bytes[start + 22] |= DELETE_HORIZON_BIT;
  writeInt64(bytes, start + 27, horizonMs);
  sealCrc(bytes, start);
}

/** Computes the CRC-32C of the batch at `start` as it is; its length must have been checked. */
export function computeCrc(bytes: Uint8Array, start = 0): number {
  return crc32c(bytes, start + CRC_COVERS_FROM, start + sizeInBytes(bytes, start));
}

/** Writes the CRC-32C of the batch at `start` as it is. */
export function sealCrc(bytes: Uint8Array, start = 0): void {
  writeInt32(bytes, start + 17, computeCrc(bytes, start));
}

/**
 * Sets max timestamp (ms) and timestamp type, and the CRC where something changed. With `logAppendTime` readers take
 * `timestampMs` as the timestamp of every record.
 */
export function setMaxTimestampAndType(
  bytes: Uint8Array,
  start: number,
  timestampMs: number,
  type: TimestampType,
): void {
  if (timestampTypeOf(bytes, start) === type && maxTimestamp(bytes, start) === timestampMs) return;
  if (type === "logAppendTime") bytes[start + 22] |= TIMESTAMP_TYPE_BIT;
  else bytes[start + 22] &= ~TIMESTAMP_TYPE_BIT;
  writeInt64(bytes, start + 35, timestampMs);
  sealCrc(bytes, start);
}

/**
 * Applies a topic's `message.timestamp.type` to a batch that is about to be appended: `logAppendTime` stamps `nowMs`,
 * `createTime` takes back the mark of append time that only a broker may set.
 */
export function applyTimestampType(bytes: Uint8Array, start: number, type: TimestampType, nowMs: number): void {
  if (type === "logAppendTime") setMaxTimestampAndType(bytes, start, nowMs, type);
  else if (timestampTypeOf(bytes, start) === "logAppendTime") {
    setMaxTimestampAndType(bytes, start, maxTimestamp(bytes, start), type);
  }
}

/** What {@link checkBatch} found at a place in a file or a buffer. */
export type BatchCheck = "whole" | "incomplete" | "corrupt";

/**
 * Whether a whole, valid magic-2 batch lies at `start` (before `end`): `incomplete` when the bytes end before the batch
 * does, `corrupt` when header or CRC-32C are wrong. Never throws; for scans over stored bytes.
 */
export function checkBatch(bytes: Uint8Array, start: number, end = bytes.length): BatchCheck {
  if (end - start < HEADER_BYTES_UP_TO_MAGIC) return "incomplete";
  const size = sizeInBytes(bytes, start);
  if (magic(bytes, start) !== MAGIC || size < HEADER_BYTES) return "corrupt";
  if (end - start < size) return "incomplete";
  if (lastOffsetDelta(bytes, start) < 0 || recordsCount(bytes, start) < 0) return "corrupt";
  return computeCrc(bytes, start) === crc(bytes, start) ? "whole" : "corrupt";
}
