/**
 * The newest offset of each key that a compaction pass has met: a table of bounded memory over hashes of 128 bits.
 *
 * Keys are hashed by HalfSipHash-2-4 with a secret drawn for each table, all four words of its state being drawn out at the
 * end: nobody can send keys that collide, and by chance two of a billion keys do so with a probability below 2⁻⁶⁸.
 *
 * Invariants: never more than `maxBytes` are held, also while the table grows; at least one slot is always free, so every
 * search ends; an offset once put is never lowered.
 */

import type { Pace } from "./cleaner_pace.ts";

/** Four words of hash, and the offset as a double. */
const SLOT_BYTES = 4 * 4 + 8;
const FIRST_SLOTS = 1024;
/** The table grows before it is fuller than this, as long as it may. */
const GROW_AT = 0.6;
/** Slots moved between two looks at the pace. */
const SLOTS_A_STEP = 4096;

export interface KeyOffsetsOptions {
  /** Memory for the table. */
  readonly maxBytes: number;
  /** How full the largest table may become: up to 1. */
  readonly loadFactor: number;
  /** Two secret words. */
  readonly secret: readonly [number, number];
}

export class KeyOffsets {
  readonly #maxSlots: number;
  readonly #maxKeys: number;
  readonly #secret: readonly [number, number];
  #slots: number;
  #hashes: Uint32Array<ArrayBuffer>;
  /** Offset + 1; 0 in free slots. */
  #offsets: Float64Array<ArrayBuffer>;
  #size = 0;
  // The hash of the key asked for last.
  #h0 = 0;
  #h1 = 0;
  #h2 = 0;
  #h3 = 0;

  constructor({ maxBytes, loadFactor, secret }: KeyOffsetsOptions) {
    // While it grows, the old table stands beside one of at most twice its size.
    this.#maxSlots = Math.max(2, Math.floor(maxBytes / SLOT_BYTES / 1.5));
    this.#maxKeys = Math.min(this.#maxSlots - 1, Math.max(1, Math.floor(this.#maxSlots * loadFactor)));
    this.#secret = secret;
    this.#slots = Math.min(FIRST_SLOTS, this.#maxSlots);
    this.#hashes = new Uint32Array(this.#slots * 4);
    this.#offsets = new Float64Array(this.#slots);
  }

  /** Keys in the table. */
  get size(): number {
    return this.#size;
  }

  /** Bytes that the table takes. */
  get bytes(): number {
    return this.#slots * SLOT_BYTES;
  }

  /** Whether {@link grow} should be called before the next key: searches get long, or there is hardly a free slot. */
  get isCrowded(): boolean {
    return this.#slots < this.#maxSlots && this.#size + 1 > this.#slots * GROW_AT;
  }

  /** Notes that the key `bytes[start, start + length)` is at `offset`. False where a new key finds no room. */
  put(bytes: Uint8Array, start: number, length: number, offset: number): boolean {
    this.#hash(bytes, start, length);
    const slot = this.#find();
    if (this.#offsets[slot] === 0) {
      if (this.#size >= this.#maxKeys || this.#size + 1 >= this.#slots) return false;
      this.#size++;
      const at = slot * 4;
      this.#hashes[at] = this.#h0;
      this.#hashes[at + 1] = this.#h1;
      this.#hashes[at + 2] = this.#h2;
      this.#hashes[at + 3] = this.#h3;
    }
    if (offset + 1 > this.#offsets[slot]) this.#offsets[slot] = offset + 1;
    return true;
  }

  /** The newest offset of a key; −1 when it was not met. */
  get(bytes: Uint8Array, start: number, length: number): number {
    this.#hash(bytes, start, length);
    return this.#offsets[this.#find()] - 1;
  }

  /** Doubles the table, a few slots at a time. Nothing else may use it until this resolves. */
  async grow(pace: Pace): Promise<void> {
    const hashes = this.#hashes;
    const offsets = this.#offsets;
    this.#slots = Math.min(this.#maxSlots, this.#slots * 2);
    this.#hashes = new Uint32Array(this.#slots * 4);
    this.#offsets = new Float64Array(this.#slots);
    for (let slot = 0; slot < offsets.length; slot++) {
      if (slot % SLOTS_A_STEP === 0 && pace.isDue()) await pace.rest();
      if (offsets[slot] === 0) continue;
      const from = slot * 4;
      this.#h0 = hashes[from];
      this.#h1 = hashes[from + 1];
      this.#h2 = hashes[from + 2];
      this.#h3 = hashes[from + 3];
      const to = this.#find();
      this.#hashes.set(hashes.subarray(from, from + 4), to * 4);
      this.#offsets[to] = offsets[slot];
    }
  }

  /** The slot that holds the present hash, or the free one where it belongs. */
  #find(): number {
    const hashes = this.#hashes;
    const offsets = this.#offsets;
    const slots = this.#slots;
    let slot = this.#h0 % slots;
    while (offsets[slot] !== 0) {
      const at = slot * 4;
      if (
        hashes[at] === this.#h0 && hashes[at + 1] === this.#h1 && hashes[at + 2] === this.#h2 &&
        hashes[at + 3] === this.#h3
      ) return slot;
      slot = slot + 1 === slots ? 0 : slot + 1;
    }
    return slot;
  }

  #hash(bytes: Uint8Array, start: number, length: number): void {
    const [k0, k1] = this.#secret;
    let v0 = k0 | 0;
    let v1 = k1 ^ 0xee;
    let v2 = 0x6c796765 ^ k0;
    let v3 = 0x74656462 ^ k1;
    const round = () => {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    };
    const end = start + length;
    const wordsEnd = end - (length & 3);
    let word = 0;
    for (let at = start; at < wordsEnd; at += 4) {
      word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      v3 ^= word;
      round();
      round();
      v0 ^= word;
    }
    word = length << 24;
    for (let at = wordsEnd; at < end; at++) word |= bytes[at] << (8 * (at - wordsEnd));
    v3 ^= word;
    round();
    round();
    v0 ^= word;
    v2 ^= 0xee;
    for (let i = 0; i < 4; i++) round();
    this.#h0 = (v1 ^ v3) >>> 0;
    v1 ^= 0xdd;
    for (let i = 0; i < 4; i++) round();
    this.#h1 = (v1 ^ v3) >>> 0;
    for (let i = 0; i < 2; i++) round();
    this.#h2 = (v1 ^ v3) >>> 0;
    for (let i = 0; i < 2; i++) round();
    this.#h3 = (v1 ^ v3) >>> 0;
  }
}
