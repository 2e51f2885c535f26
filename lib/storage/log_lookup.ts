/**
 * Finding records by time in a led log: time index to the segment's part, headers to the batch, records to the answer.
 */

import { RecordsFault } from "../records/fault.ts";
import { maxTimestamp, nextOffset, recordsCount, sizeInBytes } from "../records/batch.ts";
import { firstRecordAtOrAfter, newestRecord, type TimedOffset } from "../records/time_lookup.ts";
import { scanBatches } from "./batch_scan.ts";
import { epochOfOffset } from "./epochs.ts";
import type { LogReader } from "./log_reader.ts";
import type { LogState } from "./log_state.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndexing } from "./segment_indexing.ts";

/** A record that was found. */
export interface FoundRecord {
  readonly offset: number;
  /** Its own time stamp, ms. */
  readonly timestamp: number;
  readonly leaderEpoch: number;
}

export class LogLookup {
  readonly #state: LogState;
  readonly #indexing: SegmentIndexing;
  readonly #reader: LogReader;

  constructor(state: LogState, indexing: SegmentIndexing, reader: LogReader) {
    this.#state = state;
    this.#indexing = indexing;
    this.#reader = reader;
  }

  /** The first record in offset order whose time stamp is at or after `timestampMs`. @throws {DiskError} */
  firstAtOrAfter(timestampMs: number): Promise<FoundRecord | null> {
    return this.#state.throughChanges(() => this.#firstAtOrAfter(timestampMs));
  }

  /** The first of the records with the largest time stamp. @throws {DiskError} */
  newest(): Promise<FoundRecord | null> {
    return this.#state.throughChanges(() => this.#newest());
  }

  async #firstAtOrAfter(timestampMs: number): Promise<FoundRecord | null> {
    for (const segment of [...this.#state.segments]) {
      if (await this.#indexing.newestTimestamp(segment) < timestampMs) continue;
      const found = await this.#searchIn(segment, timestampMs, firstRecordAtOrAfter);
      if (found !== null) return found;
    }
    return null;
  }

  async #newest(): Promise<FoundRecord | null> {
    let newest = -1;
    let holder: Segment | null = null;
    for (const segment of [...this.#state.segments]) {
      const timestamp = await this.#indexing.newestTimestamp(segment);
      if (timestamp > newest) {
        newest = timestamp;
        holder = segment;
      }
    }
    if (holder === null) return null;
    return await this.#searchIn(holder, newest, newestInBatch) ?? await this.#newestOfBatches();
  }

  /** {@link newest} where compaction has removed the record with the newest time stamp, from all batches' headers. */
  async #newestOfBatches(): Promise<FoundRecord | null> {
    const { logStartOffset, highWatermark, segments } = this.#state;
    let newest = -1;
    let holder: Segment | null = null;
    for (const segment of [...segments]) {
      const endOffset = Math.min(segment.endOffset, highWatermark);
      const { baseOffset: minOffset, sizeBytes: endPosition } = segment;
      const range = { position: 0, endPosition, endOffset, minOffset, verify: "headers" as const };
      await scanBatches(this.#reader.fileFor(segment), range, (bytes, start) => {
        if (recordsCount(bytes, start) === 0 || nextOffset(bytes, start) <= logStartOffset) return;
        if (maxTimestamp(bytes, start) <= newest) return;
        newest = maxTimestamp(bytes, start);
        holder = segment;
      });
    }
    return holder === null ? null : await this.#searchIn(holder, newest, newestInBatch);
  }

  /** Looks through the batches that may hold `timestampMs` or later, until one of them has the record. */
  async #searchIn(
    segment: Segment,
    timestampMs: number,
    inBatch: (batch: Uint8Array, start: number, ms: number, from: number) => TimedOffset | null | RecordsFault,
  ): Promise<FoundRecord | null> {
    const { logStartOffset, highWatermark, segments } = this.#state;
    if (segment.indexes === null) await this.#indexing.indexes(segment);
    const file = this.#reader.fileFor(segment);
    let position = startOf(segment, timestampMs);
    let minOffset = segment.baseOffset;
    for (;;) {
      const endOffset = Math.min(segment.endOffset, highWatermark);
      const range = { position, endPosition: segment.sizeBytes, endOffset, minOffset, verify: "headers" as const };
      let sizeBytes = 0;
      const result = await scanBatches(file, range, (bytes, start) => {
        sizeBytes = sizeInBytes(bytes, start);
        return maxTimestamp(bytes, start) >= timestampMs && nextOffset(bytes, start) > logStartOffset;
      });
      if (result.stop !== "stopped") return null;
      const batch = new Uint8Array(sizeBytes);
      if (await file.read(result.position, batch) < sizeBytes) return null;
      const found = inBatch(batch, 0, timestampMs, logStartOffset);
      if (found !== null && !(found instanceof RecordsFault)) {
        return { ...found, leaderEpoch: epochOfOffset(segments, found.offset) };
      }
      position = result.position + sizeBytes;
      minOffset = nextOffset(batch);
    }
  }
}

function newestInBatch(batch: Uint8Array, start: number, _ms: number, from: number): TimedOffset | null | RecordsFault {
  return newestRecord(batch, start, from);
}

/** The last indexed place in front of which every record is older. */
function startOf(segment: Segment, timestampMs: number): number {
  if (segment.indexes === null) return 0;
  const { times, offsets } = segment.indexes;
  const older = times.olderUpTo(timestampMs);
  const entry = older < 0 ? -1 : offsets.floorByOffset(older);
  return entry < 0 ? 0 : offsets.positionAt(entry);
}
