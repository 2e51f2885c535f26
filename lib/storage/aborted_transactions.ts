/**
 * The aborted transactions whose markers lie in one segment, in the order of their markers.
 *
 * File `<stem>.txnindex`, big-endian, 34 bytes an entry, as in Apache Kafka:
 *
 *     i16 version (0)
 *     i64 producer id
 *     i64 first offset          of the transaction in this partition
 *     i64 last offset           of its marker; rises strictly from entry to entry
 *     i64 last stable offset    when the marker was written: what was aborted later begins at or behind it
 *
 * The file is written whole before a producer snapshot that covers its last entry; entries behind the snapshot are
 * found again in the log.
 */

import { readInt16, readInt64, writeInt16, writeInt64 } from "../records/batch.ts";

const ENTRY_BYTES = 34;

/** One aborted transaction of this partition. */
export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
  readonly lastStableOffset: number;
}

/** What a consumer needs to leave out an aborted transaction's records. */
export interface AbortedRange {
  readonly producerId: number;
  readonly firstOffset: number;
}

export class AbortedTransactions {
  #entries: AbortedTransaction[] = [];

  get count(): number {
    return this.#entries.length;
  }

  /** All of them, in the order of their markers. */
  entries(): readonly AbortedTransaction[] {
    return this.#entries;
  }

  /** Adds the transaction whose marker was just written; one at or before the last entry is known already. */
  add(entry: AbortedTransaction): void {
    const last = this.#entries[this.#entries.length - 1];
    if (last === undefined || entry.lastOffset > last.lastOffset) this.#entries.push(entry);
  }

  /** Forgets the entries whose marker lies at or past `offset`. */
  truncate(offset: number): void {
    while (this.#entries.length > 0 && this.#entries[this.#entries.length - 1].lastOffset >= offset) {
      this.#entries.pop();
    }
  }

  /**
   * Adds to `into` the transactions that have records in `[fromOffset, endOffset)`. Answers true when segments behind
   * this one can hold no further ones.
   */
  collect(fromOffset: number, endOffset: number, into: AbortedRange[]): boolean {
    for (const entry of this.#entries) {
      if (entry.lastOffset >= fromOffset && entry.firstOffset < endOffset) {
        into.push({ producerId: entry.producerId, firstOffset: entry.firstOffset });
      }
      if (entry.lastStableOffset >= endOffset) return true;
    }
    return false;
  }

  encode(): Uint8Array {
    const bytes = new Uint8Array(this.#entries.length * ENTRY_BYTES);
    this.#entries.forEach((entry, i) => {
      const at = i * ENTRY_BYTES;
      writeInt16(bytes, at, 0);
      writeInt64(bytes, at + 2, entry.producerId);
      writeInt64(bytes, at + 10, entry.firstOffset);
      writeInt64(bytes, at + 18, entry.lastOffset);
      writeInt64(bytes, at + 26, entry.lastStableOffset);
    });
    return bytes;
  }

  /** Reads a file's entries up to the first implausible one. */
  static decode(bytes: Uint8Array): AbortedTransactions {
    const index = new AbortedTransactions();
    let last = -1;
    for (let at = 0; at + ENTRY_BYTES <= bytes.byteLength; at += ENTRY_BYTES) {
      const entry = {
        producerId: readInt64(bytes, at + 2),
        firstOffset: readInt64(bytes, at + 10),
        lastOffset: readInt64(bytes, at + 18),
        lastStableOffset: readInt64(bytes, at + 26),
      };
      const plausible = readInt16(bytes, at) === 0 && entry.producerId >= 0 && entry.firstOffset >= 0 &&
        entry.lastOffset > last && entry.firstOffset < entry.lastOffset && entry.lastStableOffset >= 0 &&
        Number.isSafeInteger(entry.lastOffset);
      if (!plausible) break;
      last = entry.lastOffset;
      index.add(entry);
    }
    return index;
  }
}
