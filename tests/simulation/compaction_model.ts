/**
 * A random history of a compacted partition, and the model that its log is held against: a list of all records ever
 * produced, and what Kafka's rules say of each.
 */

import assert from "node:assert/strict";
import {
  baseOffset,
  checkBatch,
  type Compression,
  isControl,
  isTransactional,
  lastOffset,
  nextOffset,
  producerId,
  sizeInBytes,
} from "../../lib/records/batch.ts";
import { buildEndTransactionMarker, readEndTransactionMarker } from "../../lib/records/control.ts";
import { buildBatch, type RecordInput, recordsOf } from "../../lib/records/record.ts";
import type { PartitionLog } from "../../lib/storage/log.ts";
import type { SeededRandom } from "./seeded_random.ts";

/** One record that was produced. */
export interface ModelRecord {
  readonly offset: number;
  readonly key: string;
  /** Null: a delete mark. */
  readonly value: string | null;
  readonly timestamp: number;
  /** Whether its transaction was aborted, or is open still. */
  fate: "committed" | "aborted" | "open";
}

interface Producer {
  readonly id: number;
  sequence: number;
  /** Records of its open transaction. */
  open: ModelRecord[];
}

const CODECS: readonly Compression[] = [0, 1, 2, 3, 4];

/** What a consumer sees: offset, key, value, header and time of each record. */
export interface Seen {
  readonly offset: number;
  readonly key: string;
  readonly value: string | null;
  readonly timestamp: number;
}

