/**
 * Groups in memory over the journal that makes them last: reads them, saves them, lets time pass for them.
 *
 * Invariants:
 * - nothing is answered as done before it is durable, and offsets are seen only when they are;
 * - changes take effect in memory in the order in which they are in the journal;
 * - while the state is read every request is refused with COORDINATOR_LOAD_IN_PROGRESS, and once the journal has failed
 *   with COORDINATOR_NOT_AVAILABLE;
 * - a group that holds nothing that lasts is forgotten, so that requests cannot fill the memory with names;
 * - a group is stored under one protocol. Where a crash has left both, its classic form holds, and the other is removed:
 *   going up the classic form is removed last, coming down it is written first.
 */

import type { Clock, Random, Timer } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import { Journal, type JournalEntry, type JournalOptions } from "../journal/journal.ts";
import { ClassicGroup } from "./classic_group.ts";
import type { GroupEffects } from "./classic_requests.ts";
import { ConsumerGroup } from "./consumer_group.ts";
import { changeEntries, consumerGroupRemovals, memberRemovals, StoredConsumerMembers } from "./consumer_group_store.ts";
import { groupEntry, groupRemoval, readEntry, type StoredEntry, type StoredGroup } from "./group_store.ts";
import { CommittedOffsets } from "./offsets.ts";
import { type PendingOffset, PendingOffsets } from "./pending_offsets.ts";
import type { TopicView } from "./topic_view.ts";

export interface ShelfOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly topics: TopicView;
  /** How long a member of the consumer protocol may be silent, in ms. */
  sessionTimeoutMs(): number;
  /** Called when the state could not be read, or an entry of it makes no sense. */
  onProblem(problem: string, error: unknown): void;
}

export interface Kept {
  readonly groupId: string;
  group: ClassicGroup | ConsumerGroup;
  readonly effects: GroupEffects;
  readonly offsets: CommittedOffsets;
  readonly pending: PendingOffsets;
  /** How many commits are on their way into the journal. */
  committing: number;
  /** The last saving of the group that is under way. */
  saving: Promise<void> | null;
  /** Whether the journal knows, or will know, the group itself. */
  isSaved: boolean;
  timer: Timer | null;
  timerDueMs: number;
}

/** No timer takes a longer delay. */
export const MAX_DELAY_MS = 2 ** 31 - 1;

/** See the file's head. */
export class GroupShelf {
  readonly #options: ShelfOptions;
  readonly #groups = new Map<string, Kept>();
  /** Ids of groups in which a producer's transaction has committed offsets. */
  readonly pendingIn = new Map<number, Set<string>>();
  #journal: Journal | null = null;
  #refusal: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
  /** Called after each command, with the group it was for. */
  afterCommand: (kept: Kept, nowMs: number, wallMs: number) => void = () => {};

  constructor(options: ShelfOptions) {
    this.#options = options;
  }

