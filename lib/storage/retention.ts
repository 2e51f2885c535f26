/**
 * Retention: which of a led log's oldest segments are due to leave, by age, by size and by the log's start.
 *
 * A segment's age is that of its newest record. One without time stamps, or whose newest lies in the future, is judged by
 * when its file was last written: a producer with a wrong clock cannot keep data for ever.
 *
 * Invariants: only whole segments below the high watermark leave, oldest first, without a gap; the active one is first
 * replaced by a new one; a segment that grew while it was judged stays.
 */

import { DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { LogConfig } from "./log_config.ts";
import type { LogState } from "./log_state.ts";
import type { LogSync } from "./log_sync.ts";
import { raiseStart, type Rolling } from "./log_trim.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndexing } from "./segment_indexing.ts";

/** What a look for segments that are due did. */
export interface RetentionOutcome {
  /** NONE, or why what is due could not be removed; it is tried again with the next look. */
  readonly errorCode: ErrorCode;
  /** What went wrong; empty beside NONE. */
  readonly problem: string;
  readonly removedSegments: number;
  readonly removedBytes: number;
  readonly logStartOffset: number;
  /** The newest time stamp (ms) that lies in the future, of a segment that was looked at; null when there is none. */
  readonly futureTimestampMs: number | null;
}

interface LogParts {
  readonly state: LogState;
  readonly sync: LogSync;
  readonly indexing: SegmentIndexing;
}

/** Segments at the log's head that are due, as far as they were when each was judged. */
interface Due {
  /** The offset that the log starts with when they are gone. */
  readonly endOffset: number;
  readonly futureTimestampMs: number | null;
}

/** Whether a segment whose newest record has this age limit is due, by a time that stands for its newest record. */
export function isOverAge(config: LogConfig, newestMs: number, nowMs: number): boolean {
  return config.retentionMs >= 0 && nowMs - newestMs > config.retentionMs;
}

/** Removes what is due; durable, and the files are gone, when it resolves. */
export async function enforceRetention(parts: LogParts, rolling: Rolling): Promise<RetentionOutcome> {
  const { state, sync } = parts;
  const segmentsBefore = state.segments;
  let due: Due = { endOffset: state.logStartOffset, futureTimestampMs: null };
  const outcome = (errorCode: ErrorCode, problem = ""): RetentionOutcome => {
    const removed = segmentsBefore.filter((segment) => !state.segments.includes(segment));
    return {
      errorCode,
      problem,
      removedSegments: removed.length,
      removedBytes: removed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      logStartOffset: state.logStartOffset,
      futureTimestampMs: due.futureTimestampMs,
    };
  };
  const refusal = state.refusal();
  if (refusal !== null) return outcome(refusal, state.stalled?.message ?? "the partition is led elsewhere");
  try {
    if (state.config.deletes) due = await whatIsDue(parts);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    return outcome(ErrorCode.KAFKA_STORAGE_ERROR, error.message);
  }
  const errorCode = await raiseStart(state, sync, due.endOffset, rolling);
  return outcome(errorCode, errorCode === ErrorCode.NONE ? "" : "segments that are due could not be removed");
}

async function whatIsDue({ state, indexing }: LogParts): Promise<Due> {
  const { config, segments } = state;
  const nowMs = state.clock.wallMs();
  let excessBytes = config.retentionBytes < 0
    ? -1
    : segments.reduce((sum, segment) => sum + segment.sizeBytes, 0) - config.retentionBytes;
  let endOffset = state.logStartOffset;
  let futureTimestampMs: number | null = null;
  for (const segment of [...segments]) {
    const judgedEnd = segment.endOffset;
    const judgedBytes = segment.sizeBytes;
    if (judgedBytes === 0 && segment === state.active) break;
    let isDue = excessBytes >= judgedBytes && excessBytes > 0;
    if (!isDue && config.retentionMs >= 0) {
      const { newestMs, futureMs } = await timeOf(segment, { state, indexing }, nowMs);
      if (futureMs !== null) futureTimestampMs = futureMs;
      isDue = isOverAge(config, newestMs, nowMs);
    }
    if (!isDue || judgedEnd > state.highWatermark || segment.endOffset !== judgedEnd) break;
    endOffset = Math.max(endOffset, judgedEnd);
    excessBytes -= judgedBytes;
  }
  return { endOffset, futureTimestampMs };
}

/** The time that a segment is judged by, and its newest time stamp if that lies in the future. */
export async function timeOf(
  segment: Segment,
  { state, indexing }: Pick<LogParts, "state" | "indexing">,
  nowMs: number,
): Promise<{ newestMs: number; futureMs: number | null }> {
  const timestamp = await indexing.newestTimestamp(segment);
  if (timestamp >= 0 && timestamp <= nowMs) return { newestMs: timestamp, futureMs: null };
  const { modifiedMs } = await state.disk.stat(segment.logPath);
  return { newestMs: modifiedMs, futureMs: timestamp > nowMs ? timestamp : null };
}
