/**
 * Appending to a led log: what a batch goes through between the handler and the page cache, and who sees to its
 * durability.
 *
 * Invariants: a batch is in the log whole or not at all, also when the volume takes a part of it; producer state changes
 * only after the write; nothing is written past what a position or a relative offset can name.
 */

import type { Timer } from "../clock.ts";
import { DiskError } from "../disk/disk.ts";
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
import type { GroupCommit } from "./group_commit.ts";
import { type RelaxedFlush, relaxedFlush } from "./log_config.ts";
import type { LogReader } from "./log_reader.ts";
import { type LogState, stallKindOf } from "./log_state.ts";
import type { LogSync } from "./log_sync.ts";
import type { Marker, ProducedBatch, Verdict } from "./producer_state.ts";
import { MAX_SEGMENT_BYTES, MAX_SEGMENT_OFFSETS, Segment } from "./segment.ts";

/** What became of a batch. `ticket` goes to `PartitionLog.durable`; offsets are inclusive. */
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

export class LogAppender {
  readonly #state: LogState;
  readonly #sync: LogSync;
  readonly #commit: GroupCommit;
  readonly #reader: LogReader;
  /** How far durability is relaxed; null when every acknowledgement waits for its sync. */
  #relaxed: RelaxedFlush | null = null;
  #recordsSinceSync = 0;
  #flushTimer: Timer | null = null;
  /** When the active segment was begun, wall-clock ms, and what `segment.jitter.ms` takes off its span. */
  #activeSinceMs: number;
  #jitterMs = 0;

  constructor(state: LogState, parts: { sync: LogSync; commit: GroupCommit; reader: LogReader }) {
    this.#state = state;
    this.#sync = parts.sync;
    this.#commit = parts.commit;
    this.#reader = parts.reader;
    this.#activeSinceMs = state.clock.wallMs();
    this.obeyConfig();
  }

  /** Whether what is in the log may be acknowledged without a sync. */
  get isRelaxed(): boolean {
    return this.#relaxed !== null;
  }

  /** Follows the log's present settings. */
  obeyConfig(): void {
    this.#relaxed = relaxedFlush(this.#state.config);
    this.#jitterMs = this.#newJitterMs();
  }

  /** Appends nothing more: no timer is left. */
  stop(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = null;
  }

  /** See `PartitionLog.append`. */
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
    const failure = this.#write(segment, bytes);
    if (failure !== null) return refused(ErrorCode.KAFKA_STORAGE_ERROR, failure);

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
    return isFull || this.#isOld(active, maxTimestamp(batch), nowMs) ? this.roll(nowMs) : active;
  }

  /** Whether `segment.ms`, or the longest time that a record may wait for compaction, has passed: by the records' own time stamps, or by the clock where they have none. */
  #isOld(segment: Segment, timestamp: number, nowMs: number): boolean {
    const { segmentMs, compacts, maxCompactionLagMs } = this.#state.config;
    const spanMs = Math.min(segmentMs - this.#jitterMs, compacts ? maxCompactionLagMs : Infinity);
    if (segment.firstTimestamp >= 0 && timestamp >= 0) return timestamp - segment.firstTimestamp > spanMs;
    return nowMs - this.#activeSinceMs > spanMs;
  }

  /**
   * Begins a new segment at the log's end. The sealed one is synced, and the new name with it, in the next commit round,
   * before anything in the new segment is acknowledged. Null when the volume refused: then the log is stalled.
   */
  roll(nowMs: number): Segment | null {
    const state = this.#state;
    const { disk, resources, folder, leaderEpoch, logEndOffset, active } = state;
    let next: Segment;
    try {
      next = Segment.create(disk, resources.handles, folder, { epoch: leaderEpoch, baseOffset: logEndOffset });
    } catch (error) {
      const kind = stallKindOf(error);
      state.stall(kind, kind === "gone" ? "the partition's files are gone" : "cannot begin a segment", error);
      return null;
    }
    active.seal();
    state.segments.push(next);
    this.#sync.sealed(active);
    this.#activeSinceMs = nowMs;
    this.#jitterMs = this.#newJitterMs();
    return next;
  }

  /**
   * Writes at the segment's end. Answers what went wrong; null when nothing did. A write that fails half-way is cut back
   * and stalls the log; where the file cannot even be opened (no descriptor is free), nothing has happened.
   */
  #write(segment: Segment, bytes: Uint8Array): string | null {
    try {
      segment.file.open();
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#state.logger.warn("segment could not be opened", { file: segment.logPath, error: String(error) });
      return error.message;
    }
    try {
      segment.file.writeSync(segment.sizeBytes, bytes);
      return null;
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
      return `write failed: ${error}`;
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
