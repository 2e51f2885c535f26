/**
 * What happens to logs by themselves: retention looks at every led partition each `log.retention.check.interval.ms`,
 * compaction at those of compacted topics, the dirtiest first, with a pause of `log.cleaner.backoff.ms` when none is due.
 *
 * Invariants: one partition at a time, so that a look over thousands of them holds up nothing else; a partition that
 * is not open stays so unless its files say that something is due; what goes wrong with one is said once and tried again
 * with the next look, the others go on.
 */

import { type Clock, sleep } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import type { PartitionLog } from "../storage/log.ts";
import type { LogConfig } from "../storage/log_config.ts";
import { mayBeDirty, mayBeOverdue } from "../storage/unopened_log.ts";
import type { Tenure } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { CleanerPace } from "./cleaner_pace.ts";
import type { Partition, Partitions } from "./partitions.ts";

export interface LogMaintenanceOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly partitions: Partitions;
  readonly tenure: Tenure;
  /** The present log settings of a topic. */
  logConfigOf(topic: string): LogConfig;
}

/** What was said about a partition already. */
interface Said {
  readonly problems: Map<string, string>;
  futureTimestampMs: number | null;
}

/** Longer ones would fire at once. */
const LONGEST_TIMER_MS = 0x7fff_ffff;
/** The answer of a task that neither failed nor shows that an earlier problem is over. */
const KEEP_PROBLEM = "";

/** See the file's head. */
export class LogMaintenance {
  readonly #options: LogMaintenanceOptions;
  readonly #stopping = new AbortController();
  readonly #said = new WeakMap<Partition, Said>();
  readonly #pace: CleanerPace;
  #loops: Promise<unknown> = Promise.resolve();

  constructor(options: LogMaintenanceOptions) {
    this.#options = options;
    const { clock, config } = options;
    this.#pace = new CleanerPace(clock, () => config.get("log.cleaner.io.max.bytes.per.second"));
  }

