/**
 * One partition on a simulated disk, with its leaders one after the other, producers, and a {@link History} that all of it
 * is held against. A test, or a schedule drawn from a seed, says what happens next.
 *
 * The session rule that brokers keep is kept here too: from the moment a takeover begins, no older leader acknowledges.
 */

import type { Disk } from "../../lib/disk/disk.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { HandleRegistry } from "../../lib/disk/handle_registry.ts";
import { ErrorCode, KafkaError } from "../../lib/errors.ts";
import { nextOffset } from "../../lib/records/batch.ts";
import { buildEndTransactionMarker } from "../../lib/records/control.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { PartitionLog } from "../../lib/storage/log.ts";
import { defaultLogConfig, type LogConfig, relaxedFlush } from "../../lib/storage/log_config.ts";
import { createResources, type StorageResources } from "../../lib/storage/resources.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { checkTransactions, type Leader, offsetsOf, readLog } from "./storage_leader.ts";
import { demand, History, type Produced, type Sent } from "./storage_history.ts";

export const PARTITION_FOLDER = "/data/topic/0";

/** An idempotent or transactional producer: what it sent last, and what it does not know the fate of. */
interface Producer {
  readonly id: number;
  readonly isTransactional: boolean;
  nextSequence: number;
  /** Sent, not acknowledged; oldest first. */
  inDoubt: Produced[];
}

/** Ways in which a broken broker differs from a right one. */
export interface Flaws {
  /** Stands between storage and the disk. */
  wrapDisk?(disk: Disk): Disk;
  /** Batches are acknowledged as soon as they are appended. */
  readonly acknowledgesBeforeSync?: boolean;
  /** Deposed leaders go on acknowledging. */
  readonly acknowledgesAfterSession?: boolean;
}

export interface WorldOptions {
  readonly random: SeededRandom;
  readonly config?: Partial<LogConfig>;
  readonly flaws?: Flaws;
}

export class World {
  readonly history = new History();
  readonly clock = new SimulatedClock();
  readonly #random: SeededRandom;
  readonly #config: LogConfig;
  readonly #flaws: Flaws;
  /** What is deleted before it is durable cannot be counted in afterwards: no transactions in relaxed logs. */
  readonly #hasTransactions: boolean;
  readonly #events: unknown[] = [];
  readonly #producers: Producer[] = [];
  #resources: StorageResources;
  disk: SimulatedDisk;
  leader: Leader | null = null;
  /** Leaders that were deposed without noticing. */
  zombies: Leader[] = [];
  /** False once batches may have been deleted of which it is not known whether they were in the log. */
  #knowsAll = true;
  #epoch = -1;
  #records = 0;

