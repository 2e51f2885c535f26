/**
 * What compaction makes of one batch: itself, itself with fewer records, or nothing.
 *
 * The rules, for offsets in front of `endOffset`; what lies behind is kept as it is:
 * - a record stays if no later one has its key. One without a key goes.
 * - a delete mark (null value) stays until its batch's delete horizon, which the first pass that keeps it sets to
 *   `delete.retention.ms` from then (KIP-534).
 * - data of an aborted transaction goes.
 * - a transaction's marker stays while data of the transaction was met; the first pass without sets the delete horizon, and
 *   a pass behind that removes it. Other control batches stay.
 * - the last batch of each producer keeps its header, so that the producer's sequence and epoch can be read off the log.
 * - a batch whose records cannot be read stays as it is: nobody can say what is in it.
 */

import {
  baseOffset,
  hasDeleteHorizon,
  isControl,
  isTransactional,
  lastOffset,
  producerEpoch,
  producerId,
  sizeInBytes,
} from "../records/batch.ts";
import { readEndTransactionMarker } from "../records/control.ts";
import { RecordsFault } from "../records/fault.ts";
import { openRecords, type RecordCursor } from "../records/record.ts";
import { deleteHorizonOf, emptyBatch, filterBatch } from "../records/rewrite.ts";
import type { AbortedTransaction } from "./aborted_transactions.ts";
import type { Pace } from "./cleaner_pace.ts";
import type { CleanedTransactions } from "./cleaner_transactions.ts";
import type { KeyOffsets } from "./key_offsets.ts";
import type { ProducerEntry } from "./producer_state.ts";

/** Records looked at between two looks at the pace. */
const RECORDS_A_STEP = 256;

/** What becomes of a batch. */
export type Cleaned =
  /** It stays byte for byte. */
  | { readonly kind: "same"; readonly aborted: AbortedTransaction | null }
  /** These bytes take its place. */
  | { readonly kind: "changed"; readonly bytes: Uint8Array; readonly aborted: AbortedTransaction | null }
  /** It goes; `stub`, maybe the batch itself, is to stay in its place where a batch must. */
  | {
    readonly kind: "gone";
    readonly stub: Uint8Array;
    readonly isSame: boolean;
    readonly aborted: AbortedTransaction | null;
  };

/** Last offset of a producer's last data batch; −1 when only markers are known of it. */
export interface LastOfProducer {
  readonly lastOffset: number;
  readonly producerEpoch: number;
}

/** Where the last batch of each producer is. */
export function lastOfProducers(entries: Iterable<ProducerEntry>): Map<number, LastOfProducer> {
  const last = new Map<number, LastOfProducer>();
  for (const { producerId, producerEpoch, window } of entries) {
    const batch = window.at(-1);
    const records = batch === undefined ? 0 : (batch.lastSequence - batch.firstSequence + 0x8000_0000) % 0x8000_0000;
    last.set(producerId, { lastOffset: batch === undefined ? -1 : batch.baseOffset + records, producerEpoch });
  }
  return last;
}

export interface BatchCleanerOptions {
  readonly keys: KeyOffsets;
  readonly transactions: CleanedTransactions;
  readonly producers: ReadonlyMap<number, LastOfProducer>;
  /** Records from here on are not judged. */
  readonly endOffset: number;
  /** Wall-clock ms. */
  readonly nowMs: number;
  readonly deleteRetentionMs: number;
  readonly pace: Pace;
}

export class BatchCleaner {
  readonly #options: BatchCleanerOptions;
  /** Latest delete horizon (ms) in what stays; null when there is none. */
  latestHorizonMs: number | null = null;
  /** Batches whose records could not be read. */
  unreadable = 0;

  constructor(options: BatchCleanerOptions) {
    this.#options = options;
  }

