/**
 * Transactional producers on a broker whose machine stops at any disk call. What must be true afterwards stands in
 * `transaction_rules.ts`.
 */

import { SimulatedBroker } from "../support/simulated_broker.ts";
import { TransactionalClient } from "../support/transactional_client.ts";
import { getOrCreateTopic } from "../../lib/broker/topic_creation.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { sleep } from "../../lib/clock.ts";
import type { TransactionProtocol } from "../../lib/transactions/transaction.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { type Attempt, checkTransactions, groupOf, newAttempt, Violation } from "./transaction_rules.ts";

export const PARTITIONS = 3;
const TOPIC = "t";
const TIMEOUT_MS = 5_000;

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
      const attempt = newAttempt(client.transactionalId, client.protocol);
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
      const group = groupOf(client.transactionalId);
      if (client.protocol === 1) demand(await client.addOffsets(group), "AddOffsetsToTxn");
      const offset = ++this.#values;
      demand(await client.commitOffset(group, TOPIC, 0, offset), "TxnOffsetCommit");
      attempt.offset = offset;
    }
  }

  /** Holds everything against the rules. @throws {Violation} */
  async check(): Promise<void> {
    const { partitions, groups } = this.#broker!.broker;
    await checkTransactions({
      attempts: this.attempts,
      clients: this.clients,
      partitions: PARTITIONS,
      logOf: async (partition) => await partitions.get(TOPIC, partition)!.log(),
      isUnstable: (group) => groups.isUnstable(group, TOPIC, 0),
      offsetOf: (group) => groups.offsetsOf(group)?.get(TOPIC, 0)?.offset ?? 0,
    });
  }
}
