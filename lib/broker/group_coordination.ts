/**
 * Consumer groups as this broker runs them: which shards of their state it keeps, where that is, and which settings the
 * coordinators obey.
 *
 * A group belongs to the shard that its id hashes to, and a shard to the broker that the assignment names. Shards come
 * and go while the broker runs; a group of a shard that is elsewhere is refused with NOT_COORDINATOR.
 */

import type { Clock, Random } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import type { JoinRequest, SyncRequest } from "../groups/classic_group.ts";
import {
  type CoordinatorOptions,
  GroupCoordinator,
  type GroupDescription,
  type GroupListing,
  type OffsetCommit,
} from "../groups/coordinator.ts";
import type { CommittedOffsets } from "../groups/offsets.ts";
import type { JoinReply, SyncReply } from "../groups/replies.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import type { Tenure } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { groupShardOf } from "./coordinator_shards.ts";
import type { Topics } from "./topics.ts";

export interface GroupCoordinationOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly topics: Topics;
  readonly tenure: Tenure;
  /** Where a shard's state is. */
  folderOf(shard: number): string;
}

/** See the file's head. */
export class GroupCoordination {
  readonly #shards = new Map<number, GroupCoordinator>();
  /** Shards that end: their successor here begins when they have. */
  readonly #ending = new Map<number, Promise<void>>();
  readonly #nobody: GroupCoordinator;

  constructor(private readonly options: GroupCoordinationOptions) {
    this.#nobody = GroupCoordinator.absent(this.#coordinatorOptions());
    options.topics.subscribe({
      topicDeleted: async ({ name }) => {
        await Promise.all(Array.from(this.#shards.values(), (shard) => shard.topicDeleted(name)));
      },
    });
  }

  /** Keeps a shard from now on: reads its state, and refuses its groups meanwhile. `epoch` is its owner's. */
  lead(shard: number, epoch: number): void {
    const { disk, tenure } = this.options;
    const before = this.resign(shard);
    const folder = this.options.folderOf(shard);
    const ready = before.then(async () => {
      await disk.makeFolder(folder);
      await disk.syncFolder(folder.slice(0, folder.lastIndexOf("/")));
    });
    const journal = { disk, epoch, folder, mayAcknowledge: () => tenure.isValid() };
    this.#shards.set(shard, new GroupCoordinator({ ...this.#coordinatorOptions(), journal, ready }));
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

  /** Answers what waits, saves what was changed, and serves no more. */
  async stop(): Promise<void> {
    await Promise.all([...this.#shards.keys()].map((shard) => this.resign(shard)));
  }

  /** The coordinator of a group; one that refuses everything where the group is kept by another broker. */
  of(groupId: string): GroupCoordinator {
    return this.#shards.get(groupShardOf(groupId)) ?? this.#nobody;
  }

  join(groupId: string, request: JoinRequest): Promise<JoinReply> {
    return this.of(groupId).join(groupId, request);
  }

  sync(groupId: string, request: SyncRequest): Promise<SyncReply> {
    return this.of(groupId).sync(groupId, request);
  }

  heartbeat(groupId: string, memberId: string, instanceId: string | null, generationId: number): ErrorCode {
    return this.of(groupId).heartbeat(groupId, memberId, instanceId, generationId);
  }

  leave(...[groupId, members]: Parameters<GroupCoordinator["leave"]>): ErrorCode | ErrorCode[] {
    return this.of(groupId).leave(groupId, members);
  }

  commit(commit: OffsetCommit): Promise<ErrorCode | ErrorCode[]> {
    return this.of(commit.groupId).commit(commit);
  }

  offsetsOf(groupId: string): CommittedOffsets | undefined {
    return this.of(groupId).offsetsOf(groupId);
  }

  deleteOffsets(...args: Parameters<GroupCoordinator["deleteOffsets"]>): Promise<ErrorCode | ErrorCode[]> {
    return this.of(args[0]).deleteOffsets(...args);
  }

  deleteGroup(groupId: string): Promise<ErrorCode> {
    return this.of(groupId).deleteGroup(groupId);
  }

  describe(groupId: string): GroupDescription | undefined {
    return this.of(groupId).describe(groupId);
  }

  /** NONE when requests for the group are served here. */
  availabilityOf(groupId: string): ErrorCode {
    return this.of(groupId).availability;
  }

  /** NONE when {@link list} is complete for the shards that are kept here. */
  get availability(): ErrorCode {
    for (const shard of this.#shards.values()) {
      if (shard.availability !== ErrorCode.NONE) return shard.availability;
    }
    return ErrorCode.NONE;
  }

  /** The groups that are kept here. */
  list(): GroupListing[] {
    return [...this.#shards.values()].flatMap((shard) => shard.list());
  }

  #coordinatorOptions(): Omit<CoordinatorOptions, "journal"> {
    const { clock, random, config, logger } = this.options;
    return {
      clock,
      random,
      settings: () => ({
        minSessionTimeoutMs: config.get("group.min.session.timeout.ms"),
        maxSessionTimeoutMs: config.get("group.max.session.timeout.ms"),
        maxSize: config.get("group.max.size"),
        initialDelayMs: config.get("group.initial.rebalance.delay.ms"),
        offsetMetadataMaxBytes: config.get("offset.metadata.max.bytes"),
        offsetRetentionMs: config.get("offsets.retention.minutes") * 60_000,
        expiryIntervalMs: config.get("offsets.retention.check.interval.ms"),
      }),
      onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
    };
  }

  #report(error: unknown): void {
    if (!(error instanceof DiskError)) throw error;
    this.options.logger.error("groups were not saved", { error: errorText(error) });
  }
}
