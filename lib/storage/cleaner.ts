/**
 * Compaction of one led log: says whether it is due, and makes passes over it.
 *
 * A pass reads the dirty part for the newest offset of each key, as far as the table of keys has room; then it goes over
 * the segments from the log's start to there, group by group: writes what stays into a new file and swaps it in. Nothing
 * at or past the last stable offset, in the active segment, or behind damage is touched.
 *
 * Invariants: one pass at a time; offsets never change; a pass that is interrupted, or fails, leaves a log that shows every
 * key's last value, and the next one begins anew; older values are gone before the pass that removes a delete mark.
 */

import { DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import { baseOffset, HEADER_BYTES, isControl, isTransactional, maxTimestamp, nextOffset } from "../records/batch.ts";
import { producerId } from "../records/batch.ts";
import { RecordsFault } from "../records/fault.ts";
import { openRecords } from "../records/record.ts";
import type { AbortedTransaction } from "./aborted_transactions.ts";
import { BatchCleaner, lastOfProducers } from "./batch_cleaner.ts";
import { removeQuietly, writeCleaned } from "./cleaned_segment.ts";
import { type CleanerCheckpoint, readCleanerCheckpoint, writeCleanerCheckpoint } from "./cleaner_checkpoint.ts";
import { CleaningInterrupted, type Pace, UncleanableError } from "./cleaner_pace.ts";
import { dirtOf, groupsOf } from "./cleaner_plan.ts";
import { readBatches } from "./cleaner_reader.ts";
import { CleanedTransactions } from "./cleaner_transactions.ts";
import { KeyOffsets } from "./key_offsets.ts";
import type { LogState } from "./log_state.ts";
import type { LogSync } from "./log_sync.ts";
import { timeOf } from "./retention.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndexing } from "./segment_indexing.ts";
import { swapIn } from "./segment_swap.ts";

/** What a pass is given. */
export interface CleaningOptions {
  /** Memory for the table of keys (`log.cleaner.dedupe.buffer.size`), and how full it may become. */
  readonly dedupeBytes: number;
  readonly loadFactor: number;
  /** Bytes of one read or write (`log.cleaner.io.buffer.size`). */
  readonly ioBufferBytes: number;
  readonly pace: Pace;
  /** Whether this process still leads: asked before everything that changes the volume. */
  mayChange(): boolean;
}

/** How much of a log a pass would have to do. */
export interface Cleanable {
  readonly isDue: boolean;
  /** Share of the dirty bytes in what may be compacted. */
  readonly ratio: number;
  readonly dirtyBytes: number;
}

/** What became of a pass. */
export type CleaningOutcome =
  | {
    readonly kind: "cleaned";
    /** Every record below has been compacted. */
    readonly cleanedUpTo: number;
    readonly bytesBefore: number;
    readonly bytesAfter: number;
    /** Batches left as they are because their records cannot be read. */
    readonly unreadableBatches: number;
  }
  /** The log is not led any more, or segments left it meanwhile; the next pass begins anew. */
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly problem: string };

export interface CleanerParts {
  readonly state: LogState;
  readonly sync: LogSync;
  readonly indexing: SegmentIndexing;
  /** Runs what changes the list of segments in turn with all else that does. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** Begins a new segment if the active one is not empty. */
  roll(): Promise<void>;
  /** Makes everything durable. */
  flush(): Promise<ErrorCode>;
}

const NOTHING: Cleanable = { isDue: false, ratio: 0, dirtyBytes: 0 };
const RECORDS_A_STEP = 256;

export class LogCleaner {
  readonly #parts: CleanerParts;
  #checkpoint: CleanerCheckpoint | null = null;
  #running: Promise<CleaningOutcome> | null = null;
  #isStopped = false;
  /** Segments from this offset on are damaged. */
  #damagedFrom = Infinity;

  constructor(parts: CleanerParts) {
    this.#parts = parts;
  }

