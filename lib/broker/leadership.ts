/**
 * Makes this broker do what the assignment says: lead what it is given, close what it is relieved of, forget what was
 * deleted; and tells everybody who asks where partitions are.
 *
 * Only an assignment that knows the present session is acted on. The epoch in it is durable before the partition is led
 * under it. A partition that another process may still write to is taken over at once, which fences that process; any
 * other is opened when it is first used.
 */
import { type Clock, sleep } from "../clock.ts";
import type { Assignment, PartitionAssignment } from "../cluster/assignment.ts";
import { partitionKey } from "../cluster/assignment.ts";
import { brokerName, type BrokerRecord } from "../cluster/broker_record.ts";
import type { LeaseWatch, Sighting } from "../cluster/lease_watch.ts";
import { DiskError } from "../disk/disk.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import type { TopicIdentity } from "../storage/topic_store.ts";
import type { Membership, MembershipListener } from "./membership.ts";
import type { Partition, Partitions } from "./partitions.ts";
import type { Topic, TopicListener, Topics } from "./topics.ts";

/** How many partitions are taken over at a time where nobody has asked for them yet. */
const TAKEN_OVER_AT_ONCE = 8;
/** Time between two looks at how far the other brokers are. */
const OTHERS_LOOK_MS = 10;
/** How long the answer to a change of a topic waits for the other brokers to know it. */
const OTHERS_PATIENCE_MS = 1000;

/** Follows shards of coordinators, which are assigned as partitions are. */
export interface CoordinatorListener {
  /** The shard is this broker's from now on. */
  lead(kind: string, shard: number, epoch: number): void;
  /** It is not any more: resolves when nothing more is written to it. */
  resign(kind: string, shard: number): Promise<void>;
}

export interface LeadershipOptions {
  readonly logger: Logger;
  readonly membership: Membership;
  readonly topics: Topics;
  readonly partitions: Partitions;
  readonly coordinators: CoordinatorListener;
  readonly brokers: LeaseWatch<BrokerRecord>;
  readonly clock: Clock;
  folderOf(topic: string, partition: number): string;
  /** Wakes the controller, where it runs in this process. */
  pokeController(): void;
}

/** Where a partition is led. */
export interface Place {
  readonly nodeId: number;
  readonly leaderEpoch: number;
  /** The broker that it moves to; null while it does not move. */
  readonly movesTo: number | null;
  /** The broker that somebody chose for it by hand; null where nobody did. */
  readonly chosen: number | null;
}

/** See the file's head. */
export class Leadership implements TopicListener, MembershipListener {
  #assignment: Assignment | null = null;
  readonly #entries = new Map<string, PartitionAssignment>();
  readonly #shards = new Map<string, PartitionAssignment>();
  readonly #led = new Map<string, number>();
  readonly #ledShards = new Map<string, { readonly epoch: number; handedOver: boolean }>();
  #applying: Promise<void> = Promise.resolve();
  #queue: Partition[] = [];
  #takingOver = 0;
  #stopped = false;
  readonly #waiting = new Set<() => void>();
  /** Deleted topics whose files may be open somewhere, by id. */
  readonly #closing = new Map<string, Promise<void>>();
  readonly #firstApplied = Promise.withResolvers<void>();
  /** Resolves when an assignment that knows this broker is in effect. */
  readonly ready: Promise<void> = this.#firstApplied.promise;

  /** `before` is the assignment found at start: who may have led what until now. */
  constructor(private readonly options: LeadershipOptions, before: Assignment | null) {
    this.#note(before);
    options.topics.subscribe(this);
    options.membership.listen(this);
  }

  /** The broker that leads a partition; null where that is not known. */
  placeOf(topic: string, partition: number): Place | null {
    const entry = this.#entries.get(`${topic}/${partition}`);
    if (entry === undefined) return null;
    const { broker, epoch, moveTo, preferred } = entry;
    const isWanted = preferred !== undefined && preferred !== broker && this.#isAliveByName(preferred);
    const target = moveTo ?? (isWanted ? preferred : undefined);
    return {
      nodeId: nodeIdOf(broker),
      leaderEpoch: epoch,
      movesTo: target === undefined ? null : nodeIdOf(target),
      chosen: preferred === undefined ? null : nodeIdOf(preferred),
    };
  }

