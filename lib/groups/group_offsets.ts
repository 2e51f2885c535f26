/**
 * Committed offsets of all groups: who may commit, when a commit is durable, when offsets and with them whole groups go.
 *
 * Offsets are seen when they are durable; those of a transaction when it has been committed (`pending_offsets.ts`). While a commit is on its way its group's offsets do not expire: what is being
 * committed would be removed with what it replaces.
 */

import type { Clock, Timer } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import type { JournalEntry } from "../journal/journal.ts";
import { subscribedTopics } from "./consumer_protocol.ts";
import { offsetEntry, offsetRemoval, pendingOffsetEntry, pendingOffsetRemoval } from "./group_store.ts";
import { type GroupShelf, type Kept, MAX_DELAY_MS } from "./group_shelf.ts";
import type { CommittedOffsets } from "./offsets.ts";
import type { PendingOffset } from "./pending_offsets.ts";

export interface OffsetSettings {
  readonly offsetMetadataMaxBytes: number;
  readonly offsetRetentionMs: number;
  readonly expiryIntervalMs: number;
}

export interface OffsetCommit {
  /** The producer whose transaction the offsets belong to: they are seen when it is committed. */
  readonly producerId?: number;
  readonly groupId: string;
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Generation, or epoch of the member; negative for a commit from outside any. */
  readonly generationId: number;
  /** Whether the request is of a version that knows groups of the consumer protocol. */
  readonly knowsEpochs?: boolean;
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

interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

const utf8 = new TextEncoder();

/** See the file's head. */
export class GroupOffsets {
  readonly #shelf: GroupShelf;
  readonly #clock: Clock;
  readonly #settings: () => OffsetSettings;
  #timer: Timer | null = null;

  constructor(shelf: GroupShelf, clock: Clock, settings: () => OffsetSettings) {
    this.#shelf = shelf;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Resolves with one code per offset, or one for them all, when the commit is durable. */
  async commit(commit: OffsetCommit): Promise<ErrorCode | ErrorCode[]> {
    const { groupId, retentionMs, producerId } = commit;
    if (this.#shelf.availability !== ErrorCode.NONE) return this.#shelf.availability;
    const problem = this.#commitProblem(commit);
    if (problem !== ErrorCode.NONE) return problem;
    const maxBytes = this.#settings().offsetMetadataMaxBytes;
    const isTooLong = ({ metadata }: OffsetToCommit) =>
      metadata.length > maxBytes || utf8.encode(metadata).length > maxBytes;
    const committedAtMs = this.#clock.wallMs();
    const expiresAtMs = retentionMs < 0 ? -1 : committedAtMs + retentionMs;
    const taken = commit.offsets.filter((one) => !isTooLong(one)).map(({ topic, partition, ...one }) => {
      const { offset, leaderEpoch, metadata } = one;
      return { topic, partition, value: { offset, leaderEpoch, metadata, committedAtMs, expiresAtMs } };
    });
    if (taken.length > 0) {
      const kept = this.#shelf.keep(groupId);
      kept.committing++;
      const code = producerId === undefined
        ? await this.#shelf.append(
          taken.map(({ topic, partition, value }) => offsetEntry(groupId, topic, partition, value)),
          () => {
            const { offsets } = this.#shelf.keep(groupId);
            for (const { topic, partition, value } of taken) offsets.set(topic, partition, value);
          },
        )
        : await this.#prepare(
          groupId,
          producerId,
          taken.map(({ topic, partition, value }) => ({ topic, partition, offset: value })),
        );
      kept.committing--;
      this.#shelf.forgetIfHollow(groupId);
      if (code !== ErrorCode.NONE) return code;
    }
    return commit.offsets.map((one) => isTooLong(one) ? ErrorCode.OFFSET_METADATA_TOO_LARGE : ErrorCode.NONE);
  }

