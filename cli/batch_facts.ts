/**
 * The header of a batch as one flat object, for people and for JSON.
 */

import * as batch from "../lib/records/batch.ts";
import { readEndTransactionMarker } from "../lib/records/control.ts";

/** What a batch's header says; offsets inclusive, times in ms since 1970. */
export interface BatchFacts {
  readonly position: number;
  readonly sizeBytes: number;
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly recordsCount: number;
  readonly leaderEpoch: number;
  readonly timestampType: batch.TimestampType;
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  readonly compression: string;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
  readonly hasDeleteHorizon: boolean;
  /** How a transaction ended, if the batch is its marker. */
  readonly marker: "commit" | "abort" | null;
}

const compressionNames = new Map<number, string>(
  Object.entries(batch.Compression).map(([name, number]) => [number, name]),
);

/** The facts of the whole, valid batch in `bytes`, which lies at `position` of its file. */
export function batchFacts(bytes: Uint8Array, position: number): BatchFacts {
  return {
    position,
    sizeBytes: batch.sizeInBytes(bytes),
    baseOffset: batch.baseOffset(bytes),
    lastOffset: batch.lastOffset(bytes),
    recordsCount: batch.recordsCount(bytes),
    leaderEpoch: batch.leaderEpoch(bytes),
    timestampType: batch.timestampTypeOf(bytes),
    baseTimestamp: batch.baseTimestamp(bytes),
    maxTimestamp: batch.maxTimestamp(bytes),
    compression: compressionNames.get(batch.compressionOf(bytes)) ?? `unknown (${batch.compressionOf(bytes)})`,
    producerId: batch.producerId(bytes),
    producerEpoch: batch.producerEpoch(bytes),
    baseSequence: batch.baseSequence(bytes),
    isTransactional: batch.isTransactional(bytes),
    isControl: batch.isControl(bytes),
    hasDeleteHorizon: batch.hasDeleteHorizon(bytes),
    marker: readEndTransactionMarker(bytes)?.result ?? null,
  };
}
