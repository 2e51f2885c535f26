/**
 * Transactions as this broker coordinates them: which shards of their state it keeps, where that is, and which settings the
 * coordinators obey.
 *
 * A transactional id belongs to the shard that it hashes to, and a shard to the broker that the assignment names. Shards
 * come and go while the broker runs; an id of a shard that is elsewhere is refused with NOT_COORDINATOR.
 */

import type { Clock } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode, errorName } from "../errors.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import {
  type Surroundings,
  TransactionCoordinator,
  type TransactionCoordinatorOptions,
} from "../transactions/transaction_coordinator.ts";
import type { Transaction } from "../transactions/transaction.ts";
import type { Tenure } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { transactionShardOf } from "./coordinator_shards.ts";
import type { ProducerIds } from "./producer_ids.ts";
import type { Topics } from "./topics.ts";

export interface TransactionCoordinationOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly topics: Topics;
  readonly producerIds: ProducerIds;
  readonly tenure: Tenure;
  /** Where a shard's state is. */
  folderOf(shard: number): string;
  readonly endPlaces: Surroundings["endPlaces"];
}

/** See the file's head. */
export class TransactionCoordination {
  readonly #shards = new Map<number, TransactionCoordinator>();
  /** Shards that end: their successor here begins when they have. */
  readonly #ending = new Map<number, Promise<void>>();
  readonly #nobody: TransactionCoordinator;

  constructor(private readonly options: TransactionCoordinationOptions) {
    this.#nobody = new TransactionCoordinator(this.#coordinatorOptions());
    options.topics.subscribe({
      topicDeleted: async ({ name }) => {
        await Promise.all(Array.from(this.#shards.values(), (shard) => shard.topicDeleted(name)));
      },
    });
  }

  /** Keeps a shard from now on: reads its state, and refuses its ids meanwhile. `epoch` is its owner's. */
  lead(shard: number, epoch: number): void {
    const { disk, tenure } = this.options;
    const before = this.resign(shard);
    const folder = this.options.folderOf(shard);
    const ready = before.then(async () => {
      await disk.makeFolder(folder);
      await disk.syncFolder(folder.slice(0, folder.lastIndexOf("/")));
    });
    const journal = { disk, epoch, folder, mayAcknowledge: () => tenure.isValid() };
    this.#shards.set(shard, new TransactionCoordinator({ ...this.#coordinatorOptions(), journal, ready }));
  }

  /** Keeps a shard no longer. Resolves when everything of it is durable and nothing more is written. */
  resign(shard: number): Promise<void> {
    const coordinator = this.#shards.get(shard);
    this.#shards.delete(shard);
    const before = this.#ending.get(shard) ?? Promise.resolve();
    if (coordinator === undefined) return before;
    const ending = Promise.all([before, coordinator.stop().catch((error) => this.#report(error))]).then(() => {
      if (this.#ending.get(shard) === ending) this.#ending.delete(shard);
    });
    this.#ending.set(shard, ending);
    return ending;
  }

  /** Saves what was changed, and serves no more. */
  async stop(): Promise<void> {
    await Promise.all([...this.#shards.keys()].map((shard) => this.resign(shard)));
  }

  /** Resolves when the state of every shard that is kept here has been read, or could not be. */
  get loaded(): Promise<unknown> {
    return Promise.all(Array.from(this.#shards.values(), ({ loaded }) => loaded));
  }

  /** The coordinator of an id; one that refuses everything where the id is kept by another broker. */
  of(transactionalId: string): TransactionCoordinator {
    return this.#shards.get(transactionShardOf(transactionalId)) ?? this.#nobody;
  }

  init(...args: Parameters<TransactionCoordinator["init"]>): ReturnType<TransactionCoordinator["init"]> {
    return this.of(args[0]).init(...args);
  }

  add(...args: Parameters<TransactionCoordinator["add"]>): ReturnType<TransactionCoordinator["add"]> {
    return this.of(args[0]).add(...args);
  }

  verify(...args: Parameters<TransactionCoordinator["verify"]>): ErrorCode {
    return this.of(args[0]).verify(...args);
  }

  end(...args: Parameters<TransactionCoordinator["end"]>): ReturnType<TransactionCoordinator["end"]> {
    return this.of(args[0]).end(...args);
  }

  describe(transactionalId: string): Transaction | undefined {
    return this.of(transactionalId).describe(transactionalId);
  }

  /** NONE when requests for the id are served here. */
  availabilityOf(transactionalId: string): ErrorCode {
    return this.of(transactionalId).availability;
  }

  /** NONE when {@link list} is complete for the shards that are kept here. */
  get availability(): ErrorCode {
    for (const shard of this.#shards.values()) {
      if (shard.availability !== ErrorCode.NONE) return shard.availability;
    }
    return ErrorCode.NONE;
  }

  /** The transactional ids that are kept here. */
  *list(): Iterable<Transaction> {
    for (const shard of this.#shards.values()) yield* shard.list();
  }

  #coordinatorOptions(): Omit<TransactionCoordinatorOptions, "journal"> {
    const { clock, config, logger, producerIds, endPlaces } = this.options;
    return {
      clock,
      surroundings: { newProducerId: () => newProducerId(producerIds, logger), endPlaces },
      settings: () => ({
        maxTimeoutMs: config.get("transaction.max.timeout.ms"),
        timeoutIntervalMs: config.get("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        idExpirationMs: config.get("transactional.id.expiration.ms"),
        idExpiryIntervalMs: config.get("transaction.remove.expired.transaction.cleanup.interval.ms"),
      }),
      onProblem: (problem, error) =>
        logger.error(problem, { error: typeof error === "number" ? errorName(error) : errorText(error) }),
    };
  }

  #report(error: unknown): void {
    if (!(error instanceof DiskError)) throw error;
    this.options.logger.error("transactions were not saved", { error: errorText(error) });
  }
}

/** A new producer id, or null where the volume gives none; the log then says why. */
export async function newProducerId(producerIds: ProducerIds, logger: Logger): Promise<number | null> {
  try {
    return await producerIds.next();
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    logger.error("cannot reserve producer ids", { error: String(error) });
    return null;
  }
}
