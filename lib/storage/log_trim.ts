/**
 * Raising a led log's start, and removing the segments that are below it.
 *
 * Invariants: the new start is durable before any file below it goes; a file is closed, its readers done, before its name
 * is removed; the active segment is never removed, a log that is emptied gets a new one.
 */

import { DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { LogState } from "./log_state.ts";
import { type LogSync, SupersededError } from "./log_sync.ts";
import type { Segment } from "./segment.ts";
import { removeSegment } from "./takeover.ts";

/** What became of a wish to delete records. `lowWatermark` is −1 beside an error. */
export interface DeletedRecords {
  readonly errorCode: ErrorCode;
  readonly lowWatermark: number;
}

/** What the log itself does for it. */
export interface Rolling {
  /** Begins a new segment at the log's end; false when the log stalled. */
  roll(): boolean;
  /** Makes everything durable. */
  flush(): Promise<ErrorCode>;
}

/**
 * Deletes the records below `offset` (−1: below the high watermark). One at or below the log's start changes nothing. When
 * it resolves the start is durable and the files are removed; durable, in this order:
 *
 * 1. where the active segment is emptied, a new one — a crash leaves the log as it was;
 * 2. the manifest with the new start — a crash leaves files below it, which the next takeover removes;
 * 3. the files.
 */
export async function deleteRecords(
  state: LogState,
  sync: LogSync,
  offset: number,
  rolling: Rolling,
): Promise<DeletedRecords> {
  const refusal = state.refusal();
  if (refusal !== null) return { errorCode: refusal, lowWatermark: -1 };
  const wanted = offset === -1 ? state.highWatermark : offset;
  if (wanted < 0 || wanted > state.highWatermark) return { errorCode: ErrorCode.OFFSET_OUT_OF_RANGE, lowWatermark: -1 };
  const errorCode = await raiseStart(state, sync, wanted, rolling);
  return errorCode === ErrorCode.NONE
    ? { errorCode, lowWatermark: state.logStartOffset }
    : { errorCode, lowWatermark: -1 };
}

/**
 * Raises the log's start to `wanted`, which is at most the high watermark, and removes what is below; see
 * {@link deleteRecords} for the order. Whether the active segment is emptied is decided before anything is waited for.
 */
export async function raiseStart(
  state: LogState,
  sync: LogSync,
  wanted: number,
  rolling: Rolling,
): Promise<ErrorCode> {
  if (wanted > state.logStartOffset) {
    if (wanted === state.logEndOffset && state.active.sizeBytes > 0) {
      if (!rolling.roll()) return ErrorCode.KAFKA_STORAGE_ERROR;
    }
    // In relaxed logs the high watermark may be ahead of what is durable.
    const flushed = await rolling.flush();
    if (flushed !== ErrorCode.NONE) return flushed;
    try {
      await sync.manifest({ logStartOffset: Math.max(wanted, state.logStartOffset) });
    } catch (error) {
      if (error instanceof SupersededError) {
        state.stall("superseded", error.message);
        return ErrorCode.NOT_LEADER_OR_FOLLOWER;
      }
      if (!(error instanceof DiskError)) throw error;
      state.logger.warn("log start could not be raised", { folder: state.folder, error: String(error) });
      return ErrorCode.KAFKA_STORAGE_ERROR;
    }
    // Abandoned meanwhile: the manifest was not written, and the files are somebody else's.
    if (state.phase === "closed") return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    state.logStartOffset = Math.max(wanted, state.logStartOffset);
  }
  await removeBelowStart(state, sync, rolling);
  return ErrorCode.NONE;
}

/**
 * Removes the sealed segments that end at or below the log's start, once a producer snapshot stands for their records:
 * deleting records forgets no producer. What the volume does not let go is left to the next time, or to a takeover.
 */
export async function removeBelowStart(state: LogState, sync: LogSync, { flush }: Rolling): Promise<void> {
  const isGone = (segment: Segment) => segment !== state.active && segment.endOffset <= state.logStartOffset;
  const endOffset = state.segments.findLast(isGone)?.endOffset;
  if (endOffset === undefined) return;
  try {
    if (!await sync.coverBySnapshot(endOffset, flush)) return;
    // A successor that does not show yet will read the raised start after it has named its segment.
    if (await sync.isSuperseded()) return state.stall("superseded", "the volume shows a higher epoch");
  } catch (error) {
    if (error instanceof SupersededError) return state.stall("superseded", error.message);
    if (!(error instanceof DiskError)) throw error;
    return state.logger.warn("segments are not removed yet", { folder: state.folder, error: String(error) });
  }
  const gone = state.segments.filter((segment) => isGone(segment) && segment.endOffset <= endOffset);
  state.segments = state.segments.filter((segment) => !gone.includes(segment));
  state.segmentChanges++;
  const notes: string[] = [];
  for (const segment of gone) {
    await segment.drain();
    if (state.phase === "closed") return;
    await removeSegment(state.disk, segment, notes);
  }
  for (const note of notes) state.logger.warn("removing segments", { folder: state.folder, note });
}
