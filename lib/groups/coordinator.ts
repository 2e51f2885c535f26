/**
 * The edge of consumer groups: keeps them, saves what must last, lets time pass, and answers.
 *
 * Invariants:
 * - nothing is answered as done before it is durable, and offsets are seen only when they are;
 * - changes take effect in memory in the order in which they are in the journal;
 * - while the state is read every request is refused with COORDINATOR_LOAD_IN_PROGRESS, and once the journal has failed
 *   with COORDINATOR_NOT_AVAILABLE;
 * - a group that holds nothing that lasts is forgotten, so that requests cannot fill the memory with names.
 */

import type { Clock, Random, Timer } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import { Journal, type JournalEntry, type JournalOptions } from "../journal/journal.ts";
import { ClassicGroup, type GroupState, type JoinRequest, type SyncRequest } from "./classic_group.ts";
import {
  groupEntry,
  groupRemoval,
  offsetEntry,
  offsetRemoval,
  readEntry,
  type StoredEntry,
  type StoredGroup,
} from "./group_store.ts";
import { CommittedOffsets } from "./offsets.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";
import { subscribedTopics } from "./subscription.ts";

/** Settings, asked each time they are needed. */
export interface GroupSettings {
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly maxSize: number;
  readonly initialDelayMs: number;
  readonly offsetMetadataMaxBytes: number;
  readonly offsetRetentionMs: number;
  readonly expiryIntervalMs: number;
}

export interface CoordinatorOptions {
  readonly journal: JournalOptions;
  /** Resolves when the journal's folder is there and nobody else in this process uses it. */
  readonly ready?: Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  settings(): GroupSettings;
  /** Called when the state could not be read, or an entry of it makes no sense. */
  onProblem(problem: string, error: unknown): void;
}

export interface OffsetCommit {
  readonly groupId: string;
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Negative for a commit from outside any generation. */
  readonly generationId: number;
  /** How long the offsets are kept, in ms; negative for as long as the broker keeps them. */
  readonly retentionMs: number;
  readonly offsets: readonly OffsetToCommit[];
}

export interface OffsetToCommit {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly metadata: string;
}

export interface GroupListing {
  readonly groupId: string;
  readonly protocolType: string;
  readonly state: GroupState;
}

export interface GroupDescription extends GroupListing {
  /** The protocol chosen; "" while there is none. */
  readonly protocolName: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly clientId: string;
    readonly clientHost: string;
    readonly memberMetadata: Uint8Array;
    readonly memberAssignment: Uint8Array;
  }[];
}

interface Kept {
  readonly group: ClassicGroup;
  readonly offsets: CommittedOffsets;
  /** The last saving of the group that is under way. */
  saving: Promise<void> | null;
  /** Whether the journal knows, or will know, the group itself. */
  isSaved: boolean;
  timer: Timer | null;
  timerDueMs: number;
}

const utf8 = new TextEncoder();
/** No timer takes a longer delay. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** See the file's head. */
export class GroupCoordinator {
  readonly #options: Omit<CoordinatorOptions, "journal">;
  readonly #groups = new Map<string, Kept>();
  #journal: Journal | null = null;
  #refusal: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
  #expiryTimer: Timer | null = null;
  /** Resolves when the state has been read, or could not be. */
  readonly loaded: Promise<void>;

  /** Begins to read the state. */
  constructor(options: CoordinatorOptions);
  /** Without a journal it keeps nothing: every request is refused with NOT_COORDINATOR. */
  constructor(options: Omit<CoordinatorOptions, "journal">);
  constructor(options: Omit<CoordinatorOptions, "journal"> & Partial<CoordinatorOptions>) {
    this.#options = options;
    if (options.journal === undefined) this.#refusal = ErrorCode.NOT_COORDINATOR;
    this.loaded = options.journal === undefined ? Promise.resolve() : this.#load(options.journal);
  }

  /** A coordinator of nothing: every request is refused with NOT_COORDINATOR. */
  static absent(options: Omit<CoordinatorOptions, "journal">): GroupCoordinator {
    return new GroupCoordinator(options);
  }

