/**
 * Walks the batches of a segment file from a position on, in chunks read off the event loop, so that a long scan never
 * holds up anything else. Lengths are checked against what is left of the file before memory is taken.
 */

import {
  baseOffset,
  checkBatch,
  HEADER_BYTES,
  isControl,
  lastOffsetDelta,
  MAGIC,
  magic,
  nextOffset,
  sizeInBytes,
} from "../records/batch.ts";

/** Bytes handled between two turns of the event loop: about a millisecond of checksums. */
const CHUNK_BYTES = 512 * 1024;
/** No batch is larger than a request may be; a length beyond this is a sign of corruption. */
const MAX_BATCH_BYTES = 128 * 1024 * 1024;
/** Where only headers matter, chunks are small: most of a batch is skipped, not read. */
const HEADER_CHUNK_BYTES = 64 * 1024;

/** What a scan reads from. */
export interface ScanSource {
  read(position: number, into: Uint8Array): Promise<number>;
}

export interface ScanRange {
  readonly position: number;
  /** Exclusive; usually the file's size. */
  readonly endPosition: number;
  /** The scan stops before a batch that begins at or past this offset. */
  readonly endOffset: number;
  /** The lowest base offset that the first batch may have. */
  readonly minOffset: number;
  /** Whether CRCs are checked, or only the headers read. */
  readonly verify: "checksums" | "headers";
}

/**
 * Why a scan stopped: `complete` at the end of the range, on a batch boundary; `past-end-offset` in front of a batch
 * that does not count; `incomplete` where the file ends inside a batch; `corrupt` at bytes that are no valid batch; `stopped` in front of the batch at which
 * the visitor said so.
 */
export type ScanStop = "complete" | "past-end-offset" | "incomplete" | "corrupt" | "stopped";

export interface ScanResult {
  readonly stop: ScanStop;
  /** Where the scan stopped: the end of the last valid batch. */
  readonly position: number;
  /** The offset after the last valid batch; `minOffset` when there was none. */
  readonly nextOffset: number;
}

/**
 * Called for each valid batch: it lies at `start` of `bytes`, and at `position` of the file. With `verify: "headers"`
 * only its header is there, except for control batches, which are whole. The bytes are valid during the call. A visitor
 * that answers true stops the scan.
 */
export type BatchVisitor = (bytes: Uint8Array, start: number, position: number) => boolean | void;

/** Walks a range batch by batch. @throws {DiskError} when a read fails */
export async function scanBatches(source: ScanSource, range: ScanRange, visit: BatchVisitor): Promise<ScanResult> {
  const whole = range.verify === "checksums";
  let buffer = new Uint8Array(Math.min(whole ? CHUNK_BYTES : HEADER_CHUNK_BYTES, range.endPosition - range.position));
  let position = range.position;
  let offset = range.minOffset;
  let chunkStart = position;
  let chunkEnd = position;
  const stopped = (stop: ScanStop): ScanResult => ({ stop, position, nextOffset: offset });

  /** Makes `size` bytes at `position` available in the buffer; false when the file is shorter than it was said to be. */
  const load = async (size: number): Promise<boolean> => {
    if (position + size <= chunkEnd) return true;
    if (size > buffer.byteLength) buffer = new Uint8Array(size);
    const wanted = Math.min(buffer.byteLength, range.endPosition - position);
    const got = await source.read(position, wanted === buffer.byteLength ? buffer : buffer.subarray(0, wanted));
    chunkStart = position;
    chunkEnd = position + got;
    return got >= size;
  };

  while (position < range.endPosition) {
    const left = range.endPosition - position;
    if (left < HEADER_BYTES || !await load(HEADER_BYTES)) return stopped("incomplete");
    let start = position - chunkStart;
    const size = sizeInBytes(buffer, start);
    const base = baseOffset(buffer, start);
    if (!isPlausibleHeader(buffer, start) || base < offset || !Number.isSafeInteger(base)) return stopped("corrupt");
    if (base >= range.endOffset) return stopped("past-end-offset");
    if (size > left) return stopped("incomplete");
    if (whole || isControl(buffer, start)) {
      if (!await load(size)) return stopped("incomplete");
      start = position - chunkStart;
      if (whole && checkBatch(buffer, start, start + size) !== "whole") return stopped("corrupt");
    }
    if (visit(buffer, start, position) === true) return stopped("stopped");
    offset = nextOffset(buffer, start);
    position += size;
  }
  return stopped("complete");
}

/** Whether a magic-2 header with a possible length lies at `start`; its CRC is not looked at. */
export function isPlausibleHeader(bytes: Uint8Array, start: number): boolean {
  const size = sizeInBytes(bytes, start);
  return magic(bytes, start) === MAGIC && size >= HEADER_BYTES && size <= MAX_BATCH_BYTES &&
    lastOffsetDelta(bytes, start) >= 0;
}

/** What lies behind bytes that are no valid batch. */
export type Aftermath =
  /** A whole batch with a right CRC, whose base offset is at least the one expected. */
  | { readonly kind: "batch"; readonly position: number; readonly baseOffset: number }
  /** Nothing but zero bytes, from the bad place to the end. */
  | { readonly kind: "zeros" }
  /** Neither. */
  | { readonly kind: "junk" };

/**
 * Looks for the next valid batch behind a bad place, byte by byte.
 * @param range `position` is the bad place itself; batches must begin behind it and lie in `[minOffset, endOffset)`
 * @throws {DiskError} when a read fails
 */
export async function findBatchBehind(source: ScanSource, range: Omit<ScanRange, "verify">): Promise<Aftermath> {
  const buffer = new Uint8Array(Math.min(CHUNK_BYTES, Math.max(HEADER_BYTES, range.endPosition - range.position)));
  let zeros = true;
  let position = range.position;
  while (position < range.endPosition) {
    const wanted = Math.min(buffer.byteLength, range.endPosition - position);
    const got = await source.read(position, buffer.subarray(0, wanted));
    if (got === 0) break;
    if (zeros) zeros = isAllZero(buffer, got);
    const last = got - HEADER_BYTES;
    if (!zeros) {
      for (let start = position === range.position ? 1 : 0; start <= last; start++) {
        if (buffer[start + 16] !== MAGIC || !isPlausibleHeader(buffer, start)) continue;
        const base = baseOffset(buffer, start);
        if (base < range.minOffset || base >= range.endOffset) continue;
        const at = position + start;
        if (await isValidBatch(source, at, sizeInBytes(buffer, start), range.endPosition)) {
          return { kind: "batch", position: at, baseOffset: base };
        }
      }
    }
    if (position + got >= range.endPosition) break;
    position += Math.max(1, last + 1);
  }
  return { kind: zeros ? "zeros" : "junk" };
}

async function isValidBatch(source: ScanSource, position: number, size: number, endPosition: number): Promise<boolean> {
  if (size > endPosition - position) return false;
  const bytes = new Uint8Array(size);
  return await source.read(position, bytes) === size && checkBatch(bytes, 0, size) === "whole";
}

function isAllZero(bytes: Uint8Array, length: number): boolean {
  for (let i = 0; i < length; i++) {
    if (bytes[i] !== 0) return false;
  }
  return true;
}
