/**
 * Message sets of magic 0 and 1, which clients older than Kafka 0.11 speak: turned into one magic-2 batch on produce
 * (Produce 0–2), and made from magic-2 batches on Fetch 0–3. Nothing stored is ever in these formats.
 *
 *     offset int64, size int32, CRC-32 uint32 (of all that follows), magic int8, attributes int8,
 *     [timestamp int64, magic 1], key bytes (int32 length, −1 null), value bytes
 *
 * Attributes: bits 0–2 compression, bit 3 timestamp type (magic 1). A compressed message ("wrapper") holds a packed
 * message set as its value; its offset is that of the last message inside. In magic 0 the messages inside carry
 * absolute offsets, in magic 1 offsets relative to the first (KIP-31).
 */
import { crc32 } from "node:zlib";
import { ErrorCode } from "../errors.ts";
import {
  Compression,
  compressionOf,
  HEADER_BYTES,
  isControl,
  LOG_OVERHEAD_BYTES,
  MAGIC,
  magic,
  NO_TIMESTAMP,
  readInt32,
  readInt64,
  readUint32,
  sizeInBytes,
  writeInt32,
  writeInt64,
} from "./batch.ts";
import { compress, decompress, MAX_UNPACKED_BYTES } from "./compression.ts";
import { RecordsFault } from "./fault.ts";
import { buildBatch, openRecords, type RecordInput } from "./record.ts";
import { type ProducedOutcome, type ProduceRules, refused, validateProduced } from "./validate.ts";

/** A message format before magic 2. */
export type LegacyMagic = 0 | 1;

const COMPRESSION_MASK = 0x07;
const LOG_APPEND_TIME_BIT = 0x08;
/** Bytes before the key. */
const PREFIX_BYTES = { 0: 18, 1: 26 } as const;
/** Smallest size field: CRC, magic, attributes and two null lengths. */
const MIN_SIZE = 14;

/**
 * Checks the records of one partition of a Produce request before version 3 and turns them into one magic-2 batch, with
 * the compression, keys, values and times that were sent (magic 0 has no times: −1). A cut last message is dropped, as
 * in Kafka. Clients that send a magic-2 batch with an old request version get it checked as it is.
 */
export function upConvert(messages: Uint8Array | null, rules: ProduceRules): ProducedOutcome {
  if (messages === null || messages.length === 0) {
    return refused(ErrorCode.INVALID_RECORD, "A Produce request must have at least one message per partition");
  }
  if (messages.length > 16 && magic(messages) === MAGIC) return validateProduced(messages, rules);
  const set = new MessageSetReader();
  const fault = set.read(messages, null);
  if (fault !== null) return refused(fault.errorCode, fault.message);
  if (set.records.length === 0) {
    return refused(ErrorCode.CORRUPT_MESSAGE, `No whole message in the append to ${rules.partition}`);
  }
  return validateProduced(buildBatch({ records: set.records, compression: set.compression }), rules);
}

function corrupt(what: string): RecordsFault {
  return new RecordsFault(ErrorCode.CORRUPT_MESSAGE, `Message is corrupt: ${what}`);
}

interface Wrapper {
  magic: LegacyMagic;
  /** Time of all messages inside where the wrapper is stamped with append time, else null. */
  logAppendTime: number | null;
}

/** Collects the records of a message set, those inside wrappers included. */
class MessageSetReader {
  readonly records: RecordInput[] = [];
  /** Compression of the last wrapper; that of the batch to be made. */
  compression: Compression = Compression.none;
  #magic = -1;
  #unpackedBytes = 0;

  read(set: Uint8Array, wrapper: Wrapper | null): RecordsFault | null {
    let at = 0;
    while (at < set.length) {
      const isCut = set.length - at < LOG_OVERHEAD_BYTES ||
        (sizeInBytes(set, at) > set.length - at && readInt32(set, at + 8) >= MIN_SIZE);
      if (isCut) return wrapper === null ? null : corrupt("a compressed message set is cut");
      const size = readInt32(set, at + 8);
      if (size < MIN_SIZE) return corrupt(`size ${size} is smaller than a message`);
      const end = at + LOG_OVERHEAD_BYTES + size;
      const fault = this.#readMessage(set, at, end, wrapper);
      if (fault !== null) return fault;
      at = end;
    }
    return null;
  }

  #readMessage(set: Uint8Array, at: number, end: number, wrapper: Wrapper | null): RecordsFault | null {
    const format = magic(set, at);
    if (format !== 0 && format !== 1) return corrupt(`magic ${format} in a message set`);
    if (this.#magic !== -1 && format !== this.#magic) {
      return new RecordsFault(ErrorCode.INVALID_RECORD, "Messages of one set differ in their magic");
    }
    this.#magic = format;
    if (crc32(set.subarray(at + 16, end)) !== readUint32(set, at + 12)) return corrupt("wrong CRC");
    const fieldsAt = at + PREFIX_BYTES[format];
    const key = readField(set, fieldsAt, end);
    const value = key === undefined ? undefined : readField(set, fieldsAt + 4 + (key?.length ?? 0), end);
    if (key === undefined || value === undefined) return corrupt("a field exceeds its message");
    if (fieldsAt + 8 + (key?.length ?? 0) + (value?.length ?? 0) !== end) return corrupt("bytes left in a message");

