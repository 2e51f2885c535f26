/**
 * Time and chance as values that are handed in, so that tests and simulations own both. Imports nothing.
 */

/** A pending timer; cancelling one that has fired is harmless. */
export interface Timer {
  cancel(): void;
}

/** Where all time comes from. */
export interface Clock {
  /** Wall-clock time in ms since 1970; may jump. For time stamps only. */
  wallMs(): number;
  /** Monotonic time in ms since an arbitrary start; may stand still while the machine sleeps. */
  monotonicMs(): number;
  /** Calls `fire` once after `delayMs`. The timer does not keep the process alive. */
  schedule(delayMs: number, fire: () => void): Timer;
}

/** Where all chance comes from. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A random (version 4) UUID in canonical form. */
  uuid(): string;
}

/** Resolves after `delayMs` on `clock`; rejects with the signal's reason when aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** The machine's own clock. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(delayMs, fire) {
    const id = setTimeout(fire, delayMs);
    Deno.unrefTimer(id as unknown as number);
    return { cancel: () => clearTimeout(id) };
  },
};

/** The machine's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};
