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

import type { Clock, Timer } from "../clock.ts";
import type { Disk } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import {
  applyTimestampType,
  baseSequence,
  isControl,
  isTransactional,
  lastOffsetDelta,
  maxTimestamp,
  producerEpoch,
  producerId,
  setBaseOffset,
  setLeaderEpoch,
  sizeInBytes,
} from "../records/batch.ts";
import { readEndTransactionMarker } from "../records/control.ts";
import { endOffsetForEpoch, type EpochEnd, epochOfOffset } from "./epochs.ts";
import { GroupCommit } from "./group_commit.ts";
import { type LogConfig, type RelaxedFlush, relaxedFlush } from "./log_config.ts";
import { type FoundRecord, LogLookup } from "./log_lookup.ts";
import { LogReader, type ReadOutcome, type ReadRequest } from "./log_reader.ts";
import { type LogParts, LogState, stallKindOf, type StallReason, type StorageLogger } from "./log_state.ts";
import { LogSync } from "./log_sync.ts";
import { type DeletedRecords, deleteRecords } from "./log_trim.ts";
import type { Marker, ProducedBatch, ProducerEntry, Verdict } from "./producer_state.ts";
import type { RecoveryReport } from "./recovery.ts";
import { createResources, type StorageResources } from "./resources.ts";
import { MAX_SEGMENT_BYTES, MAX_SEGMENT_OFFSETS, Segment } from "./segment.ts";
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

