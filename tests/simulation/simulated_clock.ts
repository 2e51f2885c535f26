/** Time that moves only when a test says so. */

import type { Clock, Timer } from "../../lib/clock.ts";

interface Pending {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class SimulatedClock implements Clock {
  #monotonicMs = 0;
  #wallOffsetMs: number;
  readonly #pending = new Set<Pending>();

  /** @param wallMs wall-clock time at the start */
  constructor(wallMs = 1_700_000_000_000) {
    this.#wallOffsetMs = wallMs;
  }

  wallMs(): number {
    return Math.floor(this.#monotonicMs + this.#wallOffsetMs);
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  schedule(delayMs: number, fire: () => void): Timer {
    const pending = { dueMs: this.#monotonicMs + Math.max(0, delayMs), fire };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Lets `ms` pass, firing what falls due in order. */
  advance(ms: number): void {
    const endMs = this.#monotonicMs + ms;
    for (let next = this.#next(endMs); next !== null; next = this.#next(endMs)) {
      this.#pending.delete(next);
      this.#monotonicMs = Math.max(this.#monotonicMs, next.dueMs);
      next.fire();
    }
    this.#monotonicMs = endMs;
  }

  /** Sets the wall clock back or forth; monotonic time goes on as it was. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #next(endMs: number): Pending | null {
    let next: Pending | null = null;
    for (const pending of this.#pending) {
      if (pending.dueMs <= endMs && (next === null || pending.dueMs < next.dueMs)) next = pending;
    }
    return next;
  }
}
