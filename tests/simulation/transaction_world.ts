/**
 * Transactional producers on a broker whose machine stops at any disk call, and what must be true afterwards:
 *
 * - all or nothing: of a transaction all records are in committed transactions of their partitions, and its offset counts,
 *   or none are and it does not;
 * - a commit that was acknowledged is there, whatever was not asked to be committed is not;
 * - no record is there twice among what is committed;
 * - nothing stays open: the last stable offset is the high watermark, and no group's offsets are unstable;
 * - each marker ends a transaction, if only one that wrote nothing here; under the second protocol no partition has two
 *   of one epoch.
 */

import { SimulatedBroker } from "../support/simulated_broker.ts";
import { TransactionalClient } from "../support/transactional_client.ts";
import { getOrCreateTopic } from "../../lib/broker/topic_creation.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { isControl, producerEpoch, producerId, sizeInBytes } from "../../lib/records/batch.ts";
import { readEndTransactionMarker } from "../../lib/records/control.ts";
import { RecordsFault } from "../../lib/records/fault.ts";
import { recordsOf } from "../../lib/records/record.ts";
import { sleep } from "../../lib/clock.ts";
import type { TransactionProtocol } from "../../lib/transactions/transaction.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

export const PARTITIONS = 3;
const TOPIC = "t";
const TIMEOUT_MS = 5_000;
const text = new TextDecoder();

/** What a client did, and knows of. */
interface Attempt {
  readonly client: string;
  readonly protocol: TransactionProtocol;
  /** Values that were acknowledged, by partition. */
  readonly written: Map<string, number>;
  /** Whether nothing was refused or left unanswered, so that a commit may be asked for. */
  complete: boolean;
  /** The offset committed with it, acknowledged; 0 for none. */
  offset: number;
  asked: "commit" | "abort" | "nothing";
  acknowledged: boolean;
}

/** A rule that does not hold. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** What a client does when the machine has stopped. */
class Stopped extends Error {}

/** See the file's head. */
export class TransactionWorld {
  readonly clock = new SimulatedClock();
  readonly attempts: Attempt[] = [];
  disk: SimulatedDisk;
  #epoch = 0;
  #broker: SimulatedBroker | null = null;
  #values = 0;

  constructor(
    readonly random: SeededRandom,
    readonly clients: readonly { id: string; protocol: TransactionProtocol }[],
  ) {
    this.disk = new SimulatedDisk({ random: random.fork(), clock: this.clock, syncTurns: 12 });
  }

  /** Starts the broker; false where the machine stops meanwhile. */
  async start(): Promise<boolean> {
    try {
      const { disk, clock } = this;
      const broker = await SimulatedBroker.open({
        disk,
        clock,
        random: this.random.fork(),
        epoch: ++this.#epoch,
        settings: { "num.partitions": PARTITIONS, "log.segment.bytes": 1_000 },
      });
      if (broker.broker.topics.get(TOPIC) === undefined) await getOrCreateTopic(broker.broker, TOPIC);
      this.#broker = broker;
      return !disk.crashed && broker.broker.topics.get(TOPIC) !== undefined;
    } catch (error) {
      if (!this.disk.crashed && !(error instanceof DiskError)) throw error;
      return false;
    }
  }

  /** The machine stops; what was not synced survives in parts. */
  async crash(): Promise<void> {
    this.disk.crash();
    await this.disk.settle();
    this.disk = this.disk.restart();
    this.#broker = null;
  }

