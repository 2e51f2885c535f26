/**
 * Reads every batch of a partition's live segments and says exactly where one is not valid. Changes nothing, and may run
 * while a broker leads the partition: a batch that the active segment's file cuts short is a tail, not corruption, and a
 * segment that is removed meanwhile is skipped.
 */

import { type Disk, DiskError } from "../disk/disk.ts";
import { recordsCount, sizeInBytes } from "../records/batch.ts";
import type { InspectedSegment, PartitionInspection } from "./partition_inspection.ts";
import { type SegmentDamage, walkSegmentFile } from "./segment_walk.ts";

/** A damage and the segment it is in. */
export interface FoundSegmentDamage extends SegmentDamage {
  readonly segment: string;
  /** False for what a write that is under way, or was cut short, leaves at the end of the active segment. */
  readonly isCorruption: boolean;
}

/** Offsets between two segments that are in neither: `firstOffset` to `endOffset`, exclusive. */
export interface OffsetGap {
  readonly firstOffset: number;
  readonly endOffset: number;
}

export interface PartitionVerification {
  readonly batches: number;
  readonly records: number;
  readonly bytes: number;
  /** The offset after the last valid batch. */
  readonly logEndOffset: number;
  readonly damages: readonly FoundSegmentDamage[];
  readonly gaps: readonly OffsetGap[];
  /** Segments that were removed while this ran. */
  readonly vanished: readonly string[];
}

/**
 * Checks the live segments of an inspected partition. `onProgress` is told the bytes of each batch that was checked.
 * @throws {DiskError} when a segment cannot be read
 */
export async function verifyPartition(
  disk: Disk,
  inspection: PartitionInspection,
  onProgress: (bytes: number, segment: InspectedSegment) => void = () => {},
): Promise<PartitionVerification> {
  const live = inspection.segments.filter((segment) => segment.state !== "dead");
  const damages: FoundSegmentDamage[] = [];
  const gaps: OffsetGap[] = [];
  const vanished: string[] = [];
  let batches = 0;
  let records = 0;
  let bytes = 0;
  let logEndOffset = live[0]?.baseOffset ?? inspection.logStartOffset;
  for (const segment of live) {
    if (segment.baseOffset > logEndOffset) gaps.push({ firstOffset: logEndOffset, endOffset: segment.baseOffset });
    const range = { minOffset: segment.baseOffset, endOffset: segment.endOffset ?? Infinity };
    try {
      const walk = await walkSegmentFile(disk, `${inspection.folder}/${segment.stem}.log`, range, (batch, start) => {
        const size = sizeInBytes(batch, start);
        batches++;
        records += Math.max(0, recordsCount(batch, start));
        bytes += size;
        onProgress(size, segment);
      });
      for (const damage of walk.damages) {
        const isCorruption = segment.state !== "active" || damage.kind === "corrupt";
        damages.push({ ...damage, segment: segment.stem, isCorruption });
      }
      logEndOffset = Math.max(segment.baseOffset, walk.nextOffset);
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
      vanished.push(segment.stem);
      logEndOffset = segment.endOffset ?? segment.baseOffset;
    }
  }
  return { batches, records, bytes, logEndOffset, damages, gaps, vanished };
}