  /** NONE when requests are served. */
  get availability(): ErrorCode {
    if (this.#refusal !== ErrorCode.NONE) return this.#refusal;
    return this.#journal?.failure == null ? ErrorCode.NONE : ErrorCode.COORDINATOR_NOT_AVAILABLE;
  }

  /** Answers what waits, saves what was changed, and serves no more. */
  async stop(): Promise<void> {
    await this.loaded;
    this.#refusal = ErrorCode.NOT_COORDINATOR;
    this.#expiryTimer?.cancel();
    for (const { group, timer } of this.#groups.values()) {
      timer?.cancel();
      group.dissolve(ErrorCode.NOT_COORDINATOR);
    }
    await this.#journal?.close();
  }

  join(groupId: string, request: JoinRequest): Promise<JoinReply> {
    const { memberId, facts: { sessionTimeoutMs } } = request;
    const settings = this.#options.settings();
    const isInvalid = sessionTimeoutMs < settings.minSessionTimeoutMs ||
      sessionTimeoutMs > settings.maxSessionTimeoutMs;
    const refusal = this.#refusalFor(groupId) || (isInvalid ? ErrorCode.INVALID_SESSION_TIMEOUT : ErrorCode.NONE);
    if (refusal !== ErrorCode.NONE) return Promise.resolve(refusedJoin(refusal, memberId));
    if (memberId !== "" && !this.#groups.has(groupId)) {
      return Promise.resolve(refusedJoin(ErrorCode.UNKNOWN_MEMBER_ID, memberId));
    }
    const kept = this.#keep(groupId);
    return new Promise((resolve) => {
      this.#run(kept, (nowMs) => kept.group.join(request, resolve, settings, nowMs));
    });
  }

  sync(groupId: string, request: SyncRequest): Promise<SyncReply> {
    const kept = this.#groups.get(groupId);
    const refusal = this.#refusalFor(groupId) || (kept === undefined ? ErrorCode.UNKNOWN_MEMBER_ID : ErrorCode.NONE);
    if (refusal !== ErrorCode.NONE || kept === undefined) return Promise.resolve(refusedSync(refusal));
    return new Promise((resolve) => this.#run(kept, (nowMs) => kept.group.sync(request, resolve, nowMs)));
  }

  heartbeat(groupId: string, memberId: string, instanceId: string | null, generationId: number): ErrorCode {
    const kept = this.#groups.get(groupId);
    const refusal = this.#refusalFor(groupId);
    if (refusal !== ErrorCode.NONE) return refusal;
    if (kept === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    return this.#run(kept, (nowMs) => kept.group.heartbeat(memberId, instanceId, generationId, nowMs));
  }

  /** One code per member, or one for them all. */
  leave(
    groupId: string,
    members: readonly { readonly memberId: string; readonly groupInstanceId: string | null }[],
  ): ErrorCode | ErrorCode[] {
    const refusal = this.#refusalFor(groupId);
    if (refusal !== ErrorCode.NONE) return refusal;
    const kept = this.#groups.get(groupId);
    if (kept === undefined) return members.map(() => ErrorCode.UNKNOWN_MEMBER_ID);
    const wallMs = this.#options.clock.wallMs();
    return this.#run(
      kept,
      (nowMs) => members.map((one) => kept.group.leave(one.memberId, one.groupInstanceId, nowMs, wallMs)),
    );
  }

  /** Resolves with one code per offset, or one for them all, when the commit is durable. */
  async commit(commit: OffsetCommit): Promise<ErrorCode | ErrorCode[]> {
    const { groupId, memberId, instanceId, generationId, retentionMs } = commit;
    if (this.availability !== ErrorCode.NONE) return this.availability;
    const kept = this.#groups.get(groupId);
    if (kept === undefined && generationId >= 0) return ErrorCode.ILLEGAL_GENERATION;
    const problem = kept === undefined
      ? ErrorCode.NONE
      : this.#run(kept, (nowMs) => kept.group.commitProblem(memberId, instanceId, generationId, nowMs));
    if (problem !== ErrorCode.NONE) return problem;
    const maxBytes = this.#options.settings().offsetMetadataMaxBytes;
    const isTooLong = ({ metadata }: OffsetToCommit) =>
      metadata.length > maxBytes || utf8.encode(metadata).length > maxBytes;
    const committedAtMs = this.#options.clock.wallMs();
    const expiresAtMs = retentionMs < 0 ? -1 : committedAtMs + retentionMs;
    const taken = commit.offsets.filter((one) => !isTooLong(one)).map(({ topic, partition, ...one }) => {
      const { offset, leaderEpoch, metadata } = one;
      return { topic, partition, value: { offset, leaderEpoch, metadata, committedAtMs, expiresAtMs } };
    });
    const entries = taken.map(({ topic, partition, value }) => offsetEntry(groupId, topic, partition, value));
    const code = await this.#append(entries, () => {
      if (taken.length === 0) return;
      const { offsets } = this.#keep(groupId);
      for (const { topic, partition, value } of taken) offsets.set(topic, partition, value);
    });
    if (code !== ErrorCode.NONE) return code;
    return commit.offsets.map((one) => isTooLong(one) ? ErrorCode.OFFSET_METADATA_TOO_LARGE : ErrorCode.NONE);
  }

