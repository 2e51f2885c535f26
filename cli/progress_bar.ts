/**
 * A progress bar on stderr, for work that takes long: drawn only on a terminal, at most some times a second, and wiped
 * away at the end, so that neither files nor results ever hold one.
 */

import type { Clock } from "../lib/clock.ts";
import type { Terminal } from "./terminal.ts";

const BAR_CELLS = 30;
const REDRAW_MS = 100;

export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #total: number;
  #done = 0;
  #drawnAtMs: number;
  #drawn = false;

  /** `total` is the work in any unit; nothing is drawn before some of it took a while. */
  constructor(terminal: Terminal, clock: Pick<Clock, "monotonicMs">, total: number) {
    this.#terminal = terminal;
    this.#clock = clock;
    this.#total = total;
    this.#drawnAtMs = clock.monotonicMs();
  }

  /** Notes that `amount` more is done; `label` says what is worked on. */
  advance(amount: number, label: string): void {
    this.#done += amount;
    if (!this.#terminal.errIsTerminal) return;
    const now = this.#clock.monotonicMs();
    if (now - this.#drawnAtMs < REDRAW_MS) return;
    this.#drawnAtMs = now;
    this.#drawn = true;
    const share = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total);
    const full = Math.floor(share * BAR_CELLS);
    const bar = "█".repeat(full) + "░".repeat(BAR_CELLS - full);
    this.#terminal.err(`\r\x1b[2K${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${label}`);
  }

  /** Wipes the bar away. */
  end(): void {
    if (this.#drawn) this.#terminal.err("\r\x1b[2K");
  }
}
