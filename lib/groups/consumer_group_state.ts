/**
 * What a group of the consumer protocol is (KIP-848), and the steps all its members take, whichever protocol they speak.
 * Pure: time comes in with each call, what must be saved is collected until {@link takeChanges}.
 *
 * The group has an epoch, which rises whenever its members, their subscriptions or their topics change. An assignor then
 * makes a target under that epoch: what each member shall have. Each member is brought to its target in steps of its own.
 *
 * Invariants:
 * - a partition has one owner at most: the member that was told of it and has not confirmed that it gave it up, and is
 *   still in the group;
 * - no member's epoch is above the target's, and the target's is not above the group's;
 * - `wakeMs` is never later than the next thing that time alone makes happen.
 */

import { assignByRange } from "./assignors/range.ts";
import { assignUniformly } from "./assignors/uniform.ts";
import type { Assignor } from "./assignors/assignor.ts";
import {
  type ConsumerFacts,
  type ConsumerMember,
  type Current,
  NOTHING_YET,
  sameFacts,
  sameSubscription,
} from "./consumer_member.ts";
import { reconcile } from "./reconciliation.ts";
import { SubscribedTopics } from "./subscribed_topics.ts";
import { overlap, type Partitions, samePartitions } from "./topic_partitions.ts";
import type { TopicView } from "./topic_view.ts";

/** Assignors by the names that members may ask for. */
export const assignors: ReadonlyMap<string, Assignor> = new Map([
  ["uniform", assignUniformly],
  ["range", assignByRange],
]);

export type ConsumerGroupPhase = "Empty" | "Assigning" | "Reconciling" | "Stable";

/** What has changed since it was last asked for, to be saved. */
export interface ConsumerGroupChanges {
  /** Epochs and topics of the group itself. */
  group: boolean;
  readonly facts: Set<ConsumerMember>;
  readonly targets: Set<ConsumerMember>;
  readonly currents: Set<ConsumerMember>;
  /** Ids of members that are gone. */
  readonly removed: Set<string>;
}

export interface AssignmentRules {
  /** The assignor where members ask for none. */
  readonly defaultAssignor: string;
  /** Least time between two targets of a large group. */
  readonly intervalMs: number;
}

/** A group that is larger is not given a new target for each member that comes or goes. */
const LARGE_GROUP = 200;

/** See the file's head. */
export class ConsumerGroupState {
  epoch = 0;
  targetEpoch = 0;
  /** Of the topics the target was made for. */
  fingerprint = 0;
  emptySinceMs: number;
  /** When {@link expired} may have something, in monotonic ms. */
  wakeMs = Infinity;
  readonly members = new Map<string, ConsumerMember>();
  /** How many members speak the classic protocol. */
  classicCount = 0;
  readonly #byInstance = new Map<string, string>();
  /** Who has a partition, or may have it. */
  readonly #owners = new Map<string, Map<number, string>>();
  readonly #subscribed: SubscribedTopics;
  #lists: ReadonlySet<readonly string[]> | null = null;
  #isUrgent = true;
  #assignedAtMs = -Infinity;
  #changes: ConsumerGroupChanges = noChanges();

  constructor(readonly groupId: string, readonly topics: TopicView, wallMs: number) {
    this.#subscribed = new SubscribedTopics(topics);
    this.emptySinceMs = wallMs;
  }

  get phase(): ConsumerGroupPhase {
    if (this.members.size === 0) return "Empty";
    if (this.epoch > this.targetEpoch) return "Assigning";
    for (const { current: { state, epoch } } of this.members.values()) {
      if (state !== "stable" || epoch !== this.targetEpoch) return "Reconciling";
    }
    return "Stable";
  }

