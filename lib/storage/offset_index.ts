/**
 * Sparse index of one segment, from offsets to byte positions, as two growing typed arrays.
 *
 * File `<stem>.index`, big-endian, 8 bytes an entry, as in Apache Kafka:
 *
 *     u32 relative offset    last offset of the batch at `position`, minus the segment's base offset
 *     u32 position           where that batch begins in the .log file
 *
 * Both columns rise strictly. An index is a hint: every entry is true or absent, absence only costs reading, and
 * readers check the batch header they land on. What a file holds beyond its first implausible entry is dropped.
 */

const ENTRY_BYTES = 8;

/** What an entry read from disk must respect to be believed. */
export interface IndexBounds {
  /** Entries are for positions below this. */
  readonly endPosition: number;
  /** Entries are for relative offsets below this. */
  readonly endRelativeOffset: number;
}

export class OffsetIndex {
  #offsets = new Uint32Array(16);
  #positions = new Uint32Array(16);
  #count = 0;

  /** Number of entries. */
  get count(): number {
    return this.#count;
  }

  /** Bytes that the entries take in a file. */
  get fileBytes(): number {
    return this.#count * ENTRY_BYTES;
  }

  /** Relative offset (last of its batch) of entry `i`. */
  relativeOffsetAt(i: number): number {
    return this.#offsets[i];
  }

  /** Position of the batch of entry `i`. */
  positionAt(i: number): number {
    return this.#positions[i];
  }

  /** Position of the last entry; -1 when there is none. */
  get lastPosition(): number {
    return this.#count === 0 ? -1 : this.#positions[this.#count - 1];
  }

  /** Adds an entry; one that does not rise in both columns is left out. */
  add(relativeOffset: number, position: number): void {
    const count = this.#count;
    if (count > 0 && (relativeOffset <= this.#offsets[count - 1] || position <= this.#positions[count - 1])) return;
    if (count === this.#offsets.length) this.#grow();
    this.#offsets[count] = relativeOffset;
    this.#positions[count] = position;
    this.#count = count + 1;
  }

  /** The last entry whose batch ends at or before `relativeOffset`; -1 when there is none. */
  floorByOffset(relativeOffset: number): number {
    return floor(this.#offsets, this.#count, relativeOffset);
  }

  /** The last entry at or before `position`; -1 when there is none. */
  floorByPosition(position: number): number {
    return floor(this.#positions, this.#count, position);
  }

  /** Drops the entries that do not respect `bounds`. */
  truncate(bounds: IndexBounds): void {
    while (this.#count > 0 && !within(bounds, this.#offsets[this.#count - 1], this.#positions[this.#count - 1])) {
      this.#count--;
    }
  }

  /** The entries from `fromEntry` on as they stand in the file. */
  encode(fromEntry = 0): Uint8Array {
    const bytes = new Uint8Array((this.#count - fromEntry) * ENTRY_BYTES);
    const view = new DataView(bytes.buffer);
    for (let i = fromEntry, at = 0; i < this.#count; i++, at += ENTRY_BYTES) {
      view.setUint32(at, this.#offsets[i]);
      view.setUint32(at + 4, this.#positions[i]);
    }
    return bytes;
  }

  /** Reads a file's entries up to the first one that does not rise or is out of `bounds`. */
  static decode(bytes: Uint8Array, bounds: IndexBounds): OffsetIndex {
    const index = new OffsetIndex();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at + ENTRY_BYTES <= bytes.byteLength; at += ENTRY_BYTES) {
      const relativeOffset = view.getUint32(at);
      const position = view.getUint32(at + 4);
      if (!within(bounds, relativeOffset, position)) break;
      const before = index.count;
      index.add(relativeOffset, position);
      if (index.count === before) break;
    }
    return index;
  }

  #grow(): void {
    const offsets = new Uint32Array(this.#count * 2);
    const positions = new Uint32Array(this.#count * 2);
    offsets.set(this.#offsets);
    positions.set(this.#positions);
    this.#offsets = offsets;
    this.#positions = positions;
  }
}

function within(bounds: IndexBounds, relativeOffset: number, position: number): boolean {
  return relativeOffset < bounds.endRelativeOffset && position < bounds.endPosition;
}

/** Index of the last of the first `count` values (rising) that is at most `wanted`; -1 when there is none. */
function floor(values: Uint32Array, count: number, wanted: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
