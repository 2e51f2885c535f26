/**
 * Leader epochs and where each begins, derived from the names of the live segments: a takeover begins a segment that
 * carries its epoch, so a segment's name says the epoch of everything in it.
 */

/** What is needed of a segment here. */
export interface EpochOfSegment {
  readonly epoch: number;
  readonly baseOffset: number;
}

/** The answer to OffsetForLeaderEpoch; both −1 when the epoch is not known. */
export interface EpochEnd {
  readonly epoch: number;
  readonly endOffset: number;
}

/**
 * The largest epoch not above `wanted`, and the offset where the next one begins (the log's end for the newest). An
 * epoch above the newest gives (−1, −1). One below the oldest that is left keeps its number, and ends where the log
 * begins, as in Apache Kafka.
 * @param segments live segments, in order, at least one
 */
export function endOffsetForEpoch(
  segments: readonly EpochOfSegment[],
  logEnd: { readonly startOffset: number; readonly endOffset: number },
  wanted: number,
): EpochEnd {
  const newest = segments[segments.length - 1].epoch;
  if (wanted < 0 || wanted > newest) return { epoch: -1, endOffset: -1 };
  if (wanted === newest) return { epoch: newest, endOffset: logEnd.endOffset };
  let found = -1;
  for (const segment of segments) {
    if (segment.epoch > wanted) {
      const endOffset = Math.max(segment.baseOffset, logEnd.startOffset);
      return { epoch: found === -1 ? wanted : found, endOffset };
    }
    found = segment.epoch;
  }
  return { epoch: newest, endOffset: logEnd.endOffset };
}

/** The epoch of the record at `offset`. */
export function epochOfOffset(segments: readonly EpochOfSegment[], offset: number): number {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (segments[middle].baseOffset <= offset) low = middle + 1;
    else high = middle;
  }
  return segments[Math.max(0, low - 1)].epoch;
}
