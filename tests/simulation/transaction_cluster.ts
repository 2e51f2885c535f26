/**
 * Transactional producers on several brokers of one volume, whose processes are killed, whose duties move, and whose
 * answers to clients and to one another get lost. The volume itself is sound: what a killed process has written is there.
 */

import type { Cluster } from "../../lib/broker/cluster.ts";
import { coordinatorKinds, groupPlaceOf } from "../../lib/broker/coordinator_shards.ts";
import { getOrCreateTopic } from "../../lib/broker/topic_creation.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { ErrorCode } from "../../lib/errors.ts";
import type { TopicPartition, TransactionProtocol } from "../../lib/transactions/transaction.ts";
import { SimulatedBroker } from "../support/simulated_broker.ts";
import { type Servers, TransactionalClient } from "../support/transactional_client.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { Volume } from "./simulated_volume.ts";
import { type Attempt, checkTransactions, groupOf, newAttempt, Violation } from "./transaction_rules.ts";

const TOPIC = "t";
const PARTITIONS = 3;
/** The longest timeout of a transaction; some have much less, so that time ends them in the middle. */
const TIMEOUT_MS = 8_000;
/** How often an answer gets lost on its way. */
const LOSS = 0.03;

/** Codes that have a client repeat its request. */
const repeated: ReadonlySet<number> = new Set([
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.CONCURRENT_TRANSACTIONS,
  ErrorCode.NOT_ENOUGH_REPLICAS,
  ErrorCode.KAFKA_STORAGE_ERROR,
  ErrorCode.REQUEST_TIMED_OUT,
]);

/** No answer came: the request may have been carried out. */
class NoAnswer extends Error {}

interface Node {
  readonly id: number;
  disk: SimulatedDisk;
  broker: SimulatedBroker | null;
  /** Rejects when the process is killed. */
  killed: PromiseWithResolvers<never>;
}

/** See the file's head. */
export class TransactionCluster implements Servers {
  readonly clock: Clock & SimulatedClock = new SimulatedClock();
  readonly attempts: Attempt[] = [];
  /** What clients were told and could not go on with. */
  readonly refusals = new Map<number, number>();
  readonly #volume = new Volume();
  readonly #nodes: Node[];
  readonly #keepers = new Map<string, { node: Node; readonly place: TopicPartition; epoch: number }>();
  #starts = 0;
  #values = 0;

