/**
 * Members of a group of the consumer protocol that speak the classic one: what makes it possible to go from one to the
 * other while consuming (KIP-848). To them, an epoch is a generation, and no member leads: the assignment comes from the
 * group. JoinGroup and SyncGroup are answered at once, nobody waits for others.
 *
 * A member must join again when the group has a new epoch, when it has something to give up, and when something that it
 * shall have has become free: its heartbeat is told so, and its time to join runs from then on.
 */

import { ErrorCode } from "../errors.ts";
import type { JoinRequest, SyncRequest } from "./classic_requests.ts";
import { type AssignmentRules, type ConsumerGroupState } from "./consumer_group_state.ts";
import { type ConsumerFacts, ConsumerMember } from "./consumer_member.ts";
import {
  CONSUMER_PROTOCOL_TYPE,
  type NamedPartitions,
  type Subscription,
  subscriptionOf,
  writeAssignment,
} from "./consumer_protocol.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";
import { type Partitions, PartitionsBuilder } from "./topic_partitions.ts";
import type { TopicView } from "./topic_view.ts";

export interface GuestRules extends AssignmentRules {
  readonly maxSize: number;
}

/** See the file's head. */
export class ClassicGuests {
  constructor(readonly group: ConsumerGroupState, readonly newMemberId: () => string) {}

  join(request: JoinRequest, rules: GuestRules, nowMs: number): JoinReply {
    const { memberId, facts: said } = request;
    const { group } = this;
    const subscription = subscriptionOf(said.protocols);
    if (request.protocolType !== CONSUMER_PROTOCOL_TYPE || subscription === null || !this.#shareOne(request)) {
      return refusedJoin(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, memberId);
    }
    const facts: ConsumerFacts = {
      instanceId: said.instanceId,
      rackId: subscription.rackId,
      clientId: said.clientId,
      clientHost: said.clientHost,
      rebalanceTimeoutMs: said.rebalanceTimeoutMs,
      topicNames: [...new Set(subscription.topics)],
      regex: null,
      assignor: null,
      classic: { sessionTimeoutMs: said.sessionTimeoutMs, protocols: said.protocols },
    };
    const member = this.#memberFor(request, facts, subscription, rules.maxSize);
    if ("errorCode" in member) return member;
    group.update(member, facts);
    group.refreshTarget(rules, nowMs);
    group.reconcile(member, partitionsOf(subscription.owned, group.topics));
    member.answerDueMs = nowMs + facts.rebalanceTimeoutMs;
    this.#heard(member, nowMs);
    return {
      errorCode: ErrorCode.NONE,
      generationId: member.current.epoch,
      protocolType: CONSUMER_PROTOCOL_TYPE,
      protocolName: said.protocols[0].name,
      leader: "",
      memberId: member.memberId,
      skipAssignment: false,
      members: [],
    };
  }

  sync(request: SyncRequest, nowMs: number): SyncReply {
    const { memberId, instanceId, generationId, protocolType, protocolName } = request;
    const member = this.#find(memberId, instanceId, generationId);
    if (!(member instanceof ConsumerMember)) return refusedSync(member);
    const { protocols } = member.facts.classic!;
    const disagrees = (protocolType !== null && protocolType !== CONSUMER_PROTOCOL_TYPE) ||
      (protocolName !== null && protocolName !== protocols[0].name);
    if (disagrees) return refusedSync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    const { current: { epoch, state, assigned } } = member;
    if (this.group.epoch > epoch && state !== "unrevoked") {
      this.#mustJoin(member, nowMs);
      return refusedSync(ErrorCode.REBALANCE_IN_PROGRESS);
    }
    if (state !== "unrevoked") member.answerDueMs = Infinity;
    this.#heard(member, nowMs);
    return {
      errorCode: ErrorCode.NONE,
      protocolType: CONSUMER_PROTOCOL_TYPE,
      protocolName: protocols[0].name,
      assignment: writeAssignment(subscriptionOf(protocols)?.version ?? 0, namedOf(assigned, this.group.topics)),
    };
  }

  heartbeat(memberId: string, instanceId: string | null, generationId: number, nowMs: number): ErrorCode {
    const member = this.#find(memberId, instanceId, generationId);
    if (!(member instanceof ConsumerMember)) return member;
    const { epoch, state } = member.current;
    this.#heard(member, nowMs);
    const isBehind = this.group.epoch > epoch || state === "unrevoked" ||
      (state === "unreleased" && !this.group.waitsForOthers(member));
    if (!isBehind) return ErrorCode.NONE;
    this.#mustJoin(member, nowMs);
    return ErrorCode.REBALANCE_IN_PROGRESS;
  }

