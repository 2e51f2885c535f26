/**
 * The partitions that this broker leads: opened on first use, closed together.
 *
 * A partition's life here: *unopened* (only its name and epoch are known, no handle) → *opening* (takeover runs; requests
 * wait a moment, then get a retriable refusal) → *leading* → *stalled* (a write or fsync failed: reads go on, appends are
 * refused, and the controller is asked for a new leader epoch, here or elsewhere) or *closed* (relinquished or abandoned).
 * A failed takeover is tried again at a later request, never given up. Under a new epoch the partition is another object,
 * which opens when the former one has closed. Only this module calls the log's takeover, relinquish and abandon.
 */
import type { Clock } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode, KafkaError } from "../errors.ts";
import type { Logger } from "../observability/logger.ts";
import { PartitionLog } from "../storage/log.ts";
import type { LogConfig } from "../storage/log_config.ts";
import type { StorageResources } from "../storage/resources.ts";

/** How long a request waits for a partition that is being opened before it is told to come back. */
const OPEN_PATIENCE_MS = 400;
/** How long after a takeover the next one may be tried, when it failed or the partition has stalled since. */
const RETRY_AFTER_MS = 2000;

export type PartitionState = "unopened" | "opening" | "leading" | "stalled" | "closed";

/** Told when something about a partition may be worth another look. */
export interface PartitionWatcher {
  /** Records became readable, or the partition closed. */
  partitionChanged(partition: Partition): void;
}

export interface PartitionsOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Bounds that the logs of all partitions share. */
  readonly resources?: StorageResources;
  /** The present log settings of a topic. */
  logConfigOf(topic: string): LogConfig;
  /** Whether the folder still is that topic's: another one may have been made under its name. @throws {DiskError} */
  isPresent?(topic: string, topicId: string): Promise<boolean>;
  /** Whether this broker's session is alive; without one it leads nothing. */
  mayLead?(): boolean;
  /** The partition cannot go on under its epoch. Told again from time to time, as long as somebody asks for it. */
  onStalled?(partition: Partition): void;
}

/** One partition, led by this broker from `leaderEpoch` on. */
export class Partition {
  /** Bytes appended through this object, readable or not yet. */
  appendedBytes = 0;
  /** So many of them are readable at least. */
  readableBytes = 0;
  /** What was appended when the high watermark moved last: the next move covers all of it. */
  #appendedAtMove = 0;
  #log: PartitionLog | null = null;
  #opening: Promise<PartitionLog | ErrorCode> | null = null;
  #closed = false;
  #retryAtMs = -Infinity;
  readonly #watchers = new Set<PartitionWatcher>();

  constructor(
    readonly topic: string,
    readonly index: number,
    readonly folder: string,
    /** The epoch under which this broker leads the partition. */
    readonly leaderEpoch: number,
    private readonly options: PartitionsOptions,
    /** Which topic of that name; null where that does not matter. */
    private readonly topicId: string | null,
    /** When whatever this process had open of the partition is closed. */
    private readonly isFree: Promise<void>,
  ) {}

  get state(): PartitionState {
    if (this.#closed) return "closed";
    if (this.#opening !== null) return "opening";
    if (this.#log === null) return "unopened";
    return this.#log.stalled === null ? "leading" : "stalled";
  }

  /** The log if it is open, without opening it. */
  get openLog(): PartitionLog | null {
    return this.#log;
  }

  /**
   * The log, opened if need be. Synchronous when it is open already. Refusals: NOT_LEADER_OR_FOLLOWER while it opens or
   * after it was closed, KAFKA_STORAGE_ERROR when it could not be opened.
   */
  log(): PartitionLog | ErrorCode | Promise<PartitionLog | ErrorCode> {
    if (this.#closed || this.options.mayLead?.() === false) return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    if (this.#log !== null) {
      if (this.#log.stalled !== null) this.#tellStalled();
      return this.#log;
    }
    if (this.#opening === null) {
      if (this.options.clock.monotonicMs() < this.#retryAtMs) return ErrorCode.KAFKA_STORAGE_ERROR;
      this.#opening = this.#open().finally(() => this.#opening = null);
    }
    return this.#patiently(this.#opening);
  }

  /** Opens the log if need be. Resolves when it is open, or could not be opened now. */
  async opened(): Promise<void> {
    await this.log();
    await this.#opening;
  }

  watch(watcher: PartitionWatcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: PartitionWatcher): void {
    this.#watchers.delete(watcher);
  }

  /** Hands the new settings to the log, if it is open. */
  applyConfig(config: LogConfig): void {
    this.#log?.applyConfig(config);
  }

  /** Leadership ends: everything accepted becomes durable, side files are written, every handle is closed. */
  async relinquish(): Promise<void> {
    await this.#close(async (log) => await log.relinquish());
  }

  /** The topic is gone: every handle is closed, nothing is written. */
  async abandon(): Promise<void> {
    await this.#close((log) => log.abandon());
  }

  async #close(end: (log: PartitionLog) => void | Promise<void>): Promise<void> {
    this.#closed = true;
    await this.#opening;
    const log = this.#log;
    this.#log = null;
    try {
      if (log !== null) await end(log);
    } finally {
      this.#wake();
    }
  }

  #wake(): void {
    for (const watcher of this.#watchers) watcher.partitionChanged(this);
  }

  /**
   * A stall never heals under the same leader epoch. A takeover with the next epoch trusts nothing that was not synced, so
   * it is safe whatever the reason was; as long as the reason lasts, it fails or stalls again.
   */
  #tellStalled(): void {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs < this.#retryAtMs) return;
    this.#retryAtMs = nowMs + RETRY_AFTER_MS;
    this.options.onStalled?.(this);
  }

  async #open(): Promise<PartitionLog | ErrorCode> {
    const { disk, clock, logger } = this.options;
    this.#retryAtMs = clock.monotonicMs() + RETRY_AFTER_MS;
    try {
      await this.isFree;
      if (this.#closed || !await this.#isPresent()) return ErrorCode.NOT_LEADER_OR_FOLLOWER;
      const log = await PartitionLog.takeOver(disk, this.folder, {
        leaderEpoch: this.leaderEpoch,
        config: this.options.logConfigOf(this.topic),
        clock,
        logger,
        resources: this.options.resources,
      });
      if (this.#closed || !await this.#isPresent()) {
        await log.abandon();
        return ErrorCode.NOT_LEADER_OR_FOLLOWER;
      }
      log.onHighWatermark(() => {
        this.readableBytes = log.highWatermark === log.logEndOffset ? this.appendedBytes : this.#appendedAtMove;
        this.#appendedAtMove = this.appendedBytes;
        this.#wake();
      });
      this.#log = log;
      return log;
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof KafkaError)) throw error;
      logger.error("cannot open partition", { topic: this.topic, partition: this.index, error: String(error) });
      this.options.onStalled?.(this);
      return ErrorCode.KAFKA_STORAGE_ERROR;
    }
  }

  async #isPresent(): Promise<boolean> {
    return this.topicId === null || await this.options.isPresent?.(this.topic, this.topicId) !== false;
  }

