/**
 * What a partition knows of idempotent and transactional producers: sequence windows, epochs, open transactions.
 *
 * Two steps: `classify*` looks at a batch and notes nothing of it; `record*` is called after the write succeeded (or, on
 * recovery, for each batch found in the log). So a failed write leaves no trace, and a replayed log gives the state
 * that the appends gave.
 *
 * Invariants: at most five batches are remembered for each producer, in log order; a producer's epoch only rises; the
 * open transactions are in order of their first offsets. Sequences wrap from 2³¹−1 to 0.
 */

import { ErrorCode } from "../errors.ts";
import { incrementSequence } from "../records/batch.ts";
import type { AbortedTransaction } from "./aborted_transactions.ts";

/** Batches of a producer that a resend is recognised by; clients keep at most as many in flight. */
export const WINDOW_BATCHES = 5;

/** A batch as far as producer state is concerned. */
export interface ProducedBatch {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly lastOffsetDelta: number;
  readonly isTransactional: boolean;
}

/** An end-of-transaction marker. */
export interface Marker {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly coordinatorEpoch: number;
  readonly commits: boolean;
}

/** What a batch is to its partition. */
export type Verdict =
  | { readonly kind: "next" }
  | { readonly kind: "duplicate"; readonly baseOffset: number; readonly lastOffset: number }
  | { readonly kind: "refused"; readonly errorCode: ErrorCode; readonly message: string };

/** One remembered batch; sequences and offsets are inclusive. */
export interface WindowBatch {
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly baseOffset: number;
}

/** Everything known of one producer. */
export interface ProducerEntry {
  readonly producerId: number;
  producerEpoch: number;
  /** Epoch of the transaction coordinator that wrote the last marker; −1 when there was none. */
  coordinatorEpoch: number;
  /** Wall-clock ms of the last append; silence is counted from here. */
  lastTimestampMs: number;
  /** Offset where the open transaction began; −1 when none is open. */
  transactionFirstOffset: number;
  /** Oldest first, at most {@link WINDOW_BATCHES}. */
  window: WindowBatch[];
}

const NEXT: Verdict = { kind: "next" };

/** A transaction that ended, but whose marker is not durable yet: it still holds the last stable offset back. */
interface EndedTransaction {
  readonly firstOffset: number;
  readonly markerOffset: number;
}

export class ProducerState {
  readonly #producers = new Map<number, ProducerEntry>();
  /** Producers with an open transaction, by its first offset. */
  #open: ProducerEntry[] = [];
  #ended: EndedTransaction[] = [];

  /** Number of producers known. */
  get size(): number {
    return this.#producers.size;
  }

  /** All that is known, in no particular order. */
  entries(): IterableIterator<ProducerEntry> {
    return this.#producers.values();
  }

  /** What is known of one producer. */
  entry(producerId: number): ProducerEntry | undefined {
    return this.#producers.get(producerId);
  }

  /** Whether a producer's batch continues its sequence, repeats a remembered batch, or is to be refused. */
  classify(batch: ProducedBatch, nowMs: number, expirationMs: number): Verdict {
    const entry = this.#producers.get(batch.producerId);
    if (entry === undefined) return NEXT;
    if (isExpired(entry, nowMs, expirationMs)) {
      this.#producers.delete(batch.producerId);
      return NEXT;
    }
    if (batch.producerEpoch < entry.producerEpoch) return fenced(batch, entry);
    if (batch.producerEpoch === entry.producerEpoch) {
      const lastSequence = incrementSequence(batch.baseSequence, batch.lastOffsetDelta);
      for (const known of entry.window) {
        if (known.firstSequence === batch.baseSequence && known.lastSequence === lastSequence) {
          const lastOffset = known.baseOffset + batch.lastOffsetDelta;
          return { kind: "duplicate", baseOffset: known.baseOffset, lastOffset };
        }
      }
    }
    const expected = expectedSequence(batch, entry);
    if (expected !== batch.baseSequence) return outOfOrder(batch, expected);
    if (entry.transactionFirstOffset !== -1 && !batch.isTransactional) {
      return {
        kind: "refused",
        errorCode: ErrorCode.INVALID_TXN_STATE,
        message: `producer ${batch.producerId} has an open transaction here, this batch is outside of it`,
      };
    }
    return NEXT;
  }

  /** Whether a marker may be written. */
  classifyMarker(marker: Marker): Verdict {
    const entry = this.#producers.get(marker.producerId);
    if (entry === undefined) return NEXT;
    if (marker.producerEpoch < entry.producerEpoch) return fenced(marker, entry);
    if (marker.coordinatorEpoch < entry.coordinatorEpoch) {
      return {
        kind: "refused",
        errorCode: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        message: `coordinator epoch ${marker.coordinatorEpoch} is below ${entry.coordinatorEpoch}`,
      };
    }
    return NEXT;
  }

