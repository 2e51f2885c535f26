/**
 * What of transactions lasts, as journal entries: one per transactional id. Every key and value begins with the number of
 * its layout, so that a later layout can be told apart.
 */

import { FieldReader, FieldWriter } from "../journal/fields.ts";
import type { JournalEntry } from "../journal/journal.ts";
import { Transaction, type TransactionState, transactionStates } from "./transaction.ts";

const LAYOUT = 1;
/** The only kind of entries so far. */
const TRANSACTION = 1;

/** Numbers of states on disk; never to be changed. */
const stateNumbers: Readonly<Record<TransactionState, number>> = {
  Empty: 0,
  Ongoing: 1,
  PrepareCommit: 2,
  PrepareAbort: 3,
  CompleteCommit: 4,
  CompleteAbort: 5,
};

export function transactionEntry(transaction: Transaction): JournalEntry {
  const value = new FieldWriter().int8(LAYOUT).int8(stateNumbers[transaction.state])
    .int64(transaction.producerId).int32(transaction.producerEpoch)
    .int64(transaction.previousProducerId).int64(transaction.nextProducerId).int32(transaction.lastProducerEpoch)
    .int32(transaction.timeoutMs).int64(transaction.startedAtMs).int64(transaction.updatedAtMs);
  value.int32(transaction.partitions.size);
  for (const [topic, partitions] of transaction.partitions) {
    value.string(topic).int32(partitions.size);
    for (const partition of partitions) value.int32(partition);
  }
  return { key: keyOf(transaction.transactionalId), value: value.finish() };
}

export function transactionRemoval(transactionalId: string): JournalEntry {
  return { key: keyOf(transactionalId), value: null };
}

/**
 * Reads an entry back; null for one of a layout or kind that is not known here.
 * @throws {RangeError} for cut fields and for a state that there is not
 */
export function readTransaction({ key, value }: JournalEntry): Transaction | null {
  const keys = new FieldReader(key);
  const values = new FieldReader(value ?? new Uint8Array(0));
  if (keys.int8() !== LAYOUT || values.int8() !== LAYOUT || keys.int8() !== TRANSACTION) return null;
  const transaction = new Transaction(keys.string() ?? "");
  const number = values.int8();
  const state = transactionStates.find((name) => stateNumbers[name] === number);
  if (state === undefined) throw new RangeError(`there is no transaction state ${number}`);
  transaction.state = state;
  transaction.producerId = values.int64();
  transaction.producerEpoch = values.int32();
  transaction.previousProducerId = values.int64();
  transaction.nextProducerId = values.int64();
  transaction.lastProducerEpoch = values.int32();
  transaction.timeoutMs = values.int32();
  transaction.startedAtMs = values.int64();
  transaction.updatedAtMs = values.int64();
  for (let topics = values.int32(); topics > 0; topics--) {
    const topic = values.string() ?? "";
    const partitions = new Set<number>();
    for (let count = values.int32(); count > 0; count--) partitions.add(values.int32());
    transaction.partitions.set(topic, partitions);
  }
  return transaction;
}

function keyOf(transactionalId: string): Uint8Array {
  return new FieldWriter().int8(LAYOUT).int8(TRANSACTION).string(transactionalId).finish();
}
