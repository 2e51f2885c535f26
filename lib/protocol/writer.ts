/**
 * Where replies are written: one reused, growing buffer, beside which large record batches are linked, not copied.
 *
 * The bytes written so far are the linked chunks followed by the *open piece*, `[pieceStart, position)` of the current
 * buffer. Growing moves only the open piece; chunks closed before keep the buffer they are in.
 *
 * Invariants:
 * - What {@link Writer.finish} gave stays valid and unchanged until {@link Writer.reset}.
 * - Generated writers keep `bytes`, `view` and `position` in local variables; every method that may grow the buffer is
 *   called with `position` written back, and the three are read anew after it.
 */

import { assert } from "../errors.ts";

/** Record bytes from this size on are linked into the reply instead of copied. */
export const LINKED_BYTES = 8192;
/** A buffer above this size is given back on reset, so that one huge reply does not stay in memory. */
const KEPT_BYTES = 1 << 20;
/** Strings up to this many characters are written by a loop; the platform's encoder costs more than that. */
const SHORT_STRING_CHARS = 32;
const MAX_STRING_BYTES = 0x7fff;

const encoder = new TextEncoder();

/** A value that the protocol cannot carry, such as a string beyond 32,767 bytes. */
export class UnencodableValue extends Error {
  override readonly name = "UnencodableValue";
}

/** A growing buffer of outgoing bytes. All numbers are big-endian. */
export class Writer {
  bytes: Uint8Array;
  view: DataView;
  /** Where the next byte goes, in `bytes`. */
  position = 0;
  #pieceStart = 0;
  #chunks: Uint8Array[] = [];
  #chunkBytes = 0;
  #frame: { bytes: Uint8Array; view: DataView; position: number; chunks: number; byteLength: number } | null = null;

  /** `initialBytes` is the buffer's first size. */
  constructor(initialBytes = 4096) {
    this.bytes = new Uint8Array(Math.max(64, initialBytes));
    this.view = new DataView(this.bytes.buffer);
  }

  /** Bytes written since the last reset, linked ones included. */
  get byteLength(): number {
    return this.#chunkBytes + this.position - this.#pieceStart;
  }

