/** Ids handed out to new members that nobody has joined with yet (KIP-394). Each lapses at its time. */

/** Ids that may wait for their members; beyond it the oldest lapses. */
const MAX_IDS = 10_000;

/** See the file's head. */
export class PendingIds {
  readonly #lapses = new Map<string, number>();

  get size(): number {
    return this.#lapses.size;
  }

  /** When the first of them lapses, in monotonic ms; Infinity where there is none. */
  get nextLapseMs(): number {
    let next = Infinity;
    for (const lapseMs of this.#lapses.values()) next = Math.min(next, lapseMs);
    return next;
  }

  add(id: string, lapseMs: number): void {
    if (this.#lapses.size >= MAX_IDS) this.#lapses.delete(this.#lapses.keys().next().value!);
    this.#lapses.set(id, lapseMs);
  }

  /** Whether the id was among them; it is no longer. */
  delete(id: string): boolean {
    return this.#lapses.delete(id);
  }

  lapse(nowMs: number): void {
    for (const [id, lapseMs] of this.#lapses) if (lapseMs <= nowMs) this.#lapses.delete(id);
  }
}