  constructor(
    readonly random: SeededRandom,
    readonly clients: readonly { id: string; protocol: TransactionProtocol }[],
    nodes: number,
  ) {
    this.#nodes = Array.from({ length: nodes }, (_, id) => ({
      id,
      disk: this.#newDisk(),
      broker: null,
      killed: Promise.withResolvers<never>(),
    }));
  }

  async start(): Promise<void> {
    for (const node of this.#nodes) await this.restart(node.id);
    await getOrCreateTopic(this.#nodes[0].broker!.broker, TOPIC);
    for (const { broker } of this.#nodes) await broker!.broker.topics.reload(TOPIC);
    for (const { name, partitionCount } of [...coordinatorKinds, { name: TOPIC, partitionCount: PARTITIONS }]) {
      for (let partition = 0; partition < partitionCount; partition++) {
        const place = { topic: name, partition };
        const node = this.random.pick(this.#nodes);
        this.#keepers.set(keyOf(place), { node, place, epoch: 1 });
        node.broker!.lead(place, 1);
      }
    }
    await this.#nodes[0].disk.settle();
  }

  /** Starts a broker's process; it keeps nothing at first. */
  async restart(id: number): Promise<void> {
    const node = this.#nodes[id];
    node.disk = this.#newDisk();
    node.killed = Promise.withResolvers<never>();
    node.killed.promise.catch(() => {});
    node.broker = await SimulatedBroker.open({
      disk: node.disk,
      clock: this.clock,
      random: this.random.fork(),
      epoch: 1,
      settings: { "num.partitions": PARTITIONS, "log.segment.bytes": 2_000 },
      member: { nodeId: id, cluster: this.#clusterOf(id), links: this.#linksOf(node) },
    });
  }

  /** SIGKILL; others take over what it kept. */
  kill(id: number): void {
    const node = this.#nodes[id];
    node.disk.crash();
    node.broker = null;
    node.killed.reject(new NoAnswer());
    for (const keeper of this.#keepers.values()) {
      if (keeper.node === node) {
        this.#give(
          keeper,
          this.random.pick(this.#nodes.filter(({ broker }) => broker !== null)),
        );
      }
    }
  }

  /** Moves something in order from its keeper to another broker. */
  async move(): Promise<void> {
    const keeper = this.random.pick([...this.#keepers.values()]);
    const { node, place, epoch } = keeper;
    await Promise.race([node.broker!.resign(place), node.killed.promise]).catch(() => {});
    if (keeper.node !== node || keeper.epoch !== epoch) return;
    this.#give(keeper, this.random.pick(this.#nodes.filter(({ broker }) => broker !== null)));
  }

  #give(keeper: { node: Node; readonly place: TopicPartition; epoch: number }, to: Node): void {
    keeper.epoch++;
    keeper.node = to;
    to.broker!.lead(keeper.place, keeper.epoch);
  }

  at(place: TopicPartition): Pick<SimulatedBroker, "call"> {
    const { node } = this.#keepers.get(keyOf(place))!;
    const { broker, killed } = node;
    return {
      call: async (...args) => {
        if (broker === null) throw new NoAnswer();
        const reply = await Promise.race([broker.call(...args), killed.promise]);
        if (this.random.chance(LOSS)) throw new NoAnswer();
        return reply;
      },
    };
  }

  topicIdOf(topic: string): string {
    return this.#nodes.find(({ broker }) => broker !== null)!.broker!.topicIdOf(topic);
  }

  /** Lets all clients make so many transactions each, while `trouble` is made now and then. */
  async work(transactions: number, trouble: () => Promise<void>): Promise<void> {
    await this.#untilOver(
      Promise.all(this.clients.map(({ id, protocol }) => this.#run(id, protocol, transactions))),
      trouble,
    );
  }

  /** Lets time end what is open, and brokers finish what they do. */
  async finish(): Promise<void> {
    for (let passed = 0; passed < TIMEOUT_MS + 5_000; passed += 100) {
      this.clock.advance(100);
      await this.#settle();
    }
  }

  async check(): Promise<void> {
    const keeperOf = (place: TopicPartition) => this.#keepers.get(keyOf(place))!.node.broker!.broker;
    const groupsOf = (group: string) => keeperOf(groupPlaceOf(group)).groups;
    await checkTransactions({
      attempts: this.attempts,
      clients: this.clients,
      partitions: PARTITIONS,
      logOf: async (partition) => {
        const log = keeperOf({ topic: TOPIC, partition }).partitions.get(TOPIC, partition)!.log();
        await this.#settle();
        return await log;
      },
      isUnstable: (group) => groupsOf(group).isUnstable(group, TOPIC, 0),
      offsetOf: (group) => groupsOf(group).offsetsOf(group)?.get(TOPIC, 0)?.offset ?? 0,
    });
  }

  async #run(id: string, protocol: TransactionProtocol, transactions: number): Promise<void> {
    const client = new TransactionalClient(this, id, protocol);
    await this.#init(client);
    for (let i = 0; i < transactions; i++) {
      const attempt = newAttempt(id, protocol);
      this.attempts.push(attempt);
      if (await this.#write(client, attempt) && !this.random.chance(0.1)) {
        attempt.asked = this.random.chance(0.7) ? "commit" : "abort";
        if (await this.#insist(() => client.end(attempt.asked === "commit")) === ErrorCode.NONE) {
          attempt.acknowledged = true;
          continue;
        }
      }
      await this.#init(client);
    }
  }

  async #init(client: TransactionalClient): Promise<void> {
    const code = await this.#insist(() => client.init({ timeoutMs: this.random.pick([40, 120, TIMEOUT_MS]) }));
    if (code !== ErrorCode.NONE) throw new Violation(`InitProducerId answers ${code}`);
  }

  /** Answers whether everything was acknowledged. */
  async #write(client: TransactionalClient, attempt: Attempt): Promise<boolean> {
    const { random } = this;
    const places = Array.from({ length: PARTITIONS }, (_, i) => i).filter(() => random.chance(0.6));
    if (client.protocol === 1 && places.length > 0) {
      const code = await this.#insist(async () => (await client.add(TOPIC, places)).find((one) => one !== 0) ?? 0);
      if (code !== ErrorCode.NONE) return false;
    }
    for (const partition of places) {
      const value = `${client.transactionalId}#${this.#values++}`;
      if (await this.#insist(() => client.produce(TOPIC, partition, [value])) !== ErrorCode.NONE) return false;
      attempt.written.set(value, partition);
    }
    if (places.length > 0 && random.chance(0.4)) return true;
    const group = groupOf(client.transactionalId);
    if (client.protocol === 1 && await this.#insist(() => client.addOffsets(group)) !== ErrorCode.NONE) return false;
    const offset = ++this.#values;
    if (await this.#insist(() => client.commitOffset(group, TOPIC, 0, offset)) !== ErrorCode.NONE) return false;
    // Without records nobody could tell whether it was committed.
    if (attempt.written.size === 0) return false;
    attempt.offset = offset;
    return true;
  }

  /** Repeats a request until it gets an answer that stands. */
  async #insist(request: () => Promise<number>): Promise<number> {
    for (let attempt = 0; attempt < 500; attempt++) {
      const code = await request().catch((error) => {
        if (!(error instanceof NoAnswer)) throw error;
        return ErrorCode.REQUEST_TIMED_OUT;
      });
      if (!repeated.has(code)) {
        if (code !== ErrorCode.NONE) this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
        return code;
      }
      await sleep(this.clock, 20);
    }
    throw new Violation("a request is never answered");
  }

  async #untilOver(work: Promise<unknown>, trouble: () => Promise<void>): Promise<void> {
    let over = false;
    work.finally(() => over = true).catch(() => {});
    let making: Promise<void> | null = null;
    for (let turn = 0; !over; turn++) {
      if (turn > 20_000) throw new Violation("the clients never end");
      // Trouble comes in the middle of things.
      for (let step = this.random.between(1, 60); step > 0; step--) await null;
      if (making === null && this.random.chance(0.15)) making = trouble().finally(() => making = null);
      this.clock.advance(this.random.below(8));
    }
    await work;
    while (making !== null) {
      await this.#settle();
      this.clock.advance(10);
    }
  }

  async #settle(): Promise<void> {
    for (const { disk } of this.#nodes) await disk.settle();
  }

  #newDisk(): SimulatedDisk {
    const random = this.random.fork();
    return new SimulatedDisk({ random, clock: this.clock, volume: this.#volume, starts: this.#starts++, syncTurns: 8 });
  }

  #clusterOf(nodeId: number): Cluster {
    const alive = () => this.#nodes.filter(({ broker }) => broker !== null).map(({ id }) => id);
    return {
      addresses: () => alive().map((id) => ({ nodeId: id, host: "advertised", port: 1 + id, rack: null })),
      nodeIds: alive,
      isAlive: (id) => alive().includes(id),
      placeOf: (topic, partition) => {
        const keeper = this.#keepers.get(keyOf({ topic, partition }));
        if (keeper === undefined) return null;
        return { nodeId: keeper.node.id, leaderEpoch: keeper.epoch, movesTo: null, chosen: null };
      },
      chooseLeaders: () => Promise.resolve(),
      eventually: (condition) => Promise.resolve(condition()),
      coordinatorOf: (kind, shard) => this.#keepers.get(keyOf({ topic: kind, partition: shard }))?.node.id ?? null,
      controllerId: nodeId,
    };
  }

  #linksOf(from: Node) {
    const { disk } = from;
    return {
      call: async (to: number, ...args: Parameters<SimulatedBroker["call"]>) => {
        const { broker, killed } = this.#nodes[to];
        // A killed process asks nobody any more.
        if (disk.crashed) return await new Promise<never>(() => {});
        if (broker === null) return null;
        const reply = await Promise.race([broker.call(...args), killed.promise]).catch(() => null);
        return this.random.chance(LOSS) ? null : reply;
      },
    } as never;
  }
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
