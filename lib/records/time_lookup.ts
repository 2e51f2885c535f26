/**
 * Finding a record by time inside one batch, for ListOffsets: the time indexes of a segment lead to the batch, the
 * answer is the record's own offset and time.
 */
import { RecordsFault } from "./fault.ts";
import { openRecords } from "./record.ts";

/** A record found by time. */
export interface TimedOffset {
  offset: number;
  /** Milliseconds since 1970. */
  timestamp: number;
}

/**
 * The first record (in offset order) of the batch at `start` whose timestamp is at or after `timestampMs` and whose
 * offset is at or after `fromOffset` (a log may start inside a batch). Null when there is none.
 */
export function firstRecordAtOrAfter(
  bytes: Uint8Array,
  start: number,
  timestampMs: number,
  fromOffset = 0,
): TimedOffset | null | RecordsFault {
  const cursor = openRecords(bytes, start);
  if (cursor instanceof RecordsFault) return cursor;
  while (cursor.next()) {
    const { offset, timestamp } = cursor;
    if (timestamp >= timestampMs && offset >= fromOffset) return { offset, timestamp };
  }
  return cursor.fault;
}

/** The first of the newest records of the batch at `start`, at or after `fromOffset`; null when there is none. */
export function newestRecord(bytes: Uint8Array, start: number, fromOffset = 0): TimedOffset | null | RecordsFault {
  const cursor = openRecords(bytes, start);
  if (cursor instanceof RecordsFault) return cursor;
  let newest: TimedOffset | null = null;
  while (cursor.next()) {
    const { offset, timestamp } = cursor;
    if (offset >= fromOffset && (newest === null || timestamp > newest.timestamp)) newest = { offset, timestamp };
  }
  return cursor.fault ?? newest;
}
