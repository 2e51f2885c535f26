/**
 * Control batches: the markers that end a transaction in a partition (KIP-98).
 *
 * A control batch holds one record: key = version int16, type int16 (0 abort, 1 commit); value = version int16,
 * coordinator epoch int32. Readers take later versions, whose fields follow these.
 */
import {
  HEADER_BYTES,
  isControl,
  producerEpoch,
  producerId,
  readInt16,
  readInt32,
  writeInt16,
  writeInt32,
} from "./batch.ts";
import { RecordsFault } from "./fault.ts";
import { buildBatch, openRecords } from "./record.ts";

/** How a transaction ended. */
export type TransactionResult = "abort" | "commit";

/** The end of one producer's transaction in one partition. */
export interface EndTransactionMarker {
  result: TransactionResult;
  producerId: number;
  producerEpoch: number;
  /** Epoch of the transaction coordinator that decided. */
  coordinatorEpoch: number;
}

const ABORT = 0;
const COMMIT = 1;
const KEY_BYTES = 4;
const VALUE_BYTES = 6;
/** Most bytes a marker's batch may unpack to. */
const MAX_MARKER_BYTES = 4096;

/** Builds the control batch that ends a transaction; the append stamps offset and leader epoch. */
export function buildEndTransactionMarker(marker: EndTransactionMarker, timestampMs: number): Uint8Array {
  const key = new Uint8Array(KEY_BYTES);
  writeInt16(key, 2, marker.result === "commit" ? COMMIT : ABORT);
  const value = new Uint8Array(VALUE_BYTES);
  writeInt32(value, 2, marker.coordinatorEpoch);
  return buildBatch({
    records: [{ timestamp: timestampMs, key, value }],
    producerId: marker.producerId,
    producerEpoch: marker.producerEpoch,
    isTransactional: true,
    isControl: true,
  });
}

/**
 * Reads the marker in the control batch at `start`; null where the batch is no control batch, holds a control record of
 * another type (readers skip those) or none (compaction removed it).
 */
export function readEndTransactionMarker(bytes: Uint8Array, start = 0): EndTransactionMarker | null {
  if (bytes.length - start < HEADER_BYTES || !isControl(bytes, start)) return null;
  const cursor = openRecords(bytes, start, MAX_MARKER_BYTES);
  if (cursor instanceof RecordsFault || !cursor.next()) return null;
  if (cursor.keyLength < KEY_BYTES || cursor.valueLength < VALUE_BYTES) return null;
  const type = readInt16(cursor.bytes, cursor.keyStart + 2);
  if (type !== ABORT && type !== COMMIT) return null;
  return {
    result: type === COMMIT ? "commit" : "abort",
    producerId: producerId(bytes, start),
    producerEpoch: producerEpoch(bytes, start),
    coordinatorEpoch: readInt32(cursor.bytes, cursor.valueStart + 2),
  };
}
