/**
 * Producer state at a log's end, during recovery: from the snapshot where it can be placed in this log, and from the
 * batches behind it.
 *
 * Invariant: each batch is taken in once, in log order, however often it is met; so are abort markers, which go into the
 * index of the segment that they are in.
 */

import type { Disk } from "../disk/disk.ts";
import {
  baseOffset,
  baseSequence,
  isControl,
  isTransactional,
  lastOffsetDelta,
  nextOffset,
  producerEpoch,
  producerId,
} from "../records/batch.ts";
import { readEndTransactionMarker } from "../records/control.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import type { ProducerSnapshot } from "./producer_snapshot.ts";
import { ProducerState } from "./producer_state.ts";
import type { Segment } from "./segment.ts";

/** What a replay starts from. */
export interface ReplayInput {
  readonly segments: readonly Segment[];
  readonly snapshot: ProducerSnapshot | null;
  /** Wall-clock ms: producers found in the log were last heard now, for want of a better time. */
  readonly nowMs: number;
}

export class ProducerReplay {
  producers = new ProducerState();
  /** Batches from this offset on are not in the producer state yet. */
  from: number;
  /** Whether the state began with the snapshot, and why it did not although there is one. */
  fromSnapshot = false;
  readonly notes: string[] = [];
  readonly #input: ReplayInput;

  constructor(input: ReplayInput) {
    this.#input = input;
    this.from = this.#restore();
  }

  /** The aborted transactions of a segment that is about to be read, without those that will be met again. */
  async prepare(disk: Disk, segment: Segment): Promise<void> {
    if (segment.aborted === null) {
      segment.aborted = AbortedTransactions.decode(await disk.readFile(segment.abortedPath));
      segment.aborted.truncate(segment.endOffset); // what a swap left half done speaks of later segments too
    }
    const { count } = segment.aborted;
    segment.aborted.truncate(this.from);
    // The file may name transactions whose markers a crash has taken: it must not keep them.
    if (segment.aborted.count < count) segment.abortedChanged = true;
  }

  /** Takes in the batch at `start`; one that is in already is passed over. */
  take(segment: Segment, bytes: Uint8Array, start: number): void {
    if (baseOffset(bytes, start) < this.from) return;
    this.from = nextOffset(bytes, start);
    const id = producerId(bytes, start);
    if (id < 0) return;
    if (isControl(bytes, start)) return this.#takeMarker(segment, bytes, start);
    const batch = {
      producerId: id,
      producerEpoch: producerEpoch(bytes, start),
      baseSequence: baseSequence(bytes, start),
      lastOffsetDelta: lastOffsetDelta(bytes, start),
      isTransactional: isTransactional(bytes, start),
    };
    this.producers.record(batch, baseOffset(bytes, start), this.#input.nowMs);
  }

  /** Begins anew, from the log alone. */
  restart(): void {
    this.producers = new ProducerState();
    this.fromSnapshot = false;
    this.from = this.#logStart();
  }

  /**
   * A snapshot that does not say its offset, or that knows of batches which are not in the log, cannot replace the log's
   * own word; it adds the producers whose batches the log no longer holds.
   */
  addForgotten(endOffset: number): void {
    const { snapshot, nowMs } = this.#input;
    if (snapshot === null || this.fromSnapshot) return;
    const bound = Math.min(endOffset, this.#endOfEpoch(snapshot.leaderEpoch));
    for (const entry of snapshot.entries) {
      const window = entry.window.filter((batch) => batch.baseOffset < bound);
      if (window.length === 0 && entry.window.length > 0) continue;
      const lastTimestampMs = entry.lastTimestampMs || nowMs;
      this.producers.restore({ ...entry, window, lastTimestampMs, transactionFirstOffset: -1 });
    }
  }

  /** Takes the snapshot over if it can be placed in this log. Answers the offset that it stands for. */
  #restore(): number {
    const { snapshot } = this.#input;
    if (snapshot === null || snapshot.offset === null) return this.#logStart();
    const { offset, leaderEpoch, entries } = snapshot;
    if (offset > this.#endOfEpoch(leaderEpoch)) {
      this.notes.push(`producer snapshot of epoch ${leaderEpoch} at offset ${offset} is a deposed leader's: not used`);
      return this.#logStart();
    }
    this.fromSnapshot = true;
    for (const entry of entries) this.producers.restore({ ...entry, window: [...entry.window] });
    return Math.max(offset, this.#logStart());
  }

  #takeMarker(segment: Segment, bytes: Uint8Array, start: number): void {
    const marker = readEndTransactionMarker(bytes, start);
    if (marker === null) return;
    const commits = marker.result === "commit";
    const aborted = this.producers.recordMarker({ ...marker, commits }, baseOffset(bytes, start), this.#input.nowMs);
    if (aborted === null || segment.aborted === null) return;
    segment.aborted.add(aborted);
    segment.abortedChanged = true;
  }

  #logStart(): number {
    return this.#input.segments.length === 0 ? 0 : this.#input.segments[0].baseOffset;
  }

  /** Where the names say that a leader epoch ended; Infinity where they do not. */
  #endOfEpoch(leaderEpoch: number | null): number {
    if (leaderEpoch === null) return Infinity;
    return this.#input.segments.find((segment) => segment.epoch > leaderEpoch)?.baseOffset ?? Infinity;
  }
}