  /** How dirty the log is. @throws {DiskError} */
  async cleanable(): Promise<Cleanable> {
    const { config } = this.#parts.state;
    if (!config.compacts || this.#running !== null || this.#refuses()) return NOTHING;
    const { cleanedUpTo, horizonMs } = await this.#position();
    const segments = await this.#cleanableSegments(cleanedUpTo);
    const { ratio, dirtyBytes, cleanBytes } = dirtOf(segments, cleanedUpTo);
    const nowMs = this.#parts.state.clock.wallMs();
    const waits = horizonMs !== null && horizonMs <= nowMs && cleanBytes + dirtyBytes > 0;
    const isDue = ratio > config.minCleanableDirtyRatio || waits || await this.#isOverdue(cleanedUpTo, nowMs);
    return { isDue, ratio, dirtyBytes };
  }

  /** Makes one pass. What is due and could not be done is due again. */
  async clean(options: CleaningOptions): Promise<CleaningOutcome> {
    if (this.#running !== null || this.#refuses()) return { kind: "interrupted" };
    this.#running = this.#run(options);
    try {
      return await this.#running;
    } finally {
      this.#running = null;
    }
  }

  /** Lets no pass go on; resolves when none touches the folder any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(options: CleaningOptions): Promise<CleaningOutcome> {
    try {
      return await this.#pass(options);
    } catch (error) {
      if (error instanceof CleaningInterrupted) return { kind: "interrupted" };
      if (this.#refuses()) return { kind: "interrupted" };
      if (!(error instanceof DiskError || error instanceof UncleanableError)) throw error;
      return { kind: "failed", problem: error.message };
    }
  }

  async #pass(options: CleaningOptions): Promise<CleaningOutcome> {
    const { state, sync, roll, flush } = this.#parts;
    const goOn = () => this.#goOn(options);
    const nowMs = state.clock.wallMs();
    const { cleanedUpTo } = await this.#position();
    if (await this.#isActiveOverdue(nowMs)) await roll();
    goOn();
    // With relaxed durability sealed segments may not be on the volume yet.
    if (await flush() !== ErrorCode.NONE) throw new CleaningInterrupted("the log cannot be made durable");
    goOn();
    const segments = (await this.#cleanableSegments(cleanedUpTo)).filter((segment) => sync.isFinished(segment));
    const last = segments.at(-1);
    if (last === undefined) {
      return { kind: "cleaned", cleanedUpTo, bytesBefore: 0, bytesAfter: 0, unreadableBatches: 0 };
    }
    state.producers.expire(nowMs, state.config.producerIdExpirationMs);
    const producers = lastOfProducers(state.producers.entries());
    const aborted = await this.#abortedTransactions();
    goOn();
    const random = state.resources.random;
    const secret = [Math.floor(random.next() * 2 ** 32), Math.floor(random.next() * 2 ** 32)] as const;
    const keys = new KeyOffsets({ maxBytes: options.dedupeBytes, loadFactor: options.loadFactor, secret });
    const dirty = segments.filter((segment) => segment.endOffset > cleanedUpTo);
    const endOffset = await this.#gatherKeys(dirty, { keys, aborted, from: cleanedUpTo, goOn }, options) ??
      last.endOffset;
    const cleaner = new BatchCleaner({
      keys,
      transactions: new CleanedTransactions(aborted),
      producers,
      endOffset,
      nowMs,
      deleteRetentionMs: state.config.deleteRetentionMs,
      pace: options.pace,
    });
    let bytesBefore = 0;
    let bytesAfter = 0;
    const due = segments.filter((segment) => segment.baseOffset < endOffset);
    for (const group of groupsOf(due, state.config.segmentBytes)) {
      bytesBefore += group.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      bytesAfter += await this.#cleanGroup(group, cleaner, options);
    }
    await this.#note({ cleanedUpTo: Math.max(endOffset, cleanedUpTo), horizonMs: cleaner.latestHorizonMs }, goOn);
    return { kind: "cleaned", cleanedUpTo: endOffset, bytesBefore, bytesAfter, unreadableBatches: cleaner.unreadable };
  }

  /**
   * Takes the keys of the dirty segments in. Answers the offset of the first record that found no room; null when all
   * did.
   */
  async #gatherKeys(
    segments: readonly Segment[],
    { keys, aborted, from, goOn }: {
      readonly keys: KeyOffsets;
      readonly aborted: readonly AbortedTransaction[];
      readonly from: number;
      goOn(): void;
    },
    { pace, ioBufferBytes }: CleaningOptions,
  ): Promise<number | null> {
    const transactions = new CleanedTransactions(aborted);
    let full: number | null = null;
    const takeRecords = async (bytes: Uint8Array, start: number): Promise<boolean> => {
      const records = openRecords(bytes, start);
      if (records instanceof RecordsFault) return false; // stays as it is
      for (let count = 1; records.next(); count++) {
        if (count % RECORDS_A_STEP === 0 && pace.isDue()) await pace.rest();
        if (records.offset < from || records.keyLength < 0) continue;
        if (keys.isCrowded) await keys.grow(pace);
        if (keys.put(records.bytes, records.keyStart, records.keyLength, records.offset)) continue;
        full = records.offset;
        return true;
      }
      return false;
    };
    for (const segment of segments) {
      const { sizeBytes: endPosition, endOffset, baseOffset: minOffset } = segment;
      const range = { endPosition, endOffset, minOffset, bufferBytes: ioBufferBytes };
      await this.#reading(segment, () =>
        readBatches(segment.file, range, { pace, goOn }, (bytes, start) => {
          if (isControl(bytes, start) || nextOffset(bytes, start) <= from) return;
          const id = producerId(bytes, start);
          const isAborted = id >= 0 && isTransactional(bytes, start) &&
            transactions.isAborted(id, baseOffset(bytes, start));
          return isAborted ? undefined : takeRecords(bytes, start);
        }));
      if (full !== null) return full;
    }
    return null;
  }

