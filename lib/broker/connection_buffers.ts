/**
 * Buffers for frames that are too large for a connection's own read buffer, used again instead of being made anew: a
 * fresh megabyte costs the system 256 page faults.
 *
 * Invariant: the bytes kept for reuse never exceed {@link KEPT_BYTES}, whatever clients send. Sizes are powers of two.
 */

const SMALLEST_BYTES = 128 * 1024;
/** Larger buffers are made for one frame and forgotten. */
export const LARGEST_KEPT_BYTES = 16 << 20;
/** Bytes that wait for reuse at most. */
export const KEPT_BYTES = 64 << 20;

/** See the file's head. One instance serves all connections of a process. */
export class FrameBuffers {
  readonly #free = new Map<number, Uint8Array[]>();
  #keptBytes = 0;

  /** Bytes that wait for reuse. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /**
   * A buffer for a frame that claims `claimedBytes`. It holds all of them only where such a buffer is at hand; otherwise
   * it has room for `nowBytes`, so that a claim alone never takes memory. Its content is arbitrary.
   */
  take(claimedBytes: number, nowBytes: number): Uint8Array {
    return this.#spare(sizeFor(claimedBytes)) ?? this.#spareOrNew(sizeFor(Math.min(claimedBytes, nowBytes)));
  }

  /** Takes a buffer back that nobody looks at any more. */
  give(buffer: Uint8Array): void {
    const { length } = buffer;
    if (length > LARGEST_KEPT_BYTES || this.#keptBytes + length > KEPT_BYTES) return;
    this.#keptBytes += length;
    const spares = this.#free.get(length);
    if (spares === undefined) this.#free.set(length, [buffer]);
    else spares.push(buffer);
  }

  #spare(size: number): Uint8Array | null {
    const spare = this.#free.get(size)?.pop() ?? null;
    if (spare !== null) this.#keptBytes -= size;
    return spare;
  }

  #spareOrNew(size: number): Uint8Array {
    return this.#spare(size) ?? new Uint8Array(size);
  }
}

function sizeFor(bytes: number): number {
  let size = SMALLEST_BYTES;
  while (size < bytes) size *= 2;
  return size;
}