  /** What becomes of the batch at `start`; batches come in log order, from the log's start. */
  clean(bytes: Uint8Array, start: number): Cleaned | Promise<Cleaned> {
    const id = producerId(bytes, start);
    if (isControl(bytes, start)) return this.#cleanControl(bytes, start);
    const isAborted = id >= 0 && isTransactional(bytes, start) &&
      this.#options.transactions.isAborted(id, baseOffset(bytes, start));
    if (baseOffset(bytes, start) >= this.#options.endOffset) return this.#same(bytes, start);
    if (isAborted) return this.#without(bytes, start);
    return this.#cleanData(bytes, start);
  }

  #cleanControl(bytes: Uint8Array, start: number): Cleaned {
    const { transactions, endOffset, nowMs, deleteRetentionMs } = this.#options;
    const marker = readEndTransactionMarker(bytes, start);
    if (marker === null) return this.#same(bytes, start);
    const { hasData, aborted } = transactions.endedBy(marker.producerId, baseOffset(bytes, start));
    if (hasData || baseOffset(bytes, start) >= endOffset || this.#isLastOfProducer(bytes, start)) {
      return this.#same(bytes, start, aborted);
    }
    const horizonMs = deleteHorizonOf(bytes, start);
    if (horizonMs === null) {
      const dated = filterBatch(bytes, start, () => true, { deleteHorizonMs: nowMs + deleteRetentionMs });
      return dated instanceof RecordsFault ? this.#same(bytes, start, aborted) : this.#changed(dated, aborted);
    }
    if (horizonMs > nowMs) return this.#same(bytes, start, aborted);
    // Its stub is the marker itself: an aborted transaction that is told of needs it.
    return { kind: "gone", stub: bytes.slice(start, start + sizeInBytes(bytes, start)), isSame: true, aborted };
  }

  async #cleanData(bytes: Uint8Array, start: number): Promise<Cleaned> {
    const { pace, nowMs, deleteRetentionMs } = this.#options;
    const records = openRecords(bytes, start);
    if (records instanceof RecordsFault) return this.#unreadable(bytes, start);
    const horizonMs = deleteHorizonOf(bytes, start);
    const keepsMarks = horizonMs === null || horizonMs > nowMs;
    let count = 0;
    let kept = 0;
    let marks = 0;
    const again = records.again();
    while (records.next()) {
      if (++count % RECORDS_A_STEP === 0 && pace.isDue()) await pace.rest();
      if (!this.#stays(records, keepsMarks)) continue;
      kept++;
      if (records.valueLength < 0 && records.offset < this.#options.endOffset) marks++;
    }
    if (records.fault !== null) return this.#unreadable(bytes, start);
    if (kept === 0) return this.#without(bytes, start);
    const deleteHorizonMs = marks > 0 && horizonMs === null ? nowMs + deleteRetentionMs : undefined;
    if (kept === count && deleteHorizonMs === undefined) return this.#same(bytes, start);
    const options = deleteHorizonMs === undefined ? { records: again } : { records: again, deleteHorizonMs };
    const filtered = filterBatch(bytes, start, (record) => this.#stays(record, keepsMarks), options);
    return filtered instanceof RecordsFault ? this.#unreadable(bytes, start) : this.#changed(filtered, null);
  }

  #stays(record: RecordCursor, keepsMarks: boolean): boolean {
    const { keys, endOffset } = this.#options;
    const { offset } = record;
    if (offset >= endOffset) return true;
    if (record.keyLength < 0) return false;
    if (record.valueLength < 0 && !keepsMarks) return false;
    return offset >= keys.get(record.bytes, record.keyStart, record.keyLength);
  }

  /** What is left of a batch of which no record stays. */
  #without(bytes: Uint8Array, start: number): Cleaned {
    const stub = emptyBatch(bytes, start);
    const isSame = stub.byteLength === sizeInBytes(bytes, start) && stub.every((byte, i) => byte === bytes[start + i]);
    if (!this.#isLastOfProducer(bytes, start)) return { kind: "gone", stub, isSame, aborted: null };
    return isSame ? this.#same(bytes, start) : this.#changed(stub, null);
  }

  #isLastOfProducer(bytes: Uint8Array, start: number): boolean {
    const last = this.#options.producers.get(producerId(bytes, start));
    if (last === undefined) return false;
    if (last.lastOffset >= 0) return last.lastOffset === lastOffset(bytes, start);
    return isControl(bytes, start) && last.producerEpoch === producerEpoch(bytes, start);
  }

  #unreadable(bytes: Uint8Array, start: number): Cleaned {
    this.unreadable++;
    return this.#same(bytes, start);
  }

  #same(bytes: Uint8Array, start: number, aborted: AbortedTransaction | null = null): Cleaned {
    this.#noteHorizon(bytes, start);
    return { kind: "same", aborted };
  }

  #changed(bytes: Uint8Array, aborted: AbortedTransaction | null): Cleaned {
    this.#noteHorizon(bytes, 0);
    return { kind: "changed", bytes, aborted };
  }

  #noteHorizon(bytes: Uint8Array, start: number): void {
    if (!hasDeleteHorizon(bytes, start)) return;
    const horizonMs = deleteHorizonOf(bytes, start)!;
    this.latestHorizonMs = Math.max(this.latestHorizonMs ?? horizonMs, horizonMs);
  }
}
