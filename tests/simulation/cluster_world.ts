/**
 * Several brokers on one volume, without a network: each is the real member of a cluster (`lib/broker/cluster_node.ts`)
 * behind a gate that pauses and kills it. Clients append to and read from whichever of them lets them, as the handlers of
 * Produce and Fetch do; what they saw is held against these rules, at every step:
 *
 * - one history: whoever reads an offset, whenever and wherever, reads the same record there;
 * - an acknowledged record stands at the offset that was acknowledged, for ever;
 * - no record is read at two offsets.
 */

import type { Random } from "../../lib/clock.ts";
import { BrokerConfig } from "../../lib/broker/broker_config.ts";
import { type ClusterNode, joinCluster } from "../../lib/broker/cluster_node.ts";
import { brokersFolder, lockPath } from "../../lib/broker/membership.ts";
import type { MachineLocks } from "../../lib/disk/machine.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { createLogger, type Logger } from "../../lib/observability/logger.ts";
import { buildBatch, recordsOf } from "../../lib/records/record.ts";
import { sizeInBytes } from "../../lib/records/batch.ts";
import { isRefusal } from "../../lib/broker/refusal.ts";
import { ProcessGate } from "./process_gate.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

export const SESSION_MS = 3000;
const DATA = "/data";

/** A rule of the file's head was broken. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** One broker's process. */
export interface Process {
  readonly nodeId: number;
  readonly gate: ProcessGate;
  node: ClusterNode | null;
  /** Resolves when the process has ended by itself. */
  ended: Promise<void> | null;
}

interface History {
  /** Record by offset. */
  readonly at: Map<number, number>;
  readonly offsetOf: Map<number, number>;
  /** Acknowledged records with their offsets. */
  readonly acknowledged: Map<number, number>;
}

/** See the file's head. */
export class ClusterWorld {
  readonly clock = new SimulatedClock();
  readonly disk: SimulatedDisk;
  readonly random: SeededRandom;
  readonly processes = new Map<number, Process>();
  readonly log: string[] = [];
  readonly #histories = new Map<string, History>();
  readonly #locks = new Map<string, number>();
  readonly #background = new Set<Promise<void>>();
  #nextRecord = 1;
  acknowledged = 0;
  /** Set by whatever went wrong in the background. */
  failure: unknown = null;

  constructor(readonly seed: number, readonly flaws: { readonly clocksStop?: boolean } = {}) {
    this.random = new SeededRandom(seed);
    this.disk = new SimulatedDisk({ random: this.random.fork(), clock: this.clock, syncTurns: 6 });
  }

  note(text: string): void {
    this.log.push(`${String(Math.round(this.clock.monotonicMs())).padStart(7)} ${text}`);
  }

  async prepare(): Promise<void> {
    await this.disk.makeFolder(brokersFolder(DATA));
  }

