/**
 * Writes what compaction leaves of neighbouring segments into one temporary file.
 *
 * Invariants: the last batch of the segments keeps its range, as a stub if need be: so no segment is ever empty, one ends
 * where the next begins, and a reader that follows the log reaches its end. The file is not part of the log, and durable,
 * when {@link writeCleaned} resolves; its name is that of a replacement under way, which a takeover removes.
 */

import { temporaryName } from "../disk/atomic_replace.ts";
import { type Disk, DiskError, type FileHandle } from "../disk/disk.ts";
import { lastOffset, maxTimestamp, sizeInBytes } from "../records/batch.ts";
import { type AbortedTransaction, AbortedTransactions } from "./aborted_transactions.ts";
import type { BatchCleaner, Cleaned } from "./batch_cleaner.ts";
import { type Pace, UncleanableError } from "./cleaner_pace.ts";
import { readBatches } from "./cleaner_reader.ts";
import { MAX_SEGMENT_BYTES, type Segment } from "./segment.ts";
import { SegmentIndexes } from "./segment_indexes.ts";

/** What was written. */
export interface CleanedSegment {
  /** The temporary file; null when nothing would change, then there is none. */
  readonly path: string | null;
  readonly sizeBytes: number;
  readonly indexes: SegmentIndexes;
  /** The aborted transactions whose markers are in the file. */
  readonly aborted: AbortedTransactions;
}

export interface WritingOptions {
  readonly disk: Disk;
  readonly cleaner: BatchCleaner;
  readonly pace: Pace;
  readonly bufferBytes: number;
  readonly indexIntervalBytes: number;
  /** Asked after each wait; throws when the pass is to end. */
  goOn(): void;
}

/**
 * Cleans a group of segments into one new file. What throws leaves no file behind, unless the volume refuses that too.
 * @throws {UncleanableError} where a segment is damaged, or would grow past what a segment may have
 * @throws {DiskError}
 */
export async function writeCleaned(group: readonly Segment[], options: WritingOptions): Promise<CleanedSegment> {
  const { disk, cleaner, bufferBytes } = options;
  const [first] = group;
  const slash = first.logPath.lastIndexOf("/") + 1;
  const path = first.logPath.slice(0, slash) + temporaryName(disk, first.logPath.slice(slash));
  const output = new Output(first, await disk.open(path, "create"), options);
  let isKept = false;
  try {
    for (const segment of group) {
      const { sizeBytes: endPosition, endOffset, baseOffset: minOffset } = segment;
      const range = { endPosition, endOffset, minOffset, bufferBytes };
      await readBatches(segment.file, range, options, (bytes, start) => {
        const cleaned = cleaner.clean(bytes, start);
        return cleaned instanceof Promise ? cleaned.then((it) => output.take(bytes, start, it)) : output.take(
          bytes,
          start,
          cleaned,
        );
      });
    }
    output.end();
    const isSame = group.length === 1 && !output.changed;
    if (!isSame) await output.file.sync();
    options.goOn();
    isKept = !isSame;
    const { sizeBytes, indexes, aborted } = output;
    return { path: isKept ? path : null, sizeBytes, indexes, aborted };
  } finally {
    output.file.close();
    if (!isKept) await removeQuietly(disk, path);
  }
}

class Output {
  readonly indexes: SegmentIndexes;
  readonly aborted = new AbortedTransactions();
  sizeBytes = 0;
  /** Whether it differs from what was read. */
  changed = false;
  readonly #buffer: Uint8Array;
  #buffered = 0;
  /** What stands for the last batch while that has gone. */
  #stub: Cleaned & { readonly kind: "gone" } | null = null;

  constructor(first: Segment, readonly file: FileHandle, private readonly options: WritingOptions) {
    this.indexes = SegmentIndexes.afresh(first);
    this.#buffer = new Uint8Array(Math.max(4096, options.bufferBytes));
  }

  /** Takes what became of the batch at `start`. */
  take(bytes: Uint8Array, start: number, cleaned: Cleaned): void {
    if (this.#stub !== null) this.changed = true; // that batch is gone for good
    this.#stub = null;
    if (cleaned.kind === "gone") {
      this.#stub = cleaned;
      return;
    }
    if (cleaned.kind === "changed") {
      this.changed = true;
      this.#write(cleaned.bytes, 0, cleaned.aborted);
    } else this.#write(bytes, start, cleaned.aborted);
  }

  end(): void {
    if (this.#stub !== null) {
      this.#write(this.#stub.stub, 0, this.#stub.aborted);
      if (!this.#stub.isSame) this.changed = true;
    }
    this.#flush();
    this.indexes.seal();
  }

  #write(bytes: Uint8Array, start: number, aborted: AbortedTransaction | null): void {
    const size = sizeInBytes(bytes, start);
    if (this.sizeBytes + size > MAX_SEGMENT_BYTES) throw new UncleanableError("the segment would become too large");
    this.indexes.add(
      this.sizeBytes,
      lastOffset(bytes, start),
      maxTimestamp(bytes, start),
      this.options.indexIntervalBytes,
    );
    if (aborted !== null) this.aborted.add(aborted);
    if (this.#buffered + size > this.#buffer.byteLength) this.#flush();
    if (size > this.#buffer.byteLength) this.file.writeSync(this.sizeBytes, bytes.subarray(start, start + size));
    else {
      this.#buffer.set(bytes.subarray(start, start + size), this.#buffered);
      this.#buffered += size;
    }
    this.sizeBytes += size;
    this.options.pace.moved(size);
  }

  #flush(): void {
    if (this.#buffered === 0) return;
    this.file.writeSync(this.sizeBytes - this.#buffered, this.#buffer.subarray(0, this.#buffered));
    this.#buffered = 0;
  }
}

/** Removes a temporary file; one that stays is removed by the next takeover. */
export async function removeQuietly(disk: Disk, path: string): Promise<void> {
  try {
    await disk.remove(path);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
  }
}