  /** A static member may be named by its instance alone. So may one be that speaks the consumer protocol. */
  leave(memberId: string, instanceId: string | null, wallMs: number): ErrorCode {
    const { group } = this;
    const member = instanceId === null ? group.members.get(memberId) : group.byInstance(instanceId);
    if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (memberId !== "" && memberId !== member.memberId) return ErrorCode.FENCED_INSTANCE_ID;
    group.remove(member, wallMs);
    return ErrorCode.NONE;
  }

  #memberFor(
    request: JoinRequest,
    facts: ConsumerFacts,
    { owned }: Subscription,
    maxSize: number,
  ): ConsumerMember | JoinReply {
    const { group } = this;
    const { instanceId } = facts;
    const holder = instanceId === null ? group.members.get(request.memberId) : group.byInstance(instanceId);
    if (holder !== undefined && (holder.memberId === request.memberId || instanceId === null)) return holder;
    if (holder !== undefined) {
      if (request.memberId !== "") return refusedJoin(ErrorCode.FENCED_INSTANCE_ID, request.memberId);
      const member = new ConsumerMember(this.newMemberId(), facts);
      group.replace(holder, member);
      group.startAnew(member);
      return member;
    }
    const memberId = request.memberId === "" ? this.newMemberId() : request.memberId;
    // Ids that were given out are not remembered. But who claims partitions was a member, and must first let go of them.
    const wasThrownOut = request.memberId !== "" && owned.length > 0;
    if (wasThrownOut || group.members.has(memberId)) return refusedJoin(ErrorCode.UNKNOWN_MEMBER_ID, memberId);
    if (group.members.size >= maxSize) return refusedJoin(ErrorCode.GROUP_MAX_SIZE_REACHED, memberId);
    if (request.memberId === "" && instanceId === null && request.needsKnownId) {
      return refusedJoin(ErrorCode.MEMBER_ID_REQUIRED, memberId);
    }
    const member = new ConsumerMember(memberId, facts);
    group.enter(member);
    return member;
  }

  /** Whether some protocol is known to the member and to all others of its kind: one day they may be among themselves. */
  #shareOne({ memberId, facts }: JoinRequest): boolean {
    let common = facts.protocols.map(({ name }) => name);
    if (this.group.classicCount === 0) return true;
    for (const other of this.group.members.values()) {
      const theirs = other.facts.classic?.protocols;
      if (theirs === undefined || other.memberId === memberId) continue;
      if (facts.instanceId !== null && other.facts.instanceId === facts.instanceId) continue;
      common = common.filter((name) => theirs.some((protocol) => protocol.name === name));
    }
    return common.length > 0;
  }

  #find(memberId: string, instanceId: string | null, generationId: number): ConsumerMember | ErrorCode {
    const member = instanceId === null ? this.group.members.get(memberId) : this.group.byInstance(instanceId);
    if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (member.memberId !== memberId) return ErrorCode.FENCED_INSTANCE_ID;
    if (member.facts.classic === null) return ErrorCode.UNKNOWN_MEMBER_ID;
    return member.current.epoch === generationId ? member : ErrorCode.ILLEGAL_GENERATION;
  }

  #mustJoin(member: ConsumerMember, nowMs: number): void {
    if (member.answerDueMs !== Infinity) return;
    member.answerDueMs = nowMs + member.facts.rebalanceTimeoutMs;
    this.group.wakeBy(member);
  }

  #heard(member: ConsumerMember, nowMs: number): void {
    member.sessionEndMs = nowMs + member.facts.classic!.sessionTimeoutMs;
    this.group.wakeBy(member);
  }
}

/** By ids; partitions of topics that are no more are left out. */
export function partitionsOf(named: readonly NamedPartitions[], topics: TopicView): Partitions {
  const builder = new PartitionsBuilder();
  for (const { topic, partitions } of named) {
    const facts = topics.byName(topic);
    if (facts === undefined) continue;
    for (const partition of partitions) {
      if (partition >= 0 && partition < facts.partitionCount) builder.add(facts.topicId, partition);
    }
  }
  return builder.build();
}

/** By names; partitions of topics that are no more are left out. */
export function namedOf(partitions: Partitions, topics: TopicView): NamedPartitions[] {
  return Array.from(partitions).flatMap(([topicId, indexes]) => {
    const topic = topics.byId(topicId)?.name;
    return topic === undefined ? [] : { topic, partitions: [...indexes].sort((a, b) => a - b) };
  });
}
