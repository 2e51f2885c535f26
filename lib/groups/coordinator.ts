/**
 * The edge of consumer groups: finds the group that a request is about, in whichever protocol it is, lets it answer, and
 * takes it from one protocol to the other where that is asked for and allowed.
 *
 * - A group without members is of the protocol of whoever comes first.
 * - A member of the consumer protocol takes a group of classic consumers with it, if the policy allows going up; when the
 *   last such member has gone, the group goes back, if the policy allows coming down.
 */

import type { Clock, Random } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import type { JournalOptions } from "../journal/journal.ts";
import type { ClassicGroup } from "./classic_group.ts";
import type { GroupState, JoinRequest, SyncRequest } from "./classic_requests.ts";
import { type ConsumerGroup, type ConsumerGroupRules } from "./consumer_group.ts";
import { assignors, type ConsumerGroupPhase } from "./consumer_group_state.ts";
import { changeEntries, consumerGroupRemovals } from "./consumer_group_store.ts";
import { type ConsumerHeartbeat, heartbeatProblem } from "./consumer_heartbeat.ts";
import { JOINING_EPOCH } from "./consumer_member.ts";
import { CONSUMER_PROTOCOL_TYPE } from "./consumer_protocol.ts";
import {
  groupIsFull,
  type GroupRefusal,
  type HeartbeatReply,
  noSuchGroup,
  notAConsumerGroup,
  refusal,
  refusedHeartbeat,
  unknownMember,
} from "./consumer_replies.ts";
import {
  type ConsumerGroupDescription,
  describeClassic,
  describeConsumer,
  type GroupDescription,
} from "./group_descriptions.ts";
import { downgraded, mayDowngrade, mayUpgrade, type MigrationPolicy, upgraded } from "./group_migration.ts";
import { GroupOffsets, type OffsetCommit, type OffsetSettings } from "./group_offsets.ts";
import { GroupShelf, type Kept } from "./group_shelf.ts";
import { groupRemoval } from "./group_store.ts";
import type { CommittedOffsets } from "./offsets.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";
import type { TopicView } from "./topic_view.ts";

export type { OffsetCommit, OffsetToCommit } from "./group_offsets.ts";
export type { GroupDescription } from "./group_descriptions.ts";

/** Settings, asked each time they are needed. */
export interface GroupSettings extends OffsetSettings {
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly maxSize: number;
  readonly initialDelayMs: number;
  readonly consumer: ConsumerSettings;
}

/** Settings of groups of the consumer protocol. */
export interface ConsumerSettings {
  /** Whether there are such groups at all. */
  readonly isServed: boolean;
  /** Assignors that may be asked for, the default first. */
  readonly assignors: readonly string[];
  readonly assignmentIntervalMs: number;
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly maxSize: number;
  readonly migrationPolicy: MigrationPolicy;
}

export interface CoordinatorOptions {
  readonly journal: JournalOptions;
  /** Resolves when the journal's folder is there and nobody else in this process uses it. */
  readonly ready?: Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly topics: TopicView;
  settings(): GroupSettings;
  /** Called when the state could not be read, or an entry of it makes no sense. */
  onProblem(problem: string, error: unknown): void;
}

export interface GroupListing {
  readonly groupId: string;
  readonly protocolType: string;
  readonly type: "classic" | "consumer";
  readonly state: GroupState | ConsumerGroupPhase;
}

/** See the file's head. */
export class GroupCoordinator {
  readonly #options: Omit<CoordinatorOptions, "journal">;
  readonly #shelf: GroupShelf;
  readonly #offsets: GroupOffsets;
  /** Resolves when the state has been read, or could not be. */
  readonly loaded: Promise<void>;

