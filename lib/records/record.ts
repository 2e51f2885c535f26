/**
 * The records inside one batch (magic 2): reading them lazily, and building whole batches for kaas's own logs, for
 * compaction and for tests. Producing and fetching never come here; batches travel as opaque bytes.
 *
 *     length varint, attributes int8, timestamp delta varlong, offset delta varint,
 *     key length varint (−1 null), key, value length varint (−1 null), value,
 *     headers count varint, { key length varint, key, value length varint (−1 null), value } …
 *
 * Bytes that are no records end in a {@link RecordsFault}, never in an exception.
 */
import { ErrorCode } from "../errors.ts";
import {
  attributesOf,
  baseOffset,
  baseTimestamp,
  Compression,
  compressionOf,
  HEADER_BYTES,
  maxTimestamp,
  NO_PRODUCER_EPOCH,
  NO_PRODUCER_ID,
  NO_SEQUENCE,
  NO_TIMESTAMP,
  recordsCount,
  sealCrc,
  sizeInBytes,
  type TimestampType,
  timestampTypeOf,
  writeInt16,
  writeInt32,
  writeInt64,
} from "./batch.ts";
import { compress, decompress, MAX_UNPACKED_BYTES } from "./compression.ts";
import { RecordsFault } from "./fault.ts";
import { VarintReader, varintSize, varlongSize, writeVarint, writeVarlong } from "./varint.ts";

/** A header of a record; its value may be null. */
export interface RecordHeader {
  key: string;
  value: Uint8Array | null;
}

/** One record, its byte fields being views into the batch (or into what it unpacked to). */
export interface BatchRecord {
  /** Absolute offset. */
  offset: number;
  /** Milliseconds since 1970, or −1. The append time where the batch is stamped with one. */
  timestamp: number;
  key: Uint8Array | null;
  value: Uint8Array | null;
  headers: RecordHeader[];
}

const utf8 = new TextDecoder();
const utf8Bytes = new TextEncoder();

/**
 * Walks the records of one unpacked batch without allocating: each {@link next} moves the fields to the next record.
 * When it returns false, {@link fault} tells whether the batch ended well.
 */
export class RecordCursor {
  /** Offset relative to the batch's base offset. */
  offsetDelta = 0;
  /** Milliseconds relative to the batch's base timestamp. */
  timestampDelta = 0;
  /** Length of the key, −1 for null; it starts at {@link keyStart} of {@link bytes}. */
  keyLength = -1;
  keyStart = 0;
  /** Length of the value, −1 for null; it starts at {@link valueStart} of {@link bytes}. */
  valueLength = -1;
  valueStart = 0;
  /** The whole record is `bytes[start, end)`, its length field included. */
  start = 0;
  end = 0;
  /** What follows the timestamp delta, up to {@link end}: it means the same under another base timestamp. */
  afterTimestamp = 0;
  /** Why the walk ended early, or null. */
  fault: RecordsFault | null = null;

  #reader: VarintReader;
  #left: number;
  #headersStart = 0;

  constructor(
    readonly bytes: Uint8Array,
    private readonly count: number,
    readonly baseOffset: number,
    readonly baseTimestamp: number,
    /** Timestamp of all records where the broker's clock set it, else null. */
    readonly logAppendTime: number | null,
  ) {
    this.#reader = new VarintReader(bytes);
    this.#left = count;
  }

  /** A cursor in front of the first of the same records. */
  again(): RecordCursor {
    return new RecordCursor(this.bytes, this.count, this.baseOffset, this.baseTimestamp, this.logAppendTime);
  }

  /** Absolute offset of the record. */
  get offset(): number {
    return this.baseOffset + this.offsetDelta;
  }

  /** Timestamp (ms) of the record as readers see it. */
  get timestamp(): number {
    return this.logAppendTime ?? this.baseTimestamp + this.timestampDelta;
  }

  /** Moves to the next record; false at the end or at a fault. */
  next(): boolean {
    const reader = this.#reader;
    if (this.fault !== null) return false;
    if (this.#left === 0) {
      if (reader.at !== reader.end) this.#fail("bytes are left over after the last record");
      return false;
    }
    this.#left--;
    this.start = reader.at;
    const length = reader.varint();
    if (reader.bad || length < 0 || length > reader.end - reader.at) return this.#fail("a record exceeds its batch");
    this.end = reader.at + length;
    reader.byte();
    this.timestampDelta = reader.varlong();
    this.afterTimestamp = reader.at;
    this.offsetDelta = reader.varint();
    this.keyLength = reader.varint();
    this.keyStart = reader.at;
    reader.skip(this.keyLength);
    this.valueLength = reader.varint();
    this.valueStart = reader.at;
    reader.skip(this.valueLength);
    this.#headersStart = reader.at;
    if (reader.bad || reader.at >= this.end) return this.#fail("a field exceeds its record");
    if (this.keyLength < -1 || this.valueLength < -1) return this.#fail("a field has a negative length");
    reader.at = this.end;
    return true;
  }

