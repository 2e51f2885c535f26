/**
 * What must be true of transactions when everything that could go wrong has:
 *
 * - all or nothing: of a transaction all records are in committed transactions of their partitions, and its offset counts,
 *   or none are and it does not;
 * - a commit that was acknowledged is there, whatever was not asked to be committed is not;
 * - no record is there twice among what is committed;
 * - nothing stays open: the last stable offset is the high watermark, and no group's offsets are unstable;
 * - each marker ends a transaction, if only one that wrote nothing here; under the second protocol no partition has two
 *   of one epoch.
 */

import type { ErrorCode } from "../../lib/errors.ts";
import {
  baseOffset,
  isControl,
  lastOffsetDelta,
  producerEpoch,
  producerId,
  sizeInBytes,
} from "../../lib/records/batch.ts";
import { readEndTransactionMarker } from "../../lib/records/control.ts";
import { RecordsFault } from "../../lib/records/fault.ts";
import { recordsOf } from "../../lib/records/record.ts";
import type { PartitionLog } from "../../lib/storage/log.ts";
import type { TransactionProtocol } from "../../lib/transactions/transaction.ts";

/** What a client did in one transaction, and knows of. */
export interface Attempt {
  readonly client: string;
  readonly protocol: TransactionProtocol;
  /** Values that were acknowledged, by partition; a client writes its id and # first. */
  readonly written: Map<string, number>;
  /** The offset committed with it, acknowledged; 0 for none. */
  offset: number;
  asked: "commit" | "abort" | "nothing";
  acknowledged: boolean;
}

/** What is left at the end. */
export interface Outcome {
  /** In the order in which each client made them. */
  readonly attempts: readonly Attempt[];
  readonly clients: readonly { readonly id: string; readonly protocol: TransactionProtocol }[];
  readonly partitions: number;
  logOf(partition: number): Promise<PartitionLog | ErrorCode>;
  isUnstable(group: string): boolean;
  /** The committed offset of a group; 0 for none. */
  offsetOf(group: string): number;
}

/** A rule that does not hold. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function newAttempt(client: string, protocol: TransactionProtocol): Attempt {
  return { client, protocol, written: new Map(), offset: 0, asked: "nothing", acknowledged: false };
}

/** The group in which a client commits offsets. */
export function groupOf(client: string): string {
  return `group of ${client}`;
}

/** Holds everything against the rules. @throws {Violation} */
export async function checkTransactions(outcome: Outcome): Promise<void> {
  const committed = new Set<string>();
  for (let partition = 0; partition < outcome.partitions; partition++) {
    await checkPartition(outcome, partition, committed);
  }
  const offsets = new Map<string, number>();
  for (const attempt of outcome.attempts) {
    const there = [...attempt.written.keys()].filter((value) => committed.has(value)).length;
    const what = `a transaction of ${attempt.client} (${attempt.asked}, acknowledged: ${attempt.acknowledged})`;
    demand(there === 0 || there === attempt.written.size, `${what} is there in parts`);
    if (attempt.asked !== "commit") demand(there === 0, `${what} is there`);
    if (attempt.asked === "commit" && attempt.acknowledged) demand(there > 0, `${what} is lost`);
    if (there > 0 && attempt.offset > 0) offsets.set(attempt.client, attempt.offset);
  }
  for (const { id } of outcome.clients) {
    const group = groupOf(id);
    demand(!outcome.isUnstable(group), `offsets of ${group} stay unstable`);
    const found = outcome.offsetOf(group);
    demand(found === (offsets.get(id) ?? 0), `${group} has offset ${found} instead of ${offsets.get(id) ?? 0}`);
  }
}

async function checkPartition(
  { logOf, clients }: Outcome,
  partition: number,
  committed: Set<string>,
): Promise<void> {
  const log = await logOf(partition);
  if (typeof log === "number") throw new Violation(`partition ${partition} cannot be opened: ${log}`);
  demand(log.lastStableOffset === log.highWatermark, `the last stable offset of partition ${partition} is stuck`);
  const open = new Map<number, string[]>();
  const ends = new Set<string>();
  for await (const batch of batchesOf(log)) {
    const records = recordsOf(batch);
    if (records instanceof RecordsFault) throw new Violation("a batch cannot be read");
    const id = producerId(batch);
    if (!isControl(batch)) {
      open.set(id, [...open.get(id) ?? [], ...records.map(({ value }) => text.decode(value!))]);
      continue;
    }
    const values = open.get(id) ?? [];
    const epoch = `${id}/${producerEpoch(batch)}`;
    const isSecond = values.some((value) => clients.find((one) => value.startsWith(`${one.id}#`))?.protocol === 2);
    // A partition may have joined a transaction and then got nothing of it.
    demand(values.length > 0 || !ends.has(epoch), `a marker of ${epoch} in partition ${partition} ends nothing`);
    demand(!isSecond || !ends.has(epoch), `two markers of ${epoch} in partition ${partition}`);
    ends.add(epoch);
    open.delete(id);
    if (readEndTransactionMarker(batch)?.result !== "commit") continue;
    for (const value of values) {
      demand(!committed.has(value), `${value} is there twice`);
      committed.add(value);
    }
  }
}

async function* batchesOf(log: PartitionLog): AsyncGenerator<Uint8Array> {
  for (let offset = log.logStartOffset; offset < log.highWatermark;) {
    const read = await log.read({ offset, maxBytes: 1_000_000, minOneBatch: true, limit: "highWatermark" });
    if (read.kind === "refused") throw new Violation(`a log cannot be read: ${read.errorCode}`);
    const bytes = read.bytes.slice();
    read.release();
    for (let at = 0; at < bytes.length; at += sizeInBytes(bytes, at)) {
      const batch = bytes.subarray(at, at + sizeInBytes(bytes, at));
      offset = baseOffset(batch) + lastOffsetDelta(batch) + 1;
      yield batch;
    }
  }
}

const text = new TextDecoder();

function demand(holds: boolean, otherwise: string): void {
  if (!holds) throw new Violation(otherwise);
}