  /** Notes a batch that is in the log at `baseOffset`. */
  record(batch: ProducedBatch, baseOffset: number, nowMs: number): void {
    const entry = this.#entryFor(batch.producerId, batch.producerEpoch);
    if (entry.producerEpoch !== batch.producerEpoch) {
      entry.producerEpoch = batch.producerEpoch;
      entry.window = [];
    }
    if (entry.window.length === WINDOW_BATCHES) entry.window.shift();
    entry.window.push({
      firstSequence: batch.baseSequence,
      lastSequence: incrementSequence(batch.baseSequence, batch.lastOffsetDelta),
      baseOffset,
    });
    entry.lastTimestampMs = nowMs;
    if (batch.isTransactional && entry.transactionFirstOffset === -1) {
      entry.transactionFirstOffset = baseOffset;
      this.#open.push(entry);
    }
  }

  /**
   * Notes a marker that is in the log at `markerOffset`. Answers the transaction it aborted, if it did, with the last
   * stable offset that held when the marker was written.
   */
  recordMarker(marker: Marker, markerOffset: number, nowMs: number): AbortedTransaction | null {
    const entry = this.#entryFor(marker.producerId, marker.producerEpoch);
    if (entry.producerEpoch < marker.producerEpoch) {
      entry.producerEpoch = marker.producerEpoch;
      entry.window = [];
    }
    entry.coordinatorEpoch = marker.coordinatorEpoch;
    entry.lastTimestampMs = nowMs;
    const firstOffset = entry.transactionFirstOffset;
    if (firstOffset === -1) return null;
    entry.transactionFirstOffset = -1;
    this.#open.splice(this.#open.indexOf(entry), 1);
    this.#ended.push({ firstOffset, markerOffset });
    if (marker.commits) return null;
    const stillOpen = this.#open.length === 0 ? markerOffset + 1 : this.#open[0].transactionFirstOffset;
    return { producerId: marker.producerId, firstOffset, lastOffset: markerOffset, lastStableOffset: stillOpen };
  }

  /**
   * The last stable offset for a high watermark: the first offset of the oldest transaction that is open, or whose
   * marker is not below the high watermark; the high watermark itself when there is none.
   */
  lastStableOffset(highWatermark: number): number {
    if (this.#open.length === 0 && this.#ended.length === 0) return highWatermark;
    let stable = this.#open.length === 0 ? highWatermark : this.#open[0].transactionFirstOffset;
    if (this.#ended.length > 0) {
      this.#ended = this.#ended.filter((ended) => ended.markerOffset >= highWatermark);
      for (const ended of this.#ended) stable = Math.min(stable, ended.firstOffset);
    }
    return Math.min(stable, highWatermark);
  }

  /** Forgets the producers that were silent for `expirationMs`; one with an open transaction stays. */
  expire(nowMs: number, expirationMs: number): void {
    for (const entry of this.#producers.values()) {
      if (isExpired(entry, nowMs, expirationMs)) this.#producers.delete(entry.producerId);
    }
  }

  /** Takes in an entry of a snapshot, unless the producer is known already. */
  restore(entry: ProducerEntry): void {
    if (this.#producers.has(entry.producerId)) return;
    this.#producers.set(entry.producerId, entry);
    if (entry.transactionFirstOffset === -1) return;
    this.#open.push(entry);
    this.#open.sort((a, b) => a.transactionFirstOffset - b.transactionFirstOffset);
  }

  #entryFor(producerId: number, producerEpoch: number): ProducerEntry {
    let entry = this.#producers.get(producerId);
    if (entry === undefined) {
      entry = {
        producerId,
        producerEpoch,
        coordinatorEpoch: -1,
        lastTimestampMs: 0,
        transactionFirstOffset: -1,
        window: [],
      };
      this.#producers.set(producerId, entry);
    }
    return entry;
  }
}

/**
 * The sequence that a batch must begin with: 0 in a new epoch or when only markers of this epoch are known, else what
 * follows the last batch.
 */
function expectedSequence(batch: ProducedBatch, entry: ProducerEntry): number {
  if (batch.producerEpoch !== entry.producerEpoch || entry.window.length === 0) return 0;
  return incrementSequence(entry.window[entry.window.length - 1].lastSequence, 1);
}

function isExpired(entry: ProducerEntry, nowMs: number, expirationMs: number): boolean {
  return nowMs - entry.lastTimestampMs >= expirationMs && entry.transactionFirstOffset === -1;
}

function fenced(batch: { producerId: number; producerEpoch: number }, entry: ProducerEntry): Verdict {
  return {
    kind: "refused",
    errorCode: ErrorCode.INVALID_PRODUCER_EPOCH,
    message: `epoch ${batch.producerEpoch} of producer ${batch.producerId} is older than ${entry.producerEpoch}`,
  };
}

function outOfOrder(batch: ProducedBatch, expected: number): Verdict {
  return {
    kind: "refused",
    errorCode: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    message: `producer ${batch.producerId} sent sequence ${batch.baseSequence}, ${expected} is next`,
  };
}