    const attributes = set[at + 17];
    const timestamp = format === 0 ? NO_TIMESTAMP : readInt64(set, at + 18);
    if ((attributes & COMPRESSION_MASK) === Compression.none) {
      this.records.push({ timestamp: wrapper?.logAppendTime ?? timestamp, key, value });
      return null;
    }
    if (wrapper !== null) return new RecordsFault(ErrorCode.INVALID_RECORD, "A compressed message inside another one");
    if (value === null) return corrupt("a compressed message without value");
    const isStamped = format === 1 && (attributes & LOG_APPEND_TIME_BIT) !== 0;
    return this.#readWrapped(value, attributes & COMPRESSION_MASK, {
      magic: format,
      logAppendTime: isStamped ? timestamp : null,
    });
  }

  #readWrapped(packed: Uint8Array, compression: number, wrapper: Wrapper): RecordsFault | null {
    if (compression === Compression.gzip || compression === Compression.snappy || compression === Compression.lz4) {
      this.compression = compression;
    } else {
      return new RecordsFault(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        `Compression type ${compression} in a message of magic ${wrapper.magic}`,
      );
    }
    const options = { lz4BrokenHeaderChecksum: wrapper.magic === 0 };
    const unpacked = decompress(compression, packed, MAX_UNPACKED_BYTES - this.#unpackedBytes, options);
    if (unpacked instanceof RecordsFault) return unpacked;
    this.#unpackedBytes += unpacked.length;
    return this.read(unpacked, wrapper);
  }
}

/** The byte field at `at`, null where its length is −1, undefined where it does not fit before `end`. */
function readField(bytes: Uint8Array, at: number, end: number): Uint8Array | null | undefined {
  if (end - at < 4) return undefined;
  const length = readInt32(bytes, at);
  if (length === -1) return null;
  if (length < 0 || length > end - at - 4) return undefined;
  return bytes.subarray(at + 4, at + 4 + length);
}

/**
 * Whole magic-2 batches as a message set of magic `to` for fetchers that know no better: offsets, keys, values and (in
 * magic 1) times stay, compressed batches stay compressed; headers and control batches have no place there and are
 * dropped, as are records before `fromOffset`. So the result may be empty where the batches are not. A fault is
 * UNSUPPORTED_COMPRESSION_TYPE for zstd (KIP-110).
 */
export function downConvert(batches: Uint8Array, to: LegacyMagic, fromOffset = 0): Uint8Array | RecordsFault {
  const sets: Uint8Array[] = [];
  for (let at = 0; at < batches.length; at += sizeInBytes(batches, at)) {
    const room = batches.length - at;
    if (room < HEADER_BYTES || sizeInBytes(batches, at) < HEADER_BYTES || sizeInBytes(batches, at) > room) {
      return corrupt("a stored batch is cut");
    }
    if (isControl(batches, at)) continue;
    const set = downConvertBatch(batches, at, to, fromOffset);
    if (set instanceof RecordsFault) return set;
    sets.push(set);
  }
  return concatenate(sets);
}

function downConvertBatch(
  bytes: Uint8Array,
  start: number,
  to: LegacyMagic,
  fromOffset: number,
): Uint8Array | RecordsFault {
  const compression = compressionOf(bytes, start);
  if (compression === Compression.zstd) {
    return new RecordsFault(
      ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
      "Down-conversion of zstandard-compressed batches is not supported",
    );
  }
  const cursor = openRecords(bytes, start);
  if (cursor instanceof RecordsFault) return cursor;
  const timeBit = to === 1 && cursor.logAppendTime !== null ? LOG_APPEND_TIME_BIT : 0;
  const messages: Uint8Array[] = [];
  let first = -1;
  let last = -1;
  let newest = NO_TIMESTAMP;
  while (cursor.next()) {
    if (cursor.offset < fromOffset) continue;
    if (first < 0) first = cursor.offset;
    last = cursor.offset;
    newest = Math.max(newest, cursor.timestamp);
    const offset = compression !== Compression.none && to === 1 ? last - first : last;
    const { timestamp } = cursor;
    messages.push(encodeMessage({ magic: to, offset, timestamp, attributes: timeBit }, cursor.key(), cursor.value()));
  }
  if (cursor.fault !== null) return cursor.fault;
  const set = concatenate(messages);
  if (messages.length === 0 || compression === Compression.none) return set;
  const packed = compress(compression as Compression, set, { lz4BrokenHeaderChecksum: to === 0 });
  const attributes = compression | timeBit;
  return encodeMessage({ magic: to, offset: last, timestamp: newest, attributes }, null, packed);
}

interface MessagePrefix {
  magic: LegacyMagic;
  offset: number;
  timestamp: number;
  attributes: number;
}

/** One message with a right CRC-32. */
function encodeMessage(prefix: MessagePrefix, key: Uint8Array | null, value: Uint8Array | null): Uint8Array {
  const prefixBytes = PREFIX_BYTES[prefix.magic];
  const message = new Uint8Array(prefixBytes + 8 + (key?.length ?? 0) + (value?.length ?? 0));
  writeInt64(message, 0, prefix.offset);
  writeInt32(message, 8, message.length - LOG_OVERHEAD_BYTES);
  message[16] = prefix.magic;
  message[17] = prefix.attributes;
  if (prefix.magic === 1) writeInt64(message, 18, prefix.timestamp);
  const valueAt = writeField(message, prefixBytes, key);
  writeField(message, valueAt, value);
  writeInt32(message, 12, crc32(message.subarray(16)));
  return message;
}

function writeField(bytes: Uint8Array, at: number, field: Uint8Array | null): number {
  writeInt32(bytes, at, field === null ? -1 : field.length);
  if (field !== null) bytes.set(field, at + 4);
  return at + 4 + (field?.length ?? 0);
}

function concatenate(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
