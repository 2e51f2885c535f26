/**
 * Chance that comes from a seed alone: the same seed gives the same numbers, on every machine (sfc32, seeded by
 * splitmix32).
 */

import type { Random } from "../../lib/clock.ts";

export class SeededRandom implements Random {
  readonly #state: Uint32Array;

  constructor(seed: number) {
    let mixed = seed >>> 0;
    this.#state = Uint32Array.from({ length: 4 }, () => {
      mixed = (mixed + 0x9e3779b9) >>> 0;
      let z = mixed;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return z ^ (z >>> 15);
    });
    for (let i = 0; i < 12; i++) this.#uint32();
  }

  next(): number {
    return this.#uint32() / 0x1_0000_0000;
  }

  uuid(): string {
    const hex = Array.from({ length: 4 }, () => this.#uint32().toString(16).padStart(8, "0")).join("");
    const variant = "89ab"[this.below(4)];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${
      hex.slice(20)
    }`;
  }

  /** An integer in [0, end). */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** An integer in [from, to], both included. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)];
  }

  /** An own stream of chance: drawing from it does not move this one on. */
  fork(): SeededRandom {
    return new SeededRandom(this.#uint32());
  }

  #uint32(): number {
    const s = this.#state;
    const t = (s[0] + s[1] + s[3]) >>> 0;
    s[3]++;
    s[0] = s[1] ^ (s[1] >>> 9);
    s[1] = s[2] + (s[2] << 3);
    s[2] = (s[2] << 21) | (s[2] >>> 11);
    s[2] += t;
    return t;
  }
}