export class ModelHistory {
  readonly records: ModelRecord[] = [];
  readonly #producers: Producer[] = [];
  readonly #random: SeededRandom;
  readonly #keys: number;
  #written = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
    this.#keys = random.pick([1, 3, 20, 200]);
    for (let id = 0; id < 4; id++) this.#producers.push({ id: 100 + id, sequence: 0, open: [] });
  }

  /** Producers and the sequence that each sends next. */
  get sequences(): Map<number, number> {
    return new Map(this.#producers.filter(({ sequence }) => sequence > 0).map(({ id, sequence }) => [id, sequence]));
  }

  /** Appends something: plain, idempotent or transactional records, or the end of a transaction. */
  append(log: PartitionLog, nowMs: number): void {
    const random = this.#random;
    const open = this.#producers.filter((producer) => producer.open.length > 0);
    if (open.length > 0 && random.chance(0.3)) return this.endTransaction(log, random.pick(open), nowMs);
    const producer = random.chance(0.3) ? null : random.pick(this.#producers);
    const records: RecordInput[] = [];
    const kept: Omit<ModelRecord, "offset" | "fate">[] = [];
    for (let i = random.between(1, 6); i > 0; i--) {
      const key = `key ${random.below(this.#keys)}`;
      const value = random.chance(0.2) ? null : random.chance(0.1) ? "" : `value ${this.#written++}`;
      const timestamp = nowMs - random.below(100);
      records.push({
        key,
        value,
        timestamp,
        headers: [{ key: "h", value: `${timestamp}` }, { key: "h", value: null }],
      });
      kept.push({ key, value, timestamp });
    }
    const isTransactional = producer !== null && (producer.open.length > 0 || producer.id % 2 === 0);
    const identity = producer === null ? {} : {
      producerId: producer.id,
      producerEpoch: 0,
      baseSequence: producer.sequence,
      isTransactional,
    };
    const first = this.#append(log, buildBatch({ records, compression: random.pick(CODECS), ...identity }), nowMs);
    if (producer !== null) producer.sequence += records.length;
    const fate = isTransactional ? "open" : "committed";
    const made = kept.map((record, i): ModelRecord => ({ ...record, offset: first + i, fate }));
    this.records.push(...made);
    if (isTransactional) producer!.open.push(...made);
  }

  /** Ends every open transaction. */
  endAll(log: PartitionLog, nowMs: number): void {
    for (const producer of this.#producers) if (producer.open.length > 0) this.endTransaction(log, producer, nowMs);
  }

  endTransaction(log: PartitionLog, producer: Producer, nowMs: number): void {
    const result = this.#random.chance(0.5) ? "commit" : "abort";
    const marker = { result, producerId: producer.id, producerEpoch: 0, coordinatorEpoch: 0 } as const;
    this.#append(log, buildEndTransactionMarker(marker, nowMs), nowMs);
    for (const record of producer.open) record.fate = result === "commit" ? "committed" : "aborted";
    producer.open = [];
  }

  #append(log: PartitionLog, batch: Uint8Array, nowMs: number): number {
    const outcome = log.append(batch, nowMs);
    assert.equal(outcome.kind, "appended", JSON.stringify(outcome));
    return outcome.kind === "appended" ? outcome.baseOffset : -1;
  }

  /**
   * Holds what a consumer of committed records sees against the model: below `cleanedUpTo` the last record of each key
   * only, where delete marks may have gone if `marksMayGo`; everything from there on. Where a pass did not end
   * (`isHalfDone`), older records may be there as well.
   */
  check(seen: readonly Seen[], cleanedUpTo: number, end: number, marksMayGo: boolean, isHalfDone = false): void {
    const committed = this.records.filter(({ fate, offset }) => fate === "committed" && offset < end);
    const last = new Map<string, number>();
    for (const { key, offset } of committed) if (offset < cleanedUpTo) last.set(key, offset);
    const due = committed.filter(({ key, offset }) => offset >= cleanedUpTo || last.get(key) === offset);
    const at = new Map(seen.map((record) => [record.offset, record]));
    for (const { offset, key, value, timestamp } of due) {
      const found = at.get(offset);
      if (found === undefined && value === null && marksMayGo && offset < cleanedUpTo) continue;
      assert.deepEqual(found, { offset, key, value, timestamp }, `the record at offset ${offset}`);
    }
    const dueOffsets = new Set((isHalfDone ? committed : due).map(({ offset }) => offset));
    for (const { offset } of seen) assert.ok(dueOffsets.has(offset), `the record at offset ${offset} should be gone`);
    const live = (records: readonly { key: string; value: string | null }[]) => {
      const table = new Map(records.map(({ key, value }) => [key, value]));
      return [...table].filter(([, value]) => value !== null).sort();
    };
    assert.deepEqual(live(seen), live(committed), "the last values");
  }
}

/** Reads a log as a consumer of committed records does, to the last stable offset, and checks every batch. */
export async function consumeCommitted(log: PartitionLog, random: SeededRandom): Promise<Seen[]> {
  const seen: Seen[] = [];
  const aborting = new Set<number>();
  for (let offset = log.logStartOffset; offset < log.lastStableOffset;) {
    const maxBytes = random.pick([1, 400, 100_000]);
    const outcome = await log.read({ offset, maxBytes, minOneBatch: true, limit: "lastStableOffset" });
    assert.equal(outcome.kind, "batches", `read at ${offset}: ${JSON.stringify(outcome)}`);
    if (outcome.kind !== "batches") break;
    assert.ok(outcome.bytes.byteLength > 0, `nothing to read at ${offset} of ${log.lastStableOffset}`);
    const told = [...outcome.abortedTransactions].sort((a, b) => a.firstOffset - b.firstOffset);
    for (let start = 0; start < outcome.bytes.byteLength;) {
      const batch = outcome.bytes.slice(start, start + sizeInBytes(outcome.bytes, start));
      start += batch.byteLength;
      assert.equal(checkBatch(batch, 0), "whole");
      const records = recordsOf(batch);
      assert.ok(Array.isArray(records));
      const id = producerId(batch);
      while (told.length > 0 && told[0].firstOffset <= lastOffset(batch)) aborting.add(told.shift()!.producerId);
      assert.ok(nextOffset(batch) > offset, "reading goes on");
      if (isControl(batch)) {
        if (readEndTransactionMarker(batch)?.result === "abort") aborting.delete(id);
      } else if (!(isTransactional(batch) && aborting.has(id))) {
        for (const record of records) if (record.offset >= offset) seen.push(asSeen(record));
      }
      for (const { offset } of records) assert.ok(offset >= baseOffset(batch) && offset <= lastOffset(batch));
      offset = nextOffset(batch);
    }
    outcome.release();
  }
  for (let i = 1; i < seen.length; i++) assert.ok(seen[i].offset > seen[i - 1].offset, "offsets rise");
  return seen;
}

type ReadRecord = Exclude<ReturnType<typeof recordsOf>, { errorCode: unknown }>[number];

function asSeen({ offset, key, value, timestamp, headers }: ReadRecord): Seen {
  const text = (bytes: Uint8Array | null) => bytes === null ? null : new TextDecoder().decode(bytes);
  const plain = headers.map((header) => [header.key, text(header.value)]);
  assert.deepEqual(plain, [["h", `${timestamp}`], ["h", null]], "headers and times stay");
  return { offset, key: text(key)!, value: text(value), timestamp };
}
