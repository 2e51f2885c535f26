/**
 * Puts a cleaned segment in the place of the neighbours it was made of, safely at every point.
 *
 * What makes it safe is the rule that a segment ends where the next one begins. The cleaned segment takes the name of the
 * first of its group, and holds the records of all of them: as long as a later one is there, that one's records count
 * and not the copy in front. So the later ones may go one after the other, first to last, each removal being durable
 * before the next; whatever a crash leaves is a log of the same records.
 *
 * Readers: those that read the old segments finish first, since a file is closed before its name goes; those that come
 * meanwhile wait on `LogState.swap` and begin anew.
 */

import { replaceFile } from "../disk/atomic_replace.ts";
import { DiskError } from "../disk/disk.ts";
import { type CleanedSegment, removeQuietly } from "./cleaned_segment.ts";
import { CleaningInterrupted } from "./cleaner_pace.ts";
import type { LogState } from "./log_state.ts";
import type { LogSync } from "./log_sync.ts";
import { Segment } from "./segment.ts";
import { SegmentFile } from "./segment_file.ts";
import type { SegmentIndexing } from "./segment_indexing.ts";

export interface SwapParts {
  readonly state: LogState;
  readonly sync: LogSync;
  readonly indexing: SegmentIndexing;
  /** Throws when nothing may be changed any more. */
  goOn(): void;
}

/**
 * Replaces `group`, neighbours in the log, by what was made of them. Durable, in this order:
 *
 * 1. the first one's index files are removed, the merged list of aborted transactions stands in for its own — a crash
 *    leaves the old segments; an aborted transaction that is told of no more has no data left, one too many is past the
 *    segment's end and not looked at;
 * 2. the cleaned file is renamed over the first one — a crash leaves it to end where the second one begins;
 * 3. the others are removed, in order.
 *
 * Indexes follow: they are hints. To be called with nothing else that removes segments or writes side files under way.
 * @throws {CleaningInterrupted} when the log may not be changed (any more); it is whole
 * @throws {DiskError} when the volume failed; the log is as it was, or stalled
 */
export async function swapIn(group: readonly Segment[], cleaned: CleanedSegment, parts: SwapParts): Promise<void> {
  const { state } = parts;
  const done = Promise.withResolvers<void>();
  state.swap = done.promise;
  try {
    await swap(group, cleaned, parts);
  } finally {
    state.swap = null;
    state.segmentChanges++;
    done.resolve();
  }
}

async function swap(group: readonly Segment[], cleaned: CleanedSegment, parts: SwapParts): Promise<void> {
  const { state, sync, indexing } = parts;
  const { disk, folder } = state;
  const path = cleaned.path!;
  if (!group.every((segment) => state.segments.includes(segment))) {
    throw new CleaningInterrupted("segments left the log meanwhile");
  }
  await goOnAsLeader(sync, parts);
  const [first, ...others] = group;
  const last = group[group.length - 1];
  for (const segment of group) segment.isReplaced = true;
  await Promise.all(group.map((segment) => indexing.settled(segment)));
  await Promise.all(group.map((segment) => segment.drain()));
  let renamed = false;
  try {
    parts.goOn();
    for (const index of [first.indexPath, first.timeIndexPath]) await removeIfThere(state, index);
    await replaceFile(disk, first.abortedPath, cleaned.aborted.encode()); // step 1; syncs the folder
    await goOnAsLeader(sync, parts);
    await disk.rename(path, first.logPath); // step 2
    renamed = true;
    await disk.syncFolder(folder);
  } catch (error) {
    if (state.phase === "closed") throw error;
    if (renamed || await isThere(state, path) !== true) {
      // Which of the two a crash leaves nobody can tell: as after a failed sync, the volume decides.
      state.stall("io", "a cleaned segment could not be put in place", error);
    }
    reopen(state, group);
    throw error;
  }
  const extent = { endOffset: last.endOffset, sizeBytes: cleaned.sizeBytes };
  const segment = new Segment(
    folder,
    first,
    extent,
    (logPath) => SegmentFile.existing(disk, state.resources.handles, logPath, "read"),
  );
  segment.indexes = cleaned.indexes;
  segment.maxTimestamp = cleaned.indexes.maxTimestamp;
  segment.aborted = cleaned.aborted;
  segment.dropIndexesWhenEvicted();
  state.segments = state.segments.flatMap((old) => old === first ? [segment] : others.includes(old) ? [] : [old]);
  await saveIndexes(state, segment);
  await removeInOrder(others, segment, parts); // step 3
}

/**
 * Removes the segments whose records the one in front holds too; one that cannot be removed stays, with all behind it. A
 * .log file goes first: without it the files beside it mean nothing, without them it would mean something else.
 */
async function removeInOrder(others: readonly Segment[], segment: Segment, parts: SwapParts): Promise<void> {
  const { state, sync } = parts;
  const { disk, folder } = state;
  for (let i = 0; i < others.length; i++) {
    const { logPath, paths } = others[i];
    let left = i;
    try {
      await goOnAsLeader(sync, parts);
      try {
        await disk.remove(logPath);
      } catch (error) {
        const found = await isThere(state, logPath); // a removal that failed may have happened
        if (found === null) state.stall("io", "a compacted segment could not be removed", error);
        if (found !== false) throw error;
      }
      left = i + 1;
      if (state.phase !== "closed") await disk.syncFolder(folder);
    } catch (error) {
      if (state.phase === "closed") throw error;
      if (left > i) state.stall("io", "the removal of a compacted segment could not be synced", error);
      if (left < others.length) giveBack(others.slice(left), segment, state);
      throw error;
    }
    for (const path of paths.filter((path) => path !== logPath)) await removeQuietly(disk, path);
  }
}

/** The segment in front ends where the others begin again. */
function giveBack(others: readonly Segment[], segment: Segment, state: LogState): void {
  segment.endOffset = others[0].baseOffset;
  segment.indexes?.truncate(segment.endOffset, segment.sizeBytes);
  segment.aborted?.truncate(segment.endOffset);
  reopen(state, others);
  state.segments = state.segments.flatMap((old) => old === segment ? [segment, ...others] : [old]);
}

/** The segments are read again as they were. */
function reopen(state: LogState, segments: readonly Segment[]): void {
  for (const segment of segments) {
    segment.isReplaced = false;
    segment.file = SegmentFile.existing(state.disk, state.resources.handles, segment.logPath, "read");
    segment.indexes = null; // the files are gone, or were not looked after
    segment.dropIndexesWhenEvicted();
  }
}

async function goOnAsLeader(sync: LogSync, parts: SwapParts): Promise<void> {
  parts.goOn();
  if (await sync.isSuperseded()) {
    parts.state.stall("superseded", "the volume shows a higher epoch");
    throw new CleaningInterrupted("the volume shows a higher epoch");
  }
  parts.goOn();
}

async function saveIndexes(state: LogState, segment: Segment): Promise<void> {
  if (state.phase === "closed") return;
  try {
    await segment.indexes?.save(state.disk, { sync: true });
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    state.logger.warn("index could not be saved", { folder: state.folder, error: String(error) });
  }
}

async function removeIfThere({ disk }: LogState, path: string): Promise<void> {
  try {
    await disk.remove(path);
  } catch (error) {
    if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
  }
}

/** Whether a file is there; null when the volume does not say. */
async function isThere({ disk }: LogState, path: string): Promise<boolean | null> {
  try {
    await disk.stat(path);
    return true;
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    return error.kind === "not-found" ? false : null;
  }
}
