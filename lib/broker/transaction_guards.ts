/**
 * What protects against a transaction that ends while somebody asks another broker whether it is still open.
 *
 * Who asks takes a guard first; whatever ends the transaction in that place trips it. A tripped guard says that the answer
 * is worth nothing: what would be written now, no end of a transaction would ever reach.
 */

import type { TopicPartition } from "../transactions/transaction.ts";

/** One question that is under way. */
export interface TransactionGuard {
  readonly isTripped: boolean;
  release(): void;
}

/** See the file's head. */
export class TransactionGuards {
  readonly #taken = new Map<string, Set<{ isTripped: boolean }>>();

  take(place: TopicPartition, producerId: number): TransactionGuard {
    const key = keyOf(place, producerId);
    let taken = this.#taken.get(key);
    if (taken === undefined) this.#taken.set(key, taken = new Set());
    const guard = {
      isTripped: false,
      release: () => {
        taken.delete(guard);
        if (taken.size === 0 && this.#taken.get(key) === taken) this.#taken.delete(key);
      },
    };
    taken.add(guard);
    return guard;
  }

  /** The producer's transaction ends in this place now. */
  trip(place: TopicPartition, producerId: number): void {
    for (const guard of this.#taken.get(keyOf(place, producerId)) ?? []) guard.isTripped = true;
  }
}

function keyOf({ topic, partition }: TopicPartition, producerId: number): string {
  return `${topic}/${partition}/${producerId}`;
}