  /** The record's key. */
  key(): Uint8Array | null {
    return this.keyLength < 0 ? null : this.bytes.subarray(this.keyStart, this.keyStart + this.keyLength);
  }

  /** The record's value. */
  value(): Uint8Array | null {
    return this.valueLength < 0 ? null : this.bytes.subarray(this.valueStart, this.valueStart + this.valueLength);
  }

  /** The record's headers; also a fault where they do not end with the record. */
  headers(): RecordHeader[] | RecordsFault {
    const reader = new VarintReader(this.bytes, this.#headersStart, this.end);
    const count = reader.varint();
    if (reader.bad || count < 0 || count > this.end - reader.at) return corrupt("a record has a wrong headers count");
    const headers: RecordHeader[] = [];
    for (let index = 0; index < count && !reader.bad; index++) {
      const keyLength = reader.varint();
      const keyStart = reader.at;
      reader.skip(keyLength);
      const valueLength = reader.varint();
      const valueStart = reader.at;
      reader.skip(valueLength);
      if (keyLength < 0 || valueLength < -1) reader.bad = true;
      if (reader.bad) break;
      headers.push({
        key: utf8.decode(this.bytes.subarray(keyStart, keyStart + keyLength)),
        value: valueLength < 0 ? null : this.bytes.subarray(valueStart, valueStart + valueLength),
      });
    }
    return reader.bad || reader.at !== this.end ? corrupt("a record has malformed headers") : headers;
  }

  #fail(what: string): false {
    this.fault = corrupt(what);
    return false;
  }
}

function corrupt(what: string): RecordsFault {
  return new RecordsFault(ErrorCode.INVALID_RECORD, `Malformed record batch: ${what}`);
}

/**
 * Opens the records of the batch at `start` (whose header and length were checked), unpacking at most `maxBytes`.
 */
export function openRecords(
  bytes: Uint8Array,
  start = 0,
  maxBytes: number = MAX_UNPACKED_BYTES,
): RecordCursor | RecordsFault {
  const packed = bytes.subarray(start + HEADER_BYTES, start + sizeInBytes(bytes, start));
  const unpacked = decompress(compressionOf(bytes, start), packed, maxBytes);
  if (unpacked instanceof RecordsFault) return unpacked;
  const appendTime = timestampTypeOf(bytes, start) === "logAppendTime" ? maxTimestamp(bytes, start) : null;
  const count = Math.max(0, recordsCount(bytes, start));
  return new RecordCursor(unpacked, count, baseOffset(bytes, start), baseTimestamp(bytes, start), appendTime);
}

/**
 * Calls `visit` with each record of one batch (the bytes at the head of `batch`), in order; a false answer stops the
 * walk. Returns what was wrong, or null.
 */
export function forEachRecord(
  batch: Uint8Array,
  visit: (record: BatchRecord) => boolean | void,
  maxBytes: number = MAX_UNPACKED_BYTES,
): RecordsFault | null {
  const cursor = openRecords(batch, 0, maxBytes);
  if (cursor instanceof RecordsFault) return cursor;
  while (cursor.next()) {
    const headers = cursor.headers();
    if (headers instanceof RecordsFault) return headers;
    const { offset, timestamp } = cursor;
    if (visit({ offset, timestamp, key: cursor.key(), value: cursor.value(), headers }) === false) return null;
  }
  return cursor.fault;
}

/** All records of one batch, for tests, admin and small internal logs. */
export function recordsOf(batch: Uint8Array, maxBytes: number = MAX_UNPACKED_BYTES): BatchRecord[] | RecordsFault {
  const all: BatchRecord[] = [];
  return forEachRecord(batch, (record) => void all.push(record), maxBytes) ?? all;
}

/** A record to be written. */
export interface RecordInput {
  /** Milliseconds since 1970; {@link BatchInput.timestamp} when absent. */
  timestamp?: number;
  key?: Uint8Array | string | null;
  value?: Uint8Array | string | null;
  headers?: readonly { key: string; value: Uint8Array | string | null }[];
  /** Offset relative to the batch's; the record's index when absent. Must rise. */
  offsetDelta?: number;
}

