/**
 * Which part of a log is due for compaction, and which segments become one. Pure.
 *
 *     log start        clean up to                 cleanable up to           log end
 *         |   clean       |          dirty             |   not yet              |
 *
 * Clean is what the passes so far have seen; dirty is what the next pass may take in: sealed segments below the last
 * stable offset whose newest record is older than `min.compaction.lag.ms`.
 */

import { MAX_SEGMENT_OFFSETS } from "./segment.ts";

/** What is needed of a segment here. */
export interface PlannedSegment {
  readonly epoch: number;
  readonly baseOffset: number;
  readonly endOffset: number;
  readonly sizeBytes: number;
}

/** How much of a log is dirty. */
export interface Dirt {
  readonly cleanBytes: number;
  readonly dirtyBytes: number;
  /** Share of the dirty bytes in both; 0 when there are none. */
  readonly ratio: number;
}

/** @param segments those that may be compacted, in order */
export function dirtOf(segments: readonly PlannedSegment[], cleanedUpTo: number): Dirt {
  let cleanBytes = 0;
  let dirtyBytes = 0;
  for (const { endOffset, sizeBytes } of segments) {
    if (endOffset <= cleanedUpTo) cleanBytes += sizeBytes;
    else dirtyBytes += sizeBytes;
  }
  return { cleanBytes, dirtyBytes, ratio: dirtyBytes === 0 ? 0 : dirtyBytes / (cleanBytes + dirtyBytes) };
}

/** Most segments that become one: each costs a sync of the folder while readers of these segments wait. */
const MAX_GROUP = 64;

/**
 * Neighbours that together fit one segment become one: they are of one leader epoch (a segment's name tells the epoch of
 * all its records) and before compaction no larger than `segmentBytes`.
 */
export function groupsOf<S extends PlannedSegment>(segments: readonly S[], segmentBytes: number): S[][] {
  const groups: S[][] = [];
  let bytes = 0;
  for (const segment of segments) {
    const group = groups.at(-1);
    const fits = group !== undefined && group[0].epoch === segment.epoch && group.length < MAX_GROUP &&
      bytes + segment.sizeBytes <= segmentBytes && segment.endOffset - group[0].baseOffset <= MAX_SEGMENT_OFFSETS;
    if (fits) {
      group.push(segment);
      bytes += segment.sizeBytes;
    } else {
      groups.push([segment]);
      bytes = segment.sizeBytes;
    }
  }
  return groups;
}
