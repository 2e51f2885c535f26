/**
 * The topics of this cluster, in memory over their folders on the volume.
 *
 * Invariants: a topic that can be looked up is durable on the volume (folder, id, settings); two topics with one name, or
 * with names that collide, never exist together; a topic id is never used twice. Changes of topics whose names collide
 * run one after the other, so every check holds until its change is done.
 *
 * A {@link Topic} is an immutable picture; each change makes a new one. Deleting takes the topic out of the look-ups
 * first, then lets the listeners close every handle on its files, and only then removes the files. Where the volume
 * refuses that, the files stay, are tried again when the name is wanted, and are a topic again after a restart: whoever
 * deleted it was told.
 */

import type { Random } from "../clock.ts";
import { DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { Logger } from "../observability/logger.ts";
import type { FolderTopicStore, StoredTopic, TopicIdentity } from "../storage/topic_store.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { brokerSynonyms, type TopicSettingValues } from "./config_definitions_topic.ts";
import { type Refusal, refuse } from "./refusal.ts";
import { effectiveSettings, overridesFromJson, overridesToJson, type TopicOverrides } from "./topic_config.ts";
import { collisionKey, isInternalTopic } from "./topic_name.ts";
import { MAX_PARTITIONS_PER_REQUEST, type TopicPlan } from "./topic_plan.ts";

/** Where topics are kept. Each method resolves when its change is durable. @throws {DiskError} */
export type TopicStore = Pick<
  FolderTopicStore,
  "addPartitions" | "createTopic" | "deleteTopic" | "readTopic" | "scan" | "writeConfig"
>;

/** One topic, as it is at a moment. */
export interface Topic {
  readonly name: string;
  readonly topicId: string;
  /** Kafka's own topics, which clients hide from subscriptions by pattern. */
  readonly internal: boolean;
  /** Partitions are numbered from 0 to this, exclusive. */
  readonly partitionCount: number;
  readonly overrides: TopicOverrides;
  /** The values in effect: overrides over the broker's defaults. */
  readonly settings: TopicSettingValues;
}

/** Follows the registry. Promises are awaited before the change is answered. */
export interface TopicListener {
  /** The topic is durable; `leaders` are brokers wanted by hand. Partitions from `firstPartition` on are new. */
  partitionsAdded?(topic: Topic, firstPartition: number, leaders: ReadonlyMap<number, number>): void | Promise<void>;
  /** The topic can no longer be looked up: close every handle on its files. */
  topicDeleted?(topic: Topic): void | Promise<void>;
  /** Its name is free on the volume. */
  nameFreed?(topic: Topic): void | Promise<void>;
  /** The values in effect may have changed. */
  topicConfigured?(topic: Topic): void;
  /** The topic's own settings were changed here. */
  topicAltered?(topic: Topic): void;
}

export interface TopicsOptions {
  readonly store: TopicStore;
  readonly config: BrokerConfig;
  readonly random: Random;
  readonly logger: Logger;
  /** Resolves when no process has a file of a deleted topic open any more; the files are removed then. */
  closedEverywhere?(topic: TopicIdentity): Promise<void>;
}

/** See the file's head. */
export class Topics {
  #version = 0;
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<string, Topic>();
  readonly #namesByCollisionKey = new Map<string, Set<string>>();
  readonly #foreignConfig = new Map<string, Readonly<Record<string, unknown>>>();
  /** Topics out of the look-ups whose files could not be removed, by name. */
  readonly #undeleted = new Map<string, Topic>();
  readonly #busy = new Map<string, Promise<unknown>>();
  readonly #listeners: TopicListener[] = [];
  readonly #options: TopicsOptions;

  private constructor(options: TopicsOptions) {
    this.#options = options;
    const affecting = new Set(Object.values(brokerSynonyms).flatMap((synonyms) => synonyms.map(({ name }) => name)));
    affecting.add("producer.id.expiration.ms");
    options.config.onChange((changed) => {
      if ([...changed].some((name) => affecting.has(name))) this.#reconfigureAll();
    });
  }

  /** The registry of all topics on the volume. @throws {DiskError} */
  static async load(options: TopicsOptions): Promise<Topics> {
    const topics = new Topics(options);
    for (const stored of await options.store.scan()) topics.#put(await topics.#pictureOf(stored));
    return topics;
  }

  async #pictureOf(stored: StoredTopic, known = 0): Promise<Topic> {
    const { overrides, foreign } = overridesFromJson(stored.config);
    const unknown = Object.keys(foreign);
    if (unknown.length > 0 && !this.#foreignConfig.has(stored.topicId)) {
      this.#options.logger.warn("topic settings without effect", { topic: stored.name, keys: unknown.join(", ") });
    }
    this.#foreignConfig.set(stored.topicId, foreign);
    return this.#picture(stored, await this.#partitionsWithoutGap(stored, known), overrides);
  }

  /**
   * Looks at a topic on the volume: another broker may have made, changed or deleted it. What this broker is changing
   * itself is left alone. @throws {DiskError}
   */
  async reload(name: string): Promise<void> {
    const key = collisionKey(name);
    if (this.#busy.has(key)) return;
    const reloading = this.#reload(name);
    const settled = reloading.then(() => {}, () => {});
    this.#busy.set(key, settled);
    try {
      await reloading;
    } finally {
      if (this.#busy.get(key) === settled) this.#busy.delete(key);
    }
  }

  async #reload(name: string): Promise<void> {
    const stored = await this.#options.store.readTopic(name);
    const present = this.#byName.get(name);
    if (present !== undefined && present.topicId !== stored?.topicId) {
      this.#take(present);
      await this.#tell((listener) => listener.topicDeleted?.(present));
    }
    if (stored === null) return;
    const known = present?.topicId === stored.topicId ? present.partitionCount : 0;
    const picture = await this.#pictureOf(stored, known);
    this.#put(picture);
    for (const listener of this.#listeners) listener.topicConfigured?.(picture);
  }

  /** Looks at all topics on the volume, as {@link reload} does. @throws {DiskError} */
  async reloadAll(): Promise<void> {
    const stored = await this.#options.store.scan();
    const names = new Set([...this.#byName.keys(), ...stored.map(({ name }) => name)]);
    for (const name of names) await this.reload(name);
  }

  /**
   * The number of a topic's partitions. A crash while partitions were added may have left any of them: those in front
   * of the last one are made now. A folder far behind all others is none of ours.
   *
   * One of the first `known`, which have been there before, was removed by somebody: it is not made anew, since an empty
   * log in its place would give offsets that others have had.
   */
  async #partitionsWithoutGap(stored: StoredTopic, known: number): Promise<number> {
    const { store, logger } = this.#options;
    const missing: number[] = [];
    let count = 0;
    for (const index of stored.partitions) {
      if (index - count > MAX_PARTITIONS_PER_REQUEST) {
        logger.warn("folder taken for none of the topic's partitions", { topic: stored.name, folder: index });
        break;
      }
      for (; count < index; count++) if (count >= known) missing.push(count);
      count++;
    }
    if (missing.length > 0) {
      logger.warn("missing partitions are made", { topic: stored.name, partitions: missing.join(", ") });
      await store.addPartitions(stored, missing);
    }
    return Math.max(count, known);
  }

  /** Follows all changes from now on. */
  subscribe(listener: TopicListener): void {
    this.#listeners.push(listener);
  }

  get(name: string): Topic | undefined {
    return this.#byName.get(name);
  }

  getById(topicId: string): Topic | undefined {
    return this.#byId.get(topicId);
  }

  /** All topics, in no particular order. */
  all(): Iterable<Topic> {
    return this.#byName.values();
  }

  /** Changes whenever a topic does. */
  get version(): number {
    return this.#version;
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Names of topics that share a collision key. */
  namesLike(key: string): readonly string[] {
    return [...this.#namesByCollisionKey.get(key) ?? []];
  }

  /**
   * Creates the topic that `plan` returns; the plan is made when no other change of such a name is running. Resolves
   * when the topic is durable and can be used.
   */
  create(name: string, plan: () => TopicPlan | Refusal): Promise<Topic | Refusal> {
    return this.#exclusively(name, async () => {
      const planned = plan();
      if ("errorCode" in planned) return planned;
      const { partitionCount, overrides, leaders } = planned;
      await this.#remove(this.#undeleted.get(name));
      const topic = this.#picture({ name, topicId: this.#newId() }, partitionCount, overrides);
      const partitions = Array.from({ length: partitionCount }, (_, index) => index);
      const config = overridesToJson(overrides);
      await this.#options.store.createTopic({ name, topicId: topic.topicId, config, partitions });
      this.#put(topic);
      await this.#tell((listener) => listener.partitionsAdded?.(topic, 0, leaders));
      return topic;
    });
  }

  /** Deletes the topic if it still is the one with this id. Resolves when its name is free again. */
  delete(topic: Topic): Promise<Refusal | null> {
    return this.#exclusively(topic.name, async () => {
      const present = this.#byId.get(topic.topicId);
      if (present === undefined) return gone(topic.name);
      this.#take(present);
      await this.#tell((listener) => listener.topicDeleted?.(present));
      await this.#remove(present);
      await this.#tell((listener) => listener.nameFreed?.(present));
      return null;
    });
  }

  /** Raises the number of partitions as `plan` allows for the topic as it then is. */
  addPartitions(
    topic: Topic,
    count: number,
    plan: (present: Topic) => { readonly leaders: ReadonlyMap<number, number> } | Refusal,
  ): Promise<Topic | Refusal> {
    return this.#exclusively(topic.name, async () => {
      const present = this.#byId.get(topic.topicId);
      if (present === undefined) return gone(topic.name);
      const planned = plan(present);
      if ("errorCode" in planned) return planned;
      const first = present.partitionCount;
      const added = Array.from({ length: count - first }, (_, index) => first + index);
      await this.#options.store.addPartitions(present, added);
      const grown = { ...present, partitionCount: count };
      this.#put(grown);
      await this.#tell((listener) => listener.partitionsAdded?.(grown, first, planned.leaders));
      return grown;
    });
  }

  /** Replaces the topic's own settings by what `alter` makes of those it then has. */
  configure(topic: Topic, alter: (present: Topic) => TopicOverrides | Refusal): Promise<Topic | Refusal> {
    return this.#exclusively(topic.name, async () => {
      const present = this.#byId.get(topic.topicId);
      if (present === undefined) return gone(topic.name);
      const overrides = alter(present);
      if ("errorCode" in overrides) return overrides;
      const foreign = this.#foreignConfig.get(present.topicId);
      await this.#options.store.writeConfig(present, { ...foreign, ...overridesToJson(overrides) });
      const configured = this.#picture(present, present.partitionCount, overrides);
      this.#put(configured);
      for (const listener of this.#listeners) {
        listener.topicConfigured?.(configured);
        listener.topicAltered?.(configured);
      }
      return configured;
    });
  }

  async #remove(topic: Topic | undefined): Promise<void> {
    if (topic === undefined) return;
    this.#undeleted.set(topic.name, topic);
    await this.#options.store.deleteTopic(topic, () => this.#options.closedEverywhere?.(topic) ?? Promise.resolve());
    this.#undeleted.delete(topic.name);
  }

  #picture(
    { name, topicId }: { readonly name: string; readonly topicId: string },
    partitionCount: number,
    overrides: TopicOverrides,
  ): Topic {
    const settings = effectiveSettings(overrides, this.#options.config);
    return { name, topicId, internal: isInternalTopic(name), partitionCount, overrides, settings };
  }

  #put(topic: Topic): void {
    this.#version++;
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.topicId, topic);
    const key = collisionKey(topic.name);
    const names = this.#namesByCollisionKey.get(key);
    if (names === undefined) this.#namesByCollisionKey.set(key, new Set([topic.name]));
    else names.add(topic.name);
  }

  #take(topic: Topic): void {
    this.#version++;
    this.#byName.delete(topic.name);
    this.#byId.delete(topic.topicId);
    this.#foreignConfig.delete(topic.topicId);
    const key = collisionKey(topic.name);
    const names = this.#namesByCollisionKey.get(key);
    names?.delete(topic.name);
    if (names?.size === 0) this.#namesByCollisionKey.delete(key);
  }

  /** A random id whose text form does not begin with "-", so that tools can take it as an argument. */
  #newId(): string {
    for (;;) {
      const id = this.#options.random.uuid();
      if (parseInt(id.slice(0, 2), 16) >> 2 !== 62 && !this.#byId.has(id)) return id;
    }
  }

  #reconfigureAll(): void {
    for (const topic of [...this.#byName.values()]) {
      const configured = this.#picture(topic, topic.partitionCount, topic.overrides);
      this.#put(configured);
      for (const listener of this.#listeners) listener.topicConfigured?.(configured);
    }
  }

  async #tell(call: (listener: TopicListener) => void | Promise<void>): Promise<void> {
    for (const listener of this.#listeners) await call(listener);
  }

  /** Runs `change` after all earlier ones of colliding names; a failing volume becomes a refusal. */
  #exclusively<T>(name: string, change: () => Promise<T>): Promise<T | Refusal> {
    const key = collisionKey(name);
    const before = this.#busy.get(key) ?? Promise.resolve();
    const running = before.then(change).catch((error: unknown): Refusal => {
      if (!(error instanceof DiskError)) throw error;
      if (error.kind === "exists" || error.kind === "not-empty") {
        const problem = `a folder of the name ${name} is on the volume, but is no topic that can be served`;
        return refuse(ErrorCode.TOPIC_ALREADY_EXISTS, problem);
      }
      this.#options.logger.error("topic change failed", { topic: name, error: String(error) });
      return refuse(ErrorCode.KAFKA_STORAGE_ERROR, `the volume refused: ${error.message}`);
    });
    const settled = running.then(() => {}, () => {});
    this.#busy.set(key, settled);
    settled.then(() => {
      if (this.#busy.get(key) === settled) this.#busy.delete(key);
    });
    return running;
  }
}

function gone(name: string): Refusal {
  return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `topic ${name} does not exist`);
}