  /** NONE when requests are served. */
  get availability(): ErrorCode {
    if (this.#refusal !== ErrorCode.NONE) return this.#refusal;
    return this.#journal?.failure == null ? ErrorCode.NONE : ErrorCode.COORDINATOR_NOT_AVAILABLE;
  }

  get(groupId: string): Kept | undefined {
    return this.#groups.get(groupId);
  }

  all(): Iterable<Kept> {
    return this.#groups.values();
  }

  /** Reads the state when `ready` has resolved. Resolves when it has been read, or could not be. */
  async load(options: JournalOptions, ready?: Promise<void>): Promise<void> {
    try {
      await ready;
      const journal = await Journal.open(options);
      this.#journal = journal;
      const consumers = new Map<string, StoredConsumerMembers>();
      const nowMs = this.#options.clock.monotonicMs();
      for (const entry of journal.entries()) {
        const stored = this.#read(entry);
        if (stored?.kind === "group") this.#restoreClassic(stored.groupId, stored.group, nowMs);
        else if (stored?.kind === "offset") {
          this.keep(stored.groupId).offsets.set(stored.topic, stored.partition, stored.offset);
        } else if (stored?.kind === "pending-offset") this.keepPending(stored.groupId, stored.producerId, stored);
        else if (stored?.kind === "consumer") {
          const { groupId } = stored;
          if (!consumers.has(groupId)) consumers.set(groupId, new StoredConsumerMembers());
          consumers.get(groupId)!.add(stored);
        }
      }
      for (const [groupId, stored] of consumers) this.#restoreConsumer(groupId, stored, nowMs);
      this.#refusal = ErrorCode.NONE;
      for (const kept of this.#groups.values()) this.#arm(kept);
    } catch (error) {
      this.#refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE;
      this.#options.onProblem("consumer groups cannot be served: their state cannot be read", error);
    }
  }

  /** Answers what waits, saves what was changed, and serves no more. */
  async stop(): Promise<void> {
    this.#refusal = ErrorCode.NOT_COORDINATOR;
    for (const { group, timer } of this.#groups.values()) {
      timer?.cancel();
      if (group.type === "classic") group.dissolve(ErrorCode.NOT_COORDINATOR);
    }
    await this.#journal?.close();
  }

  /** The group of this name; a new one is empty, and classic until it is used otherwise. */
  keep(groupId: string): Kept {
    const present = this.#groups.get(groupId);
    if (present !== undefined) return present;
    const effects: GroupEffects = {
      save: () => {
        if (kept.group.type === "classic") this.save(kept, [groupEntry(kept.group)]);
      },
      answer: (give, refuse) => {
        if (kept.saving === null) give();
        else kept.saving.then(give, () => refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE));
      },
      newMemberId: (prefix) => `${prefix}-${this.#options.random.uuid()}`,
    };
    const kept: Kept = {
      groupId,
      group: new ClassicGroup(groupId, effects, this.#options.clock.wallMs()),
      effects,
      offsets: new CommittedOffsets(),
      pending: new PendingOffsets(),
      committing: 0,
      saving: null,
      isSaved: false,
      timer: null,
      timerDueMs: Infinity,
    };
    this.#groups.set(groupId, kept);
    return kept;
  }

  /** Keeps an offset until its transaction has ended: {@link pendingIn} then names the group. */
  keepPending(groupId: string, producerId: number, { topic, partition, offset }: PendingOffset): void {
    this.keep(groupId).pending.set(producerId, topic, partition, offset);
    const groups = this.pendingIn.get(producerId);
    if (groups === undefined) this.pendingIn.set(producerId, new Set([groupId]));
    else groups.add(groupId);
  }

  newClassicGroup({ groupId, effects }: Kept): ClassicGroup {
    return new ClassicGroup(groupId, effects, this.#options.clock.wallMs());
  }

  newConsumerGroup(groupId: string): ConsumerGroup {
    const { topics, clock, random } = this.#options;
    return new ConsumerGroup(groupId, topics, clock.wallMs(), () => random.uuid());
  }

  /** Appends to the journal what the group is made of. Answers given from now on wait for that. */
  save(kept: Kept, entries: readonly JournalEntry[]): void {
    if (this.#journal === null || entries.length === 0) return;
    kept.isSaved = true;
    const saving = this.#journal.append(entries);
    kept.saving = saving;
    const done = () => {
      if (kept.saving === saving) kept.saving = null;
    };
    saving.then(done, done);
  }

  /** Lets time catch up with the group, then does `command`. */
  run<T>(kept: Kept, command: (nowMs: number, wallMs: number) => T): T {
    const { clock } = this.#options;
    const [nowMs, wallMs] = [clock.monotonicMs(), clock.wallMs()];
    kept.group.advance(nowMs, wallMs);
    const result = command(nowMs, wallMs);
    this.#saveChanges(kept);
    this.afterCommand(kept, nowMs, wallMs);
    this.#arm(kept);
    this.#forgetIfHollow(kept);
    return result;
  }

  /** What `command` returns, when all that it changed is durable; `refused` where that fails. */
  runSaved<T>(kept: Kept, command: (nowMs: number, wallMs: number) => T, refused: T): T | Promise<T> {
    const result = this.run(kept, command);
    return kept.saving === null ? result : kept.saving.then(() => result, () => refused);
  }

  /** Appends, and applies when durable. Changes apply in the order of the journal. */
  async append(entries: readonly JournalEntry[], apply: () => void): Promise<ErrorCode> {
    if (this.#journal === null) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    try {
      await this.#journal.append(entries);
    } catch {
      return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    }
    apply();
    return ErrorCode.NONE;
  }

  /** The group has no members and is to be replaced: nothing of it but offsets is to last. */
  removeFromJournal(kept: Kept): void {
    if (kept.isSaved) this.save(kept, this.removalOf(kept));
    kept.isSaved = false;
  }

  /** Entries that remove a group without members. */
  removalOf(kept: Kept): JournalEntry[] {
    // Whoever joins meanwhile saves the group anew, behind this removal.
    kept.isSaved = false;
    return kept.group.type === "classic" ? [groupRemoval(kept.groupId)] : consumerGroupRemovals(kept.groupId, []);
  }

  forgetIfHollow(groupId: string): void {
    const kept = this.#groups.get(groupId);
    if (kept !== undefined) this.#forgetIfHollow(kept);
  }

  #saveChanges(kept: Kept): void {
    if (kept.group.type === "consumer") {
      this.save(kept, changeEntries(kept.group.state, kept.group.state.takeChanges()));
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

  #restoreClassic(groupId: string, stored: StoredGroup, nowMs: number): void {
    const kept = this.keep(groupId);
    const { group } = kept;
    if (group.type !== "classic") return;
    kept.isSaved = true;
    group.generationId = stored.generationId;
    group.protocolType = stored.protocolType;
    group.protocolName = stored.protocolName;
    group.leaderId = stored.leaderId;
    group.emptySinceMs = stored.emptySinceMs;
    group.state = stored.members.length > 0 ? "Stable" : "Empty";
    for (const { memberId, facts, assignment } of stored.members) group.restore(memberId, facts, assignment, nowMs);
  }

  #restoreConsumer(groupId: string, stored: StoredConsumerMembers, nowMs: number): void {
    const kept = this.keep(groupId);
    const leftOver = () => this.save(kept, consumerGroupRemovals(groupId, stored.memberIds()));
    if (kept.isSaved) return leftOver();
    const group = this.newConsumerGroup(groupId);
    const { state } = group;
    if (stored.group !== null) Object.assign(state, stored.group);
    const members = stored.members();
    if (stored.group === null && members.length === 0) return leftOver();
    for (const member of members) {
      const { classic, rebalanceTimeoutMs } = member.facts;
      member.sessionEndMs = nowMs + (classic?.sessionTimeoutMs ?? this.#options.sessionTimeoutMs());
      if (member.current.state === "unrevoked") member.answerDueMs = nowMs + rebalanceTimeoutMs;
      if (state.restore(member)) state.wakeBy(member);
      else {
        this.#options.onProblem(
          `a member of group ${groupId} has what another has, and must join again`,
          member.memberId,
        );
        this.save(kept, memberRemovals(groupId, member.memberId));
      }
    }
    state.restored();
    state.takeChanges();
    kept.group = group;
    kept.isSaved = true;
  }

  #arm(kept: Kept): void {
    const { wakeMs } = kept.group;
    if (wakeMs >= kept.timerDueMs) return;
    kept.timer?.cancel();
    kept.timerDueMs = wakeMs;
    const { clock } = this.#options;
    const delayMs = Math.min(Math.max(0, Math.ceil(wakeMs - clock.monotonicMs())), MAX_DELAY_MS);
    kept.timer = clock.schedule(delayMs, () => {
      kept.timer = null;
      kept.timerDueMs = Infinity;
      if (this.#refusal === ErrorCode.NONE) this.run(kept, () => {});
    });
  }

  #forgetIfHollow(kept: Kept): void {
    if (!kept.group.isIdle || kept.isSaved || !kept.offsets.isEmpty || !kept.pending.isEmpty) return;
    if (this.#groups.get(kept.groupId) !== kept) return;
    kept.timer?.cancel();
    this.#groups.delete(kept.groupId);
  }
}
