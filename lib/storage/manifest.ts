/**
 * `manifest.json`: `{"epoch", "highWatermark", "logStartOffset"}` of a partition, as its last leader knew them. Keys
 * that are not known here are kept as they are.
 *
 * - `epoch` only rises; one above one's own means that somebody else leads now.
 * - `logStartOffset` only rises; it is durable before anything below it is removed.
 * - `highWatermark` was durable when written. It never stands for records that the segments do not show.
 */

import type { Disk } from "../disk/disk.ts";
import { replaceFile } from "../disk/atomic_replace.ts";
import { integerFrom, jsonBytes, readSideFile, type SideFile } from "./side_file.ts";

export const MANIFEST_NAME = "manifest.json";

export interface Manifest {
  readonly epoch: number;
  readonly highWatermark: number;
  readonly logStartOffset: number;
  /** Everything else that the file holds. */
  readonly others: Readonly<Record<string, unknown>>;
}

/** Reads the manifest of the partition in `folder`. @throws {DiskError} unless it is merely missing or damaged */
export function readManifest(disk: Disk, folder: string): Promise<SideFile<Manifest>> {
  return readSideFile(disk, `${folder}/${MANIFEST_NAME}`, (fields) => {
    const { epoch, highWatermark, logStartOffset, ...others } = fields;
    const manifest = {
      epoch: integerFrom(0, epoch),
      highWatermark: integerFrom(0, highWatermark),
      logStartOffset: integerFrom(0, logStartOffset),
    };
    if (manifest.epoch === null || manifest.highWatermark === null || manifest.logStartOffset === null) return null;
    return { ...manifest, others } as Manifest;
  });
}

/** Replaces the manifest; durable when it resolves. @throws {DiskError} */
export function writeManifest(disk: Disk, folder: string, manifest: Manifest): Promise<void> {
  const { epoch, highWatermark, logStartOffset, others } = manifest;
  return replaceFile(
    disk,
    `${folder}/${MANIFEST_NAME}`,
    jsonBytes({ epoch, highWatermark, logStartOffset, ...others }),
  );
}
