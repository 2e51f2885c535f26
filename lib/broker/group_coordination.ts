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
import type { JoinRequest, SyncRequest } from "../groups/classic_requests.ts";
import type { ConsumerHeartbeat } from "../groups/consumer_heartbeat.ts";
import type { GroupRefusal, HeartbeatReply } from "../groups/consumer_replies.ts";
import {
  type ConsumerSettings,
  type CoordinatorOptions,
  GroupCoordinator,
  type GroupDescription,
  type GroupListing,
  type OffsetCommit,
} from "../groups/coordinator.ts";
import type { ConsumerGroupDescription } from "../groups/group_descriptions.ts";
import type { MigrationPolicy } from "../groups/group_migration.ts";
import type { CommittedOffsets } from "../groups/offsets.ts";
import type { JoinReply, SyncReply } from "../groups/replies.ts";
import type { TopicView } from "../groups/topic_view.ts";
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

  /** Resolves when the state of all shards that are kept here has been read, or could not be. */
  get loaded(): Promise<unknown> {
    return Promise.all(Array.from(this.#shards.values(), ({ loaded }) => loaded));
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

  consumerHeartbeat(
    groupId: string,
    beat: ConsumerHeartbeat,
    apiVersion: number,
  ): HeartbeatReply | Promise<HeartbeatReply> {
    return this.of(groupId).consumerHeartbeat(groupId, beat, apiVersion);
  }

  /** How often members of the consumer protocol are to send heartbeats, in ms. */
  get heartbeatIntervalMs(): number {
    return consumerSettingsOf(this.options.config).heartbeatIntervalMs;
  }

  commit(commit: OffsetCommit): Promise<ErrorCode | ErrorCode[]> {
    return this.of(commit.groupId).commit(commit);
  }

  offsetsOf(groupId: string): CommittedOffsets | undefined {
    return this.of(groupId).offsetsOf(groupId);
  }

  isUnstable(groupId: string, topic: string, partition: number): boolean {
    return this.of(groupId).isUnstable(groupId, topic, partition);
  }

  /** A producer's transaction has ended in the groups of a shard. */
  endTransaction(shard: number, producerId: number, commits: boolean): Promise<ErrorCode> {
    return (this.#shards.get(shard) ?? this.#nobody).endTransaction(producerId, commits);
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

  describeConsumer(groupId: string): ConsumerGroupDescription | GroupRefusal {
    return this.of(groupId).describeConsumer(groupId);
  }

  fetchProblem(groupId: string, memberId: string | null, memberEpoch: number): ErrorCode {
    return this.of(groupId).fetchProblem(groupId, memberId, memberEpoch);
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
    const { clock, random, config, logger, topics } = this.options;
    return {
      clock,
      random,
      topics: topicViewOf(topics),
      settings: () => ({
        minSessionTimeoutMs: config.get("group.min.session.timeout.ms"),
        maxSessionTimeoutMs: config.get("group.max.session.timeout.ms"),
        maxSize: config.get("group.max.size"),
        initialDelayMs: config.get("group.initial.rebalance.delay.ms"),
        offsetMetadataMaxBytes: config.get("offset.metadata.max.bytes"),
        offsetRetentionMs: config.get("offsets.retention.minutes") * 60_000,
        expiryIntervalMs: config.get("offsets.retention.check.interval.ms"),
        consumer: consumerSettingsOf(config),
      }),
      onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
    };
  }

  #report(error: unknown): void {
    if (!(error instanceof DiskError)) throw error;
    this.options.logger.error("groups were not saved", { error: errorText(error) });
  }
}

/** A value outside its bounds counts as the bound. */
function consumerSettingsOf(config: BrokerConfig): ConsumerSettings {
  const bounded = (value: number, min: number, max: number) => Math.max(min, Math.min(value, max));
  return {
    isServed: config.get("group.coordinator.rebalance.protocols").includes("consumer"),
    assignors: config.get("group.consumer.assignors"),
    assignmentIntervalMs: config.get("group.consumer.assignment.interval.ms"),
    sessionTimeoutMs: bounded(
      config.get("group.consumer.session.timeout.ms"),
      config.get("group.consumer.min.session.timeout.ms"),
      config.get("group.consumer.max.session.timeout.ms"),
    ),
    heartbeatIntervalMs: bounded(
      config.get("group.consumer.heartbeat.interval.ms"),
      config.get("group.consumer.min.heartbeat.interval.ms"),
      config.get("group.consumer.max.heartbeat.interval.ms"),
    ),
    maxSize: config.get("group.consumer.max.size"),
    migrationPolicy: config.get("group.consumer.migration.policy").toLowerCase() as MigrationPolicy,
  };
}

function topicViewOf(topics: Topics): TopicView {
  return {
    byName: (name) => topics.get(name),
    byId: (topicId) => topics.getById(topicId),
    *names() {
      for (const { name, internal } of topics.all()) if (!internal) yield name;
    },
    get version() {
      return topics.version;
    },
  };
}
