/** Chance from a seed, so that a failure can be had again. */

/** A source of numbers that depends on its seed alone (mulberry32). */
export class Seeded {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 0x100000000 * bound);
  }

  /** True once in `times`. */
  oneIn(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)];
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }
}
