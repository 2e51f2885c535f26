/**
 * Buffers for reads, reused, with one bound for the whole process. Sizes are powers of two, so that a returned buffer
 * fits the next wish.
 *
 * When more than the bound is lent out (many slow readers), further reads are asked to be small ({@link BufferPool.grant})
 * instead of being refused: one batch always travels.
 */

const SMALLEST_BITS = 12;
const LARGEST_KEPT_BITS = 24;
/** What a read may still take when the pool is exhausted. */
const EXHAUSTED_GRANT_BYTES = 64 * 1024;

/** A buffer on loan; `bytes` must not be touched after `release`. Releasing twice is harmless. */
export interface Loan {
  readonly bytes: Uint8Array;
  release(): void;
}

export class BufferPool {
  readonly #maxBytes: number;
  readonly #free: Uint8Array[][] = [];
  #freeBytes = 0;
  #lentBytes = 0;

  /** @param maxBytes bound on what is lent, and on what is kept for reuse */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes on loan now. */
  get lentBytes(): number {
    return this.#lentBytes;
  }

  /** Bytes kept for reuse now. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** How many of `wanted` bytes a read should take at present. */
  grant(wanted: number): number {
    const left = this.#maxBytes - this.#lentBytes;
    return wanted <= left ? wanted : Math.min(wanted, Math.max(left, EXHAUSTED_GRANT_BYTES));
  }

  /** Lends a buffer of at least `size` bytes; its content is arbitrary. */
  lend(size: number): Loan {
    const bits = size <= 1 << SMALLEST_BITS ? SMALLEST_BITS : 32 - Math.clz32(size - 1);
    const kept = this.#free[bits]?.pop();
    const bytes = kept ?? new Uint8Array(bits > LARGEST_KEPT_BITS ? size : 1 << bits);
    if (kept !== undefined) this.#freeBytes -= kept.byteLength;
    this.#lentBytes += bytes.byteLength;
    let lent = true;
    return {
      bytes,
      release: () => {
        if (!lent) return;
        lent = false;
        this.#lentBytes -= bytes.byteLength;
        if (bits > LARGEST_KEPT_BITS || this.#freeBytes + bytes.byteLength > this.#maxBytes) return;
        (this.#free[bits] ??= []).push(bytes);
        this.#freeBytes += bytes.byteLength;
      },
    };
  }
}