  byInstance(instanceId: string): ConsumerMember | undefined {
    return this.members.get(this.#byInstance.get(instanceId) ?? "");
  }

  /** The topics that members consume, some of which may not exist. */
  consumedTopics(): Set<string> {
    return new Set([...this.#listsInUse()].flat());
  }

  /** Takes a member in. A new one raises the group's epoch. */
  enter(member: ConsumerMember): void {
    this.#put(member);
    this.#changes.facts.add(member);
    this.raiseEpoch();
  }

  /** A member as it was before a restart. Returns false, and leaves it out, if another has what it says it has. */
  restore(member: ConsumerMember): boolean {
    for (const partitions of [member.current.assigned, member.current.revoking]) {
      for (const [topicId, indexes] of partitions) {
        const owners = this.#owners.get(topicId);
        if (owners !== undefined && [...indexes].some((index) => owners.has(index))) return false;
      }
    }
    this.#put(member);
    this.#own(member);
    this.epoch = Math.max(this.epoch, member.current.epoch);
    this.targetEpoch = Math.max(this.targetEpoch, member.current.epoch);
    return true;
  }

  /** After all members are back: a target that was not saved as a whole is made anew. */
  restored(): void {
    const wanted = new Map<string, Set<number>>();
    for (const { target } of this.members.values()) {
      if (overlap(target, wanted)) return this.raiseEpoch();
      for (const [topicId, indexes] of target) {
        const before = wanted.get(topicId) ?? new Set();
        wanted.set(topicId, before);
        for (const index of indexes) before.add(index);
      }
    }
  }

  /** Lets a member go; what it had is free. */
  remove(member: ConsumerMember, wallMs: number): void {
    this.#takeOut(member);
    this.raiseEpoch();
    if (this.members.size === 0) this.emptySinceMs = wallMs;
  }

  /** Puts `next` in the place of a static member, with all that it has. */
  replace(old: ConsumerMember, next: ConsumerMember): void {
    this.#takeOut(old);
    next.current = old.current;
    next.target = old.target;
    this.#put(next);
    this.#own(next);
    for (const set of [this.#changes.facts, this.#changes.targets, this.#changes.currents]) set.add(next);
  }

  /** The member has given up all that it had; what of it is its own still, it is told again. */
  startAnew(member: ConsumerMember): void {
    const { assigned } = member.current;
    this.setCurrent(member, { ...NOTHING_YET, assigned });
    member.answerDueMs = Infinity;
  }

  /** Notes what a member says of itself; a new subscription raises the group's epoch. */
  update(member: ConsumerMember, facts: ConsumerFacts): void {
    const before = member.facts;
    if (sameFacts(before, facts)) return;
    this.classicCount += (facts.classic === null ? 0 : 1) - (before.classic === null ? 0 : 1);
    if (facts.instanceId !== before.instanceId) {
      this.#nameInstance(member.memberId, before.instanceId, facts.instanceId);
    }
    member.facts = facts;
    this.#changes.facts.add(member);
    if (sameSubscription(before, facts)) return;
    member.topics = this.#subscribed.of(facts);
    this.#lists = null;
    this.#isUrgent = true;
    this.raiseEpoch();
  }

  raiseEpoch(): void {
    // However many changes there are, one new target serves them all.
    if (this.epoch === this.targetEpoch) this.epoch++;
    this.#changes.group = true;
  }

  setCurrent(member: ConsumerMember, current: Current): void {
    if (current === member.current) return;
    this.#disown(member);
    member.current = current;
    this.#own(member);
    this.#changes.currents.add(member);
  }

  /** Makes a new target if one is due. */
  refreshTarget(rules: AssignmentRules, nowMs: number): void {
    this.#noticeTopics();
    if (this.epoch === this.targetEpoch) return;
    const isEarly = this.members.size > LARGE_GROUP && nowMs < this.#assignedAtMs + rules.intervalMs;
    if (isEarly && !this.#isUrgent) return;
    this.#makeTarget(this.preferredAssignor(rules));
    this.#assignedAtMs = nowMs;
    this.#isUrgent = false;
  }

  /** Brings a member one step nearer to its target. @param owned what it says it has; null if it does not say */
  reconcile(member: ConsumerMember, owned: Partitions | null): void {
    const goal = { epoch: this.targetEpoch, partitions: member.target };
    this.setCurrent(
      member,
      reconcile(member.current, goal, owned, (topicId, partition) => this.#isTaken(member, topicId, partition)),
    );
  }

  /** Whether something that the member shall have is still in other hands. */
  waitsForOthers(member: ConsumerMember): boolean {
    for (const [topicId, partitions] of member.target) {
      for (const partition of partitions) if (this.#isTaken(member, topicId, partition)) return true;
    }
    return false;
  }

  /** The assignor that most members ask for. */
  preferredAssignor({ defaultAssignor }: AssignmentRules): string {
    const votes = new Map<string, number>();
    let best = defaultAssignor;
    for (const { facts: { assignor } } of this.members.values()) {
      if (assignor === null || !assignors.has(assignor)) continue;
      const count = (votes.get(assignor) ?? 0) + 1;
      votes.set(assignor, count);
      if (count > (votes.get(best) ?? 0)) best = assignor;
    }
    return best;
  }

  /** Members whose time is over. */
  expired(nowMs: number): ConsumerMember[] {
    if (nowMs < this.wakeMs) return [];
    const gone: ConsumerMember[] = [];
    let wakeMs = Infinity;
    for (const member of this.members.values()) {
      if (member.dueMs <= nowMs) gone.push(member);
      else wakeMs = Math.min(wakeMs, member.dueMs);
    }
    this.wakeMs = wakeMs;
    return gone;
  }

  wakeBy(member: ConsumerMember): void {
    if (member.dueMs < this.wakeMs) this.wakeMs = member.dueMs;
  }

  /** What is to be saved; the group begins to collect anew. */
  takeChanges(): ConsumerGroupChanges {
    const changes = this.#changes;
    this.#changes = noChanges();
    return changes;
  }

  /** Everything is to be saved. */
  markAll(): void {
    this.#changes.group = true;
    for (const set of [this.#changes.facts, this.#changes.targets, this.#changes.currents]) {
      for (const member of this.members.values()) set.add(member);
    }
  }

  #noticeTopics(): void {
    if (this.#subscribed.renew()) {
      for (const member of this.members.values()) member.topics = this.#subscribed.of(member.facts);
      this.#lists = null;
      const fingerprint = this.#subscribed.fingerprint(this.#listsInUse());
      if (fingerprint === this.fingerprint) return;
      this.#isUrgent = true;
      this.raiseEpoch();
    }
  }

  #makeTarget(assignorName: string): void {
    const lists = this.#listsInUse();
    const counts = new Map<string, number>();
    const ids = new Map<readonly string[], readonly string[]>();
    for (const list of lists) {
      const topics = list.flatMap((name) => this.topics.byName(name) ?? []);
      for (const { topicId, partitionCount } of topics) counts.set(topicId, partitionCount);
      ids.set(list, topics.map(({ topicId }) => topicId));
    }
    const members = Array.from(this.members.values(), ({ memberId, facts: { instanceId }, topics, target }) => ({
      memberId,
      instanceId,
      topicIds: ids.get(topics) ?? [],
      target,
    }));
    const assign = assignors.get(assignorName) ?? assignUniformly;
    for (const [memberId, target] of assign(members, counts)) {
      const member = this.members.get(memberId)!;
      if (samePartitions(member.target, target)) continue;
      member.target = target;
      this.#changes.targets.add(member);
    }
    this.targetEpoch = this.epoch;
    this.fingerprint = this.#subscribed.fingerprint(lists);
    this.#changes.group = true;
  }

  #listsInUse(): ReadonlySet<readonly string[]> {
    if (this.#lists === null) {
      this.#lists = new Set(Array.from(this.members.values(), ({ topics }) => topics));
      this.#subscribed.forgetUnused(this.#lists);
    }
    return this.#lists;
  }

  #isTaken({ memberId }: ConsumerMember, topicId: string, partition: number): boolean {
    const owner = this.#owners.get(topicId)?.get(partition);
    return owner !== undefined && owner !== memberId;
  }

  #put(member: ConsumerMember): void {
    const { memberId, facts } = member;
    this.members.set(memberId, member);
    this.#changes.removed.delete(memberId);
    this.#nameInstance(memberId, null, facts.instanceId);
    if (facts.classic !== null) this.classicCount++;
    member.topics = this.#subscribed.of(facts);
    this.#lists = null;
  }

  #takeOut(member: ConsumerMember): void {
    const { memberId, facts } = member;
    this.#disown(member);
    this.members.delete(memberId);
    this.#nameInstance(memberId, facts.instanceId, null);
    if (facts.classic !== null) this.classicCount--;
    this.#lists = null;
    const { facts: changed, targets, currents, removed } = this.#changes;
    for (const set of [changed, targets, currents]) set.delete(member);
    removed.add(memberId);
  }

  #nameInstance(memberId: string, before: string | null, now: string | null): void {
    if (before !== null && this.#byInstance.get(before) === memberId) this.#byInstance.delete(before);
    if (now !== null) this.#byInstance.set(now, memberId);
  }

  #own({ memberId, current: { assigned, revoking } }: ConsumerMember): void {
    for (const partitions of [assigned, revoking]) {
      for (const [topicId, indexes] of partitions) {
        const owners = this.#owners.get(topicId) ?? new Map<number, string>();
        this.#owners.set(topicId, owners);
        for (const index of indexes) owners.set(index, memberId);
      }
    }
  }

  #disown({ memberId, current: { assigned, revoking } }: ConsumerMember): void {
    for (const partitions of [assigned, revoking]) {
      for (const [topicId, indexes] of partitions) {
        const owners = this.#owners.get(topicId);
        if (owners === undefined) continue;
        for (const index of indexes) if (owners.get(index) === memberId) owners.delete(index);
        if (owners.size === 0) this.#owners.delete(topicId);
      }
    }
  }
}

function noChanges(): ConsumerGroupChanges {
  return { group: false, facts: new Set(), targets: new Set(), currents: new Set(), removed: new Set() };
}
