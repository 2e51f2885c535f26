/**
 * The offset and the time index of one segment, kept together: one rule says when both get an entry, one call saves
 * both. In memory only while the segment is written or read; the files are hints. They are synced once, when the segment is
 * sealed, because only then they say how new its newest record is.
 *
 * An entry is added at the first batch that begins at least `index.interval.bytes` behind the last one that has an
 * entry. The time index gets its last entry when the segment is sealed.
 */

import { type Disk, DiskError, type FileHandle } from "../disk/disk.ts";
import { OffsetIndex } from "./offset_index.ts";
import { TimeIndex } from "./time_index.ts";

/** Where the index files are, and which entries they can hold. */
export interface IndexedSegment {
  readonly baseOffset: number;
  readonly indexPath: string;
  readonly timeIndexPath: string;
}

/** A batch as far as the indexes are concerned. */
export interface IndexedBatch {
  readonly position: number;
  readonly lastOffset: number;
  readonly maxTimestamp: number;
}

export class SegmentIndexes {
  offsets = new OffsetIndex();
  times = new TimeIndex();
  /** Largest time stamp in the segment so far, ms; −1 when it has none. */
  maxTimestamp = -1;
  #maxTimestampRelativeOffset = -1;
  /** Position of the batch that a next entry's distance is measured from. */
  #entryPosition = 0;
  /** Entries that the files hold; the rest is new. */
  #savedOffsets = 0;
  #savedTimes = 0;
  #rewrite = false;

  constructor(readonly segment: IndexedSegment) {}

  /** Takes a batch in; batches come in order. */
  add(position: number, lastOffset: number, maxTimestamp: number, intervalBytes: number): void {
    const relative = lastOffset - this.segment.baseOffset;
    if (maxTimestamp > this.maxTimestamp) {
      this.maxTimestamp = maxTimestamp;
      this.#maxTimestampRelativeOffset = relative;
    }
    if (position - this.#entryPosition < Math.max(1, intervalBytes)) return;
    this.offsets.add(relative, position);
    this.#entryPosition = position;
    if (this.maxTimestamp >= 0) this.times.add(this.maxTimestamp, this.#maxTimestampRelativeOffset);
  }

  /** Adds the last entry of the time index: the segment is complete. */
  seal(): void {
    if (this.maxTimestamp >= 0) this.times.add(this.maxTimestamp, this.#maxTimestampRelativeOffset);
  }

  /** Whether one of the files would grow past `maxBytes` with one more entry. */
  isFull(maxBytes: number): boolean {
    return this.offsets.fileBytes + 8 > maxBytes || this.times.fileBytes + 12 > maxBytes;
  }

  /** Continues behind what was loaded: `position` is where the next batch begins. */
  continueFrom(position: number): void {
    this.#entryPosition = Math.max(0, Math.min(this.offsets.lastPosition, position));
    this.maxTimestamp = this.times.lastTimestamp;
    this.#maxTimestampRelativeOffset = this.times.lastRelativeOffset;
  }

  /** Drops the entries at or past an offset or a position, in memory; the files follow with the next save. */
  truncate(endOffset: number, endPosition: number): void {
    const before = this.offsets.count + this.times.count;
    const endRelativeOffset = endOffset - this.segment.baseOffset;
    this.offsets.truncate({ endRelativeOffset, endPosition });
    this.times.truncate(endRelativeOffset);
    if (this.offsets.count + this.times.count !== before) this.#rewrite = true;
  }

  /** Writes the entries that the files do not hold yet; durable when it resolves, if `sync` is set. @throws {DiskError} */
  async save(disk: Disk, { sync }: { readonly sync: boolean }): Promise<void> {
    const { offsets, times } = this;
    const rewrite = this.#rewrite;
    this.#rewrite = false;
    const savedOffsets = rewrite ? 0 : this.#savedOffsets;
    const savedTimes = rewrite ? 0 : this.#savedTimes;
    this.#savedOffsets = offsets.count;
    this.#savedTimes = times.count;
    try {
      const how = { rewrite, sync };
      await append(disk, this.segment.indexPath, savedOffsets * 8, offsets.encode(savedOffsets), how);
      await append(disk, this.segment.timeIndexPath, savedTimes * 12, times.encode(savedTimes), how);
    } catch (error) {
      this.#rewrite = true;
      throw error;
    }
  }

  /**
   * Loads both files as far as they are plausible for a segment that ends at `endOffset` and `endPosition`. A missing
   * file is an empty one. @throws {DiskError}
   */
  static async load(
    disk: Disk,
    segment: IndexedSegment,
    end: { readonly offset: number; readonly position: number },
  ): Promise<SegmentIndexes> {
    const indexes = new SegmentIndexes(segment);
    const bounds = {
      endRelativeOffset: Math.min(end.offset - segment.baseOffset, 0x1_0000_0000),
      endPosition: end.position,
    };
    const offsetBytes = await readOrEmpty(disk, segment.indexPath);
    const timeBytes = await readOrEmpty(disk, segment.timeIndexPath);
    indexes.offsets = OffsetIndex.decode(offsetBytes, bounds);
    indexes.times = TimeIndex.decode(timeBytes, bounds);
    indexes.#savedOffsets = indexes.offsets.count;
    indexes.#savedTimes = indexes.times.count;
    indexes.#rewrite = indexes.offsets.fileBytes !== offsetBytes.byteLength ||
      indexes.times.fileBytes !== timeBytes.byteLength;
    indexes.continueFrom(end.position);
    return indexes;
  }

  /** Indexes with nothing in them that will replace whatever the files hold. */
  static afresh(segment: IndexedSegment): SegmentIndexes {
    const indexes = new SegmentIndexes(segment);
    indexes.#rewrite = true;
    return indexes;
  }
}

async function append(
  disk: Disk,
  path: string,
  position: number,
  bytes: Uint8Array,
  { rewrite, sync }: { readonly rewrite: boolean; readonly sync: boolean },
): Promise<void> {
  if (bytes.byteLength === 0 && !rewrite && !sync) return;
  const handle = await openOrCreate(disk, path);
  try {
    if (bytes.byteLength > 0) handle.writeSync(position, bytes);
    if (rewrite) handle.truncateSync(bytes.byteLength);
    if (sync) await handle.sync();
  } finally {
    handle.close();
  }
}

async function openOrCreate(disk: Disk, path: string): Promise<FileHandle> {
  try {
    return await disk.open(path, "write");
  } catch (error) {
    if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
    return await disk.open(path, "create");
  }
}

async function readOrEmpty(disk: Disk, path: string): Promise<Uint8Array> {
  try {
    return await disk.readFile(path);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return new Uint8Array(0);
    throw error;
  }
}
