/**
 * Brings a sealed segment's indexes and aborted transactions into memory: from their files, or from the segment itself
 * where the files are missing or wrong. Asked for one thing several times, it is loaded once.
 */

import { DiskError } from "../disk/disk.ts";
import { lastOffset, maxTimestamp } from "../records/batch.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import { findBatchBehind, scanBatches } from "./batch_scan.ts";
import type { LogState } from "./log_state.ts";
import type { Segment } from "./segment.ts";
import { SegmentIndexes } from "./segment_indexes.ts";

/** Without any entry, a segment up to this many intervals is cheaper to walk than to index. */
const INTERVALS_WITHOUT_ENTRY = 4;

export class SegmentIndexing {
  readonly #state: LogState;
  readonly #loading = new Map<Segment, Promise<void>>();

  constructor(state: LogState) {
    this.#state = state;
  }

  /** Resolves when `segment.indexes` and `segment.maxTimestamp` are there. @throws {DiskError} */
  indexes(segment: Segment): Promise<void> {
    return this.#once(segment, async () => {
      if (segment.indexes !== null) return;
      const end = { offset: segment.endOffset, position: segment.sizeBytes };
      const loaded = await SegmentIndexes.load(this.#state.disk, segment, end);
      const intervals = segment.sizeBytes / Math.max(1, this.#state.config.indexIntervalBytes);
      const isMissing = segment.sizeBytes > 0 &&
        (loaded.times.count === 0 || (loaded.offsets.count === 0 && intervals > INTERVALS_WITHOUT_ENTRY));
      if (isMissing) await this.#rebuild(segment);
      else this.#keep(segment, loaded);
    });
  }

  /** Builds the indexes anew from the segment's headers: those at hand led to a wrong place. @throws {DiskError} */
  rebuild(segment: Segment): Promise<void> {
    return this.#once(segment, () => this.#rebuild(segment));
  }

  /** Resolves when `segment.aborted` is there. @throws {DiskError} */
  async aborted(segment: Segment): Promise<void> {
    if (segment.aborted !== null) return;
    let bytes: Uint8Array = new Uint8Array(0);
    try {
      bytes = await this.#state.disk.readFile(segment.abortedPath);
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
    }
    segment.aborted ??= AbortedTransactions.decode(bytes);
  }

  async #rebuild(segment: Segment): Promise<void> {
    const { disk, config, logger, folder } = this.#state;
    const built = SegmentIndexes.afresh(segment);
    let position = 0;
    let minOffset = segment.baseOffset;
    for (;;) {
      const { endOffset, sizeBytes } = segment;
      const range = { position, endPosition: sizeBytes, endOffset, minOffset, verify: "headers" as const };
      const result = await scanBatches(segment.file, range, (bytes, start, at) => {
        built.add(at, lastOffset(bytes, start), maxTimestamp(bytes, start), config.indexIntervalBytes);
      });
      if (result.stop === "complete" || result.stop === "past-end-offset") break;
      const behind = await findBatchBehind(segment.file, { ...range, position: result.position });
      if (behind.kind !== "batch") break;
      position = behind.position;
      minOffset = behind.baseOffset;
    }
    built.seal();
    try {
      await built.save(disk);
    } catch (error) {
      logger.warn("index could not be saved", { folder, error: String(error) });
    }
    this.#keep(segment, built);
  }

  #keep(segment: Segment, indexes: SegmentIndexes): void {
    segment.maxTimestamp = indexes.maxTimestamp;
    segment.indexes = indexes;
    segment.dropIndexesWhenEvicted();
  }

  #once(segment: Segment, load: () => Promise<void>): Promise<void> {
    let loading = this.#loading.get(segment);
    if (loading === undefined) {
      loading = load().finally(() => this.#loading.delete(segment));
      this.#loading.set(segment, loading);
    }
    return loading;
  }
}