  private constructor({ random, config = {}, flaws = {} }: WorldOptions) {
    this.#random = random;
    this.#config = {
      ...defaultLogConfig,
      segmentBytes: 1500,
      indexIntervalBytes: 200,
      checkpointIntervalBytes: 1000,
      ...config,
    };
    this.#flaws = flaws;
    this.#resources = this.#newResources();
    this.#hasTransactions = relaxedFlush(this.#config) === null;
    this.disk = new SimulatedDisk({ random: random.fork(), clock: this.clock, journal: this.#events });
  }

  /** A world with an empty partition folder on its disk. */
  static async create(options: WorldOptions): Promise<World> {
    const world = new World(options);
    await world.disk.makeFolder(PARTITION_FOLDER);
    for (const folder of ["/data/topic", "/data", "/"]) await world.disk.syncFolder(folder);
    return world;
  }

  /** What happened, one line for each event and for each call of the disk. */
  get log(): string {
    return this.#events.join("\n");
  }

  /** Writes a line into the log. */
  note(event: string): void {
    this.#events.push(`-- ${event}`);
  }

  /** Takes the partition over. Answers whether that succeeded; checks the whole log if it did. */
  async takeOver({ sameEpoch = false } = {}): Promise<boolean> {
    if (!sameEpoch || this.#epoch < 0) this.#epoch++;
    this.note(`take over with epoch ${this.#epoch}`);
    if (relaxedFlush(this.#config) !== null) this.history.forgetDurability();
    if (this.leader !== null) {
      this.leader.mayAcknowledge = false;
      this.zombies.push(this.leader);
      this.leader = null;
    }
    let log: PartitionLog;
    const registry = new HandleRegistry(this.disk);
    try {
      log = await PartitionLog.takeOver(this.#flaws.wrapDisk?.(registry) ?? registry, PARTITION_FOLDER, {
        leaderEpoch: this.#epoch,
        config: this.#config,
        clock: this.clock,
        resources: this.#resources,
      });
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof KafkaError)) throw error;
      this.note(`takeover failed: ${error.message}`);
      demandNothingOpen(registry, "a failed takeover");
      return false;
    }
    for (const zombie of this.zombies) zombie.deposed = true;
    const leader = { log, disk: this.disk, registry, mayAcknowledge: true, deposed: false };
    this.leader = leader;
    log.onHighWatermark(() => leader.mayAcknowledge && this.history.commit(log.highWatermark));
    this.note(`leads ${JSON.stringify(offsetsOf(log))} ${JSON.stringify(log.report.notes)}`);
    await this.#check(leader);
    return true;
  }

  /** Appends a batch of its own. Null when it is surely not in the log, or was there already. */
  append(leader: Leader, produced: Produced | null = null): Sent | null {
    const count = produced?.records ?? this.#random.between(1, 4);
    const records = Array.from({ length: count }, () => ({ value: `${this.#records++}:${"x".repeat(this.#size())}` }));
    const batch = buildBatch({ ...produced, records, timestamp: this.clock.wallMs() });
    return this.#append(leader, batch, produced);
  }

  /** Ends a transaction, whether or not there is one. */
  endTransaction(leader: Leader): void {
    const producer = this.#random.pick(this.#producers.filter(({ isTransactional }) => isTransactional));
    if (producer === undefined) return;
    const result = this.#random.chance(0.5) ? "commit" : "abort";
    const marker = { result, producerId: producer.id, producerEpoch: 0, coordinatorEpoch: 0 } as const;
    this.note(`${result} of producer ${producer.id}`);
    this.#append(leader, buildEndTransactionMarker(marker, this.clock.wallMs()), null);
  }

  #append(leader: Leader, batch: Uint8Array, produced: Produced | null): Sent | null {
    const worked = leader.log.stalled === null;
    const outcome = leader.log.append(batch, this.clock.wallMs());
    if (outcome.kind === "refused") {
      this.note(`append refused: ${outcome.errorCode} ${outcome.message}`);
      // A write that failed may have put the whole batch into the file: it may turn up, it need not.
      const isInDoubt = worked && outcome.errorCode === ErrorCode.KAFKA_STORAGE_ERROR;
      return isInDoubt ? this.history.appended(batch, { fenced: leader.deposed, produced, refused: true }) : null;
    }
    if (outcome.kind === "duplicate") {
      this.#checkDuplicate(leader, produced, outcome.baseOffset, outcome.ticket);
      return null;
    }
    demand(nextOffset(batch) === outcome.lastOffset + 1, "the outcome names another last offset than the batch has");
    const sent = this.history.appended(batch, { fenced: leader.deposed, produced });
    this.note(
      `appended ${sent.baseOffset}..${
        sent.nextOffset - 1
      } (${batch.byteLength} bytes) in epoch ${leader.log.leaderEpoch}`,
    );
    void this.#acknowledge(leader, sent, outcome.ticket);
    return sent;
  }

