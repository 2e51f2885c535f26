/**
 * The pace of compaction in this process: short slices of work, and no more bytes in a second than the settings allow.
 */

import { type Clock, sleep } from "../clock.ts";
import type { Pace } from "../storage/cleaner_pace.ts";

/**
 * How long compaction works, and then sleeps: an acknowledgement takes several turns of the event loop, so giving way to what
 * is ready is not enough, it would wait for a slice at each of them.
 */
const SLICE_MS = 1;
const NAP_MS = 1;
/** Longest single rest: what is to end looks up in between. */
const LONGEST_REST_MS = 100;

export class CleanerPace implements Pace {
  readonly #clock: Clock;
  readonly #bytesPerSecond: () => number;
  #sliceEndsMs = -Infinity;
  /** When the bytes moved so far may have been moved, at the allowed rate. */
  #paidUntilMs = -Infinity;

  /** @param bytesPerSecond asked again and again: the limit may change */
  constructor(clock: Clock, bytesPerSecond: () => number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  moved(bytes: number): void {
    const from = Math.max(this.#paidUntilMs, this.#clock.monotonicMs());
    this.#paidUntilMs = from + bytes / this.#bytesPerSecond() * 1000;
  }

  isDue(): boolean {
    const nowMs = this.#clock.monotonicMs();
    return nowMs >= this.#sliceEndsMs || this.#paidUntilMs - nowMs >= SLICE_MS;
  }

  async rest(): Promise<void> {
    const debtMs = Math.min(this.#paidUntilMs - this.#clock.monotonicMs(), LONGEST_REST_MS);
    await sleep(this.#clock, Math.max(debtMs, NAP_MS));
    this.#sliceEndsMs = this.#clock.monotonicMs() + SLICE_MS;
  }
}
