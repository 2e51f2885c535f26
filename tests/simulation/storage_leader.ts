/** A leader of the simulated partition, and reading through it: whole logs, and what transactions make of them. */

import type { HandleRegistry } from "../../lib/disk/handle_registry.ts";
import { nextOffset, sizeInBytes } from "../../lib/records/batch.ts";
import type { PartitionLog } from "../../lib/storage/log.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { SimulatedDisk } from "./simulated_disk.ts";
import { demand, type History, type Offsets } from "./storage_history.ts";
import { transactionsOf } from "./storage_transactions.ts";

/** A log that was taken over, whether or not somebody else has done so since. */
export interface Leader {
  readonly log: PartitionLog;
  readonly disk: SimulatedDisk;
  /** What this leader's process has open; a deposed one may hold what its successor removes. */
  readonly registry: HandleRegistry;
  /** False from the moment on when another takeover begins. */
  mayAcknowledge: boolean;
  /** True once another takeover has succeeded. */
  deposed: boolean;
}

/** The offsets that a log tells. */
export function offsetsOf(log: PartitionLog): Offsets {
  const { logStartOffset, lastStableOffset, highWatermark, logEndOffset } = log;
  return { logStartOffset, lastStableOffset, highWatermark, logEndOffset };
}

/** Reads from an offset to a limit, checking that each reply goes on where the last one ended. */
export async function readLog(
  { log, disk }: Leader,
  random: SeededRandom,
  { from, limit }: { readonly from: number; readonly limit: "highWatermark" | "logEnd" },
): Promise<Uint8Array[]> {
  const batches: Uint8Array[] = [];
  const end = () => limit === "logEnd" ? log.logEndOffset : log.highWatermark;
  for (let offset = from; offset < end();) {
    const outcome = await log.read({ offset, maxBytes: someBytes(random), minOneBatch: true, limit });
    if (disk.crashed) return batches;
    demand(outcome.kind === "batches", `read at ${offset} refused: ${JSON.stringify(outcome)}`);
    demand(outcome.bytes.byteLength > 0, `read at ${offset} of ${from}..${end()} gave nothing`);
    for (const batch of batchesIn(outcome.bytes)) {
      demand(nextOffset(batch) > offset, `read at ${offset} gave a batch that ends at ${nextOffset(batch)}`);
      offset = nextOffset(batch);
      batches.push(batch);
    }
    outcome.release();
  }
  return batches;
}

/** The last stable offset, and the aborted transactions that go with each reply, are what the batches say. */
export async function checkTransactions(leader: Leader, random: SeededRandom, history: History): Promise<void> {
  const { log, disk } = leader;
  const { firstOpenOffset, aborted } = transactionsOf(history.committed.map(({ bytes }) => bytes));
  const { logStartOffset, highWatermark, lastStableOffset } = log;
  const expected = Math.max(logStartOffset, Math.min(firstOpenOffset, highWatermark));
  demand(lastStableOffset === expected, `the last stable offset is ${lastStableOffset}, not ${expected}`);
  for (let offset = logStartOffset; offset < lastStableOffset;) {
    const from = offset;
    const request = { offset, maxBytes: someBytes(random), minOneBatch: true, limit: "lastStableOffset" } as const;
    const outcome = await log.read(request);
    if (disk.crashed) return;
    demand(outcome.kind === "batches" && outcome.bytes.byteLength > 0, `nothing read at ${offset}, which is stable`);
    for (const batch of batchesIn(outcome.bytes)) offset = nextOffset(batch);
    demand(offset <= lastStableOffset, `read up to ${offset}, which is past the last stable offset`);
    const due = aborted.filter(({ firstOffset, lastOffset }) => lastOffset >= from && firstOffset < offset);
    const named = namesOf(outcome.abortedTransactions);
    demand(named === namesOf(due), `aborted in ${from}..${offset}: ${named} named, ${namesOf(due)} due`);
    outcome.release();
  }
}

function namesOf(transactions: readonly { readonly producerId: number; readonly firstOffset: number }[]): string {
  return transactions.map(({ producerId, firstOffset }) => `${producerId}@${firstOffset}`).sort().join();
}

function batchesIn(bytes: Uint8Array): Uint8Array[] {
  const batches: Uint8Array[] = [];
  for (let start = 0; start < bytes.byteLength; start += sizeInBytes(bytes, start)) {
    batches.push(bytes.slice(start, start + sizeInBytes(bytes, start)));
  }
  return batches;
}

function someBytes(random: SeededRandom): number {
  return random.pick([1, 300, 5000]);
}
