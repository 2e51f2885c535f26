/**
 * Zigzag varints as records use them (Protocol Buffers' sint32/sint64): little-endian groups of 7 bits.
 */

/** Bytes that `value` (int32) takes as a varint. */
export function varintSize(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0;
  return zigzag < 0x80 ? 1 : zigzag < 0x4000 ? 2 : zigzag < 0x20_0000 ? 3 : zigzag < 0x1000_0000 ? 4 : 5;
}

/** Bytes that `value` (an integer of at most 53 bits) takes as a varlong. */
export function varlongSize(value: number): number {
  let zigzag = value < 0 ? -2 * value - 1 : 2 * value;
  let size = 1;
  for (; zigzag >= 0x80; zigzag = Math.floor(zigzag / 0x80)) size++;
  return size;
}

/** Writes `value` (int32) at `at`; returns the position after it. */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let zigzag = ((value << 1) ^ (value >> 31)) >>> 0;
  for (; zigzag >= 0x80; zigzag >>>= 7) bytes[at++] = (zigzag & 0x7f) | 0x80;
  bytes[at++] = zigzag;
  return at;
}

/** Writes `value` (an integer of at most 53 bits) at `at`; returns the position after it. */
export function writeVarlong(bytes: Uint8Array, at: number, value: number): number {
  let zigzag = value < 0 ? -2 * value - 1 : 2 * value;
  for (; zigzag >= 0x80; zigzag = Math.floor(zigzag / 0x80)) bytes[at++] = (zigzag % 0x80) | 0x80;
  bytes[at++] = zigzag;
  return at;
}

/**
 * Reads varints from a stretch of bytes. Reading past the end, or a varint that is too long, marks the reader `bad` once
 * and yields zeros from then on; whoever uses it asks at the end.
 */
export class VarintReader {
  /** Position of the next byte to read. */
  at: number;
  /** Whether anything read so far was not there. */
  bad = false;

  constructor(readonly bytes: Uint8Array, start = 0, readonly end = bytes.length) {
    this.at = start;
  }

  /** Reads an int32. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35 && this.at < this.end; shift += 7) {
      const byte = this.bytes[this.at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1);
    }
    this.bad = true;
    return 0;
  }

  /** Reads an int64 as a double: exact up to 2⁵², the nearest double beyond. */
  varlong(): number {
    let value = 0;
    let scale = 1;
    let odd = false;
    for (let group = 0; group < 10 && this.at < this.end; group++, scale *= 0x80) {
      const byte = this.bytes[this.at++];
      if (group === 0) odd = (byte & 1) === 1;
      value += (group === 0 ? byte & 0x7e : byte & 0x7f) * scale;
      if (byte < 0x80) return odd ? -value / 2 - 1 : value / 2;
    }
    this.bad = true;
    return 0;
  }

  /** Reads one byte. */
  byte(): number {
    if (this.at < this.end) return this.bytes[this.at++];
    this.bad = true;
    return 0;
  }

  /** Steps over `length` bytes; none for a negative length, which stands for null. */
  skip(length: number): void {
    if (length <= 0) return;
    if (length > this.end - this.at) this.bad = true;
    else this.at += length;
  }
}
