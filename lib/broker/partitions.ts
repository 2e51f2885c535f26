/**
 * The partitions that this broker leads: opened on first use, closed together.
 *
 * A partition's life here: *unopened* (only its name and epoch are known, no handle) → *opening* (takeover runs; requests
 * wait a moment, then get a retriable refusal) → *leading* → *stalled* (a write or fsync failed: reads go on, appends are
 * refused) or *closed* (relinquished or abandoned). A failed takeover is tried again at a later request, never given up.
 * Only this module calls the log's takeover, relinquish and abandon.
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
}

/** One partition, led by this broker from `leaderEpoch` on. */
export class Partition {
  /** Bytes appended through this object; a long poll estimates from it whether reading again is worth while. */
  appendedBytes = 0;
  #log: PartitionLog | null = null;
  #opening: Promise<PartitionLog | ErrorCode> | null = null;
  #closed = false;
  #retryAtMs = -Infinity;
  readonly #watchers = new Set<PartitionWatcher>();

  constructor(
    readonly topic: string,
    readonly index: number,
    readonly folder: string,
    private epoch: number,
    private readonly options: PartitionsOptions,
  ) {}

  /** The epoch under which this broker leads the partition. */
  get leaderEpoch(): number {
    return this.epoch;
  }

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
    if (this.#closed) return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    if (this.#log !== null && !this.#mayHeal(this.#log)) return this.#log;
    if (this.#opening === null) {
      if (this.options.clock.monotonicMs() < this.#retryAtMs) return ErrorCode.KAFKA_STORAGE_ERROR;
      this.#opening = this.#open().finally(() => this.#opening = null);
    }
    return this.#patiently(this.#opening);
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
  #mayHeal(log: PartitionLog): boolean {
    return log.stalled !== null && log.stalled.kind !== "superseded" &&
      this.options.clock.monotonicMs() >= this.#retryAtMs;
  }

  async #open(): Promise<PartitionLog | ErrorCode> {
    const { disk, clock, logger } = this.options;
    this.#retryAtMs = clock.monotonicMs() + RETRY_AFTER_MS;
    try {
      if (this.#log !== null) {
        const stalled = this.#log;
        this.#log = null;
        this.epoch++;
        await stalled.abandon();
      }
      const log = await PartitionLog.takeOver(disk, this.folder, {
        leaderEpoch: this.epoch,
        config: this.options.logConfigOf(this.topic),
        clock,
        logger,
        resources: this.options.resources,
      });
      if (this.#closed) {
        await log.abandon();
        return ErrorCode.NOT_LEADER_OR_FOLLOWER;
      }
      log.onHighWatermark(() => this.#wake());
      this.#log = log;
      return log;
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof KafkaError)) throw error;
      logger.error("cannot open partition", { topic: this.topic, partition: this.index, error: String(error) });
      return ErrorCode.KAFKA_STORAGE_ERROR;
    }
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

  /** Starts leading a partition; nothing is opened yet. `folder` holds its segments. */
  lead(topic: string, index: number, folder: string, leaderEpoch: number): Partition {
    let partitions = this.#topics.get(topic);
    if (partitions === undefined) this.#topics.set(topic, partitions = new Map());
    const partition = new Partition(topic, index, folder, leaderEpoch, this.options);
    partitions.set(index, partition);
    return partition;
  }

  /** Applies a topic's present settings to its open partitions. */
  applyConfig(topic: string): void {
    const config = this.options.logConfigOf(topic);
    for (const partition of this.ofTopic(topic)) partition.applyConfig(config);
  }

  /** Closes all partitions of a deleted topic; resolves when no handle on its files is left. */
  async abandonTopic(topic: string): Promise<void> {
    const partitions = [...this.ofTopic(topic)];
    this.#topics.delete(topic);
    await Promise.all(partitions.map((partition) => partition.abandon()));
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