  /** Lets time pass, in small steps, and everything happen that it brings. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0;) {
      const step = Math.min(left, 1 + this.random.below(20));
      this.clock.advance(step);
      left -= step;
      await this.disk.settle();
      if (this.failure !== null) throw this.failure;
    }
  }

  /** Starts the broker of that node id, which must not run. */
  start(nodeId: number): void {
    const skewMs = this.random.below(600_000);
    const gate = new ProcessGate(this.clock, this.disk, skewMs, this.flaws.clocksStop);
    const process: Process = { nodeId, gate, node: null, ended: null };
    this.processes.set(nodeId, process);
    this.note(`start ${nodeId}`);
    this.#inBackground(async () => {
      try {
        const node = await joinCluster({
          links: { call: () => Promise.resolve(null) },
          disk: gate.disk,
          clock: gate.clock,
          random: this.random.fork() as Random,
          logger: this.#loggerOf(nodeId),
          config: BrokerConfig.of({ "node.id": nodeId, "broker.session.timeout.ms": SESSION_MS, "log.dir": DATA }),
          dataFolder: DATA,
          machine: { host: "machine", bootMs: 0 },
          locks: this.#locksOf(nodeId),
          listeners: [{ name: "PLAINTEXT", host: "localhost", port: 9000 + nodeId }],
        });
        process.node = node;
        void node.membership.superseded.then((why) => {
          this.note(`${nodeId} superseded: ${why}`);
          this.kill(process);
        });
        await node.lead();
        this.note(`${nodeId} leads as ${node.membership.tenure}`);
      } catch (error) {
        if (!(error instanceof DiskError) && (error as Error).name !== "NodeIdInUseError") throw error;
        this.note(`${nodeId} does not start: ${error}`);
        this.kill(process);
      }
    });
  }

  /** SIGKILL. */
  kill(process: Process): void {
    this.note(`kill ${process.nodeId}`);
    process.gate.kill();
    this.#locks.delete(lockPath(DATA, process.nodeId));
    if (this.processes.get(process.nodeId) === process) this.processes.delete(process.nodeId);
  }

  /** SIGTERM. */
  terminate(process: Process): void {
    const { node, nodeId } = process;
    if (node === null || process.ended !== null) return;
    this.note(`terminate ${nodeId}`);
    process.ended = this.#inBackground(async () => {
      await node.handOver(2 * SESSION_MS);
      await node.leave().catch((error) => this.note(`${nodeId} left with: ${error}`));
      this.note(`${nodeId} has left`);
      this.kill(process);
    });
  }

  /** The broker that believes to lead a partition, of those that run; picked by chance if there are several. */
  leaders(topic: string, partition: number): Process[] {
    return [...this.processes.values()].filter(({ gate, node }) =>
      gate.isRunning && node?.partitions.get(topic, partition) !== undefined
    );
  }

  createTopic(process: Process, name: string, partitionCount: number): void {
    const { node, nodeId } = process;
    if (node === null) return;
    this.note(`create ${name} at ${nodeId}`);
    this.#inBackground(async () => {
      const created = await node.topics.create(name, () => ({
        name,
        partitionCount,
        replicationFactor: 1,
        overrides: new Map(),
        leaders: new Map(),
      }));
      this.note(isRefusal(created) ? `${name} not created: ${created.message}` : `created ${name}`);
    });
  }

  deleteTopic(process: Process, name: string): void {
    const { node, nodeId } = process;
    const topic = node?.topics.get(name);
    if (!node || topic === undefined) return;
    this.note(`delete ${name} at ${nodeId}`);
    this.#inBackground(async () => {
      await node.topics.delete(topic);
      this.note(`deleted ${name}`);
    });
  }

  /** Appends a few batches through one broker, as Produce does. */
  produce(process: Process, topicName: string, index: number): void {
    const { gate, node, nodeId } = process;
    const topicId = node?.topics.get(topicName)?.topicId;
    if (node === null || topicId === undefined) return;
    this.#inBackground(async () => {
      const partition = node.partitions.get(topicName, index);
      const log = await partition?.log();
      await gate.pass();
      if (log === undefined || typeof log === "number") return;
      const record = this.#nextRecord++;
      const batch = buildBatch({ timestamp: this.clock.wallMs(), records: [{ value: String(record) }] });
      const outcome = log.append(batch, this.clock.wallMs());
      if (outcome.kind !== "appended") return;
      const code = await log.durable(outcome.ticket);
      await gate.pass();
      if (code !== ErrorCode.NONE || !node.membership.isValid()) return;
      this.acknowledged++;
      this.note(`${nodeId} acknowledges ${record} at ${topicName}/${index}:${outcome.baseOffset}`);
      const history = this.#historyOf(topicId, index);
      history.acknowledged.set(record, outcome.baseOffset);
      this.#see(history, outcome.baseOffset, record, `${topicName}/${index}`);
    });
  }

  /** Reads from an offset through one broker, as Fetch does. */
  consume(process: Process, topicName: string, index: number, fromOffset: number): void {
    const { gate, node } = process;
    const topicId = node?.topics.get(topicName)?.topicId;
    if (node === null || topicId === undefined) return;
    this.#inBackground(async () => {
      const log = await node.partitions.get(topicName, index)?.log();
      await gate.pass();
      if (log === undefined || typeof log === "number") return;
      for (const [offset, record] of await readAll(log, fromOffset)) {
        this.#see(this.#historyOf(topicId, index), offset, record, `${topicName}/${index}`);
      }
    });
  }

  /**
   * At the end: every acknowledged record of the topics that are there is where it was acknowledged. `node` must lead all
   * of them.
   */
  async verify(node: ClusterNode): Promise<void> {
    for (const topic of node.topics.all()) {
      for (let index = 0; index < topic.partitionCount; index++) {
        const log = await node.partitions.get(topic.name, index)?.log();
        if (log === undefined || typeof log === "number") {
          throw new Violation(`${topic.name}/${index} is not led in the end: ${log}`);
        }
        const found = await readAll(log, log.logStartOffset);
        const history = this.#historyOf(topic.topicId, index);
        for (const [offset, record] of found) this.#see(history, offset, record, `${topic.name}/${index}`);
        let next = log.logStartOffset;
        for (const offset of found.keys()) {
          if (offset !== next++) throw new Violation(`${topic.name}/${index} has a gap before ${offset}`);
        }
        for (const [record, offset] of history.acknowledged) {
          if (found.get(offset) !== record) {
            throw new Violation(`${topic.name}/${index}:${offset} lost the acknowledged record ${record}`);
          }
        }
      }
    }
  }

  #see(history: History, offset: number, record: number, where: string): void {
    const before = history.at.get(offset);
    if (before !== undefined && before !== record) {
      throw new Violation(`${where}:${offset} was ${before} and is ${record}`);
    }
    const elsewhere = history.offsetOf.get(record);
    if (elsewhere !== undefined && elsewhere !== offset) {
      throw new Violation(`${where}: ${record} stands at ${elsewhere} and at ${offset}`);
    }
    history.at.set(offset, record);
    history.offsetOf.set(record, offset);
  }

  #historyOf(topicId: string, index: number): History {
    const key = `${topicId}/${index}`;
    let history = this.#histories.get(key);
    if (history === undefined) {
      this.#histories.set(key, history = { at: new Map(), offsetOf: new Map(), acknowledged: new Map() });
    }
    return history;
  }

  #loggerOf(nodeId: number): Logger {
    return createLogger({
      level: "info",
      format: "text",
      clock: this.clock,
      write: (line) => this.note(`${nodeId}: ${line.trim().replace(/^\S+ /, "")}`),
    });
  }

  #locksOf(nodeId: number): MachineLocks {
    return {
      lockForLife: (path) => {
        const isFree = !this.#locks.has(path);
        if (isFree) this.#locks.set(path, nodeId);
        return Promise.resolve(isFree);
      },
      isLockFree: (path) => Promise.resolve(!this.#locks.has(path)),
    };
  }

  #inBackground(run: () => Promise<void>): Promise<void> {
    const running = run().catch((error) => {
      this.failure ??= error;
    }).finally(() => this.#background.delete(running));
    this.#background.add(running);
    return running;
  }
}

type Readable = Exclude<Awaited<ReturnType<NonNullable<ReturnType<ClusterNode["partitions"]["get"]>>["log"]>>, number>;

async function readAll(log: Readable, fromOffset: number): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  for (let offset = fromOffset;;) {
    const outcome = await log.read({ offset, maxBytes: 1 << 20, minOneBatch: true, limit: "highWatermark" });
    if (outcome.kind === "refused") return found;
    const before = offset;
    for (let at = 0; at < outcome.bytes.length; at += sizeInBytes(outcome.bytes, at)) {
      const records = recordsOf(outcome.bytes.subarray(at, at + sizeInBytes(outcome.bytes, at)));
      if (!Array.isArray(records)) throw new Violation("a batch that is read makes no sense");
      for (const { offset: recordOffset, value } of records) {
        if (recordOffset < offset) continue;
        found.set(recordOffset, Number(new TextDecoder().decode(value ?? new Uint8Array(0))));
        offset = recordOffset + 1;
      }
    }
    outcome.release();
    if (offset === before) return found;
  }
}