/** What became of a batch. `ticket` goes to {@link PartitionLog.durable}; offsets are inclusive. */
export type AppendOutcome =
  | {
    readonly kind: "appended";
    readonly baseOffset: number;
    readonly lastOffset: number;
    /** ms; −1 where the producer's time stamps were kept. */
    readonly logAppendTimeMs: number;
    readonly ticket: number;
  }
  /** The batch was in the log already, at these offsets. */
  | { readonly kind: "duplicate"; readonly baseOffset: number; readonly lastOffset: number; readonly ticket: number }
  | { readonly kind: "refused"; readonly errorCode: ErrorCode; readonly message: string };

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
  #relaxed: RelaxedFlush | null;
  #recordsSinceSync = 0;
  #flushTimer: Timer | null = null;
  /** When the active segment was begun, wall-clock ms, and what `segment.jitter.ms` takes off its span. */
  #activeSinceMs: number;
  #jitterMs: number;

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
    this.#relaxed = relaxedFlush(state.config);
    this.#activeSinceMs = state.clock.wallMs();
    this.#jitterMs = this.#newJitterMs();
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
    const state = this.#state;
    const refusal = state.refusal();
    if (refusal !== null) return refused(refusal, state.stalled?.message ?? "the partition is led elsewhere");
    const size = sizeInBytes(batch);
    if (size > state.config.segmentBytes) {
      return refused(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        `batch of ${size} bytes, segment.bytes is ${state.config.segmentBytes}`,
      );
    }
    const marker = isControl(batch) ? markerIn(batch) : null;
    const produced = producerId(batch) >= 0 && !isControl(batch) ? producedIn(batch) : null;
    const verdict = this.#classify(marker, produced, nowMs);
    if (verdict !== null && verdict.kind === "refused") return verdict;
    if (verdict !== null && verdict.kind === "duplicate") return { ...verdict, ticket: verdict.lastOffset + 1 };

    const segment = this.#segmentFor(batch, size, nowMs);
    if (segment === null) return refused(ErrorCode.KAFKA_STORAGE_ERROR, state.stalled!.message);
    const baseOffset = state.logEndOffset;
    const lastOffset = baseOffset + lastOffsetDelta(batch);
    const stampsTime = state.config.messageTimestampType === "LogAppendTime";
    if (marker === null) applyTimestampType(batch, 0, stampsTime ? "logAppendTime" : "createTime", nowMs);
    setBaseOffset(batch, 0, baseOffset);
    setLeaderEpoch(batch, 0, state.leaderEpoch);
    const bytes = size === batch.byteLength ? batch : batch.subarray(0, size);
    if (!this.#write(segment, bytes)) return refused(ErrorCode.KAFKA_STORAGE_ERROR, state.stalled!.message);

    // Nothing from here on can fail: the batch is in the log.
    const timestamp = maxTimestamp(batch);
    if (segment.sizeBytes === 0) segment.firstTimestamp = timestamp;
    segment.indexes!.add(segment.sizeBytes, lastOffset, timestamp, state.config.indexIntervalBytes);
    segment.sizeBytes += size;
    segment.endOffset = lastOffset + 1;
    this.#reader.appended(baseOffset, size, state.clock.monotonicMs());
    this.#sync.appended(size);
    state.logEndOffset = lastOffset + 1;
    if (produced !== null) state.producers.record(produced, baseOffset, nowMs);
    if (marker !== null) this.#recordMarker(segment, marker, baseOffset, nowMs);
    this.#appended(lastOffset + 1 - baseOffset);
    const logAppendTimeMs = stampsTime ? nowMs : -1;
    return { kind: "appended", baseOffset, lastOffset, logAppendTimeMs, ticket: lastOffset + 1 };
  }

  /**
   * Resolves with NONE when the append of `ticket` may be acknowledged: everything up to it is synced, or `flush.*` relax
   * that. Resolves with the refusal to answer instead when it will never be. All that wait share syncs.
   */
  durable(ticket: number): Promise<ErrorCode> {
    const isEnough = this.#relaxed !== null && ticket <= this.#state.highWatermark;
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
  async deleteRecords(offset: number): Promise<DeletedRecords> {
    return await deleteRecords(this.#state, this.#sync, offset, {
      roll: () => this.#roll(this.#state.clock.wallMs()) !== null,
      flush: () => this.#settle(),
    });
  }

  /** What is known of each producer. */
  activeProducers(): ProducerEntry[] {
    const { producers, clock, config } = this.#state;
    producers.expire(clock.wallMs(), config.producerIdExpirationMs);
    return [...producers.entries()];
  }

  /** Obeys new settings from now on. */
  applyConfig(config: LogConfig): void {
    const state = this.#state;
    state.config = config;
    this.#relaxed = relaxedFlush(config);
    this.#jitterMs = this.#newJitterMs();
    if (this.#relaxed !== null && state.stalled === null) state.raiseHighWatermark(state.logEndOffset);
    if (this.#relaxed === null && state.phase === "leading") this.#commit.request();
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
    this.#flushTimer?.cancel();
    try {
      await this.#settle();
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
    await this.#commit.idle();
    await this.#sync.settled();
  }

  /** Makes everything durable, and finishes what rolls have left to do. */
  #settle(): Promise<ErrorCode> {
    return this.#sync.isDurable ? NOTHING_TO_WAIT_FOR : this.#commit.round();
  }

  #close(): void {
    const state = this.#state;
    if (state.phase === "closed") return;
    state.phase = "closed";
    this.#flushTimer?.cancel();
    this.#commit.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER);
    for (const segment of state.segments) segment.close();
    state.wake();
  }

  #classify(marker: Marker | null, produced: ProducedBatch | null, nowMs: number): Verdict | null {
    const { producers, config } = this.#state;
    if (produced !== null) return producers.classify(produced, nowMs, config.producerIdExpirationMs);
    return marker === null ? null : producers.classifyMarker(marker);
  }

  /** The segment that takes a batch: the active one, or a new one where that is full. Null when the log stalled. */
  #segmentFor(batch: Uint8Array, size: number, nowMs: number): Segment | null {
    const { active, config, logEndOffset } = this.#state;
    if (active.sizeBytes === 0) return active;
    const isFull = active.sizeBytes + size > Math.min(config.segmentBytes, MAX_SEGMENT_BYTES) ||
      logEndOffset + lastOffsetDelta(batch) - active.baseOffset > MAX_SEGMENT_OFFSETS ||
      active.indexes!.isFull(config.segmentIndexBytes);
    return isFull || this.#isOld(active, maxTimestamp(batch), nowMs) ? this.#roll(nowMs) : active;
  }

  /** Whether `segment.ms` has passed: by the records' own time stamps, or by the clock where they have none. */
  #isOld(segment: Segment, timestamp: number, nowMs: number): boolean {
    const spanMs = this.#state.config.segmentMs - this.#jitterMs;
    if (segment.firstTimestamp >= 0 && timestamp >= 0) return timestamp - segment.firstTimestamp > spanMs;
    return nowMs - this.#activeSinceMs > spanMs;
  }

  /**
   * Begins a new segment at the log's end. The sealed one is synced, and the new name with it, in the next commit round,
   * before anything in the new segment is acknowledged. Null when the volume refused: then the log is stalled.
   */
  #roll(nowMs: number): Segment | null {
    const state = this.#state;
    const { disk, resources, folder, leaderEpoch, logEndOffset, active } = state;
    let next: Segment;
    try {
      next = Segment.create(disk, resources.handles, folder, { epoch: leaderEpoch, baseOffset: logEndOffset });
    } catch (error) {
      state.stall(stallKindOf(error), "cannot begin a segment", error);
      return null;
    }
    active.seal();
    state.segments.push(next);
    this.#sync.sealed(active);
    this.#activeSinceMs = nowMs;
    this.#jitterMs = this.#newJitterMs();
    return next;
  }

  /** Writes at the segment's end. A write that fails half-way is cut back; the log is stalled then. */
  #write(segment: Segment, bytes: Uint8Array): boolean {
    try {
      segment.file.writeSync(segment.sizeBytes, bytes);
      return true;
    } catch (error) {
      this.#state.stall(stallKindOf(error), "write failed", error);
      try {
        segment.file.truncateSync(segment.sizeBytes);
      } catch (cutError) {
        // The next takeover finds a torn tail and cuts it.
        this.#state.logger.warn("failed write could not be cut back", {
          file: segment.logPath,
          error: String(cutError),
        });
      }
      return false;
    }
  }

  #recordMarker(segment: Segment, marker: Marker, offset: number, nowMs: number): void {
    const aborted = this.#state.producers.recordMarker(marker, offset, nowMs);
    if (aborted === null) return;
    segment.aborted!.add(aborted);
    segment.abortedChanged = true;
  }

  /** Sees to it that what was just appended becomes durable: at once, or when `flush.*` say so. */
  #appended(records: number): void {
    const state = this.#state;
    if (this.#relaxed === null) return this.#commit.request();
    state.raiseHighWatermark(state.logEndOffset);
    this.#recordsSinceSync += records;
    if (this.#recordsSinceSync >= this.#relaxed.messages) {
      this.#recordsSinceSync = 0;
      this.#commit.request();
    } else if (this.#relaxed.ms !== Infinity && this.#flushTimer === null) {
      this.#flushTimer = state.clock.schedule(this.#relaxed.ms, () => {
        this.#flushTimer = null;
        this.#recordsSinceSync = 0;
        this.#commit.request();
      });
    }
  }

  #newJitterMs(): number {
    const { config, resources } = this.#state;
    return Math.floor(Math.min(config.segmentJitterMs, config.segmentMs) * resources.random.next());
  }
}

const NOTHING_TO_WAIT_FOR: Promise<ErrorCode> = Promise.resolve(ErrorCode.NONE);

function refused(errorCode: ErrorCode, message: string): AppendOutcome {
  return { kind: "refused", errorCode, message };
}

function producedIn(batch: Uint8Array): ProducedBatch {
  return {
    producerId: producerId(batch),
    producerEpoch: producerEpoch(batch),
    baseSequence: baseSequence(batch),
    lastOffsetDelta: lastOffsetDelta(batch),
    isTransactional: isTransactional(batch),
  };
}

function markerIn(batch: Uint8Array): Marker | null {
  const marker = readEndTransactionMarker(batch);
  return marker === null ? null : { ...marker, commits: marker.result === "commit" };
}