  /** Begins; the first look comes one interval from now. */
  start(): void {
    const { config } = this.#options;
    this.#loops = Promise.all([
      this.#repeat(() => config.get("log.retention.check.interval.ms"), () => this.enforceRetention()),
      ...config.get("log.cleaner.enable")
        ? [this.#repeat(() => config.get("log.cleaner.backoff.ms"), () => this.compact())]
        : [],
    ]);
  }

  /** Ends; what is under way for one partition is finished first. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loops;
  }

  /** One look at all partitions for data that is due to leave. */
  async enforceRetention(): Promise<void> {
    for (const partition of [...this.#options.partitions.all()]) {
      if (!this.#mayWork()) return;
      await this.#guarded("retention", partition, () => this.#retain(partition));
    }
  }

  /** Makes passes over the partitions that are due for compaction, the dirtiest first, each at most once. */
  async compact(): Promise<void> {
    const due: { partition: Partition; ratio: number }[] = [];
    for (const partition of [...this.#options.partitions.all()]) {
      if (!this.#mayWork()) return;
      await this.#guarded("compaction", partition, async () => {
        const ratio = await this.#ratioIfDue(partition);
        if (ratio !== null) due.push({ partition, ratio });
        return KEEP_PROBLEM;
      });
    }
    due.sort((a, b) => b.ratio - a.ratio);
    for (const { partition } of due) {
      if (!this.#mayWork()) return;
      await this.#guarded("compaction", partition, () => this.#clean(partition));
    }
  }

  /** How dirty a partition is; null when it is not due for compaction. */
  async #ratioIfDue(partition: Partition): Promise<number | null> {
    const { disk, clock } = this.#options;
    const config = this.#options.logConfigOf(partition.topic);
    if (!config.compacts) return null;
    if (partition.openLog === null && !await mayBeDirty(disk, partition.folder, config, clock.wallMs())) return null;
    const log = await this.#openLog(partition);
    const cleanable = await log?.cleanable();
    return cleanable?.isDue ? cleanable.ratio : null;
  }

  async #clean(partition: Partition): Promise<string | null> {
    const { config, clock, logger, tenure } = this.#options;
    const log = await this.#openLog(partition);
    if (log === null) return null;
    const beganMs = clock.monotonicMs();
    const outcome = await log.clean({
      dedupeBytes: config.get("log.cleaner.dedupe.buffer.size"),
      loadFactor: config.get("log.cleaner.io.buffer.load.factor"),
      ioBufferBytes: config.get("log.cleaner.io.buffer.size"),
      pace: this.#pace,
      mayChange: () => tenure.isValid() && !this.#stopping.signal.aborted,
    });
    if (outcome.kind === "failed") return outcome.problem;
    if (outcome.kind === "cleaned") {
      const { kind: _, ...facts } = outcome;
      const tookMs = Math.round(clock.monotonicMs() - beganMs);
      logger.info("compacted", { topic: partition.topic, partition: partition.index, ...facts, tookMs });
    }
    return null;
  }

  async #retain(partition: Partition): Promise<string | null> {
    const { disk, clock, logger } = this.#options;
    const { topic, index } = partition;
    const config = this.#options.logConfigOf(topic);
    if (partition.openLog === null && !await mayBeOverdue(disk, partition.folder, config, clock.wallMs())) return null;
    const log = await this.#openLog(partition);
    if (log === null) return null;
    const outcome = await log.enforceRetention();
    if (outcome.removedSegments > 0) {
      const { removedSegments, removedBytes, logStartOffset } = outcome;
      logger.info("records left by retention", {
        topic,
        partition: index,
        segments: removedSegments,
        bytes: removedBytes,
        logStartOffset,
      });
    }
    this.#warnOfFuture(partition, outcome.futureTimestampMs);
    return outcome.errorCode === ErrorCode.NONE || log.stalled !== null ? null : outcome.problem;
  }

  #warnOfFuture(partition: Partition, futureTimestampMs: number | null): void {
    const said = this.#saidOf(partition);
    if (said.futureTimestampMs === futureTimestampMs) return;
    said.futureTimestampMs = futureTimestampMs;
    if (futureTimestampMs === null) return;
    this.#options.logger.warn("time stamps in the future: retention goes by when the records were written", {
      topic: partition.topic,
      partition: partition.index,
      timestampMs: futureTimestampMs,
    });
  }

  /** The log if it can be had now. A partition that cannot be opened says so itself. */
  async #openLog(partition: Partition): Promise<PartitionLog | null> {
    if (partition.openLog?.stalled) return null;
    const log = await partition.log();
    return typeof log === "number" ? null : log;
  }

  /**
   * Runs one task for one partition, which answers what went wrong, null when all is well, KEEP_PROBLEM when nothing can
   * be said. What goes wrong is logged when it is news.
   */
  async #guarded(task: string, partition: Partition, run: () => Promise<string | null>): Promise<void> {
    const { problems } = this.#saidOf(partition);
    let problem: string | null;
    try {
      problem = await run();
    } catch (error) {
      // A topic that was deleted meanwhile has no folder any more.
      const isGone = error instanceof DiskError && error.kind === "not-found";
      problem = isGone || partition.state === "closed" ? null : errorText(error);
    }
    if (problem === KEEP_PROBLEM) return;
    if (problem === null) return void problems.delete(task);
    if (problems.get(task) === problem) return;
    problems.set(task, problem);
    this.#options.logger.error(`${task} failed`, { topic: partition.topic, partition: partition.index, problem });
  }

  #saidOf(partition: Partition): Said {
    let said = this.#said.get(partition);
    if (said === undefined) this.#said.set(partition, said = { problems: new Map(), futureTimestampMs: null });
    return said;
  }

  /** A broker that lost the volume changes nothing on it. */
  #mayWork(): boolean {
    return !this.#stopping.signal.aborted && this.#options.tenure.isValid();
  }

  async #repeat(pauseMs: () => number, run: () => Promise<void>): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await sleep(clock, Math.min(pauseMs(), LONGEST_TIMER_MS), signal);
      } catch {
        return; // stopped
      }
      await run().catch((error) => logger.error("log maintenance failed", { error: errorText(error) }));
    }
  }
}
