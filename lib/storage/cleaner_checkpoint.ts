/**
 * `cleaner-checkpoint.json`: `{"cleanedUpTo", "horizonMs"}`. Every record below `cleanedUpTo` has been through a
 * compaction pass; `horizonMs` is the latest delete horizon in what passes left, so that a pass behind it may free
 * delete marks and markers although nothing new came in. Missing when there is none.
 *
 * It is a hint, written after the segments it speaks of are durable: without it everything is dirty again.
 */

import { replaceFile } from "../disk/atomic_replace.ts";
import type { Disk } from "../disk/disk.ts";
import { integerFrom, jsonBytes, readSideFile, type SideFile } from "./side_file.ts";

export const CLEANER_CHECKPOINT_NAME = "cleaner-checkpoint.json";

export interface CleanerCheckpoint {
  readonly cleanedUpTo: number;
  /** Wall-clock ms; null when nothing waits. */
  readonly horizonMs: number | null;
}

/** Reads the checkpoint of the partition in `folder`. @throws {DiskError} unless it is merely missing or damaged */
export function readCleanerCheckpoint(disk: Disk, folder: string): Promise<SideFile<CleanerCheckpoint>> {
  return readSideFile(disk, `${folder}/${CLEANER_CHECKPOINT_NAME}`, (fields) => {
    const cleanedUpTo = integerFrom(0, fields.cleanedUpTo);
    return cleanedUpTo === null ? null : { cleanedUpTo, horizonMs: integerFrom(0, fields.horizonMs) };
  });
}

/** Replaces the checkpoint; durable when it resolves. @throws {DiskError} */
export function writeCleanerCheckpoint(disk: Disk, folder: string, checkpoint: CleanerCheckpoint): Promise<void> {
  const { cleanedUpTo, horizonMs } = checkpoint;
  const fields = { cleanedUpTo, ...(horizonMs === null ? {} : { horizonMs }) };
  return replaceFile(disk, `${folder}/${CLEANER_CHECKPOINT_NAME}`, jsonBytes(fields));
}
