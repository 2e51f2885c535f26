/**
 * Topics as folders of the volume:
 *
 *     DATA/<topic>/.topic-id.json     {"topicId": "<uuid>"}: which topic of that name this is
 *     DATA/<topic>/.config.json       the topic's own settings; may be missing
 *     DATA/<topic>/<n>/               partition n
 *     DATA/.deleted/<topic>-<uuid>/   a topic that is being removed
 *     DATA/.deleted/.new-<uuid>/      a topic that is being made
 *
 * Invariants: a topic's folder appears under its name complete and disappears as a whole, each by one rename; whatever
 * changes or deletes a topic first checks that it is still the same one; what carries no mark of being made or deleted is
 * never removed. No name is longer than 255 bytes.
 */

import type { Clock, Random } from "../clock.ts";
import { DamagedFileError, readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError, type Entry } from "../disk/disk.ts";
import type { StorageLogger } from "./log_state.ts";

/** A topic as it stands on the volume. `config` is the content of its `.config.json`. */
export interface StoredTopic {
  readonly name: string;
  /** A UUID in canonical form. */
  readonly topicId: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Numbers of its partitions, rising. */
  readonly partitions: readonly number[];
}

/** Which topic is meant: a name may have been given to another one meanwhile. */
export interface TopicIdentity {
  readonly name: string;
  readonly topicId: string;
}

export interface TopicStoreOptions {
  readonly disk: Disk;
  readonly dataFolder: string;
  readonly clock: Pick<Clock, "wallMs">;
  readonly random: Random;
  readonly logger: StorageLogger;
}

const ID_NAME = ".topic-id.json";
const CONFIG_NAME = ".config.json";
const CLUSTER_FOLDER = "__cluster";
const DELETED_FOLDER = ".deleted";
const NEW_PREFIX = ".new-";
/** Kafka's rule for topic names; a folder with another name is not ours. */
const TOPIC_NAME = /^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$/;
const PARTITION_NAME = /^(0|[1-9]\d{0,9})$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MAX_NAME_BYTES = 255;
/** A topic that is being made is taken for a crash's leftover after this long; clocks of machines may differ. */
const MAKING_MAX_MS = 60 * 60 * 1000;
/** Folders that a scan looks into at a time. */
const SCANNED_AT_ONCE = 64;

/** See the file's head. Every method resolves when its change is durable, and throws {@link DiskError}. */
export class FolderTopicStore {
  readonly #options: TopicStoreOptions;
  #removals = new Set<Promise<void>>();

  constructor(options: TopicStoreOptions) {
    this.#options = options;
  }

  /**
   * All topics, by name. A topic of an older writer, without an id, is given one for good. One whose id or settings are
   * damaged is left out and reported: serving it with other settings could delete what it was told to keep.
   */
  async scan(): Promise<StoredTopic[]> {
    const { disk, dataFolder } = this.#options;
    const folders = (await disk.list(dataFolder)).filter((entry) => entry.isFolder);
    const names = folders.map(({ name }) => name).filter(isTopicFolderName);
    const found: (StoredTopic | null)[] = new Array(names.length).fill(null);
    let next = 0;
    const worker = async () => {
      while (next < names.length) {
        const i = next++;
        found[i] = await this.#readTopic(names[i]);
      }
    };
    await Promise.all(Array.from({ length: SCANNED_AT_ONCE }, worker));
    return found.filter((topic) => topic !== null);
  }

  /**
   * Makes a topic's folder with everything in it.
   *
   * 1. All of it under a name of its own, synced — a crash leaves a `.new-` folder for {@link sweep}.
   * 2. Rename to the topic's name — a crash leaves the topic, or not.
   * 3. Sync of the data folder — now it is durable.
   *
   * @throws {DiskError} `"exists"` or `"not-empty"` when there is a topic of that name
   */
  async createTopic(topic: StoredTopic): Promise<void> {
    const { disk, dataFolder } = this.#options;
    const making = `${dataFolder}/${DELETED_FOLDER}/${NEW_PREFIX}${topic.topicId}`;
    try {
      // Where the data folder is gone, the next call would make another one.
      await disk.stat(dataFolder);
      await disk.makeFolder(making);
      for (const partition of topic.partitions) await disk.makeFolder(`${making}/${partition}`);
      if (Object.keys(topic.config).length > 0) await replaceJson(disk, `${making}/${CONFIG_NAME}`, topic.config);
      // The last write: its sync of the folder covers the names of the others.
      await replaceJson(disk, `${making}/${ID_NAME}`, { topicId: topic.topicId });
      await this.#refuseIfThere(topic.name);
      await disk.rename(making, `${dataFolder}/${topic.name}`);
    } catch (error) {
      await this.#removeFolder(making);
      throw error;
    }
    await disk.syncFolder(dataFolder);
  }

  /** Whether the topic is still the one of its name. @throws {DiskError} */
  async isPresent({ name, topicId }: TopicIdentity): Promise<boolean> {
    const { disk, dataFolder } = this.#options;
    return await readJson(disk, `${dataFolder}/${name}/${ID_NAME}`, parseId) === topicId;
  }

  /** Adds partitions. @throws {DiskError} `"not-found"` when the topic is not there any more */
  async addPartitions(topic: TopicIdentity, partitions: readonly number[]): Promise<void> {
    const { disk } = this.#options;
    const folder = await this.#folderOf(topic);
    for (const partition of partitions) await disk.makeFolder(`${folder}/${partition}`);
    await disk.syncFolder(folder);
  }

