/**
 * Cuts the bytes of one connection into frames: `length int32, then that many bytes`. Knows no socket; whoever reads
 * from one asks {@link FrameReader.room} where to and reports with {@link FrameReader.received}.
 *
 * Small frames stay in one reused buffer, many to a read. A frame that does not fit there is read straight into a buffer
 * of its own. That grows with the bytes that have come: a claim alone takes no memory, only one no greater than a frame
 * that this connection has sent before.
 *
 * Invariants:
 * - A length is checked before memory is taken for it.
 * - A frame from `next` is unchanged until `done`, whatever is received in between.
 * - At most one large frame and one small buffer are in memory, beside a frame that is in use.
 */

import { assert } from "../errors.ts";
import { type FrameBuffers, LARGEST_KEPT_BYTES } from "./connection_buffers.ts";

const LENGTH_BYTES = 4;
const FIRST_BUFFER_BYTES = 8 * 1024;
/** Size up to which a connection's own buffer grows, and so the largest small frame with its length. */
export const SMALL_BUFFER_BYTES = 64 * 1024;

/** A frame on its way into a buffer of its own. */
interface LargeFrame {
  buffer: Uint8Array;
  /** Length of the frame. */
  readonly length: number;
  /** Bytes of it that are here. */
  received: number;
}

/** See the file's head. */
export class FrameReader {
  readonly #maxFrameBytes: number;
  readonly #buffers: FrameBuffers;
  /** The small buffer; `[start, end)` is received and not yet given out. */
  #small = new Uint8Array(FIRST_BUFFER_BYTES);
  #start = 0;
  #end = 0;
  #large: LargeFrame | null = null;
  /** Where the frame that is in use lies. */
  #inUse: "small" | "detached" | Uint8Array | null = null;
  #offered = 0;
  #refusedLength: number | null = null;
  /** Bytes of the largest frame so far that came to its end. */
  #provenBytes = 0;

  /** `maxFrameBytes` is the greatest length, itself not counted, that a frame may claim. */
  constructor(maxFrameBytes: number, buffers: FrameBuffers) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#buffers = buffers;
  }

  /** The length that no frame may have and that a client claimed; no frame comes after it. */
  get refusedLength(): number | null {
    return this.#refusedLength;
  }

  /** Bytes of memory held for this connection. */
  get heldBytes(): number {
    const inUse = this.#inUse instanceof Uint8Array ? this.#inUse.length : 0;
    return this.#small.length + (this.#large?.buffer.length ?? 0) + inUse;
  }

  /** Where the next bytes go; null when frames have to be taken out first, or none can come any more. */
  room(): Uint8Array | null {
    if (this.#refusedLength !== null) return null;
    if (this.#large === null) this.#beginLarge();
    const room = this.#large === null ? this.#smallRoom() : this.#largeRoom(this.#large);
    this.#offered = room === null ? 0 : room.length;
    return room;
  }

  /** Says that `bytes` bytes were put at the front of the latest room. */
  received(bytes: number): void {
    assert(bytes <= this.#offered, `${bytes} bytes received where ${this.#offered} had room`);
    if (this.#large !== null) {
      this.#large.received += bytes;
      return;
    }
    this.#end += bytes;
    // A read that filled all there was promises more of them: larger reads are fewer reads.
    if (bytes === this.#offered && this.#small.length < SMALL_BUFFER_BYTES) this.#moveSmall(this.#small.length * 2);
  }

  /**
   * The next whole frame, without its length; null when it is not here yet. Ask again only after {@link done}. A read
   * may be under way meanwhile: nothing here moves what {@link room} has offered.
   */
  next(): Uint8Array | null {
    assert(this.#inUse === null, "the frame before is still in use");
    const large = this.#large;
    if (large !== null) {
      if (large.received < large.length) return null;
      this.#large = null;
      this.#inUse = large.buffer;
      this.#provenBytes = Math.min(Math.max(this.#provenBytes, large.length), LARGEST_KEPT_BYTES);
      return large.buffer.subarray(0, large.length);
    }
    const start = this.#start;
    const available = this.#end - start;
    if (available < LENGTH_BYTES || this.#refusedLength !== null) return null;
    const length = this.#claimedLength();
    if (length < 0 || length > this.#maxFrameBytes) {
      this.#refusedLength = length;
      return null;
    }
    if (available < LENGTH_BYTES + length) return null;
    this.#start = start + LENGTH_BYTES + length;
    this.#inUse = "small";
    return this.#small.subarray(start + LENGTH_BYTES, this.#start);
  }

  /** Ends the use of the frame that {@link next} gave. */
  done(): void {
    if (this.#inUse instanceof Uint8Array) this.#buffers.give(this.#inUse);
    this.#inUse = null;
  }

  /**
   * Gives shared memory back and ends the reader. No read may be under way; a frame that is in use stays so until
   * {@link done}.
   */
  dispose(): void {
    if (this.#large !== null) this.#buffers.give(this.#large.buffer);
    this.#large = null;
    this.#refusedLength ??= 0;
  }

  #smallRoom(): Uint8Array | null {
    if (this.#inUse !== "small" && this.#start === this.#end) this.#start = this.#end = 0;
    const tail = this.#small.length - this.#end;
    if (this.#inUse === "small") {
      // Nothing may move under the frame in use; what follows it goes on in another buffer.
      if (tail === 0) this.#moveSmall(this.#small.length);
    } else if (tail < this.#small.length / 2) {
      if (this.#start > 0) {
        this.#small.copyWithin(0, this.#start, this.#end);
        this.#end -= this.#start;
        this.#start = 0;
      } else if (tail === 0) {
        if (this.#small.length >= SMALL_BUFFER_BYTES) return null;
        this.#moveSmall(this.#small.length * 2);
      }
    }
    return this.#end === this.#small.length ? null : this.#small.subarray(this.#end);
  }

  /** Goes on in a new buffer; a frame in use keeps the old one. */
  #moveSmall(size: number): void {
    const moved = new Uint8Array(size);
    moved.set(this.#small.subarray(this.#start, this.#end));
    this.#small = moved;
    this.#end -= this.#start;
    this.#start = 0;
    if (this.#inUse === "small") this.#inUse = "detached";
  }

  #largeRoom(large: LargeFrame): Uint8Array | null {
    if (large.received === large.length) return null;
    if (large.received === large.buffer.length) {
      const grown = this.#buffers.take(large.length, large.buffer.length * 2);
      grown.set(large.buffer);
      this.#buffers.give(large.buffer);
      large.buffer = grown;
    }
    return large.buffer.subarray(large.received, Math.min(large.length, large.buffer.length));
  }

  /** Length that the four bytes at the front of what was received stand for. */
  #claimedLength(): number {
    const small = this.#small;
    const start = this.#start;
    return small[start] << 24 | small[start + 1] << 16 | small[start + 2] << 8 | small[start + 3];
  }

  /** Moves the frame at the front into a buffer of its own, where it is not whole and too long for the small one. */
  #beginLarge(): void {
    if (this.#end - this.#start < LENGTH_BYTES) return;
    const length = this.#claimedLength();
    if (LENGTH_BYTES + length <= SMALL_BUFFER_BYTES || length > this.#maxFrameBytes) return;
    const received = this.#end - this.#start - LENGTH_BYTES;
    if (received >= length) return;
    const buffer = this.#buffers.take(length, Math.max(received * 2, this.#provenBytes));
    buffer.set(this.#small.subarray(this.#start + LENGTH_BYTES, this.#end));
    this.#start = this.#end;
    this.#large = { buffer, length, received };
  }
}
