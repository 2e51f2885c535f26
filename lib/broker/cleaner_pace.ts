/**
 * The pace of compaction in this process: short slices of work, and no more bytes in a second than the settings allow.
 */

import { type Clock, sleep } from "../clock.ts";
import type { Pace } from "../storage/cleaner_pace.ts";

/** How long compaction works before it lets others run. */
const SLICE_MS = 2;
/** So many slices only give way to what is ready; then compaction sleeps for a moment, however little there is to do. */
const SLICES_IN_A_ROW = 4;
const NAP_MS = 1;
/** Longest single rest: what is to end looks up in between. */
const LONGEST_REST_MS = 100;

export class CleanerPace implements Pace {
  readonly #clock: Clock;
  readonly #bytesPerSecond: () => number;
  #sliceEndsMs = -Infinity;
  #slices = 0;
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
    const napMs = ++this.#slices % SLICES_IN_A_ROW === 0 ? NAP_MS : 0;
    await sleep(this.#clock, debtMs >= SLICE_MS ? debtMs : napMs);
    this.#sliceEndsMs = this.#clock.monotonicMs() + SLICE_MS;
  }
}
