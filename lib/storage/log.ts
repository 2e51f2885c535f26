/**
 * One led partition: append, durability, reads, and the end of leadership.
 *
 * Appends are synchronous: a batch is checked against producer state, stamped with its offset and this leader's epoch, and
 * written with one call. `durable` tells when it may be acknowledged. What the parts share, and the invariants over the
 * offsets, stand in `log_state.ts`.
 *
 * Handles: at most one for writing, on the active segment, plus those that reads opened; all bounded by the process's
 * handle budget. After `relinquish` or `abandon` there is none.
 */

import type { Clock } from "../clock.ts";
import type { Disk } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import { endOffsetForEpoch, type EpochEnd, epochOfOffset } from "./epochs.ts";
import { type Cleanable, type CleaningOptions, type CleaningOutcome, LogCleaner } from "./cleaner.ts";
import { GroupCommit } from "./group_commit.ts";
import { type AppendOutcome, LogAppender } from "./log_appender.ts";
import type { LogConfig } from "./log_config.ts";
import { type FoundRecord, LogLookup } from "./log_lookup.ts";
import { LogReader, type ReadOutcome, type ReadRequest } from "./log_reader.ts";
import { type LogParts, LogState, type StallReason, type StorageLogger } from "./log_state.ts";
import { LogSync } from "./log_sync.ts";
import { type DeletedRecords, deleteRecords, type Rolling } from "./log_trim.ts";
import type { ProducerEntry } from "./producer_state.ts";
import type { RecoveryReport } from "./recovery.ts";
import { enforceRetention, type RetentionOutcome } from "./retention.ts";
import { createResources, type StorageResources } from "./resources.ts";
import { SegmentIndexing } from "./segment_indexing.ts";
import { takeOver } from "./takeover.ts";

/** What a takeover needs besides the folder. */
export interface TakeOverOptions {
  readonly leaderEpoch: number;
  readonly config: LogConfig;
  readonly clock: Clock;
  readonly logger?: StorageLogger;
  /** Bounds shared by all logs of the process; a log without gets bounds of its own. */
  readonly resources?: StorageResources;
}

/** How leadership ended: `clean`: everything is durable and noted; `superseded`, `stalled`: nothing was written any more. */
export type LogEnding = "clean" | "superseded" | "stalled";

const silent: StorageLogger = { info: () => {}, warn: () => {}, error: () => {} };

export class PartitionLog {
  /** What the takeover found and did. */
  readonly report: RecoveryReport;
  /** How it ended; null while it is led. */
  ending: LogEnding | null = null;
  readonly #state: LogState;
  readonly #sync: LogSync;
  readonly #commit: GroupCommit;
  readonly #indexing: SegmentIndexing;
  readonly #reader: LogReader;
  readonly #lookup: LogLookup;
  readonly #appender: LogAppender;
  readonly #cleaner: LogCleaner;
  /** What takes segments out of the log runs one after the other; who ends leadership waits for it. */
  #trimming: Promise<unknown> = Promise.resolve();

