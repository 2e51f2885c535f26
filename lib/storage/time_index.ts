/**
 * Sparse index of one segment, from time stamps to offsets, as two growing typed arrays.
 *
 * File `<stem>.timeindex`, big-endian, 12 bytes an entry, as in Apache Kafka:
 *
 *     i64 timestamp          ms since 1970, the largest in the segment up to and with the batch meant here
 *     u32 relative offset    last offset of the batch that holds it, minus the segment's base offset
 *
 * Both columns rise strictly: no record up to that offset is newer than the time stamp. The last entry of a sealed
 * segment holds its largest time stamp. Like the offset index, a hint that is rebuilt when it is missing or wrong.
 */

import type { IndexBounds } from "./offset_index.ts";

const ENTRY_BYTES = 12;

export class TimeIndex {
  #timestamps = new Float64Array(16);
  #offsets = new Uint32Array(16);
  #count = 0;

  /** Number of entries. */
  get count(): number {
    return this.#count;
  }

  /** Bytes that the entries take in a file. */
  get fileBytes(): number {
    return this.#count * ENTRY_BYTES;
  }

  /** Largest time stamp indexed, in ms; -1 when there is none. */
  get lastTimestamp(): number {
    return this.#count === 0 ? -1 : this.#timestamps[this.#count - 1];
  }

  /** Relative offset of the last entry; -1 when there is none. */
  get lastRelativeOffset(): number {
    return this.#count === 0 ? -1 : this.#offsets[this.#count - 1];
  }

  /** Adds an entry; one that does not rise in both columns is left out. */
  add(timestamp: number, relativeOffset: number): void {
    const count = this.#count;
    if (count > 0 && (timestamp <= this.#timestamps[count - 1] || relativeOffset <= this.#offsets[count - 1])) return;
    if (count === this.#offsets.length) this.#grow();
    this.#timestamps[count] = timestamp;
    this.#offsets[count] = relativeOffset;
    this.#count = count + 1;
  }

  /**
   * The relative offset up to which, inclusive, every record is older than `timestamp`; -1 when that is not known of
   * any record. A search for the first record at or after `timestamp` begins behind it.
   */
  olderUpTo(timestamp: number): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#timestamps[middle] < timestamp) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? -1 : this.#offsets[low - 1];
  }

  /** Drops the entries at or past a relative offset. */
  truncate(endRelativeOffset: number): void {
    while (this.#count > 0 && this.#offsets[this.#count - 1] >= endRelativeOffset) this.#count--;
  }

  /** The entries from `fromEntry` on as they stand in the file. */
  encode(fromEntry = 0): Uint8Array {
    const bytes = new Uint8Array((this.#count - fromEntry) * ENTRY_BYTES);
    const view = new DataView(bytes.buffer);
    for (let i = fromEntry, at = 0; i < this.#count; i++, at += ENTRY_BYTES) {
      view.setBigInt64(at, BigInt(this.#timestamps[i]));
      view.setUint32(at + 8, this.#offsets[i]);
    }
    return bytes;
  }

  /** Reads a file's entries up to the first one that does not rise or is out of bounds. */
  static decode(bytes: Uint8Array, bounds: Pick<IndexBounds, "endRelativeOffset">): TimeIndex {
    const index = new TimeIndex();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at + ENTRY_BYTES <= bytes.byteLength; at += ENTRY_BYTES) {
      const timestamp = Number(view.getBigInt64(at));
      const relativeOffset = view.getUint32(at + 8);
      if (relativeOffset >= bounds.endRelativeOffset || timestamp < 0 || !Number.isSafeInteger(timestamp)) break;
      const before = index.count;
      index.add(timestamp, relativeOffset);
      if (index.count === before) break;
    }
    return index;
  }

  #grow(): void {
    const timestamps = new Float64Array(this.#count * 2);
    const offsets = new Uint32Array(this.#count * 2);
    timestamps.set(this.#timestamps);
    offsets.set(this.#offsets);
    this.#timestamps = timestamps;
    this.#offsets = offsets;
  }
}
