/** What a log's batches say about transactions: the oracle of last stable offset and aborted transactions. */

import { baseOffset, isControl, isTransactional, producerId } from "../../lib/records/batch.ts";
import { readEndTransactionMarker } from "../../lib/records/control.ts";

/** A transaction that was aborted; `lastOffset` is that of its marker. */
export interface Aborted {
  readonly producerId: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
}

export interface Transactions {
  /** First offset of the oldest open transaction; Infinity when none is open. */
  readonly firstOpenOffset: number;
  /** In the order of their markers. */
  readonly aborted: readonly Aborted[];
}

/** @param batches a whole log from its very first batch on */
export function transactionsOf(batches: Iterable<Uint8Array>): Transactions {
  const open = new Map<number, number>();
  const aborted: Aborted[] = [];
  for (const batch of batches) {
    if (!isTransactional(batch)) continue;
    const id = producerId(batch);
    const firstOffset = open.get(id);
    if (!isControl(batch)) {
      if (firstOffset === undefined) open.set(id, baseOffset(batch));
    } else if (firstOffset !== undefined) {
      open.delete(id);
      const commits = readEndTransactionMarker(batch)?.result === "commit";
      if (!commits) aborted.push({ producerId: id, firstOffset, lastOffset: baseOffset(batch) });
    }
  }
  return { firstOpenOffset: Math.min(Infinity, ...open.values()), aborted };
}