  private constructor(parts: LogParts, report: RecoveryReport) {
    const state = new LogState(parts);
    this.#state = state;
    this.report = report;
    this.#sync = new LogSync(state);
    this.#commit = new GroupCommit({
      get logEndOffset() {
        return state.logEndOffset;
      },
      commit: () => this.#sync.commit(),
    }, state.durableOffset);
    this.#indexing = new SegmentIndexing(state);
    this.#reader = new LogReader(state, this.#indexing);
    this.#lookup = new LogLookup(state, this.#indexing, this.#reader);
    this.#appender = new LogAppender(state, { sync: this.#sync, commit: this.#commit, reader: this.#reader });
    this.#cleaner = new LogCleaner({
      state,
      sync: this.#sync,
      indexing: this.#indexing,
      inTurn: (run) => this.#trim(run),
      roll: () =>
        this.#trim(({ roll }) => {
          if (state.active.sizeBytes > 0) roll();
          return Promise.resolve();
        }),
      flush: () => this.#settle(),
    });
  }

  /**
   * Takes the partition in `folder` over; see `takeover.ts` for the steps. A log of this epoch is continued.
   * @throws {KafkaError} FENCED_LEADER_EPOCH when the volume shows a higher epoch
   * @throws {DiskError} when the volume fails; nothing is open then, and trying again is safe
   */
  static async takeOver(disk: Disk, folder: string, options: TakeOverOptions): Promise<PartitionLog> {
    const { logger = silent, resources = createResources() } = options;
    const { parts, report } = await takeOver({ ...options, disk, folder, logger, resources });
    return new PartitionLog(parts, report);
  }

  get leaderEpoch(): number {
    return this.#state.leaderEpoch;
  }
  get logStartOffset(): number {
    return this.#state.logStartOffset;
  }
  /** Everything below is durable (unless `flush.*` relax that) and may be consumed. */
  get highWatermark(): number {
    return this.#state.highWatermark;
  }
  /** The first offset of the oldest open transaction, at most the high watermark. */
  get lastStableOffset(): number {
    return this.#state.lastStableOffset;
  }
  get logEndOffset(): number {
    return this.#state.logEndOffset;
  }
  /** Why nothing is accepted any more; null while all is well. */
  get stalled(): StallReason | null {
    return this.#state.stalled;
  }
  /** Bytes of all segments. */
  get sizeBytes(): number {
    return this.#state.segments.reduce((sum, segment) => sum + segment.sizeBytes, 0);
  }

  /**
   * Appends one batch, which must be valid and whole; stamps its base offset, leader epoch and, where the topic says so,
   * append time in place. The bytes are not kept. Not durable when it returns: see {@link durable}.
   * @param nowMs wall-clock ms
   */
  append(batch: Uint8Array, nowMs: number): AppendOutcome {
    return this.#appender.append(batch, nowMs);
  }

  /**
   * Resolves with NONE when the append of `ticket` may be acknowledged: everything up to it is synced, or `flush.*` relax
   * that. Resolves with the refusal to answer instead when it will never be. All that wait share syncs.
   */
  durable(ticket: number): Promise<ErrorCode> {
    const isEnough = this.#appender.isRelaxed && ticket <= this.#state.highWatermark;
    return isEnough ? NOTHING_TO_WAIT_FOR : this.#commit.durable(ticket);
  }

  /** Makes everything appended so far durable. */
  flush(): Promise<ErrorCode> {
    return this.#commit.durable(this.#state.logEndOffset);
  }

  /** Calls `listener` each time the high watermark has moved, and when the log closes. Returns how to stop that. */
  onHighWatermark(listener: () => void): () => void {
    return this.#state.onHighWatermark(listener);
  }

  /**
   * Reads whole batches from an offset on. The outcome is there at once where the bytes are recent, and a promise where
   * they may have to come from the volume. Refusals: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE where the offset lies in bytes
   * that are no batch, KAFKA_STORAGE_ERROR when the volume fails, NOT_LEADER_OR_FOLLOWER once it is closed.
   */
  read(request: ReadRequest): ReadOutcome | Promise<ReadOutcome> {
    return this.#reader.read(request);
  }

  /** The first record below the high watermark, in offset order, with a time stamp at or after. @throws {DiskError} */
  offsetForTimestamp(timestampMs: number): Promise<FoundRecord | null> {
    return this.#lookup.firstAtOrAfter(timestampMs);
  }

  /** The first record with the largest time stamp below the high watermark. @throws {DiskError} */
  maxTimestamp(): Promise<FoundRecord | null> {
    return this.#lookup.newest();
  }

  /** See {@link endOffsetForEpoch}; the newest epoch ends at the high watermark, which is all that can be consumed. */
  endOffsetForEpoch(epoch: number): EpochEnd {
    const { segments, logStartOffset, highWatermark } = this.#state;
    return endOffsetForEpoch(segments, { startOffset: logStartOffset, endOffset: highWatermark }, epoch);
  }

  /** Leader epoch of the record at an offset; at the log's end, the present one. */
  epochAt(offset: number): number {
    return epochOfOffset(this.#state.segments, offset);
  }

  /** Base offsets of the live segments, rising; the first at least the log's start. */
  segmentBaseOffsets(): number[] {
    const { segments, logStartOffset } = this.#state;
    return segments.map((segment) => Math.max(segment.baseOffset, logStartOffset));
  }

  /**
   * Raises the log's start; durable, and the files below are gone, when it resolves.
   * @param offset first offset to stay; −1 for the high watermark
   */
  deleteRecords(offset: number): Promise<DeletedRecords> {
    return this.#trim((rolling) => deleteRecords(this.#state, this.#sync, offset, rolling));
  }

  /** Removes the segments that are due to leave by age, size or the log's start; see `retention.ts`. */
  enforceRetention(): Promise<RetentionOutcome> {
    const parts = { state: this.#state, sync: this.#sync, indexing: this.#indexing };
    return this.#trim((rolling) => enforceRetention(parts, rolling));
  }

  /** How dirty the log is, and whether a compaction pass is due; see `cleaner.ts`. @throws {DiskError} */
  cleanable(): Promise<Cleanable> {
    return this.#cleaner.cleanable();
  }

  /** Makes one compaction pass; appends and reads go on meanwhile. */
  clean(options: CleaningOptions): Promise<CleaningOutcome> {
    return this.#cleaner.clean(options);
  }

  /** What is known of each producer. */
  activeProducers(): ProducerEntry[] {
    const { producers, clock, config } = this.#state;
    producers.expire(clock.wallMs(), config.producerIdExpirationMs);
    return [...producers.entries()];
  }

  /** What is known of one producer; not to be changed. */
  producer(producerId: number): Readonly<ProducerEntry> | undefined {
    return this.#state.producers.entry(producerId);
  }

  /** Obeys new settings from now on. */
  applyConfig(config: LogConfig): void {
    const state = this.#state;
    state.config = config;
    this.#appender.obeyConfig();
    if (state.phase !== "leading" || state.stalled !== null) return;
    if (this.#appender.isRelaxed) state.raiseHighWatermark(state.logEndOffset);
    else this.#commit.request();
  }

  /**
   * Ends leadership in order: takes nothing more, makes durable what was accepted, writes the side files, closes every
   * handle. Where the volume shows a successor, or the log is stalled, nothing is written; handles are closed all the same.
   * @throws {DiskError} when a side file could not be written; everything accepted is durable and closed then
   */
  async relinquish(): Promise<void> {
    const state = this.#state;
    if (state.phase !== "leading") return;
    state.phase = "closing";
    this.#appender.stop();
    try {
      await this.#cleaner.stop();
      await this.#trimming;
      await this.#settle();
      await this.#commit.idle();
      await this.#sync.settled();
      if (state.stalled !== null) {
        this.ending = state.stalled.kind === "superseded" ? "superseded" : "stalled";
      } else if (await this.#sync.isSuperseded()) {
        this.ending = "superseded";
      } else {
        await this.#sync.checkpoint();
        await this.#sync.manifest();
        this.ending = "clean";
      }
    } finally {
      this.ending ??= "stalled";
      await Promise.all(state.segments.map((segment) => segment.drain()));
      this.#close();
    }
  }

  /**
   * Ends leadership at once: closes every handle, writes nothing. Who waits is answered NOT_LEADER_OR_FOLLOWER. Resolves
   * when nothing that was under way touches the folder any more.
   */
  async abandon(): Promise<void> {
    this.#close();
    await this.#cleaner.stop();
    await this.#trimming;
    await this.#commit.idle();
    await this.#sync.settled();
  }

  /** Makes everything durable, and finishes what rolls have left to do. */
  #settle(): Promise<ErrorCode> {
    return this.#sync.isDurable ? NOTHING_TO_WAIT_FOR : this.#commit.round();
  }

  /** Runs what takes segments out of the log behind what was asked for before. */
  #trim<T>(run: (rolling: Rolling) => Promise<T>): Promise<T> {
    const rolling = {
      roll: () => this.#appender.roll(this.#state.clock.wallMs()) !== null,
      flush: () => this.#settle(),
    };
    const turn = this.#trimming.then(() => run(rolling));
    this.#trimming = turn.catch(() => {});
    return turn;
  }

  #close(): void {
    const state = this.#state;
    if (state.phase === "closed") return;
    state.phase = "closed";
    this.#appender.stop();
    this.#commit.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER);
    for (const segment of state.segments) segment.close();
    state.wake();
  }
}

const NOTHING_TO_WAIT_FOR: Promise<ErrorCode> = Promise.resolve(ErrorCode.NONE);