  /** Makes room for `more` bytes behind `position`. */
  grow(more: number): void {
    if (this.position + more <= this.bytes.length) return;
    const pieceBytes = this.position - this.#pieceStart;
    let size = this.bytes.length * 2;
    while (size < pieceBytes + more) size *= 2;
    const bytes = new Uint8Array(size);
    bytes.set(this.bytes.subarray(this.#pieceStart, this.position));
    const view = new DataView(bytes.buffer);
    const frame = this.#frame;
    if (frame !== null && frame.bytes === this.bytes && frame.position >= this.#pieceStart) {
      frame.bytes = bytes;
      frame.view = view;
      frame.position -= this.#pieceStart;
    }
    this.bytes = bytes;
    this.view = view;
    this.position = pieceBytes;
    this.#pieceStart = 0;
  }

  /** Begins a frame: four bytes for its length, which {@link endFrame} fills in. */
  beginFrame(): void {
    assert(this.#frame === null, "a frame is open already");
    this.grow(4);
    this.#frame = {
      bytes: this.bytes,
      view: this.view,
      position: this.position,
      chunks: this.#chunks.length,
      byteLength: this.byteLength,
    };
    this.position += 4;
  }

  /** Ends the frame by writing its length, which does not count the four length bytes; gives the whole size. */
  endFrame(): number {
    const frame = this.#frame;
    assert(frame !== null, "no frame is open");
    this.#frame = null;
    const size = this.byteLength - frame.byteLength;
    frame.view.setInt32(frame.position, size - 4);
    return size;
  }

  /** Takes back all that was written since {@link beginFrame}, as if the frame had never begun. */
  abandonFrame(): void {
    const frame = this.#frame;
    assert(frame !== null, "no frame is open");
    this.#frame = null;
    if (this.#chunks.length === frame.chunks) {
      this.position = frame.position;
      return;
    }
    // The piece that was open when the frame began is closed now; what of it came before the frame stays.
    const piece = this.#chunks[frame.chunks];
    this.#chunks.length = frame.chunks;
    this.#chunkBytes = 0;
    for (const chunk of this.#chunks) this.#chunkBytes += chunk.length;
    const kept = piece.subarray(0, frame.byteLength - this.#chunkBytes);
    if (kept.length > 0) this.#link(kept);
    this.#pieceStart = this.position;
  }

  /** The bytes written, in order, as views that stay valid until {@link reset}. */
  finish(): Uint8Array[] {
    this.#closePiece();
    return this.#chunks;
  }

  /** Forgets what was written; the buffer is used again, so earlier views change. */
  reset(): void {
    this.#chunks = [];
    this.#chunkBytes = 0;
    this.#frame = null;
    this.position = 0;
    this.#pieceStart = 0;
    if (this.bytes.length > KEPT_BYTES) {
      this.bytes = new Uint8Array(KEPT_BYTES);
      this.view = new DataView(this.bytes.buffer);
    }
  }

  int8(value: number): void {
    this.grow(1);
    this.view.setInt8(this.position, value);
    this.position += 1;
  }

  int16(value: number): void {
    this.grow(2);
    this.view.setInt16(this.position, value);
    this.position += 2;
  }

  int32(value: number): void {
    this.grow(4);
    this.view.setInt32(this.position, value);
    this.position += 4;
  }

  /** Writes an unsigned varint of at most 32 bits. */
  varint(value: number): void {
    this.grow(5);
    const { bytes } = this;
    let rest = value >>> 0;
    while (rest > 127) {
      bytes[this.position++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    bytes[this.position++] = rest;
  }

  /** Writes bytes as they are. */
  raw(value: Uint8Array): void {
    this.grow(value.length);
    this.bytes.set(value, this.position);
    this.position += value.length;
  }

  /** Writes record bytes as they are; large ones are linked and must not change until they are sent. */
  records(value: Uint8Array): void {
    if (value.length < LINKED_BYTES) return this.raw(value);
    this.#closePiece();
    this.#link(value);
  }

  /**
   * Writes a string behind a two-byte length.
   *
   * @throws UnencodableValue above 32,767 bytes.
   */
  string(value: string): void {
    const { length } = value;
    if (length <= SHORT_STRING_CHARS) {
      this.grow(2 + length);
      if (this.#ascii(value, this.position + 2)) {
        this.view.setInt16(this.position, length);
        this.position += 2 + length;
        return;
      }
    }
    this.grow(2 + length * 3);
    const written = this.#text(value, this.position + 2);
    this.view.setInt16(this.position, written);
    this.position += 2 + written;
  }

  /**
   * Writes a string behind a varint of its length plus one.
   *
   * @throws UnencodableValue above 32,767 bytes.
   */
  compactString(value: string): void {
    const { length } = value;
    if (length <= SHORT_STRING_CHARS) {
      this.grow(1 + length);
      if (this.#ascii(value, this.position + 1)) {
        this.bytes[this.position] = length + 1;
        this.position += 1 + length;
        return;
      }
    }
    // The text goes three bytes ahead, the widest its length can be, and moves back where that takes fewer.
    this.grow(3 + length * 3);
    const text = this.position + 3;
    const written = this.#text(value, text);
    this.varint(written + 1);
    if (this.position !== text) this.bytes.copyWithin(this.position, text, text + written);
    this.position += written;
  }

  /** Writes a UUID in canonical text as its 16 bytes. */
  uuid(value: string): void {
    if (value.length !== 36) throw new UnencodableValue(`"${value}" is no UUID in canonical form`);
    this.grow(16);
    const { view, position } = this;
    view.setUint32(position, parseInt(value.slice(0, 8), 16));
    view.setUint32(position + 4, parseInt(value.slice(9, 13) + value.slice(14, 18), 16));
    view.setUint32(position + 8, parseInt(value.slice(19, 23) + value.slice(24, 28), 16));
    view.setUint32(position + 12, parseInt(value.slice(28, 36), 16));
    this.position += 16;
  }

  /** Puts the size of all written since {@link byteLength} was `before` in front of it; nothing was linked since. */
  insertSize(before: number): void {
    const size = this.byteLength - before;
    this.grow(5);
    const from = this.position - size;
    let width = 1;
    for (let rest = size >>> 7; rest > 0; rest >>>= 7) width++;
    this.bytes.copyWithin(from + width, from, this.position);
    this.position = from;
    this.varint(size);
    this.position = from + width + size;
  }

  #ascii(value: string, at: number): boolean {
    const { bytes } = this;
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index);
      if (code > 127) return false;
      bytes[at + index] = code;
    }
    return true;
  }

  #text(value: string, at: number): number {
    const { written } = encoder.encodeInto(value, this.bytes.subarray(at));
    if (written > MAX_STRING_BYTES) throw new UnencodableValue(`a string of ${written} bytes; 32767 are possible`);
    return written;
  }

  #closePiece(): void {
    if (this.position === this.#pieceStart) return;
    this.#link(this.bytes.subarray(this.#pieceStart, this.position));
    this.#pieceStart = this.position;
  }

  #link(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#chunkBytes += chunk.length;
  }
}