  /** Begins to read the state. */
  constructor(options: CoordinatorOptions);
  /** Without a journal it keeps nothing: every request is refused with NOT_COORDINATOR. */
  constructor(options: Omit<CoordinatorOptions, "journal">);
  constructor(options: Omit<CoordinatorOptions, "journal"> & Partial<CoordinatorOptions>) {
    this.#options = options;
    const { journal, ready, clock, random, topics } = options;
    this.#shelf = new GroupShelf({
      clock,
      random,
      topics,
      sessionTimeoutMs: () => options.settings().consumer.sessionTimeoutMs,
      onProblem: (problem, error) => options.onProblem(problem, error),
    });
    this.#shelf.afterCommand = (kept, nowMs, wallMs) => this.#downgradeIfDue(kept, nowMs, wallMs);
    this.#offsets = new GroupOffsets(this.#shelf, clock, () => options.settings());
    this.loaded = journal === undefined ? this.#shelf.stop() : this.#load(journal, ready);
  }

  /** A coordinator of nothing: every request is refused with NOT_COORDINATOR. */
  static absent(options: Omit<CoordinatorOptions, "journal">): GroupCoordinator {
    return new GroupCoordinator(options);
  }

  /** NONE when requests are served. */
  get availability(): ErrorCode {
    return this.#shelf.availability;
  }

  /** Answers what waits, saves what was changed, and serves no more. */
  async stop(): Promise<void> {
    await this.loaded;
    this.#offsets.stop();
    await this.#shelf.stop();
  }

  join(groupId: string, request: JoinRequest): Promise<JoinReply> {
    const { memberId, facts: { sessionTimeoutMs } } = request;
    const settings = this.#options.settings();
    const isInvalid = sessionTimeoutMs < settings.minSessionTimeoutMs ||
      sessionTimeoutMs > settings.maxSessionTimeoutMs;
    const refused = this.#refusalFor(groupId) || (isInvalid ? ErrorCode.INVALID_SESSION_TIMEOUT : ErrorCode.NONE);
    if (refused !== ErrorCode.NONE) return Promise.resolve(refusedJoin(refused, memberId));
    if (memberId !== "" && this.#shelf.get(groupId) === undefined) {
      return Promise.resolve(refusedJoin(ErrorCode.UNKNOWN_MEMBER_ID, memberId));
    }
    const kept = this.#shelf.keep(groupId);
    return new Promise((resolve) => {
      const reply = this.#shelf.run(kept, (nowMs) => {
        const group = this.#openToClassic(kept);
        if (group.type === "consumer") return group.guests.join(request, rulesOf(settings), nowMs);
        group.join(request, resolve, settings, nowMs);
      });
      if (reply === undefined) return;
      kept.effects.answer(() => resolve(reply), (code) => resolve(refusedJoin(code, reply.memberId)));
    });
  }

  sync(groupId: string, request: SyncRequest): Promise<SyncReply> {
    const kept = this.#shelf.get(groupId);
    const refused = this.#refusalFor(groupId) || (kept === undefined ? ErrorCode.UNKNOWN_MEMBER_ID : ErrorCode.NONE);
    if (refused !== ErrorCode.NONE || kept === undefined) return Promise.resolve(refusedSync(refused));
    return new Promise((resolve) => {
      const reply = this.#shelf.run(kept, (nowMs) => {
        const { group } = kept;
        if (group.type === "consumer") return group.guests.sync(request, nowMs);
        group.sync(request, resolve, nowMs);
      });
      if (reply !== undefined) kept.effects.answer(() => resolve(reply), (code) => resolve(refusedSync(code)));
    });
  }

  heartbeat(groupId: string, memberId: string, instanceId: string | null, generationId: number): ErrorCode {
    const kept = this.#shelf.get(groupId);
    const refused = this.#refusalFor(groupId);
    if (refused !== ErrorCode.NONE) return refused;
    if (kept === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    return this.#shelf.run(kept, (nowMs) => {
      const group = kept.group.type === "classic" ? kept.group : kept.group.guests;
      return group.heartbeat(memberId, instanceId, generationId, nowMs);
    });
  }

  /** One code per member, or one for them all. */
  leave(
    groupId: string,
    members: readonly { readonly memberId: string; readonly groupInstanceId: string | null }[],
  ): ErrorCode | ErrorCode[] {
    const refused = this.#refusalFor(groupId);
    if (refused !== ErrorCode.NONE) return refused;
    const kept = this.#shelf.get(groupId);
    if (kept === undefined) return members.map(() => ErrorCode.UNKNOWN_MEMBER_ID);
    return this.#shelf.run(kept, (nowMs, wallMs) =>
      members.map(({ memberId, groupInstanceId }) => {
        const { group } = kept;
        return group.type === "classic"
          ? group.leave(memberId, groupInstanceId, nowMs, wallMs)
          : group.guests.leave(memberId, groupInstanceId, wallMs);
      }));
  }

  /** A heartbeat of the consumer protocol. @param apiVersion of the request */
  consumerHeartbeat(
    groupId: string,
    beat: ConsumerHeartbeat,
    apiVersion: number,
  ): HeartbeatReply | Promise<HeartbeatReply> {
    const settings = this.#options.settings();
    const problem = this.#consumerRefusal(groupId) ?? heartbeatProblem(beat, {
      needsMemberId: apiVersion >= 1,
      offered: settings.consumer.assignors.filter((name) => assignors.has(name)),
    });
    if (problem !== null) return refusedHeartbeat(problem);
    const joins = beat.memberEpoch === JOINING_EPOCH;
    const kept = joins ? this.#shelf.keep(groupId) : this.#shelf.get(groupId);
    if (kept === undefined) return refusedHeartbeat(noSuchGroup(groupId));
    return this.#shelf.runSaved(
      kept,
      (nowMs, wallMs): HeartbeatReply => {
        const group = joins ? this.#openToConsumers(kept, beat, settings, nowMs) : kept.group;
        if ("errorCode" in group) return refusedHeartbeat(group);
        if (group.type === "classic") return refusedHeartbeat(this.#strangerTo(group, beat, settings));
        return group.heartbeat(beat, rulesOf(settings), nowMs, wallMs);
      },
      refusedHeartbeat(refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The heartbeat could not be saved.")),
    );
  }

  /** How often members of the consumer protocol are to send heartbeats, in ms. */
  get heartbeatIntervalMs(): number {
    return this.#options.settings().consumer.heartbeatIntervalMs;
  }

  /** Resolves with one code per offset, or one for them all, when the commit is durable. */
  commit(commit: OffsetCommit): Promise<ErrorCode | ErrorCode[]> {
    return this.#offsets.commit(commit);
  }

  /** See {@link GroupOffsets.endTransaction}. */
  endTransaction(producerId: number, commits: boolean): Promise<ErrorCode> {
    return this.#offsets.endTransaction(producerId, commits);
  }

  /** Whether a transaction that has not ended has committed an offset of this partition. */
  isUnstable(groupId: string, topic: string, partition: number): boolean {
    return this.#shelf.get(groupId)?.pending.has(topic, partition) === true;
  }

  /** The group's offsets; undefined for a group that is not there. To be asked only while {@link availability} is NONE. */
  offsetsOf(groupId: string): CommittedOffsets | undefined {
    return this.#shelf.get(groupId)?.offsets;
  }

  /**
   * Whether a member may see its group's offsets in this epoch; NONE for who says nothing of a membership, for groups of
   * the classic protocol, and where there is no group. To be asked only while {@link availability} is NONE.
   */
  fetchProblem(groupId: string, memberId: string | null, memberEpoch: number): ErrorCode {
    const group = this.#shelf.get(groupId)?.group;
    if (group?.type !== "consumer" || (memberId === null && memberEpoch < 0)) return ErrorCode.NONE;
    return group.offsetsProblem(memberId ?? "", memberEpoch, true);
  }

  /** Resolves with one code per partition, or one for them all, when they are gone durably. */
  async deleteOffsets(
    groupId: string,
    partitions: readonly { readonly topic: string; readonly partition: number }[],
  ): Promise<ErrorCode | ErrorCode[]> {
    const refused = this.#refusalFor(groupId);
    return refused === ErrorCode.NONE ? await this.#offsets.delete(groupId, partitions) : refused;
  }

  /** Resolves when the group is gone durably, with all its offsets. */
  async deleteGroup(groupId: string): Promise<ErrorCode> {
    if (this.availability !== ErrorCode.NONE) return this.availability;
    const kept = this.#shelf.get(groupId);
    if (kept === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    if (stateOf(kept.group) !== "Empty") return ErrorCode.NON_EMPTY_GROUP;
    return await this.#offsets.deleteGroup(kept);
  }

  /** Drops what groups have committed for a topic that is no more. Resolves when that is durable, or cannot be. */
  async topicDeleted(topic: string): Promise<void> {
    await this.loaded;
    if (this.availability === ErrorCode.NONE) await this.#offsets.topicDeleted(topic);
  }

  /** Drops what has expired; a group that is empty then goes with it. Resolves when that is durable, or cannot be. */
  expire(): Promise<void> {
    return this.#offsets.expire();
  }

  /** All groups. To be asked only while {@link availability} is NONE. */
  list(): GroupListing[] {
    return Array.from(this.#shelf.all(), ({ groupId, group }) => ({
      groupId,
      protocolType: group.type === "consumer" ? CONSUMER_PROTOCOL_TYPE : group.protocolType ?? "",
      type: group.type,
      state: stateOf(group),
    }));
  }

  /** The classic group, or undefined. To be asked only while {@link availability} is NONE. */
  describe(groupId: string): GroupDescription | undefined {
    const group = this.#shelf.get(groupId)?.group;
    return group?.type === "classic" ? describeClassic(group) : undefined;
  }

  /** The group of the consumer protocol, or why there is none. */
  describeConsumer(groupId: string): ConsumerGroupDescription | GroupRefusal {
    const refused = this.#consumerRefusal(groupId);
    if (refused !== null) return refused;
    const group = this.#shelf.get(groupId)?.group;
    if (group?.type !== "consumer") return group === undefined ? noSuchGroup(groupId) : notAConsumerGroup(groupId);
    return describeConsumer(group, rulesOf(this.#options.settings()));
  }

  #refusalFor(groupId: string): ErrorCode {
    return groupId === "" ? ErrorCode.INVALID_GROUP_ID : this.availability;
  }

  async #load(journal: JournalOptions, ready?: Promise<void>): Promise<void> {
    await this.#shelf.load(journal, ready);
    if (this.availability === ErrorCode.NONE) this.#offsets.start();
  }

  #consumerRefusal(groupId: string): GroupRefusal | null {
    if (!this.#options.settings().consumer.isServed) {
      return refusal(ErrorCode.UNSUPPORTED_VERSION, "The consumer protocol of groups is switched off.");
    }
    if (groupId === "") return refusal(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.");
    const { availability } = this;
    return availability === ErrorCode.NONE ? null : refusal(availability, "The groups are not served here now.");
  }

  /** The group for a member of the classic protocol: an empty one is of that protocol. */
  #openToClassic(kept: Kept): ClassicGroup | ConsumerGroup {
    if (kept.group.type === "consumer" && kept.group.isIdle) {
      this.#shelf.removeFromJournal(kept);
      kept.group = this.#shelf.newClassicGroup(kept);
    }
    return kept.group;
  }

  /** The group for a new member of the consumer protocol, or why it may not come in. */
  #openToConsumers(
    kept: Kept,
    { instanceId }: ConsumerHeartbeat,
    { consumer: { migrationPolicy, maxSize } }: GroupSettings,
    nowMs: number,
  ): ConsumerGroup | GroupRefusal {
    const { group: classic, groupId } = kept;
    if (classic.type === "consumer") return classic;
    const fresh = this.#shelf.newConsumerGroup(groupId);
    // Ids that were given out may be joined with in either protocol.
    if (classic.members.size === 0) {
      this.#shelf.removeFromJournal(kept);
      return kept.group = fresh;
    }
    if (!mayUpgrade(migrationPolicy)) return notAConsumerGroup(groupId);
    const comesBack = instanceId !== null &&
      [...classic.members.values()].some(({ facts }) => facts.instanceId === instanceId);
    if (classic.members.size + (comesBack ? 0 : 1) > maxSize) return groupIsFull(maxSize);
    const group = upgraded(classic, fresh, nowMs);
    if (group === null) return notAConsumerGroup(groupId);
    kept.group = group;
    this.#shelf.save(kept, [...changeEntries(group.state, group.state.takeChanges()), groupRemoval(groupId)]);
    return group;
  }

  /**
   * The refusal for a member that a group of the classic protocol does not know. It may have been silent so long that it
   * was taken for gone, and the group has gone back since: it can join again. Kafka ends such a client.
   */
  #strangerTo(group: ClassicGroup, { memberId }: ConsumerHeartbeat, settings: GroupSettings): GroupRefusal {
    const canJoin = group.protocolType === CONSUMER_PROTOCOL_TYPE && mayUpgrade(settings.consumer.migrationPolicy);
    return canJoin ? unknownMember(memberId, group.groupId) : notAConsumerGroup(group.groupId);
  }

  /** A group that members of the consumer protocol have left to others is of the classic protocol again. */
  #downgradeIfDue(kept: Kept, nowMs: number, wallMs: number): void {
    const { group, groupId } = kept;
    if (group.type === "classic" || group.isIdle || group.state.classicCount < group.state.members.size) return;
    const { maxSize, consumer: { migrationPolicy } } = this.#options.settings();
    if (!mayDowngrade(migrationPolicy) || group.state.members.size > maxSize) return;
    const classic = downgraded(group, this.#shelf.newClassicGroup(kept), nowMs);
    kept.group = classic;
    classic.begin(nowMs, wallMs);
    this.#shelf.save(kept, consumerGroupRemovals(groupId, group.state.members.keys()));
  }
}

function stateOf(group: ClassicGroup | ConsumerGroup): GroupState | ConsumerGroupPhase {
  return group.type === "classic" ? group.state : group.phase;
}

function rulesOf({ consumer }: GroupSettings): ConsumerGroupRules {
  return {
    defaultAssignor: consumer.assignors[0] ?? "uniform",
    intervalMs: consumer.assignmentIntervalMs,
    maxSize: consumer.maxSize,
    sessionTimeoutMs: consumer.sessionTimeoutMs,
  };
}