  #isAliveByName(name: string): boolean {
    return this.#assignment?.brokers.some(({ id, health }) => id === name && health === "alive") === true;
  }

  /** Says whom somebody wants to lead partitions; durable when it resolves, carried out later. */
  async chooseLeaders(chosen: readonly { topic: string; partition: number; nodeId: number }[]): Promise<void> {
    const wishes = chosen.map(({ topic, partition, nodeId }) => ({ topic, partition, broker: brokerName(nodeId) }));
    await this.options.membership.wish(wishes);
    this.options.pokeController();
  }

  /** The broker that keeps a shard of coordinators' state; null where that is not known. */
  coordinatorOf(kind: string, shard: number): number | null {
    const entry = this.#shards.get(`${kind}/${shard}`);
    return entry === undefined ? null : nodeIdOf(entry.broker);
  }

  /** The node id of the broker that also is the controller; -1 where that is another process. */
  get controllerId(): number {
    const controller = this.#assignment?.controller;
    return controller === undefined || !/^kaas-\d+$/.test(controller) ? -1 : nodeIdOf(controller);
  }

  /** How many partitions and shards this broker is assigned. */
  get dutyCount(): number {
    const { name } = this.options.membership;
    let count = 0;
    for (const entries of [this.#entries, this.#shards]) {
      for (const { broker } of entries.values()) if (broker === name) count++;
    }
    return count;
  }

  /** Acts on an assignment, after any before it. */
  apply(assignment: Assignment): void {
    this.#applying = this.#applying.then(() => this.#apply(assignment)).catch((error) => {
      if (!(error instanceof DiskError)) throw error;
      this.options.logger.error("cannot act on the assignment; it is tried again", { error: errorText(error) });
    });
  }

  /** Acts on no assignment any more, and waits for none. Resolves when what was begun is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#changed();
    await this.#applying;
  }

  async partitionsAdded(topic: Topic, firstPartition: number, leaders: ReadonlyMap<number, number>): Promise<void> {
    if (leaders.size > 0) {
      await this.chooseLeaders(
        Array.from(leaders, ([partition, nodeId]) => ({ topic: topic.name, partition, nodeId })),
      );
    }
    await this.#announce(topic.name);
    const isAssigned = () => this.#isAssigned(topic, firstPartition);
    while (!isAssigned() && !this.#isOver) await this.nextChange();
    // A client may ask any of them next.
    await this.#seenByOthers(this.#assignment?.assignmentVersion ?? 0, OTHERS_PATIENCE_MS);
  }

  async topicDeleted(topic: Topic): Promise<void> {
    for (const key of [...this.#led.keys()]) {
      if (key.slice(0, key.lastIndexOf("/")) === topic.name) this.#led.delete(key);
    }
    await this.options.partitions.abandonTopic(topic.name);
  }

  topicConfigured(topic: Topic): void {
    this.options.partitions.applyConfig(topic.name);
  }

  topicAltered(topic: Topic): void {
    void this.#announce(topic.name);
  }

  /**
   * Tells that a topic's folder is gone from its place. Resolves when no live broker has a file of it open any more, or
   * nobody can know.
   */
  closedEverywhere(topic: TopicIdentity): Promise<void> {
    const closing = this.#closing.get(topic.topicId) ?? this.#closedEverywhere(topic)
      .finally(() => this.#closing.delete(topic.topicId));
    this.#closing.set(topic.topicId, closing);
    return closing;
  }

  /** The next request may come to another broker: it should not be told of the deleted topic there. */
  async nameFreed(topic: Topic): Promise<void> {
    await Promise.race([this.closedEverywhere(topic), sleep(this.options.clock, OTHERS_PATIENCE_MS)]);
  }

  async #closedEverywhere(topic: TopicIdentity): Promise<void> {
    await this.#announce(topic.name);
    while (this.#assignment === null || knows(this.#assignment, topic)) {
      if (this.#isOver) return;
      await this.nextChange();
    }
    await this.#seenByOthers(this.#assignment.assignmentVersion, Infinity);
  }

  /** Resolves when all other live brokers act on this version of the assignment, or a later one; or after `patienceMs`. */
  async #seenByOthers(version: number, patienceMs: number): Promise<void> {
    const { membership, brokers, clock } = this.options;
    const deadline = clock.monotonicMs() + patienceMs;
    const isBehind = ({ record, alive }: Sighting<BrokerRecord>) =>
      alive && record.nodeId !== membership.nodeId && record.assignmentVersion < version;
    while (brokers.sightings().some(isBehind) && !this.#isOver && clock.monotonicMs() < deadline) {
      await sleep(clock, OTHERS_LOOK_MS);
      await brokers.observe().catch((error) => {
        if (!(error instanceof DiskError)) throw error;
      });
    }
  }

  get #isOver(): boolean {
    return this.#stopped || !this.options.membership.isValid();
  }

  async sessionLost(): Promise<void> {
    // First of all, at once: whatever was open is not written to any more.
    const closing = [this.options.partitions.abandonAll()];
    for (const key of this.#ledShards.keys()) {
      const { kind, shard } = shardOf(key);
      closing.push(this.options.coordinators.resign(kind, shard));
    }
    this.#led.clear();
    this.#ledShards.clear();
    this.#queue = [];
    this.#changed();
    await Promise.all(closing);
  }

  /** A partition has stalled: another takeover, here or elsewhere, may heal it. */
  stalled({ topic, index, leaderEpoch }: Partition): void {
    void this.options.membership.give([{ topic, partition: index, epoch: leaderEpoch }], "stalled")
      .then(() => this.options.pokeController());
  }

  async #announce(topic: string): Promise<void> {
    await this.options.membership.topicChanged(topic);
    this.options.pokeController();
  }

  async #apply(assignment: Assignment): Promise<void> {
    if (this.#stopped) return;
    const { membership, topics } = this.options;
    const changed = await this.#followTopics(assignment);
    const before = new Map(this.#entries);
    this.#note(assignment);
    const ids = new Map(assignment.topics?.map(({ name, topicId }) => [name, topicId]));
    const isKnown = (name: string) => topics.get(name) !== undefined && topics.get(name)?.topicId === ids.get(name);
    const me = assignment.brokers.find(({ id }) => id === membership.name);
    // An assignment that does not know this session is about an earlier one.
    if (membership.isValid() && me?.tenure === membership.tenure) {
      this.#follow(assignment.partitions.filter(({ topic: name }) => isKnown(name)), before);
      this.#followShards(assignment.coordinators ?? []);
      membership.assigned(assignment.assignmentVersion, (given) => this.#isSettled(given), (wish) => {
        const entry = this.#entries.get(`${wish.topic}/${wish.partition}`);
        return entry?.preferred === wish.broker || topics.get(wish.topic) === undefined;
      });
      // Whoever changed a topic may wait for this.
      if (changed) void membership.publish();
      this.#firstApplied.resolve();
    }
    this.#changed();
  }

  #isSettled({ topic, partition, epoch }: { topic: string; partition: number; epoch: number }): boolean {
    const key = `${topic}/${partition}`;
    const entry = this.#entries.get(key) ?? this.#shards.get(key);
    return entry === undefined || entry.epoch > epoch;
  }

  #note(assignment: Assignment | null): void {
    this.#assignment = assignment;
    this.#entries.clear();
    this.#shards.clear();
    for (const entry of assignment?.partitions ?? []) this.#entries.set(partitionKey(entry), entry);
    for (const entry of assignment?.coordinators ?? []) this.#shards.set(partitionKey(entry), entry);
  }

  /** Topics that were made, changed or deleted through other brokers. Resolves to whether there were any. */
  async #followTopics(assignment: Assignment): Promise<boolean> {
    const { topics } = this.options;
    if (assignment.topics === undefined) return false;
    let changed = false;
    const known = new Map(this.#assignment?.topics?.map((topic) => [topic.name, topic]));
    const present = new Set<string>();
    for (const { name, topicId, revision } of assignment.topics) {
      present.add(name);
      const before = known.get(name);
      if (topics.get(name)?.topicId !== topicId || (before !== undefined && before.revision !== revision)) {
        await topics.reload(name);
        changed = true;
      }
    }
    const gone = [...known.keys()].filter((name) => !present.has(name));
    for (const name of gone) await topics.reload(name);
    return changed || gone.length > 0;
  }

  #follow(entries: readonly PartitionAssignment[], before: ReadonlyMap<string, PartitionAssignment>): void {
    const { membership: { name }, partitions, topics } = this.options;
    const mine = new Set<string>();
    for (const entry of entries) {
      if (entry.broker !== name) continue;
      const { topic, partition, epoch, moveTo } = entry;
      const key = partitionKey(entry);
      mine.add(key);
      if (partition >= (topics.get(topic)?.partitionCount ?? 0)) continue;
      if (this.#led.get(key) !== epoch) {
        this.#led.set(key, epoch);
        const led = partitions.lead(
          topic,
          partition,
          this.options.folderOf(topic, partition),
          epoch,
          topics.get(topic)?.topicId,
        );
        const former = before.get(key);
        if (former !== undefined && former.broker !== name) this.#takeOverSoon(led);
      }
      if (moveTo !== undefined) this.#handOver(entry);
    }
    for (const key of [...this.#led.keys()]) {
      if (mine.has(key)) continue;
      this.#led.delete(key);
      const { kind: topic, shard: index } = shardOf(key);
      // Somebody else has it: whatever this broker could still write would be its own loss.
      void partitions.drop(topic, index);
    }
  }

  /** Closes a partition in order, and says so. */
  #handOver({ topic, partition, epoch }: PartitionAssignment): void {
    const { partitions, membership, logger } = this.options;
    const led = partitions.get(topic, partition);
    if (led === undefined || led.leaderEpoch !== epoch || led.state === "closed") return;
    void led.relinquish().catch((error) => {
      if (!(error instanceof DiskError)) throw error;
      logger.error("not closed in order", { topic, partition, error: errorText(error) });
    }).then(() => membership.give([{ topic, partition, epoch }], "closed")).then(() => this.options.pokeController());
  }

  #followShards(entries: readonly PartitionAssignment[]): void {
    const { membership, coordinators } = this.options;
    const mine = new Set<string>();
    for (const { broker, topic: kind, partition: shard, epoch, moveTo } of entries) {
      if (broker !== membership.name) continue;
      const key = `${kind}/${shard}`;
      mine.add(key);
      if (this.#ledShards.get(key)?.epoch !== epoch) {
        this.#ledShards.set(key, { epoch, handedOver: false });
        coordinators.lead(kind, shard, epoch);
      }
      const led = this.#ledShards.get(key);
      if (moveTo === undefined || led === undefined || led.handedOver) continue;
      led.handedOver = true;
      void coordinators.resign(kind, shard)
        .then(() => membership.give([{ topic: kind, partition: shard, epoch }], "closed"))
        .then(() => this.options.pokeController());
    }
    for (const key of [...this.#ledShards.keys()]) {
      if (mine.has(key)) continue;
      this.#ledShards.delete(key);
      const { kind, shard } = shardOf(key);
      void coordinators.resign(kind, shard);
    }
  }

  #takeOverSoon(partition: Partition): void {
    this.#queue.push(partition);
    while (this.#takingOver < TAKEN_OVER_AT_ONCE && this.#queue.length > 0) void this.#takeOverQueued();
  }

  async #takeOverQueued(): Promise<void> {
    this.#takingOver++;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) await next.opened();
    } finally {
      this.#takingOver--;
    }
  }

  #isAssigned({ name, topicId, partitionCount }: Topic, firstPartition: number): boolean {
    if (this.#assignment?.topics?.some((topic) => topic.name === name && topic.topicId === topicId) !== true) {
      return false;
    }
    for (let partition = firstPartition; partition < partitionCount; partition++) {
      const entry = this.#entries.get(`${name}/${partition}`);
      if (entry === undefined) return false;
      if (entry.broker === this.options.membership.name && !this.#led.has(`${name}/${partition}`)) return false;
    }
    return true;
  }

  /** Resolves when an assignment was acted on, or the session has ended. */
  nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  #changed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resume of waiting) resume();
  }
}

function knows(assignment: Assignment, topic: TopicIdentity): boolean {
  return assignment.topics?.some(({ name, topicId }) => name === topic.name && topicId === topic.topicId) === true;
}

function shardOf(key: string): { kind: string; shard: number } {
  const slash = key.lastIndexOf("/");
  return { kind: key.slice(0, slash), shard: Number(key.slice(slash + 1)) };
}

function nodeIdOf(broker: string): number {
  const match = /^kaas-(\d+)$/.exec(broker);
  return match === null ? -1 : Number(match[1]);
}
