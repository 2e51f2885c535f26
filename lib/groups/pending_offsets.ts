/**
 * Offsets that transactions have committed in one group and that nobody may see yet: by producer, then by partition. They
 * are here from the moment they are asked for, so that the end of their transaction, whenever it comes, finds them all.
 */

import type { CommittedOffset } from "./offsets.ts";

export interface PendingOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: CommittedOffset;
}

/** See the file's head. */
export class PendingOffsets {
  readonly #producers = new Map<number, Map<string, PendingOffset>>();

  get isEmpty(): boolean {
    return this.#producers.size === 0;
  }

  set(producerId: number, topic: string, partition: number, offset: CommittedOffset): void {
    let pending = this.#producers.get(producerId);
    if (pending === undefined) this.#producers.set(producerId, pending = new Map());
    pending.set(`${topic}/${partition}`, { topic, partition, offset });
  }

  /** Those of a producer's transaction. */
  of(producerId: number): PendingOffset[] {
    return [...this.#producers.get(producerId)?.values() ?? []];
  }

  /** The transaction is over. */
  delete(producerId: number): void {
    this.#producers.delete(producerId);
  }

  /** Whether a partition's offset may change when a transaction ends. */
  has(topic: string, partition: number): boolean {
    if (this.#producers.size === 0) return false;
    for (const pending of this.#producers.values()) if (pending.has(`${topic}/${partition}`)) return true;
    return false;
  }

  /** All of them, with their producers. */
  *all(): Iterable<PendingOffset & { readonly producerId: number }> {
    for (const [producerId, pending] of this.#producers) {
      for (const one of pending.values()) yield { producerId, ...one };
    }
  }

  /** Forgets what is about a topic that is no more; answers what that was. */
  deleteTopic(topic: string): (PendingOffset & { readonly producerId: number })[] {
    const gone = [...this.all()].filter((one) => one.topic === topic);
    for (const { producerId, partition } of gone) {
      const pending = this.#producers.get(producerId)!;
      pending.delete(`${topic}/${partition}`);
      if (pending.size === 0) this.#producers.delete(producerId);
    }
    return gone;
  }
}