  /** Replaces a topic's settings. @throws {DiskError} `"not-found"` when the topic is not there any more */
  async writeConfig(topic: TopicIdentity, config: Readonly<Record<string, unknown>>): Promise<void> {
    await replaceJson(this.#options.disk, `${await this.#folderOf(topic)}/${CONFIG_NAME}`, config);
  }

  /**
   * Frees a topic's name, and removes its files behind that, as soon as `isClosed` resolves: no handle on them is open
   * then. A topic that is not there any more is fine.
   *
   * 1. Rename into `.deleted` — a crash leaves the topic, or something that only waits for its removal.
   * 2. Sync of both folders — now the name is free for good, and a topic of that name can be made.
   * 3. The files are removed. What the volume does not let go is tried again by {@link sweep}.
   */
  async deleteTopic(topic: TopicIdentity, isClosed: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    const { disk, dataFolder } = this.#options;
    const deleted = `${dataFolder}/${DELETED_FOLDER}`;
    const aside = `${deleted}/${asideName(topic)}`;
    try {
      const folder = await this.#folderOf(topic);
      await disk.makeFolder(deleted);
      await disk.rename(folder, aside);
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
      return;
    }
    await disk.syncFolder(deleted);
    await disk.syncFolder(dataFolder);
    this.#removeBehind(aside, isClosed());
  }

  /**
   * Removes what is left of deleted topics, and of topics that were never finished. Never throws: what is still busy stays
   * for the next time.
   */
  async sweep(): Promise<void> {
    const { disk, dataFolder, logger } = this.#options;
    const deleted = `${dataFolder}/${DELETED_FOLDER}`;
    let entries: Entry[];
    try {
      entries = await disk.list(deleted);
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return;
      return logger.warn("deleted topics could not be listed", { folder: deleted, error: String(error) });
    }
    for (const { name } of entries) {
      const path = `${deleted}/${name}`;
      if (!name.startsWith(NEW_PREFIX) || await this.#isForgotten(path)) await this.#removeFolder(path);
    }
  }

  /** Resolves when no removal is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  /** The topic of that name, or null. Not one of its changes that is under way. */
  readTopic(name: string): Promise<StoredTopic | null> {
    return isTopicFolderName(name) ? this.#readTopic(name) : Promise.resolve(null);
  }

  async #readTopic(name: string): Promise<StoredTopic | null> {
    const { disk, dataFolder, logger } = this.#options;
    const folder = `${dataFolder}/${name}`;
    try {
      const entries = await disk.list(folder);
      const partitions = entries.filter((entry) => entry.isFolder && PARTITION_NAME.test(entry.name))
        .map((entry) => Number(entry.name)).sort((a, b) => a - b);
      const topicId = await readJson(disk, `${folder}/${ID_NAME}`, parseId);
      // A folder without an id is an older writer's if it has partitions, else none of ours.
      if (topicId === null && (partitions.length === 0 || name.startsWith("."))) return null;
      const config = await readJson(disk, `${folder}/${CONFIG_NAME}`, parseConfig) ?? {};
      return { name, topicId: topicId ?? await this.#stamp(folder), config, partitions };
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return null;
      if (!(error instanceof DamagedFileError)) throw error;
      logger.error("topic is not served: its files are damaged", {
        topic: name,
        file: error.path,
        error: String(error),
      });
      return null;
    }
  }

  async #stamp(folder: string): Promise<string> {
    const topicId = this.#options.random.uuid();
    await replaceJson(this.#options.disk, `${folder}/${ID_NAME}`, { topicId });
    return topicId;
  }

  /** The folder of a topic, after a look at whether it is still that topic's. */
  async #folderOf({ name, topicId }: TopicIdentity): Promise<string> {
    const folder = `${this.#options.dataFolder}/${name}`;
    if (!await this.isPresent({ name, topicId })) throw new DiskError("not-found", "find topic", folder);
    return folder;
  }

  /** A rename would replace an empty folder; that is not ours to take. */
  async #refuseIfThere(name: string): Promise<void> {
    const { disk, dataFolder } = this.#options;
    const path = `${dataFolder}/${name}`;
    try {
      await disk.stat(path);
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return;
      throw error;
    }
    throw new DiskError("exists", "create topic", path);
  }

  async #isForgotten(path: string): Promise<boolean> {
    const { disk, clock } = this.#options;
    try {
      return clock.wallMs() - (await disk.stat(path)).modifiedMs > MAKING_MAX_MS;
    } catch (error) {
      if (error instanceof DiskError) return false;
      throw error;
    }
  }

  #removeBehind(path: string, isClosed: Promise<void>): void {
    const removal: Promise<void> = isClosed.then(() => this.#removeFolder(path))
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  async #removeFolder(path: string): Promise<void> {
    try {
      await this.#options.disk.remove(path, { recursive: true });
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return;
      this.#options.logger.warn("folder could not be removed yet", { folder: path, error: String(error) });
    }
  }
}

function isTopicFolderName(name: string): boolean {
  return name !== DELETED_FOLDER && name !== CLUSTER_FOLDER && TOPIC_NAME.test(name);
}

/** Where a deleted topic waits for its removal: as much of its name as fits, and its id. */
function asideName({ name, topicId }: TopicIdentity): string {
  return `${name.slice(0, MAX_NAME_BYTES - 1 - topicId.length)}-${topicId}`;
}

function parseId(json: unknown): string {
  const id = (json as { topicId?: unknown } | null)?.topicId;
  if (typeof id !== "string" || !UUID.test(id)) throw new TypeError("no topicId");
  return id;
}

function parseConfig(json: unknown): Record<string, unknown> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new TypeError("no object");
  return json as Record<string, unknown>;
}