  /** Keeps offsets until {@link endTransaction}; whoever ends the transaction from now on finds them. */
  #prepare(groupId: string, producerId: number, pending: readonly PendingOffset[]): Promise<ErrorCode> {
    for (const one of pending) this.#shelf.keepPending(groupId, producerId, one);
    return this.#shelf.append(pending.map((one) => pendingOffsetEntry(groupId, producerId, one)), () => {});
  }

  /**
   * A producer's transaction has ended: the offsets it committed, in whatever groups, are seen from now on, or never.
   * Resolves when that is durable; to be asked again where it cannot be.
   */
  async endTransaction(producerId: number, commits: boolean): Promise<ErrorCode> {
    if (this.#shelf.availability !== ErrorCode.NONE) return this.#shelf.availability;
    const ended = Array.from(this.#shelf.pendingIn.get(producerId) ?? [], (groupId) => ({
      groupId,
      offsets: this.#shelf.get(groupId)?.pending.of(producerId) ?? [],
    }));
    const entries = ended.flatMap(({ groupId, offsets }) =>
      offsets.flatMap((one) => [
        ...(commits ? [offsetEntry(groupId, one.topic, one.partition, one.offset)] : []),
        pendingOffsetRemoval(groupId, producerId, one),
      ])
    );
    return await this.#shelf.append(entries, () => {
      this.#shelf.pendingIn.delete(producerId);
      for (const { groupId, offsets } of ended) {
        const kept = this.#shelf.get(groupId);
        if (kept === undefined) continue;
        if (commits) { for (const { topic, partition, offset } of offsets) kept.offsets.set(topic, partition, offset); }
        kept.pending.delete(producerId);
        this.#shelf.forgetIfHollow(groupId);
      }
    });
  }

  #commitProblem(commit: OffsetCommit): ErrorCode {
    const { memberId, instanceId, generationId, producerId, knowsEpochs = false } = commit;
    // A producer before KIP-447 says nothing of its consumer.
    const isAnonymous = generationId < 0 && memberId === "" && instanceId === null;
    if (producerId !== undefined && isAnonymous) return ErrorCode.NONE;
    const problem = this.#membershipProblem(commit, knowsEpochs || producerId !== undefined);
    if (producerId === undefined) return problem;
    switch (problem) {
      // What was read in this generation is written in it, too.
      case ErrorCode.REBALANCE_IN_PROGRESS:
        return ErrorCode.NONE;
      case ErrorCode.STALE_MEMBER_EPOCH:
      case ErrorCode.GROUP_ID_NOT_FOUND:
        return ErrorCode.ILLEGAL_GENERATION;
      default:
        return problem;
    }
  }

  #membershipProblem(
    { groupId, memberId, instanceId, generationId }: OffsetCommit,
    knowsEpochs: boolean,
  ): ErrorCode {
    const kept = this.#shelf.get(groupId);
    if (kept === undefined) {
      if (generationId < 0) return ErrorCode.NONE;
      return knowsEpochs ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.ILLEGAL_GENERATION;
    }
    return this.#shelf.run(kept, (nowMs) => {
      const { group } = kept;
      if (group.type === "classic") return group.commitProblem(memberId, instanceId, generationId, nowMs);
      return group.commitProblem(memberId, generationId, knowsEpochs);
    });
  }

  /** Resolves with one code per partition, or one for them all, when they are gone durably. */
  async delete(groupId: string, partitions: readonly TopicPartition[]): Promise<ErrorCode | ErrorCode[]> {
    const kept = this.#shelf.get(groupId);
    if (kept === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    const { group, offsets } = kept;
    if (group.type === "classic" && group.state !== "Empty" && group.protocolType !== "consumer") {
      return ErrorCode.NON_EMPTY_GROUP;
    }
    const subscribed = subscriptionsOf(kept);
    const isInUse = (topic: string) => subscribed === "all" || subscribed.has(topic);
    const gone = partitions.filter(({ topic, partition }) =>
      !isInUse(topic) && offsets.get(topic, partition) !== undefined
    );
    const code = await this.#remove(kept, gone);
    if (code !== ErrorCode.NONE) return code;
    return partitions.map(({ topic }) => isInUse(topic) ? ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC : ErrorCode.NONE);
  }

  /** Removes a group without members. Resolves when it is gone durably, with all its offsets. */
  deleteGroup(kept: Kept): Promise<ErrorCode> {
    const pending = [...kept.pending.all()];
    // Nobody ends them in a group that is no more.
    for (const { producerId } of pending) kept.pending.delete(producerId);
    const dropped = pending.map((one) => pendingOffsetRemoval(kept.groupId, one.producerId, one));
    return this.#remove(kept, allOf(kept.offsets), kept.isSaved, dropped);
  }

  /** Drops what groups have committed for a topic that is no more. Resolves when that is durable, or cannot be. */
  async topicDeleted(topic: string): Promise<void> {
    const removals: Promise<ErrorCode>[] = [];
    for (const kept of this.#shelf.all()) {
      const gone = allOf(kept.offsets).filter((one) => one.topic === topic);
      const dropped = kept.pending.deleteTopic(topic)
        .map((one) => pendingOffsetRemoval(kept.groupId, one.producerId, one));
      if (gone.length + dropped.length > 0) removals.push(this.#remove(kept, gone, false, dropped));
    }
    await Promise.all(removals);
  }

  /** Begins to look for what has expired, from time to time. */
  start(): void {
    const intervalMs = Math.min(this.#settings().expiryIntervalMs, MAX_DELAY_MS);
    this.#timer = this.#clock.schedule(intervalMs, () => {
      void this.expire().finally(() => {
        if (this.#timer !== null) this.start();
      });
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Drops what has expired; a group that is empty then goes with it. Resolves when that is durable, or cannot be. */
  async expire(): Promise<void> {
    if (this.#shelf.availability !== ErrorCode.NONE) return;
    const nowMs = this.#clock.wallMs();
    const retentionMs = this.#settings().offsetRetentionMs;
    const removals: Promise<ErrorCode>[] = [];
    for (const kept of this.#shelf.all()) {
      // The end of a transaction renews what it has committed.
      if (kept.committing > 0 || !kept.pending.isEmpty) continue;
      const { group, offsets, isSaved } = kept;
      const hadMembers = group.type === "consumer"
        ? group.isIdle
        : group.state === "Empty" && group.protocolType !== null;
      const emptySinceMs = hadMembers ? group.emptySinceMs : null;
      const gone = offsets.expired({ nowMs, retentionMs, emptySinceMs, subscribed: subscriptionsOf(kept) });
      const isOver = group.isIdle && gone.length === allOf(offsets).length;
      if (gone.length > 0 || isOver) removals.push(this.#remove(kept, gone, isOver && isSaved));
    }
    await Promise.all(removals);
  }

  #remove(
    kept: Kept,
    partitions: readonly TopicPartition[],
    groupToo = false,
    further: readonly JournalEntry[] = [],
  ): Promise<ErrorCode> {
    const { groupId } = kept;
    const entries = partitions.map(({ topic, partition }) => offsetRemoval(groupId, topic, partition));
    entries.push(...further);
    if (groupToo) entries.push(...this.#shelf.removalOf(kept));
    return this.#shelf.append(entries, () => {
      const present = this.#shelf.get(groupId);
      if (present === undefined) return;
      for (const { topic, partition } of partitions) present.offsets.delete(topic, partition);
      this.#shelf.forgetIfHollow(groupId);
    });
  }
}

/** Topics that members of the group consume; "all" where that cannot be known. */
function subscriptionsOf({ group }: Kept): ReadonlySet<string> | "all" {
  if (group.type === "consumer") return group.state.consumedTopics();
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

function allOf(offsets: CommittedOffsets): TopicPartition[] {
  const all: TopicPartition[] = [];
  for (const [topic, partitions] of offsets.topics()) {
    for (const partition of partitions.keys()) all.push({ topic, partition });
  }
  return all;
}