  /** Cleans one group of neighbours. Answers the bytes that they take afterwards. */
  async #cleanGroup(group: readonly Segment[], cleaner: BatchCleaner, options: CleaningOptions): Promise<number> {
    const { state, sync, indexing, inTurn } = this.#parts;
    const { disk, config } = state;
    const goOn = () => this.#goOn(options);
    const { pace, ioBufferBytes: bufferBytes } = options;
    const { indexIntervalBytes } = config;
    const cleaned = await this.#reading(
      group[0],
      () => writeCleaned(group, { disk, cleaner, pace, bufferBytes, indexIntervalBytes, goOn }),
    );
    const { path } = cleaned;
    if (path === null) return cleaned.sizeBytes;
    try {
      await inTurn(async () => {
        let isDone = false;
        await sync.inTurn(async () => {
          await swapIn(group, cleaned, { state, sync, indexing, goOn });
          isDone = true;
        });
        if (!isDone) throw new CleaningInterrupted("the log is closed");
      });
    } catch (error) {
      // What stands under this name is the cleaned segment only as long as it was not put in place.
      if (state.phase !== "closed") await removeQuietly(disk, path);
      throw error;
    }
    return cleaned.sizeBytes;
  }

  /** Runs what reads a segment; remembers the segment if that is damaged, so that later passes end in front of it. */
  async #reading<T>(segment: Segment, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof UncleanableError) {
        this.#damagedFrom = Math.min(this.#damagedFrom, segment.baseOffset);
        throw new UncleanableError(`${segment.logPath}: ${error.message}`);
      }
      // Segments that are removed are closed first.
      if (error instanceof DiskError && error.kind === "closed") throw new CleaningInterrupted("a segment was removed");
      throw error;
    }
  }

  /** The segments that may be compacted, from the log's start on. @throws {DiskError} */
  async #cleanableSegments(cleanedUpTo: number): Promise<Segment[]> {
    const { state, indexing } = this.#parts;
    const nowMs = state.clock.wallMs();
    const { minCompactionLagMs } = state.config;
    const found: Segment[] = [];
    for (const segment of [...state.segments]) {
      const isStable = segment !== state.active && segment.endOffset <= state.lastStableOffset;
      const isWhole = segment.corruptRanges.length === 0 && segment.baseOffset < this.#damagedFrom;
      if (!isStable || !isWhole) break;
      if (minCompactionLagMs > 0 && segment.endOffset > cleanedUpTo) {
        const { newestMs, futureMs } = await timeOf(segment, { state, indexing }, nowMs);
        if (futureMs !== null || nowMs - newestMs < minCompactionLagMs) break;
      }
      found.push(segment);
    }
    return found;
  }

  /** Whether a record that has not been compacted is older than `max.compaction.lag.ms`. */
  async #isOverdue(cleanedUpTo: number, nowMs: number): Promise<boolean> {
    const { state } = this.#parts;
    if (state.config.maxCompactionLagMs >= Number.MAX_SAFE_INTEGER) return false;
    const [dirty] = (await this.#cleanableSegments(cleanedUpTo)).filter(({ endOffset }) => endOffset > cleanedUpTo);
    if (dirty !== undefined) return nowMs - await this.#firstTimestamp(dirty) > state.config.maxCompactionLagMs;
    return await this.#isActiveOverdue(nowMs);
  }

  async #isActiveOverdue(nowMs: number): Promise<boolean> {
    const { active, config } = this.#parts.state;
    if (active.sizeBytes === 0 || config.maxCompactionLagMs >= Number.MAX_SAFE_INTEGER) return false;
    return nowMs - await this.#firstTimestamp(active) > config.maxCompactionLagMs;
  }

  /** Time of a segment's first batch; Infinity where it has none. */
  async #firstTimestamp(segment: Segment): Promise<number> {
    if (segment.firstTimestamp < 0 && segment.sizeBytes >= HEADER_BYTES && segment !== this.#parts.state.active) {
      const header = new Uint8Array(HEADER_BYTES);
      if (await segment.file.read(0, header) === HEADER_BYTES) segment.firstTimestamp = maxTimestamp(header);
    }
    return segment.firstTimestamp < 0 ? Infinity : segment.firstTimestamp;
  }

  async #abortedTransactions(): Promise<AbortedTransaction[]> {
    const { state, indexing } = this.#parts;
    const all: AbortedTransaction[] = [];
    for (const segment of [...state.segments]) {
      await indexing.aborted(segment);
      all.push(...segment.aborted?.entries() ?? []);
    }
    return all;
  }

  /** How far passes have come; the log's start where that is not known or cannot be. */
  async #position(): Promise<CleanerCheckpoint> {
    const { state } = this.#parts;
    if (this.#checkpoint === null) {
      const file = await readCleanerCheckpoint(state.disk, state.folder);
      this.#checkpoint ??= file.kind === "present" ? file.value : { cleanedUpTo: 0, horizonMs: null };
    }
    const { cleanedUpTo, horizonMs } = this.#checkpoint;
    if (cleanedUpTo > state.active.baseOffset) return { cleanedUpTo: state.logStartOffset, horizonMs };
    return { cleanedUpTo: Math.max(cleanedUpTo, state.logStartOffset), horizonMs };
  }

  async #note(checkpoint: CleanerCheckpoint, goOn: () => void): Promise<void> {
    const { state, sync } = this.#parts;
    this.#checkpoint = checkpoint;
    await sync.inTurn(async () => {
      goOn();
      if (await sync.isSuperseded()) return state.stall("superseded", "the volume shows a higher epoch");
      await writeCleanerCheckpoint(state.disk, state.folder, checkpoint);
    });
  }

  #refuses(): boolean {
    return this.#isStopped || this.#parts.state.refusal() !== null;
  }

  #goOn({ mayChange }: CleaningOptions): void {
    if (this.#refuses() || !mayChange()) throw new CleaningInterrupted("the log is not led any more");
  }
}