  #patiently(opening: Promise<PartitionLog | ErrorCode>): Promise<PartitionLog | ErrorCode> {
    return new Promise((resolve, reject) => {
      const timer = this.options.clock.schedule(
        OPEN_PATIENCE_MS,
        () => resolve(ErrorCode.NOT_LEADER_OR_FOLLOWER),
      );
      opening.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

/** All partitions that this broker leads, by topic and index. */
export class Partitions {
  readonly #topics = new Map<string, Map<number, Partition>>();
  /** Partitions on their way out, by topic and index. */
  readonly #closing = new Map<string, Promise<void>>();

  constructor(private readonly options: PartitionsOptions) {}

  get(topic: string, index: number): Partition | undefined {
    return this.#topics.get(topic)?.get(index);
  }

  /** The partitions of a topic, in no particular order. */
  ofTopic(topic: string): Iterable<Partition> {
    return this.#topics.get(topic)?.values() ?? [];
  }

  *all(): Iterable<Partition> {
    for (const partitions of this.#topics.values()) yield* partitions.values();
  }

  /**
   * Starts leading a partition; nothing is opened yet. `folder` holds its segments. What this process led of it until now
   * is closed without a write: `leaderEpoch` is a higher one.
   */
  lead(
    topic: string,
    index: number,
    folder: string,
    leaderEpoch: number,
    topicId: string | null = null,
  ): Partition {
    const isFree = this.drop(topic, index);
    let partitions = this.#topics.get(topic);
    if (partitions === undefined) this.#topics.set(topic, partitions = new Map());
    const partition = new Partition(topic, index, folder, leaderEpoch, this.options, topicId, isFree);
    partitions.set(index, partition);
    return partition;
  }

  /**
   * Another broker leads the partition from now on: every handle is closed, nothing is written. Resolves when that is
   * done, and whatever of the partition was closing before.
   */
  drop(topic: string, index: number): Promise<void> {
    const partitions = this.#topics.get(topic);
    const partition = partitions?.get(index);
    partitions?.delete(index);
    if (partitions?.size === 0) this.#topics.delete(topic);
    const key = `${topic}/${index}`;
    const before = this.#closing.get(key);
    if (partition === undefined) return before ?? Promise.resolve();
    const closing = Promise.all([before, partition.abandon()]).then(() => {});
    this.#closing.set(key, closing);
    return closing.finally(() => {
      if (this.#closing.get(key) === closing) this.#closing.delete(key);
    });
  }

  /** Closes everything at once without a write: this broker leads nothing any more. */
  async abandonAll(): Promise<void> {
    await Promise.all([...this.all()].map(({ topic, index }) => this.drop(topic, index)));
  }

  /** Applies a topic's present settings to its open partitions. */
  applyConfig(topic: string): void {
    const config = this.options.logConfigOf(topic);
    for (const partition of this.ofTopic(topic)) partition.applyConfig(config);
  }

  /** Closes all partitions of a deleted topic; resolves when no handle on its files is left. */
  async abandonTopic(topic: string): Promise<void> {
    await Promise.all([...this.ofTopic(topic)].map(({ index }) => this.drop(topic, index)));
  }

  /** Relinquishes everything, one partition after the other; the failures are returned. */
  async relinquishAll(): Promise<{ readonly partition: Partition; readonly error: unknown }[]> {
    const failures: { partition: Partition; error: unknown }[] = [];
    for (const partition of this.all()) {
      try {
        await partition.relinquish();
      } catch (error) {
        failures.push({ partition, error });
      }
    }
    this.#topics.clear();
    return failures;
  }
}