/** A batch to be written. Absent fields take what a plain producer sends. */
export interface BatchInput {
  records: readonly RecordInput[];
  baseOffset?: number;
  leaderEpoch?: number;
  compression?: Compression;
  /** Timestamp (ms) of the records that have none themselves. */
  timestamp?: number;
  timestampType?: TimestampType;
  /** The header's max timestamp; the largest of the records' when absent. */
  maxTimestamp?: number;
  /** The header's base timestamp; the first record's when absent. */
  baseTimestamp?: number;
  /** The header's last offset delta; the last record's when absent. */
  lastOffsetDelta?: number;
  producerId?: number;
  producerEpoch?: number;
  baseSequence?: number;
  isTransactional?: boolean;
  isControl?: boolean;
  hasDeleteHorizon?: boolean;
}

/** Builds a whole magic-2 batch with a right CRC. */
export function buildBatch(input: BatchInput): Uint8Array {
  const { records, timestamp: timestampOfAll = NO_TIMESTAMP } = input;
  const timestampOf = (record: RecordInput) => record.timestamp ?? timestampOfAll;
  const base = input.baseTimestamp ?? (records.length > 0 ? timestampOf(records[0]) : NO_TIMESTAMP);
  let newest = NO_TIMESTAMP;
  for (const record of records) newest = Math.max(newest, timestampOf(record));

  const compression = input.compression ?? Compression.none;
  const payload = compress(compression, encodeRecords(records, base, timestampOf));
  const batch = new Uint8Array(HEADER_BYTES + payload.length);
  writeInt64(batch, 0, input.baseOffset ?? 0);
  writeInt32(batch, 8, batch.length - 12);
  writeInt32(batch, 12, input.leaderEpoch ?? -1);
  batch[16] = 2;
  const { timestampType = "createTime", isTransactional = false, isControl = false, hasDeleteHorizon = false } = input;
  writeInt16(batch, 21, attributesOf({ compression, timestampType, isTransactional, isControl, hasDeleteHorizon }));
  const last = records.length === 0 ? 0 : records.at(-1)!.offsetDelta ?? records.length - 1;
  writeInt32(batch, 23, input.lastOffsetDelta ?? last);
  writeInt64(batch, 27, base);
  writeInt64(batch, 35, input.maxTimestamp ?? newest);
  writeInt64(batch, 43, input.producerId ?? NO_PRODUCER_ID);
  writeInt16(batch, 51, input.producerEpoch ?? NO_PRODUCER_EPOCH);
  writeInt32(batch, 53, input.baseSequence ?? NO_SEQUENCE);
  writeInt32(batch, 57, records.length);
  batch.set(payload, HEADER_BYTES);
  sealCrc(batch);
  return batch;
}

function toBytes(text: Uint8Array | string | null | undefined): Uint8Array | null {
  return typeof text === "string" ? utf8Bytes.encode(text) : text ?? null;
}

function encodeRecords(
  records: readonly RecordInput[],
  base: number,
  timestampOf: (record: RecordInput) => number,
): Uint8Array {
  const encoded = records.map((record, index) =>
    encodeRecord(record, timestampOf(record) - base, record.offsetDelta ?? index)
  );
  const all = new Uint8Array(encoded.reduce((sum, record) => sum + record.length, 0));
  let at = 0;
  for (const record of encoded) {
    all.set(record, at);
    at += record.length;
  }
  return all;
}

function encodeRecord(record: RecordInput, timestampDelta: number, offsetDelta: number): Uint8Array {
  const key = toBytes(record.key);
  const value = toBytes(record.value);
  const headers = (record.headers ?? []).map((header) => ({ key: toBytes(header.key), value: toBytes(header.value) }));
  let body = 1 + varlongSize(timestampDelta) + varintSize(offsetDelta) + fieldSize(key) + fieldSize(value) +
    varintSize(headers.length);
  for (const header of headers) body += fieldSize(header.key) + fieldSize(header.value);
  const bytes = new Uint8Array(varintSize(body) + body);
  let at = writeVarint(bytes, 0, body) + 1; // the attributes of a record are unused
  at = writeVarlong(bytes, at, timestampDelta);
  at = writeVarint(bytes, at, offsetDelta);
  at = writeField(bytes, at, key);
  at = writeField(bytes, at, value);
  at = writeVarint(bytes, at, headers.length);
  for (const header of headers) {
    at = writeField(bytes, at, header.key);
    at = writeField(bytes, at, header.value);
  }
  return bytes;
}

function fieldSize(field: Uint8Array | null): number {
  return field === null ? 1 : varintSize(field.length) + field.length;
}

function writeField(bytes: Uint8Array, at: number, field: Uint8Array | null): number {
  if (field === null) return writeVarint(bytes, at, -1);
  at = writeVarint(bytes, at, field.length);
  bytes.set(field, at);
  return at + field.length;
}
