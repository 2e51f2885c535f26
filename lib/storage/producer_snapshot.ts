/**
 * `producer-state.snapshot`: producer state at a known offset, as JSON:
 *
 *     {"version":1, "offset":…, "leaderEpoch":…, "entries":[
 *        {"producer_id", "epoch", "recent":[{"first_seq","last_seq","base_offset"}],
 *         "coordinator_epoch", "last_timestamp_ms", "transaction_first_offset"}]}
 *
 * `entries` may be missing (none). `offset` (exclusive), `leaderEpoch` and the last three keys of an entry are kaas's
 * own; a file of another writer lacks them. A snapshot is believed only up to the log's end in its leader epoch.
 */

import type { Disk } from "../disk/disk.ts";
import { replaceFile } from "../disk/atomic_replace.ts";
import { type ProducerEntry, type ProducerState, WINDOW_BATCHES, type WindowBatch } from "./producer_state.ts";
import { integerFrom, jsonBytes, readSideFile, type SideFile } from "./side_file.ts";

export const SNAPSHOT_NAME = "producer-state.snapshot";

export interface ProducerSnapshot {
  /** Every batch below is counted in, none at or past it; null when the writer did not say. */
  readonly offset: number | null;
  /** Epoch of the leader that wrote it; null when the writer did not say. */
  readonly leaderEpoch: number | null;
  readonly entries: readonly ProducerEntry[];
}

/** Reads the snapshot of the partition in `folder`. @throws {DiskError} unless it is merely missing or damaged */
export function readSnapshot(disk: Disk, folder: string): Promise<SideFile<ProducerSnapshot>> {
  return readSideFile(disk, `${folder}/${SNAPSHOT_NAME}`, (fields) => {
    if (fields.version !== 1) return null;
    const list = fields.entries ?? [];
    if (!Array.isArray(list)) return null;
    const entries = list.map(parseEntry);
    if (entries.includes(null)) return null;
    return {
      offset: integerFrom(0, fields.offset),
      leaderEpoch: integerFrom(0, fields.leaderEpoch),
      entries: entries as ProducerEntry[],
    };
  });
}

/** The state as it is now, as the bytes of a snapshot at `offset`. */
export function encodeSnapshot(state: ProducerState, at: { offset: number; leaderEpoch: number }): Uint8Array {
  const entries = Array.from(state.entries(), (entry) => ({
    producer_id: entry.producerId,
    epoch: entry.producerEpoch,
    recent: entry.window.map((batch) => ({
      first_seq: batch.firstSequence,
      last_seq: batch.lastSequence,
      base_offset: batch.baseOffset,
    })),
    coordinator_epoch: entry.coordinatorEpoch,
    last_timestamp_ms: entry.lastTimestampMs,
    transaction_first_offset: entry.transactionFirstOffset,
  }));
  return jsonBytes({ version: 1, offset: at.offset, leaderEpoch: at.leaderEpoch, entries });
}

/** Replaces the snapshot; durable when it resolves. @throws {DiskError} */
export function writeSnapshot(disk: Disk, folder: string, bytes: Uint8Array): Promise<void> {
  return replaceFile(disk, `${folder}/${SNAPSHOT_NAME}`, bytes);
}

function parseEntry(fields: Record<string, unknown> | null): ProducerEntry | null {
  if (typeof fields !== "object" || fields === null) return null;
  const producerId = integerFrom(0, fields.producer_id);
  const producerEpoch = integerFrom(-1, fields.epoch);
  const recent = fields.recent ?? [];
  if (producerId === null || producerEpoch === null || !Array.isArray(recent)) return null;
  const window = recent.map(parseBatch);
  if (window.includes(null)) return null;
  return {
    producerId,
    producerEpoch,
    coordinatorEpoch: integerFrom(-1, fields.coordinator_epoch) ?? -1,
    lastTimestampMs: integerFrom(0, fields.last_timestamp_ms) ?? 0,
    transactionFirstOffset: integerFrom(-1, fields.transaction_first_offset) ?? -1,
    window: (window as WindowBatch[]).slice(-WINDOW_BATCHES),
  };
}

function parseBatch(fields: Record<string, unknown> | null): WindowBatch | null {
  if (typeof fields !== "object" || fields === null) return null;
  const firstSequence = integerFrom(0, fields.first_seq);
  const lastSequence = integerFrom(0, fields.last_seq);
  const baseOffset = integerFrom(0, fields.base_offset);
  if (firstSequence === null || lastSequence === null || baseOffset === null) return null;
  return { firstSequence, lastSequence, baseOffset };
}
