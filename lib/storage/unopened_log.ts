/**
 * Whether a partition that is not open may hold data that is due to leave, from its folder's names and sizes, the time of
 * its oldest segment and at most a few bytes of it. So thousands of partitions that need nothing stay closed.
 *
 * The answer may be yes where an open log then finds nothing to do, never no where it would find something.
 */

import { type Disk, DiskError } from "../disk/disk.ts";
import { partitionStateOf, type SegmentState } from "../partition_state.ts";
import { HEADER_BYTES, maxTimestamp, readInt64 } from "../records/batch.ts";
import { isPlausibleHeader } from "./batch_scan.ts";
import type { LogConfig } from "./log_config.ts";
import { readCleanerCheckpoint } from "./cleaner_checkpoint.ts";
import { dirtOf } from "./cleaner_plan.ts";
import { isOverAge } from "./retention.ts";

const TIME_INDEX_ENTRY_BYTES = 12;

/** Whether compaction may have to do something in the partition in `folder`. @throws {DiskError} */
export async function mayBeDirty(disk: Disk, folder: string, config: LogConfig, nowMs: number): Promise<boolean> {
  if (!config.compacts) return false;
  const names = (await disk.list(folder)).filter((entry) => entry.isFile);
  const { live } = partitionStateOf(names.map(({ name }) => ({ name, size: 0 })));
  const file = await readCleanerCheckpoint(disk, folder);
  const { cleanedUpTo, horizonMs } = file.kind === "present" ? file.value : { cleanedUpTo: 0, horizonMs: null };
  try {
    const sized = await Promise.all(live.map(async (segment) => {
      const { size: sizeBytes } = await disk.stat(`${folder}/${segment.stem}.log`);
      return { ...segment, endOffset: segment.endOffset ?? Infinity, sizeBytes };
    }));
    const { ratio, dirtyBytes, cleanBytes } = dirtOf(sized, cleanedUpTo);
    if (horizonMs !== null && horizonMs <= nowMs && cleanBytes > 0) return true;
    // Whether the oldest dirty record is overdue only its time stamp tells: then the log is opened to see.
    const mayBeOverdue = config.maxCompactionLagMs < Number.MAX_SAFE_INTEGER && dirtyBytes > 0;
    return mayBeOverdue || ratio > config.minCleanableDirtyRatio;
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return true; // something is at work there
    throw error;
  }
}

/** Whether retention may remove something of the partition in `folder`. @throws {DiskError} */
export async function mayBeOverdue(disk: Disk, folder: string, config: LogConfig, nowMs: number): Promise<boolean> {
  if (!config.deletes || (config.retentionMs < 0 && config.retentionBytes < 0)) return false;
  const names = (await disk.list(folder)).filter((entry) => entry.isFile);
  const { live } = partitionStateOf(names.map(({ name }) => ({ name, size: 0 })));
  if (live.length === 0) return false;
  try {
    if (config.retentionBytes >= 0 && await isOversized(disk, folder, live, config.retentionBytes)) return true;
    return config.retentionMs >= 0 && await isOld(disk, `${folder}/${live[0].stem}`, config, nowMs);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return true; // something is at work there
    throw error;
  }
}

async function isOversized(
  disk: Disk,
  folder: string,
  live: readonly SegmentState[],
  retentionBytes: number,
): Promise<boolean> {
  let total = 0;
  let first = 0;
  for (const { stem } of live) {
    const { size } = await disk.stat(`${folder}/${stem}.log`);
    if (first === 0) first = size;
    total += size;
  }
  return first > 0 && total - first >= retentionBytes;
}

/** Whether nothing shows that the segment holds a record that is young enough. */
async function isOld(disk: Disk, stem: string, config: LogConfig, nowMs: number): Promise<boolean> {
  const { size, modifiedMs } = await disk.stat(`${stem}.log`);
  if (size === 0) return false;
  // Its newest record is at least as new as any of these.
  for (const known of [await lastIndexedTime(disk, `${stem}.timeindex`), await firstBatchTime(disk, `${stem}.log`)]) {
    if (known > nowMs) return isOverAge(config, modifiedMs, nowMs);
    if (known >= 0 && !isOverAge(config, known, nowMs)) return false;
    if (known >= 0) return true;
  }
  return isOverAge(config, modifiedMs, nowMs);
}

/** Time stamp in the last entry of a time index; −1 when it has none. */
async function lastIndexedTime(disk: Disk, path: string): Promise<number> {
  try {
    const { size } = await disk.stat(path);
    const position = size - (size % TIME_INDEX_ENTRY_BYTES) - TIME_INDEX_ENTRY_BYTES;
    const bytes = await readSome(disk, path, position, TIME_INDEX_ENTRY_BYTES);
    return bytes === null ? -1 : readInt64(bytes, 0);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return -1;
    throw error;
  }
}

/** Newest time stamp of a segment's first batch; −1 when it has none. */
async function firstBatchTime(disk: Disk, path: string): Promise<number> {
  const bytes = await readSome(disk, path, 0, HEADER_BYTES);
  return bytes === null || !isPlausibleHeader(bytes, 0) ? -1 : maxTimestamp(bytes);
}

async function readSome(disk: Disk, path: string, position: number, length: number): Promise<Uint8Array | null> {
  if (position < 0) return null;
  const file = await disk.open(path, "read");
  try {
    const bytes = new Uint8Array(length);
    return await file.read(position, bytes) === length ? bytes : null;
  } finally {
    file.close();
  }
}
