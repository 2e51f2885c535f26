/**
 * Reads a whole segment file for people: every valid batch, and between them every stretch of bytes that is none, with
 * the reason. Unlike a takeover's scan it never stops at damage, decides nothing and changes nothing.
 *
 * Invariant: batches and damages together cover the range from its first byte to its last, in order, without overlap.
 */

import type { Disk } from "../disk/disk.ts";
import {
  baseOffset,
  computeCrc,
  crc,
  HEADER_BYTES,
  HEADER_BYTES_UP_TO_MAGIC,
  lastOffsetDelta,
  LOG_OVERHEAD_BYTES,
  MAGIC,
  magic,
  recordsCount,
  sizeInBytes,
} from "../records/batch.ts";
import { type BatchVisitor, findBatchBehind, isPlausibleHeader, scanBatches, type ScanSource } from "./batch_scan.ts";

/** Bytes that are no valid batch. */
export interface SegmentDamage {
  readonly position: number;
  readonly bytes: number;
  /** The lowest offset that a batch at this place could have. */
  readonly expectedOffset: number;
  /** `tail`: the file ends inside a batch, as after a write that was cut short. */
  readonly kind: "corrupt" | "zeros" | "tail";
  /** What is wrong with the bytes at `position`, as a sentence without its end. */
  readonly reason: string;
}

export interface WalkRange {
  /** Exclusive; the file's size when the walk began, so that what is appended meanwhile does not matter. */
  readonly endPosition: number;
  /** The lowest base offset that the first batch may have. */
  readonly minOffset: number;
  /** Batches at or past this offset do not count: the walk ends in front of the first of them. */
  readonly endOffset: number;
}

export interface WalkResult {
  readonly damages: readonly SegmentDamage[];
  /** Where the walk ended: `endPosition`, or in front of a batch that does not count. */
  readonly position: number;
  /** The offset after the last valid batch. */
  readonly nextOffset: number;
}

/**
 * Walks the segment file at `path`. `visit` is called for each valid batch, whose bytes are its to use during the call.
 * @throws {DiskError} when the file cannot be read
 */
export async function walkSegmentFile(
  disk: Disk,
  path: string,
  range: Omit<WalkRange, "endPosition">,
  visit: BatchVisitor,
  onDamage: (damage: SegmentDamage) => void = () => {},
): Promise<WalkResult> {
  const file = await disk.open(path, "read");
  try {
    return await walkSegment(file, { ...range, endPosition: file.sizeSync() }, visit, onDamage);
  } finally {
    file.close();
  }
}

/** {@link walkSegmentFile} over any source of bytes. */
export async function walkSegment(
  source: ScanSource,
  { endPosition, minOffset, endOffset }: WalkRange,
  visit: BatchVisitor,
  onDamage: (damage: SegmentDamage) => void = () => {},
): Promise<WalkResult> {
  const damages: SegmentDamage[] = [];
  let position = 0;
  let expectedOffset = minOffset;
  for (;;) {
    const range = { position, endPosition, endOffset, minOffset: expectedOffset };
    const scan = await scanBatches(source, { ...range, verify: "checksums" }, visit);
    position = scan.position;
    expectedOffset = scan.nextOffset;
    if (scan.stop === "complete" || scan.stop === "past-end-offset" || scan.stop === "stopped") {
      return { damages, position, nextOffset: expectedOffset };
    }
    const behind = await findBatchBehind(source, { ...range, position, minOffset: expectedOffset });
    const end = behind.kind === "batch" ? behind.position : endPosition;
    const tail = scan.stop === "incomplete" && behind.kind !== "batch";
    const damage: SegmentDamage = {
      position,
      bytes: end - position,
      expectedOffset,
      kind: tail ? "tail" : behind.kind === "zeros" ? "zeros" : "corrupt",
      reason: await whatIsWrong(source, position, endPosition, expectedOffset),
    };
    damages.push(damage);
    onDamage(damage);
    if (behind.kind !== "batch") return { damages, position: endPosition, nextOffset: expectedOffset };
    position = behind.position;
  }
}

async function whatIsWrong(
  source: ScanSource,
  position: number,
  endPosition: number,
  expectedOffset: number,
): Promise<string> {
  const left = endPosition - position;
  const header = new Uint8Array(Math.min(HEADER_BYTES, left));
  const got = await source.read(position, header);
  if (got < HEADER_BYTES_UP_TO_MAGIC) return `${left} bytes are too few for a batch`;
  if (header.every((byte) => byte === 0)) return "zero bytes stand where a batch should begin";
  const size = sizeInBytes(header);
  if (magic(header) !== MAGIC) return `magic is ${magic(header)}, expected ${MAGIC}`;
  if (got < HEADER_BYTES) return `${left} bytes are too few for a batch`;
  if (!isPlausibleHeader(header, 0)) {
    return lastOffsetDelta(header) < 0
      ? `last offset delta is ${lastOffsetDelta(header)}, expected at least 0`
      : `length field is ${size - LOG_OVERHEAD_BYTES}, which no batch has`;
  }
  if (baseOffset(header) < expectedOffset) {
    return `base offset is ${baseOffset(header)}, expected at least ${expectedOffset}`;
  }
  if (size > left) return `the batch has ${size} bytes, the file only ${left} more`;
  const bytes = new Uint8Array(size);
  if (await source.read(position, bytes) < size) return `the file became shorter while it was read`;
  if (recordsCount(bytes) < 0) return `records count is ${recordsCount(bytes)}, expected at least 0`;
  const computed = computeCrc(bytes);
  if (computed === crc(bytes)) return "the batch changed while it was read";
  return `checksum of the batch at offset ${baseOffset(bytes)} is ${hex(computed)}, its header says ${hex(crc(bytes))}`;
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, "0")}`;
}