  /** Lets all clients work until each has done so many transactions, or the machine stops. */
  async work(transactions: number): Promise<void> {
    const running = this.clients.map(({ id, protocol }) =>
      this.#run(new TransactionalClient(this.#broker!, id, protocol), transactions).catch((error) => {
        if (!(error instanceof Stopped) && !this.disk.crashed) throw error;
      })
    );
    await this.#untilOver(Promise.all(running));
  }

  /** Ends what is open, as new producers of the same ids do, or time. */
  async finish(): Promise<void> {
    const running = this.clients.filter(() => this.random.chance(0.5)).map(async ({ id, protocol }) => {
      await this.#init(new TransactionalClient(this.#broker!, id, protocol));
    });
    await this.#untilOver(Promise.all(running));
    this.clock.advance(TIMEOUT_MS + 1_000);
    for (let turn = 0; turn < 20; turn++) {
      await this.disk.settle();
      this.clock.advance(100);
    }
  }

  /** Waits, and lets time pass meanwhile; gives up when the machine has stopped. */
  async #untilOver(work: Promise<unknown>): Promise<void> {
    let over = false;
    const done = work.finally(() => over = true);
    done.catch(() => {});
    for (let turn = 0; !over && !this.disk.crashed; turn++) {
      if (turn > 5_000) throw new Violation("the clients never end");
      await this.disk.settle();
      if (!over) this.clock.advance(10);
    }
    if (!this.disk.crashed) await done;
  }

  #refuseWhenStopped(): void {
    if (this.disk.crashed) throw new Stopped();
  }

  async #init(client: TransactionalClient): Promise<void> {
    for (;;) {
      const code = await client.init({ timeoutMs: TIMEOUT_MS });
      this.#refuseWhenStopped();
      if (code === ErrorCode.NONE) return;
      if (code !== ErrorCode.CONCURRENT_TRANSACTIONS) throw new Violation(`InitProducerId answers ${code}`);
      await sleep(this.clock, 20);
    }
  }

  async #run(client: TransactionalClient, transactions: number): Promise<void> {
    await this.#init(client);
    for (let i = 0; i < transactions; i++) {
      const attempt: Attempt = {
        client: client.transactionalId,
        protocol: client.protocol,
        written: new Map(),
        complete: false,
        offset: 0,
        asked: "nothing",
        acknowledged: false,
      };
      this.attempts.push(attempt);
      await this.#write(client, attempt);
      // Now and then a producer says nothing more, and comes back as a new one.
      if (this.random.chance(0.15)) {
        await this.#init(client);
        continue;
      }
      attempt.asked = this.random.chance(0.7) ? "commit" : "abort";
      const code = await client.end(attempt.asked === "commit");
      this.#refuseWhenStopped();
      if (code !== ErrorCode.NONE) throw new Violation(`EndTxn answers ${code}`);
      attempt.acknowledged = true;
    }
  }

  async #write(client: TransactionalClient, attempt: Attempt): Promise<void> {
    const { random } = this;
    const places = Array.from({ length: PARTITIONS }, (_, i) => i).filter(() => random.chance(0.6));
    if (places.length === 0) places.push(random.below(PARTITIONS));
    const demand = (code: number, what: string) => {
      this.#refuseWhenStopped();
      if (code !== ErrorCode.NONE) throw new Violation(`${what} answers ${code}`);
    };
    if (client.protocol === 1) {
      for (const code of await client.add(TOPIC, places)) demand(code, "AddPartitionsToTxn");
    }
    for (let batches = random.between(1, 3); batches > 0; batches--) {
      for (const partition of places) {
        const value = `${client.transactionalId}#${this.#values++}`;
        demand(await client.produce(TOPIC, partition, [value]), "Produce");
        attempt.written.set(value, partition);
      }
    }
    if (random.chance(0.6)) {
      const group = `group of ${client.transactionalId}`;
      if (client.protocol === 1) demand(await client.addOffsets(group), "AddOffsetsToTxn");
      const offset = ++this.#values;
      demand(await client.commitOffset(group, TOPIC, 0, offset), "TxnOffsetCommit");
      attempt.offset = offset;
    }
    attempt.complete = true;
  }

  /** Holds everything against the rules. @throws {Violation} */
  async check(): Promise<void> {
    const committed = new Map<string, number>();
    for (let partition = 0; partition < PARTITIONS; partition++) await this.#checkPartition(partition, committed);
    const offsets = new Map<string, number>();
    for (const attempt of this.attempts) {
      const there = [...attempt.written.keys()].filter((value) => committed.has(value)).length;
      const what = `a transaction of ${attempt.client} (${attempt.asked}, acknowledged: ${attempt.acknowledged})`;
      demand(there === 0 || there === attempt.written.size, `${what} is there in parts`);
      if (attempt.asked !== "commit") demand(there === 0, `${what} is there`);
      if (attempt.asked === "commit" && attempt.acknowledged) demand(there > 0, `${what} is lost`);
      if (there > 0 && attempt.offset > 0) offsets.set(attempt.client, attempt.offset);
    }
    const { groups } = this.#broker!.broker;
    for (const { id } of this.clients) {
      const group = `group of ${id}`;
      demand(!groups.isUnstable(group, TOPIC, 0), `offsets of ${group} stay unstable`);
      const found = groups.offsetsOf(group)?.get(TOPIC, 0)?.offset ?? 0;
      demand(found === (offsets.get(id) ?? 0), `${group} has offset ${found} instead of ${offsets.get(id) ?? 0}`);
    }
  }

  async #checkPartition(partition: number, committed: Map<string, number>): Promise<void> {
    const log = await this.#broker!.broker.partitions.get(TOPIC, partition)!.log();
    if (typeof log === "number") throw new Violation(`partition ${partition} cannot be opened: ${log}`);
    demand(log.lastStableOffset === log.highWatermark, `the last stable offset of partition ${partition} is stuck`);
    const open = new Map<number, string[]>();
    const ends = new Set<string>();
    for (let offset = log.logStartOffset; offset < log.highWatermark;) {
      const read = await log.read({ offset, maxBytes: 1_000_000, minOneBatch: true, limit: "highWatermark" });
      if (read.kind === "refused") throw new Violation(`partition ${partition} cannot be read`);
      for (let at = 0; at < read.bytes.length; at += sizeInBytes(read.bytes, at)) {
        const batch = read.bytes.slice(at, at + sizeInBytes(read.bytes, at));
        const records = recordsOf(batch);
        if (records instanceof RecordsFault) throw new Violation("a batch cannot be read");
        offset += records.length;
        const id = producerId(batch);
        if (!isControl(batch)) {
          open.set(id, [...open.get(id) ?? [], ...records.map(({ value }) => text.decode(value!))]);
          continue;
        }
        const values = open.get(id) ?? [];
        const epoch = `${id}/${producerEpoch(batch)}`;
        const isSecond = values.some((value) =>
          this.clients.find((one) => value.startsWith(`${one.id}#`))?.protocol === 2
        );
        // A partition may have joined a transaction and then got nothing of it.
        demand(values.length > 0 || !ends.has(epoch), `a marker of ${epoch} in partition ${partition} ends nothing`);
        demand(!isSecond || !ends.has(epoch), `two markers of ${epoch} in partition ${partition}`);
        ends.add(epoch);
        open.delete(id);
        if (readEndTransactionMarker(batch)?.result !== "commit") continue;
        for (const value of values) {
          demand(!committed.has(value), `${value} is there twice`);
          committed.set(value, partition);
        }
      }
      read.release();
    }
  }
}

function demand(holds: boolean, otherwise: string): void {
  if (!holds) throw new Violation(otherwise);
}