  /** A producer sends the oldest batch it is in doubt about once more, or else its next one. */
  produce(leader: Leader): void {
    const producer = this.#random.pick(this.#producers.length < 4 ? [...this.#producers, null] : this.#producers) ??
      this.#newProducer();
    const resend = producer.inDoubt[0];
    if (resend !== undefined && (producer.inDoubt.length >= 5 || this.#random.chance(0.5))) {
      this.append(leader, resend);
      return;
    }
    const produced = this.#nextOf(producer);
    if (this.append(leader, produced) === null) return;
    producer.nextSequence += produced.records;
    producer.inDoubt.push(produced);
  }

  /** Reads what consumers may, from a random offset on: also while the leader is stalled. */
  async consume(leader: Leader): Promise<void> {
    // After a failed sync of a relaxed log, what was told and never synced may be gone.
    const mayHaveLost = leader.log.stalled !== null || this.disk.faults.sync > 0;
    if (mayHaveLost && relaxedFlush(this.#config) !== null) return;
    await this.#withoutFaults(async () => {
      const { logStartOffset, highWatermark } = leader.log;
      const from = this.#random.between(logStartOffset, highWatermark);
      this.history.given(await readLog(leader, this.#random, { from, limit: "highWatermark" }));
    });
  }

  /** Reads the log that was just taken over, and holds all of it against the history. */
  async #check(leader: Leader): Promise<void> {
    await this.#withoutFaults(async () => {
      const offsets = offsetsOf(leader.log);
      demand(offsets.highWatermark === offsets.logEndOffset, "after a takeover everything is durable");
      const log = await readLog(leader, this.#random, { from: offsets.logStartOffset, limit: "logEnd" });
      if (this.disk.crashed) return;
      this.history.check(log, offsets);
      if (this.#knowsAll) this.#checkProducers(leader);
      if (this.#knowsAll && this.#hasTransactions) await checkTransactions(leader, this.#random, this.history);
    });
  }

  /** Notes the offsets that the leader tells now. */
  observe(): void {
    if (this.leader !== null && !this.disk.crashed) this.history.observe(offsetsOf(this.leader.log));
  }

  /** The machine stops (all leaders with it) and starts anew. */
  async crash(): Promise<void> {
    this.observe();
    this.note("crash");
    const next = this.disk.restart();
    await this.disk.settle();
    await this.abandonAll();
    this.#resources = this.#newResources();
    this.disk = next;
  }

  /** The process ends without a word and starts anew; what the system cached is still there. */
  async kill(): Promise<void> {
    this.note("kill");
    await this.abandonAll();
    this.#resources = this.#newResources();
  }

  /** All leaders abandon the partition; afterwards nothing may be open. */
  async abandonAll(): Promise<void> {
    const leaders = [...this.zombies, ...(this.leader === null ? [] : [this.leader])];
    this.leader = null;
    this.zombies = [];
    await Promise.all(leaders.map(({ log }) => log.abandon()));
    for (const { registry } of leaders) demandNothingOpen(registry, "abandoning");
    await this.disk.settle();
  }

  /** Somebody takes over while the leader is in the middle of something. */
  async deposeAmid(act: (leader: Leader) => Promise<unknown>): Promise<void> {
    const { leader } = this;
    if (leader === null) return;
    this.note("what follows is cut across by a takeover");
    const acting = act(leader).catch((error) => this.note(`${error}`));
    for (let turns = this.#random.below(40); turns > 0; turns--) await null;
    if (!await this.takeOver()) this.#knowsAll = false;
    await acting;
  }

  /** The leader hands the partition over. */
  async relinquish(): Promise<void> {
    const { leader } = this;
    if (leader === null) return;
    this.note("relinquish");
    const stalled = leader.log.stalled !== null;
    try {
      await leader.log.relinquish();
      this.note(`ended ${leader.log.ending}`);
      if (!this.disk.crashed && !stalled && leader.log.ending === "clean") {
        demand(
          leader.log.highWatermark === leader.log.logEndOffset,
          "relinquished before everything accepted was durable",
        );
        this.history.observe(offsetsOf(leader.log));
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.note(`relinquish failed: ${error.message}`);
    }
    this.leader = null;
    demandNothingOpen(leader.registry, "relinquishing");
  }

  async deleteRecords(leader: Leader, offset: number): Promise<void> {
    this.note(`delete records below ${offset}`);
    if (leader !== this.leader && !leader.deposed) this.#knowsAll = false;
    const { errorCode, lowWatermark } = await leader.log.deleteRecords(offset);
    this.note(`deleted: ${errorCode} ${lowWatermark}`);
    if (errorCode === ErrorCode.NONE && leader === this.leader) this.observe();
  }

  /** Lets retention remove the oldest segments while what remains is at least so many bytes. */
  async retain(leader: Leader, retentionBytes: number): Promise<void> {
    this.note(`retain ${retentionBytes} bytes`);
    if (leader !== this.leader && !leader.deposed) this.#knowsAll = false;
    leader.log.applyConfig({ ...this.#config, retentionBytes });
    const { errorCode, logStartOffset } = await leader.log.enforceRetention();
    leader.log.applyConfig(this.#config);
    this.note(`retained: ${errorCode} ${logStartOffset}`);
    if (errorCode === ErrorCode.NONE && leader === this.leader) this.observe();
  }

  /** Lets everything that is under way come to its end. */
  async settle(): Promise<void> {
    await this.disk.settle();
    this.observe();
  }

  /** Each producer's newest batch, sent again, is a duplicate; what follows it is next; what does not is out of order. */
  #checkProducers(leader: Leader): void {
    for (const producer of this.#producers) {
      const mine = this.history.committed.filter(({ produced }) => produced?.producerId === producer.id).slice(-5);
      for (const sent of mine) {
        const records = Array.from({ length: sent.produced!.records }, () => ({ value: "again" }));
        const outcome = leader.log.append(buildBatch({ ...sent.produced!, records }), this.clock.wallMs());
        demand(
          outcome.kind === "duplicate" && outcome.baseOffset === sent.baseOffset,
          `producer ${producer.id} sends ${sent.baseOffset} again: ${JSON.stringify(outcome)}`,
        );
        producer.inDoubt = producer.inDoubt.filter((produced) => produced !== sent.produced);
      }
      const last = mine.at(-1)?.produced;
      if (last === undefined || last === null) continue;
      const gap = { ...last, baseSequence: last.baseSequence + last.records + 1000 };
      const outcome = leader.log.append(buildBatch({ ...gap, records: [{ value: "gap" }] }), this.clock.wallMs());
      demand(
        outcome.kind === "refused" && outcome.errorCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        `producer ${producer.id} leaves a gap: ${JSON.stringify(outcome)}`,
      );
    }
  }

  #checkDuplicate(leader: Leader, produced: Produced | null, offset: number, ticket: number): void {
    this.note(`duplicate of ${offset}`);
    if (leader.deposed) return;
    demand(produced !== null, "a batch without a producer is a duplicate");
    const original = this.history.appendsOf(produced).findLast((sent) => sent.baseOffset === offset);
    demand(original !== undefined, `a duplicate of offset ${offset}, where that batch never was`);
    void this.#acknowledge(leader, original, ticket);
  }

  async #acknowledge(leader: Leader, sent: Sent, ticket: number): Promise<void> {
    const code = this.#flaws.acknowledgesBeforeSync ? ErrorCode.NONE : await leader.log.durable(ticket);
    if (code !== ErrorCode.NONE) return;
    if (!leader.mayAcknowledge && !this.#flaws.acknowledgesAfterSession) return;
    this.history.acknowledged(sent);
    this.note(`acknowledged ${sent.baseOffset}`);
    for (const producer of this.#producers) {
      producer.inDoubt = producer.inDoubt.filter((produced) => produced !== sent.produced);
    }
  }

  #newProducer(): Producer {
    const number = this.#producers.length;
    const isTransactional = this.#hasTransactions && number % 2 === 1;
    const producer = { id: 1000 + number, isTransactional, nextSequence: 0, inDoubt: [] };
    this.#producers.push(producer);
    return producer;
  }

  #nextOf(producer: Producer): Produced {
    const records = this.#random.between(1, 4);
    const { id, isTransactional, nextSequence } = producer;
    return { producerId: id, producerEpoch: 0, baseSequence: nextSequence, isTransactional, records };
  }

  #size(): number {
    return this.#random.chance(0.05) ? 150 : this.#random.below(60);
  }

  #newResources(): StorageResources {
    return createResources({ random: this.#random, maxOpenHandles: 8, readBufferBytes: 1 << 20 });
  }

  async #withoutFaults(run: () => Promise<void>): Promise<void> {
    const { faults, capacityBytes } = this.disk;
    this.disk.calm();
    try {
      await run();
    } finally {
      this.disk.faults = faults;
      this.disk.capacityBytes = capacityBytes;
    }
  }
}

function demandNothingOpen(registry: HandleRegistry, after: string): void {
  demand(registry.openCount === 0, `open after ${after}: ${registry.openPaths().join(", ")}`);
}