  /** The group's offsets; undefined for a group that is not there. To be asked only while {@link availability} is NONE. */
  offsetsOf(groupId: string): CommittedOffsets | undefined {
    return this.#groups.get(groupId)?.offsets;
  }

  /** Resolves with one code per partition, or one for them all, when they are gone durably. */
  async deleteOffsets(
    groupId: string,
    partitions: readonly { readonly topic: string; readonly partition: number }[],
  ): Promise<ErrorCode | ErrorCode[]> {
    const refusal = this.#refusalFor(groupId);
    if (refusal !== ErrorCode.NONE) return refusal;
    const kept = this.#groups.get(groupId);
    if (kept === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    const { group, offsets } = kept;
    if (group.state !== "Empty" && group.protocolType !== "consumer") return ErrorCode.NON_EMPTY_GROUP;
    const subscribed = subscriptionsOf(group);
    const isInUse = (topic: string) => subscribed === "all" || subscribed.has(topic);
    const gone = partitions.filter(({ topic, partition }) =>
      !isInUse(topic) && offsets.get(topic, partition) !== undefined
    );
    const code = await this.#remove(groupId, gone);
    if (code !== ErrorCode.NONE) return code;
    return partitions.map(({ topic }) => isInUse(topic) ? ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC : ErrorCode.NONE);
  }

  /** Resolves when the group is gone durably, with all its offsets. */
  async deleteGroup(groupId: string): Promise<ErrorCode> {
    if (this.availability !== ErrorCode.NONE) return this.availability;
    const kept = this.#groups.get(groupId);
    if (kept === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    if (kept.group.state !== "Empty") return ErrorCode.NON_EMPTY_GROUP;
    return await this.#remove(groupId, allOf(kept.offsets), kept.isSaved);
  }

  /** Drops what groups have committed for a topic that is no more. Resolves when that is durable, or cannot be. */
  async topicDeleted(topic: string): Promise<void> {
    await this.loaded;
    if (this.availability !== ErrorCode.NONE) return;
    const removals: Promise<ErrorCode>[] = [];
    for (const [groupId, { offsets }] of this.#groups) {
      const gone = allOf(offsets).filter((one) => one.topic === topic);
      if (gone.length > 0) removals.push(this.#remove(groupId, gone));
    }
    await Promise.all(removals);
  }

  /** All groups. To be asked only while {@link availability} is NONE. */
  list(): GroupListing[] {
    return Array.from(this.#groups.values(), ({ group }) => listingOf(group));
  }

  /** The group, or undefined. To be asked only while {@link availability} is NONE. */
  describe(groupId: string): GroupDescription | undefined {
    const group = this.#groups.get(groupId)?.group;
    if (group === undefined) return undefined;
    const isStable = group.state === "Stable";
    const members = Array.from(group.members.values(), (member) => ({
      memberId: member.memberId,
      groupInstanceId: member.facts.instanceId,
      clientId: member.facts.clientId,
      clientHost: member.facts.clientHost,
      memberMetadata: isStable ? member.metadataFor(group.protocolName) : new Uint8Array(0),
      memberAssignment: isStable ? member.assignment : new Uint8Array(0),
    }));
    return { ...listingOf(group), protocolName: isStable ? group.protocolName ?? "" : "", members };
  }

  #refusalFor(groupId: string): ErrorCode {
    return groupId === "" ? ErrorCode.INVALID_GROUP_ID : this.availability;
  }

  async #load(options: JournalOptions): Promise<void> {
    try {
      await this.#options.ready;
      const journal = await Journal.open(options);
      const nowMs = this.#options.clock.monotonicMs();
      for (const entry of journal.entries()) {
        const stored = this.#read(entry);
        if (stored?.kind === "group") this.#restore(stored.groupId, stored.group, nowMs);
        else if (stored?.kind === "offset") {
          this.#keep(stored.groupId).offsets.set(stored.topic, stored.partition, stored.offset);
        }
      }
      this.#journal = journal;
      this.#refusal = ErrorCode.NONE;
      for (const kept of this.#groups.values()) this.#arm(kept);
      this.#scheduleExpiry();
    } catch (error) {
      this.#refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE;
      this.#options.onProblem("consumer groups cannot be served: their state cannot be read", error);
    }
  }

  #read(entry: JournalEntry): StoredEntry | null {
    try {
      return readEntry(entry);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#options.onProblem("an entry of the groups' state makes no sense and is passed over", error);
      return null;
    }
  }

  #restore(groupId: string, stored: StoredGroup, nowMs: number): void {
    const kept = this.#keep(groupId);
    kept.isSaved = true;
    const { group } = kept;
    group.generationId = stored.generationId;
    group.protocolType = stored.protocolType;
    group.protocolName = stored.protocolName;
    group.leaderId = stored.leaderId;
    group.emptySinceMs = stored.emptySinceMs;
    group.state = stored.members.length > 0 ? "Stable" : "Empty";
    for (const { memberId, facts, assignment } of stored.members) group.restore(memberId, facts, assignment, nowMs);
  }

  #keep(groupId: string): Kept {
    const present = this.#groups.get(groupId);
    if (present !== undefined) return present;
    const { clock, random } = this.#options;
    const effects = {
      save: () => this.#save(kept),
      answer: (give: () => void, refuse: (code: ErrorCode) => void) => {
        if (kept.saving === null) give();
        else kept.saving.then(give, () => refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE));
      },
      newMemberId: (prefix: string) => `${prefix}-${random.uuid()}`,
    };
    const kept: Kept = {
      group: new ClassicGroup(groupId, effects, clock.wallMs()),
      offsets: new CommittedOffsets(),
      saving: null,
      isSaved: false,
      timer: null,
      timerDueMs: Infinity,
    };
    this.#groups.set(groupId, kept);
    return kept;
  }

  #save(kept: Kept): void {
    if (this.#journal === null) return;
    kept.isSaved = true;
    const saving = this.#journal.append([groupEntry(kept.group)]);
    kept.saving = saving;
    const done = () => {
      if (kept.saving === saving) kept.saving = null;
    };
    saving.then(done, done);
  }

  /** Lets time catch up with the group, then does `command`. */
  #run<T>(kept: Kept, command: (nowMs: number) => T): T {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    kept.group.advance(nowMs, clock.wallMs());
    const result = command(nowMs);
    this.#arm(kept);
    this.#forgetIfHollow(kept);
    return result;
  }

  #arm(kept: Kept): void {
    const { wakeMs } = kept.group;
    if (wakeMs >= kept.timerDueMs) return;
    kept.timer?.cancel();
    kept.timerDueMs = wakeMs;
    const { clock } = this.#options;
    kept.timer = clock.schedule(Math.max(0, Math.ceil(wakeMs - clock.monotonicMs())), () => {
      kept.timer = null;
      kept.timerDueMs = Infinity;
      if (this.#refusal === ErrorCode.NONE) this.#run(kept, () => {});
    });
  }

  #forgetIfHollow(kept: Kept): void {
    if (!kept.group.isIdle || kept.isSaved || !kept.offsets.isEmpty) return;
    if (this.#groups.get(kept.group.groupId) !== kept) return;
    kept.timer?.cancel();
    this.#groups.delete(kept.group.groupId);
  }

  /** Appends, and applies when durable. Changes apply in the order of the journal. */
  async #append(entries: readonly JournalEntry[], apply: () => void): Promise<ErrorCode> {
    if (this.#journal === null) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    try {
      await this.#journal.append(entries);
    } catch {
      return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    }
    apply();
    return ErrorCode.NONE;
  }

  #remove(
    groupId: string,
    partitions: readonly { readonly topic: string; readonly partition: number }[],
    groupToo = false,
  ): Promise<ErrorCode> {
    const entries = partitions.map(({ topic, partition }) => offsetRemoval(groupId, topic, partition));
    const known = this.#groups.get(groupId);
    if (groupToo && known !== undefined) {
      entries.push(groupRemoval(groupId));
      // Whoever joins meanwhile saves the group anew, behind this removal.
      known.isSaved = false;
    }
    return this.#append(entries, () => {
      const kept = this.#groups.get(groupId);
      if (kept === undefined) return;
      for (const { topic, partition } of partitions) kept.offsets.delete(topic, partition);
      this.#forgetIfHollow(kept);
    });
  }

  #scheduleExpiry(): void {
    const intervalMs = Math.min(this.#options.settings().expiryIntervalMs, MAX_DELAY_MS);
    this.#expiryTimer = this.#options.clock.schedule(intervalMs, () => {
      void this.expire().finally(() => {
        if (this.#refusal === ErrorCode.NONE) this.#scheduleExpiry();
      });
    });
  }

  /** Drops what has expired; a group that is empty then goes with it. Resolves when that is durable, or cannot be. */
  async expire(): Promise<void> {
    if (this.availability !== ErrorCode.NONE) return;
    const nowMs = this.#options.clock.wallMs();
    const retentionMs = this.#options.settings().offsetRetentionMs;
    const removals: Promise<ErrorCode>[] = [];
    for (const [groupId, { group, offsets, isSaved }] of this.#groups) {
      const hadMembers = group.state === "Empty" && group.protocolType !== null;
      const emptySinceMs = hadMembers ? group.emptySinceMs : null;
      const gone = offsets.expired({ nowMs, retentionMs, emptySinceMs, subscribed: subscriptionsOf(group) });
      const isOver = group.isIdle && gone.length === allOf(offsets).length;
      if (gone.length > 0 || isOver) removals.push(this.#remove(groupId, gone, isOver && isSaved));
    }
    await Promise.all(removals);
  }
}

/** Topics that members of the group consume; "all" where that cannot be known. */
function subscriptionsOf(group: ClassicGroup): ReadonlySet<string> | "all" {
  const topics = new Set<string>();
  if (group.state === "Empty") return topics;
  if (group.protocolType !== "consumer") return "all";
  for (const { facts } of group.members.values()) {
    for (const { metadata } of facts.protocols) {
      const named = subscribedTopics(metadata);
      if (named === null) return "all";
      for (const topic of named) topics.add(topic);
    }
  }
  return topics;
}

function allOf(offsets: CommittedOffsets): { topic: string; partition: number }[] {
  const all: { topic: string; partition: number }[] = [];
  for (const [topic, partitions] of offsets.topics()) {
    for (const partition of partitions.keys()) all.push({ topic, partition });
  }
  return all;
}

function listingOf({ groupId, protocolType, state }: ClassicGroup): GroupListing {
  return { groupId, protocolType: protocolType ?? "", state };
}
