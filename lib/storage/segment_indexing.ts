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
      const entries = loaded.offsets.count;
      const hadTimes = loaded.times.count > 0;
      // What lies behind the last entry is walked: an index that was cut short is completed, one that is wrong shows.
      const start = entries === 0 ? { position: 0, lastOffset: -1 } : {
        position: loaded.offsets.lastPosition,
        lastOffset: segment.baseOffset + loaded.offsets.relativeOffsetAt(entries - 1),
      };
      const isTrue = await this.#walk(segment, loaded, start);
      if (isTrue && (hadTimes || entries === 0 || loaded.maxTimestamp < 0)) await this.#keep(segment, loaded);
      else await this.#rebuild(segment);
    });
  }

  /** Largest time stamp in a segment, ms; −1 when it has none. @throws {DiskError} */
  async newestTimestamp(segment: Segment): Promise<number> {
    if (segment === this.#state.active) return segment.indexes?.maxTimestamp ?? -1;
    if (segment.maxTimestamp === null) await this.indexes(segment);
    return segment.maxTimestamp ?? -1;
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
    if (segment.aborted !== null) return;
    const aborted = AbortedTransactions.decode(bytes);
    aborted.truncate(segment.endOffset); // what a swap left half done speaks of later segments too
    segment.aborted = aborted;
  }

  /** Resolves when nothing is being loaded for the segment. */
  async settled(segment: Segment): Promise<void> {
    await this.#loading.get(segment)?.catch(() => {});
  }

  async #rebuild(segment: Segment): Promise<void> {
    const built = SegmentIndexes.afresh(segment);
    await this.#walk(segment, built, { position: 0, lastOffset: -1 });
    await this.#keep(segment, built);
  }

  /**
   * Takes in the batches from a place on, stepping over damage. False when the first one does not end with `lastOffset`
   * (−1: not known).
   */
  async #walk(
    segment: Segment,
    indexes: SegmentIndexes,
    from: { readonly position: number; readonly lastOffset: number },
  ): Promise<boolean> {
    const { indexIntervalBytes } = this.#state.config;
    let { position } = from;
    let minOffset = segment.baseOffset;
    let isTrue = from.lastOffset === -1;
    for (;;) {
      const { endOffset, sizeBytes } = segment;
      const range = { position, endPosition: sizeBytes, endOffset, minOffset, verify: "headers" as const };
      const result = await scanBatches(segment.file, range, (bytes, start, at) => {
        if (!isTrue && lastOffset(bytes, start) !== from.lastOffset) return true;
        isTrue = true;
        indexes.add(at, lastOffset(bytes, start), maxTimestamp(bytes, start), indexIntervalBytes);
      });
      if (!isTrue) return false;
      if (result.stop === "complete" || result.stop === "past-end-offset") return true;
      const behind = await findBatchBehind(segment.file, { ...range, position: result.position });
      if (behind.kind !== "batch") return true;
      position = behind.position;
      minOffset = behind.baseOffset;
    }
  }

  async #keep(segment: Segment, indexes: SegmentIndexes): Promise<void> {
    const { disk, logger, folder } = this.#state;
    indexes.seal();
    try {
      if (!segment.isReplaced) await indexes.save(disk, { sync: false });
    } catch (error) {
      logger.warn("index could not be saved", { folder, error: String(error) });
    }
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
