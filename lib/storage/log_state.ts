/**
 * What the parts of one led partition's log share: its segments, offsets and producers, and whether it still works.
 *
 * Invariants (offsets; all but `logEndOffset` are told to clients):
 * - `logStartOffset` ≤ last stable offset ≤ `highWatermark` ≤ `logEndOffset`, and `durableOffset` ≤ `logEndOffset`;
 * - none of them ever falls while the log is led;
 * - `highWatermark` is `durableOffset`, unless `flush.*` relax durability: then it is `logEndOffset`;
 * - segments are in order, at least one, the last one is active: only it is appended to.
 *
 * A failed write, or a failed sync, stalls the log for good: durable records stay readable, nothing more is accepted. Only
 * a new takeover, which reads what the volume really holds, may end that.
 */

import type { Clock } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { LogConfig } from "./log_config.ts";
import type { Manifest } from "./manifest.ts";
import type { ProducerState } from "./producer_state.ts";
import type { StorageResources } from "./resources.ts";
import type { Segment } from "./segment.ts";

/** Where storage tells what happened; the broker's logger fits. */
export interface StorageLogger {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/**
 * Why a log takes nothing more. `no-space` may be over after a takeover anew; `io` is a failed write or sync; `gone`: the
 * log's files are not in their place any more; `superseded`: the volume shows a leader with a higher epoch.
 */
export interface StallReason {
  readonly kind: "no-space" | "io" | "gone" | "superseded";
  readonly message: string;
  /** Wall-clock ms. */
  readonly sinceMs: number;
  readonly cause?: unknown;
}

/** What a log is made of. */
export interface LogParts {
  readonly disk: Disk;
  readonly folder: string;
  readonly leaderEpoch: number;
  readonly clock: Clock;
  readonly logger: StorageLogger;
  readonly resources: StorageResources;
  readonly config: LogConfig;
  readonly segments: Segment[];
  readonly producers: ProducerState;
  readonly logStartOffset: number;
  readonly logEndOffset: number;
  readonly manifest: Manifest;
}

export class LogState {
  readonly disk: Disk;
  readonly folder: string;
  readonly leaderEpoch: number;
  readonly clock: Clock;
  readonly logger: StorageLogger;
  readonly resources: StorageResources;
  readonly producers: ProducerState;
  config: LogConfig;
  segments: Segment[];
  logStartOffset: number;
  logEndOffset: number;
  /** Everything below is synced. */
  durableOffset: number;
  highWatermark: number;
  stalled: StallReason | null = null;
  /** `closing`: takes nothing more, still finishes what it took. `closed`: no handle is open or will be. */
  phase: "leading" | "closing" | "closed" = "leading";
  /** Resolves when the swap of segments that is under way has ended; null when there is none. */
  swap: Promise<void> | null = null;
  /** Counts the times that sealed segments were replaced or removed. */
  segmentChanges = 0;
  /** As last written to the volume. */
  manifest: Manifest;
  readonly #listeners = new Set<() => void>();

  constructor(parts: LogParts) {
    this.disk = parts.disk;
    this.folder = parts.folder;
    this.leaderEpoch = parts.leaderEpoch;
    this.clock = parts.clock;
    this.logger = parts.logger;
    this.resources = parts.resources;
    this.config = parts.config;
    this.segments = parts.segments;
    this.producers = parts.producers;
    this.logStartOffset = parts.logStartOffset;
    this.logEndOffset = parts.logEndOffset;
    this.durableOffset = parts.logEndOffset;
    this.highWatermark = parts.logEndOffset;
    this.manifest = parts.manifest;
  }

  /** The segment that is appended to. */
  get active(): Segment {
    return this.segments[this.segments.length - 1];
  }

  /** Never below the log's start, even where an open transaction has lost its first records to it. */
  get lastStableOffset(): number {
    return Math.max(this.logStartOffset, this.producers.lastStableOffset(this.highWatermark));
  }

  /** Index of the segment that holds `offset` (the one before a gap); 0 for an offset before all. */
  segmentIndexAt(offset: number): number {
    const { segments } = this;
    const last = segments.length - 1;
    if (offset >= segments[last].baseOffset) return last;
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (segments[middle].baseOffset <= offset) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Runs what reads segments, once more whenever it failed because segments were replaced or removed meanwhile. */
  async throughChanges<T>(run: () => Promise<T>): Promise<T> {
    for (;;) {
      const { segmentChanges } = this;
      try {
        return await run();
      } catch (error) {
        const hasChanged = this.swap !== null || this.segmentChanges !== segmentChanges;
        if (!(error instanceof DiskError) || this.phase === "closed" || !hasChanged) throw error;
        await this.swap;
      }
    }
  }

  /** Calls `listener` after each move of the high watermark, and when the log closes. Returns how to stop that. */
  onHighWatermark(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Raises the high watermark; one that is not higher changes nothing. */
  raiseHighWatermark(offset: number): void {
    if (offset <= this.highWatermark) return;
    this.highWatermark = offset;
    this.wake();
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Stalls the log; the first reason stays. */
  stall(kind: StallReason["kind"], what: string, cause?: unknown): void {
    if (this.stalled !== null) return;
    const message = cause === undefined ? what : `${what}: ${cause}`;
    this.stalled = { kind, message, sinceMs: this.clock.wallMs(), cause };
    this.logger.error("partition stalled", { folder: this.folder, kind, reason: message });
  }

  /** The code for requests that a log in this state cannot serve; null when it can. */
  refusal(): ErrorCode | null {
    if (this.phase !== "leading") return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    if (this.stalled === null) return null;
    return this.stalled.kind === "superseded" ? ErrorCode.NOT_LEADER_OR_FOLLOWER : ErrorCode.KAFKA_STORAGE_ERROR;
  }
}

/** The kind of stall that a failed disk operation means. */
export function stallKindOf(error: unknown): "no-space" | "io" | "gone" {
  if (!(error instanceof DiskError)) return "io";
  if (error.kind === "not-found") return "gone";
  return error.kind === "no-space" ? "no-space" : "io";
}
