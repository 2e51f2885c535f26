/**
 * `recovery-checkpoint.json`: `{"segmentBase", "bytePos", "highWatermark", "leaderEpoch"}`. Everything in front of byte
 * `bytePos` of the segment with base offset `segmentBase`, and in all segments before it, was synced and valid when
 * this was written. A takeover scans from there on.
 *
 * It is a hint: written only after the sync it speaks of, and not believed where the segment is missing, shorter, or
 * has no batch boundary at that place. `leaderEpoch` (missing in files of other writers) tells two segments with one
 * base offset apart.
 */

import type { Disk } from "../disk/disk.ts";
import { replaceFile } from "../disk/atomic_replace.ts";
import { integerFrom, jsonBytes, readSideFile, type SideFile } from "./side_file.ts";

export const CHECKPOINT_NAME = "recovery-checkpoint.json";

export interface RecoveryCheckpoint {
  readonly segmentBase: number;
  /** Position in that segment's .log file. */
  readonly position: number;
  readonly highWatermark: number;
  /** Epoch of that segment; null when the writer did not say. */
  readonly leaderEpoch: number | null;
}

/** Reads the checkpoint of the partition in `folder`. @throws {DiskError} unless it is merely missing or damaged */
export function readCheckpoint(disk: Disk, folder: string): Promise<SideFile<RecoveryCheckpoint>> {
  return readSideFile(disk, `${folder}/${CHECKPOINT_NAME}`, (fields) => {
    const segmentBase = integerFrom(0, fields.segmentBase);
    const position = integerFrom(0, fields.bytePos);
    const highWatermark = integerFrom(0, fields.highWatermark);
    if (segmentBase === null || position === null || highWatermark === null) return null;
    return { segmentBase, position, highWatermark, leaderEpoch: integerFrom(0, fields.leaderEpoch) };
  });
}

/** Replaces the checkpoint; durable when it resolves. @throws {DiskError} */
export function writeCheckpoint(disk: Disk, folder: string, checkpoint: RecoveryCheckpoint): Promise<void> {
  const { segmentBase, position, highWatermark, leaderEpoch } = checkpoint;
  return replaceFile(
    disk,
    `${folder}/${CHECKPOINT_NAME}`,
    jsonBytes({ segmentBase, bytePos: position, highWatermark, ...(leaderEpoch === null ? {} : { leaderEpoch }) }),
  );
}
