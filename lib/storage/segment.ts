/**
 * One live segment of a log: its names, how far it reaches, and what is open of it.
 *
 * `<leader epoch, 8 hex>-<base offset, 20 decimal>.log` holds record batches as they travel on the wire; beside it lie
 * `.index`, `.timeindex` and `.txnindex` of the same stem. Only the last segment of a log is appended to; of a sealed
 * one, bytes at or past `endOffset` are records of a deposed leader and do not count.
 */

import { replaceFile } from "../disk/atomic_replace.ts";
import type { Disk } from "../disk/disk.ts";
import { segmentStem } from "../partition_state.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import type { HandleBudget } from "./handle_budget.ts";
import { SegmentFile } from "./segment_file.ts";
import { SegmentIndexes } from "./segment_indexes.ts";

/** Positions are kept in 32 bits and clients' tools read them as signed: no segment grows past this. */
export const MAX_SEGMENT_BYTES = 0x7fff_ffff;
/** Relative offsets are kept in 32 bits; as in Apache Kafka a segment spans less than 2³¹. */
export const MAX_SEGMENT_OFFSETS = 0x7fff_ffff;

/** Bytes of a segment that are known to be no valid batches, and the offsets that were in them. */
export interface CorruptRange {
  readonly position: number;
  readonly endPosition: number;
  readonly firstOffset: number;
  readonly endOffset: number;
}

export class Segment {
  readonly epoch: number;
  readonly baseOffset: number;
  readonly logPath: string;
  readonly indexPath: string;
  readonly timeIndexPath: string;
  readonly abortedPath: string;
  /** Exclusive. Of the active segment: the log's end. */
  endOffset: number;
  /** Bytes of the .log file up to `endOffset`, as far as known; else the file's size. */
  sizeBytes: number;
  /** Time stamp of the first batch, ms; −1 when there is none or it is not known. Judges `segment.ms`. */
  firstTimestamp = -1;
  /** Largest time stamp, ms, once known; −1 when the segment has none; null before that. */
  maxTimestamp: number | null = null;
  /** Null while they are not in memory. */
  indexes: SegmentIndexes | null = null;
  /** Null while they are not in memory; empty when the segment has no such file. */
  aborted: AbortedTransactions | null = null;
  /** Whether `aborted` holds something else than its file. */
  abortedChanged = false;
  /** A cleaned segment takes this one's place, and its file names with it: nothing is saved for this one any more. */
  isReplaced = false;
  corruptRanges: CorruptRange[] = [];
  /** The handle that sealed segments are read by, and the active one is written by. */
  file: SegmentFile;
  /** A second handle of the active segment, for reads that may block. */
  coldFile: SegmentFile | null = null;

  constructor(
    folder: string,
    name: { readonly epoch: number; readonly baseOffset: number },
    extent: { readonly endOffset: number; readonly sizeBytes: number },
    openFile: (path: string) => SegmentFile,
  ) {
    this.epoch = name.epoch;
    this.baseOffset = name.baseOffset;
    const stem = `${folder}/${segmentStem(name.epoch, name.baseOffset)}`;
    this.logPath = `${stem}.log`;
    this.indexPath = `${stem}.index`;
    this.timeIndexPath = `${stem}.timeindex`;
    this.abortedPath = `${stem}.txnindex`;
    this.endOffset = extent.endOffset;
    this.sizeBytes = extent.sizeBytes;
    this.file = openFile(this.logPath);
  }

  /** Makes the empty file of a new segment that begins at `baseOffset`. @throws {DiskError} */
  static create(
    disk: Disk,
    budget: HandleBudget,
    folder: string,
    name: { epoch: number; baseOffset: number },
  ): Segment {
    const extent = { endOffset: name.baseOffset, sizeBytes: 0 };
    const segment = new Segment(folder, name, extent, (path) => SegmentFile.create(disk, budget, path));
    segment.indexes = SegmentIndexes.afresh(segment);
    segment.aborted = new AbortedTransactions();
    segment.maxTimestamp = -1;
    return segment;
  }

  /** All files that a removed segment leaves nothing of. */
  get paths(): string[] {
    return [this.logPath, this.indexPath, this.timeIndexPath, this.abortedPath];
  }

  /** From now on read only: when its handle is evicted its indexes leave memory too. */
  seal(): void {
    this.indexes?.seal();
    this.maxTimestamp = this.indexes?.maxTimestamp ?? this.maxTimestamp;
    void this.coldFile?.drain();
    this.coldFile = null;
    this.dropIndexesWhenEvicted();
  }

  /** Lets the indexes go together with the handle; they are loaded again when the segment is next read. */
  dropIndexesWhenEvicted(): void {
    this.file.onEvicted = () => this.indexes = null;
  }

  /** Writes the aborted transactions as they are now; durable when it resolves. @throws {DiskError} */
  async saveAborted(disk: Disk): Promise<void> {
    if (this.aborted === null) return;
    this.abortedChanged = false;
    try {
      await replaceFile(disk, this.abortedPath, this.aborted.encode());
    } catch (error) {
      this.abortedChanged = true;
      throw error;
    }
  }

  /** Gives all handles back at once. */
  close(): void {
    this.file.close();
    this.coldFile?.close();
  }

  /** Gives all handles back when the reads in flight have finished. */
  async drain(): Promise<void> {
    await Promise.all([this.file.drain(), this.coldFile?.drain()]);
  }
}
