/**
 * Batches made from stored or produced ones: with fewer records (compaction) or another compression
 * (`compression.type`).
 *
 * Invariant: a rewritten batch keeps base offset, last offset delta, leader epoch, producer id, epoch and sequence, and
 * each record kept has its offset, time and bytes; records count, max timestamp, length and CRC are right for what it
 * holds. So offsets never change and producers' state can be rebuilt from what compaction left.
 */
import {
  baseTimestamp,
  Compression,
  compressionOf,
  DELETE_HORIZON_BIT,
  hasDeleteHorizon,
  HEADER_BYTES,
  LOG_OVERHEAD_BYTES,
  NO_TIMESTAMP,
  sealCrc,
  setDeleteHorizon,
  sizeInBytes,
  timestampTypeOf,
  writeInt32,
  writeInt64,
} from "./batch.ts";
import { compress, decompress, isKnownCompression, MAX_UNPACKED_BYTES } from "./compression.ts";
import { RecordsFault } from "./fault.ts";
import { openRecords, type RecordCursor } from "./record.ts";
import { varintSize, varlongSize, writeVarint, writeVarlong } from "./varint.ts";

/** Time (ms) from which compaction may drop the batch's delete marks (KIP-534), or null where none was set. */
export function deleteHorizonOf(bytes: Uint8Array, start = 0): number | null {
  return hasDeleteHorizon(bytes, start) ? baseTimestamp(bytes, start) : null;
}

/** The batch at `start` with its records packed as `to`; a copy even where nothing changes. */
export function recompressBatch(bytes: Uint8Array, start: number, to: Compression): Uint8Array | RecordsFault {
  const end = start + sizeInBytes(bytes, start);
  const unpacked = decompress(
    compressionOf(bytes, start),
    bytes.subarray(start + HEADER_BYTES, end),
    MAX_UNPACKED_BYTES,
  );
  if (unpacked instanceof RecordsFault) return unpacked;
  return withPayload(bytes, start, compress(to, unpacked), to);
}

/** Options of {@link filterBatch}. */
export interface FilterOptions {
  /** Sets the batch's delete horizon (ms); left as it is when absent. */
  deleteHorizonMs?: number;
  /** The batch's records, in front of the first one, where they were unpacked already. */
  records?: RecordCursor;
}

/**
 * The batch at `start` with those records only that `keep` is true for. The result may hold no records at all: it then
 * keeps the batch's range. `keep` sees the cursor at each record and must not move it.
 */
export function filterBatch(
  bytes: Uint8Array,
  start: number,
  keep: (record: RecordCursor) => boolean,
  options: FilterOptions = {},
): Uint8Array | RecordsFault {
  const cursor = options.records ?? openRecords(bytes, start);
  if (cursor instanceof RecordsFault) return cursor;
  const base = options.deleteHorizonMs ?? cursor.baseTimestamp;
  const kept: Uint8Array[] = [];
  let newest = NO_TIMESTAMP;
  let size = 0;
  while (cursor.next()) {
    if (!keep(cursor)) continue;
    newest = Math.max(newest, cursor.timestamp);
    const record = base === cursor.baseTimestamp
      ? cursor.bytes.subarray(cursor.start, cursor.end)
      : rebase(cursor, base);
    kept.push(record);
    size += record.length;
  }
  if (cursor.fault !== null) return cursor.fault;
  const payload = new Uint8Array(size);
  let at = 0;
  for (const record of kept) {
    payload.set(record, at);
    at += record.length;
  }
  const found = compressionOf(bytes, start);
  const compression = isKnownCompression(found) && size > 0 ? found : Compression.none;
  const batch = withPayload(bytes, start, compress(compression, payload), compression);
  writeInt32(batch, 57, kept.length);
  if (timestampTypeOf(batch) === "createTime") writeInt64(batch, 35, newest);
  if (options.deleteHorizonMs !== undefined) setDeleteHorizon(batch, 0, options.deleteHorizonMs);
  sealCrc(batch);
  return batch;
}

/**
 * The batch at `start` without any record, whatever those are. It keeps the batch's range, its producer's sequence, and
 * its max timestamp: by that retention judges how old it is.
 */
export function emptyBatch(bytes: Uint8Array, start = 0): Uint8Array {
  const batch = withPayload(bytes, start, new Uint8Array(0), Compression.none);
  batch[22] &= ~DELETE_HORIZON_BIT;
  writeInt64(batch, 27, NO_TIMESTAMP);
  writeInt32(batch, 57, 0);
  sealCrc(batch);
  return batch;
}

/** The record under the cursor with its time relative to `base`. */
function rebase(cursor: RecordCursor, base: number): Uint8Array {
  const delta = cursor.baseTimestamp + cursor.timestampDelta - base;
  const rest = cursor.bytes.subarray(cursor.afterTimestamp, cursor.end);
  const body = 1 + varlongSize(delta) + rest.length;
  const record = new Uint8Array(varintSize(body) + body);
  const at = writeVarlong(record, writeVarint(record, 0, body) + 1, delta);
  record.set(rest, at);
  return record;
}

function withPayload(bytes: Uint8Array, start: number, payload: Uint8Array, compression: Compression): Uint8Array {
  const batch = new Uint8Array(HEADER_BYTES + payload.length);
  batch.set(bytes.subarray(start, start + HEADER_BYTES));
  batch.set(payload, HEADER_BYTES);
  writeInt32(batch, 8, batch.length - LOG_OVERHEAD_BYTES);
  batch[22] = (batch[22] & ~0x07) | compression;
  sealCrc(batch);
  return batch;
}
