/**
 * What compaction has to know of transactions while it reads a log from its start: which data was aborted, and whether a
 * marker still has data in front of it.
 *
 * A marker may go only when no batch of its transaction was met, whether or not that batch is kept this time: so data has
 * left the volume for good before its marker does, and readers are never told of an aborted transaction without its end.
 */

import type { AbortedTransaction } from "./aborted_transactions.ts";

/** Aborted transactions of one producer, by first offset. */
interface OfProducer {
  readonly transactions: AbortedTransaction[];
  /** The first one whose marker is not behind us. */
  next: number;
  /** Whether data of that one was met. */
  hasData: boolean;
}

export class CleanedTransactions {
  readonly #aborted = new Map<number, OfProducer>();
  /** Producers with data since their last marker that is not known to be aborted. */
  readonly #open = new Set<number>();

  /** @param aborted every aborted transaction of the log, in any order, each once or more */
  constructor(aborted: Iterable<AbortedTransaction>) {
    for (const transaction of aborted) {
      let of = this.#aborted.get(transaction.producerId);
      if (of === undefined) {
        of = { transactions: [], next: 0, hasData: false };
        this.#aborted.set(transaction.producerId, of);
      }
      of.transactions.push(transaction);
    }
    for (const { transactions } of this.#aborted.values()) transactions.sort((a, b) => a.firstOffset - b.firstOffset);
  }

  /** Takes in a transactional data batch, in log order. Whether its transaction was aborted. */
  isAborted(producerId: number, baseOffset: number): boolean {
    const of = this.#aborted.get(producerId);
    const transaction = of === undefined ? undefined : present(of, baseOffset);
    if (of === undefined || transaction === undefined || transaction.firstOffset > baseOffset) {
      this.#open.add(producerId);
      return false;
    }
    of.hasData = true;
    return true;
  }

  /** Takes in a marker, in log order: whether data of its transaction was met, and what it aborted. */
  endedBy(producerId: number, markerOffset: number): { hasData: boolean; aborted: AbortedTransaction | null } {
    const hasCommitted = this.#open.delete(producerId);
    const of = this.#aborted.get(producerId);
    const transaction = of === undefined ? undefined : present(of, markerOffset);
    if (of === undefined || transaction === undefined || transaction.lastOffset !== markerOffset) {
      return { hasData: hasCommitted, aborted: null };
    }
    const hasData = hasCommitted || of.hasData;
    of.next++;
    of.hasData = false;
    return { hasData, aborted: transaction };
  }
}

/** The first transaction that does not end in front of an offset. */
function present(of: OfProducer, offset: number): AbortedTransaction | undefined {
  while (of.next < of.transactions.length && of.transactions[of.next].lastOffset < offset) {
    of.next++;
    of.hasData = false;
  }
  return of.transactions[of.next];
}
