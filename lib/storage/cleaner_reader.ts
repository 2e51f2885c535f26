/**
 * Reads a segment batch by batch for compaction: each is whole and has a right checksum when it is handed on.
 *
 * Unlike `batch_scan.ts` the visitor may take its time: a batch stays as it is until the visitor's promise resolves.
 */

import { baseOffset, checkBatch, HEADER_BYTES, nextOffset, sizeInBytes } from "../records/batch.ts";
import { isPlausibleHeader, type ScanSource } from "./batch_scan.ts";
import { type Pace, UncleanableError } from "./cleaner_pace.ts";

export interface ReadingRange {
  /** Exclusive; the segment's bytes. */
  readonly endPosition: number;
  /** Batches that begin at or past this offset do not count. */
  readonly endOffset: number;
  /** The lowest base offset that the first batch may have. */
  readonly minOffset: number;
  /** Bytes of one read, unless a batch is larger. */
  readonly bufferBytes: number;
}

/** The batch lies at `start` of `bytes`. True ends the reading behind it. */
export type BatchReader = (bytes: Uint8Array, start: number) => Promise<boolean | void> | boolean | void;

/**
 * Hands every batch of a segment to `visit`. `goOn` is asked after each rest and may throw.
 * @throws {UncleanableError} at bytes that are no batch
 * @throws {DiskError} when a read fails
 */
export async function readBatches(
  source: ScanSource,
  range: ReadingRange,
  { pace, goOn }: { readonly pace: Pace; goOn(): void },
  visit: BatchReader,
): Promise<void> {
  let buffer = new Uint8Array(Math.min(Math.max(range.bufferBytes, HEADER_BYTES), Math.max(1, range.endPosition)));
  let expected = range.minOffset;
  for (let position = 0; position < range.endPosition;) {
    const wanted = Math.min(buffer.byteLength, range.endPosition - position);
    const got = await source.read(position, buffer.subarray(0, wanted));
    pace.moved(got);
    goOn();
    let start = 0;
    while (got - start >= HEADER_BYTES) {
      const size = sizeInBytes(buffer, start);
      const base = baseOffset(buffer, start);
      const isPlausible = isPlausibleHeader(buffer, start) && base >= expected && size <= range.endPosition - position;
      if (!isPlausible) throw noBatch(position);
      if (base >= range.endOffset) return;
      if (size > got - start) break;
      if (checkBatch(buffer, start, start + size) !== "whole") throw noBatch(position);
      const visited = visit(buffer, start);
      const isEnd = visited instanceof Promise ? await visited : visited;
      if (isEnd === true) return;
      expected = nextOffset(buffer, start);
      start += size;
      position += size;
      while (pace.isDue()) {
        await pace.rest();
        goOn();
      }
    }
    if (start > 0) continue;
    const size = got >= HEADER_BYTES ? sizeInBytes(buffer) : 0;
    if (size <= buffer.byteLength || got < wanted) throw noBatch(position);
    buffer = new Uint8Array(size);
  }
}

function noBatch(position: number): UncleanableError {
  return new UncleanableError(`no valid batch at byte ${position}`);
}
