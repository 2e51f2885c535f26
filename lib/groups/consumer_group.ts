/**
 * A group of the consumer protocol (KIP-848) as its members meet it: heartbeats of those that speak that protocol here,
 * those of the classic protocol by way of {@link ClassicGuests}. Pure, as {@link ConsumerGroupState} is.
 *
 * A heartbeat is refused, changes nothing, and counts for nothing, if its member is not who it says or is in another
 * epoch. The epoch before is good too, if the member has nothing that it should not have: the answer that told it of
 * the new one may be lost. A member that joins again has given everything up, whatever it was before.
 */

import { ErrorCode } from "../errors.ts";
import { ClassicGuests } from "./classic_guests.ts";
import {
  type ConsumerFacts,
  ConsumerMember,
  JOINING_EPOCH,
  LEAVING_EPOCH,
  STATIC_LEAVING_EPOCH,
} from "./consumer_member.ts";
import { type AssignmentRules, type ConsumerGroupPhase, ConsumerGroupState } from "./consumer_group_state.ts";
import type { ConsumerHeartbeat } from "./consumer_heartbeat.ts";
import {
  fencedEpoch,
  fencedInstance,
  groupIsFull,
  type GroupRefusal,
  type HeartbeatReply,
  refusedHeartbeat,
  unknownInstance,
  unknownMember,
  unreleasedInstance,
} from "./consumer_replies.ts";
import { isSubset, NO_PARTITIONS, samePartitions } from "./topic_partitions.ts";
import type { TopicView } from "./topic_view.ts";

export interface ConsumerGroupRules extends AssignmentRules {
  readonly maxSize: number;
  readonly sessionTimeoutMs: number;
}

/** See the file's head. */
export class ConsumerGroup {
  readonly type = "consumer";
  readonly state: ConsumerGroupState;
  readonly guests: ClassicGuests;

  constructor(
    readonly groupId: string,
    topics: TopicView,
    wallMs: number,
    /** An id for a member that has none. */
    readonly newMemberId: () => string,
  ) {
    this.state = new ConsumerGroupState(groupId, topics, wallMs);
    this.guests = new ClassicGuests(this.state, newMemberId);
  }

  get phase(): ConsumerGroupPhase {
    return this.state.phase;
  }

  get wakeMs(): number {
    return this.state.wakeMs;
  }

  get emptySinceMs(): number {
    return this.state.emptySinceMs;
  }

  /** Whether nothing of the group but its offsets is left. */
  get isIdle(): boolean {
    return this.state.members.size === 0;
  }

  /** `beat` must have no {@link heartbeatProblem}. */
  heartbeat(beat: ConsumerHeartbeat, rules: ConsumerGroupRules, nowMs: number, wallMs: number): HeartbeatReply {
    if (beat.memberEpoch === LEAVING_EPOCH || beat.memberEpoch === STATIC_LEAVING_EPOCH) {
      return this.#leave(beat, wallMs);
    }
    const found = beat.memberEpoch === JOINING_EPOCH ? this.#join(beat, rules) : this.#find(beat);
    if ("errorCode" in found) return refusedHeartbeat(found);
    const before = found.current;
    this.state.update(found, factsAfter(found.facts, beat));
    this.state.refreshTarget(rules, nowMs);
    this.state.reconcile(found, beat.owned);
    found.sessionEndMs = nowMs + rules.sessionTimeoutMs;
    if (found.current.state !== "unrevoked") found.answerDueMs = Infinity;
    else if (found.answerDueMs === Infinity || found.current !== before) {
      found.answerDueMs = nowMs + found.facts.rebalanceTimeoutMs;
    }
    this.state.wakeBy(found);
    const { epoch, assigned } = found.current;
    const isFull = beat.rebalanceTimeoutMs !== -1 && (beat.topicNames !== null || beat.regex !== null) &&
      beat.owned !== null;
    // Who comes with an epoch that is over has not got the answer that ended it.
    const isNews = isFull || beat.memberEpoch !== before.epoch || beat.memberEpoch === JOINING_EPOCH ||
      !samePartitions(before.assigned, assigned);
    return {
      errorCode: ErrorCode.NONE,
      errorMessage: null,
      memberId: found.memberId,
      memberEpoch: epoch,
      assignment: isNews ? assigned : null,
    };
  }

  /** Lets those go whose time is over. */
  advance(nowMs: number, wallMs: number): void {
    for (const member of this.state.expired(nowMs)) this.state.remove(member, wallMs);
  }

  /**
   * Whether a member may commit, or read what is committed, in this epoch.
   *
   * @param generationOrEpoch negative for someone from outside
   * @param knowsEpochs whether the request is of a version that has member epochs
   */
  offsetsProblem(memberId: string, generationOrEpoch: number, knowsEpochs: boolean): ErrorCode {
    const member = this.state.members.get(memberId);
    if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    const { facts: { classic }, current: { epoch } } = member;
    if (classic === null && !knowsEpochs) return ErrorCode.UNSUPPORTED_VERSION;
    if (generationOrEpoch === epoch) return ErrorCode.NONE;
    return classic === null ? ErrorCode.STALE_MEMBER_EPOCH : ErrorCode.ILLEGAL_GENERATION;
  }

  commitProblem(memberId: string, generationOrEpoch: number, knowsEpochs: boolean): ErrorCode {
    if (generationOrEpoch < 0 && this.isIdle) return ErrorCode.NONE;
    return this.offsetsProblem(memberId, generationOrEpoch, knowsEpochs);
  }

  #join(beat: ConsumerHeartbeat, { maxSize }: ConsumerGroupRules): ConsumerMember | GroupRefusal {
    const { members } = this.state;
    const memberId = beat.memberId === "" ? this.newMemberId() : beat.memberId;
    const { instanceId } = beat;
    const known = members.get(memberId);
    const holder = instanceId === null ? known : this.state.byInstance(instanceId);
    if (holder === undefined) {
      if (known !== undefined) {
        // The id of a member of another instance, or of none.
        return fencedInstance(memberId, instanceId ?? "", known.memberId);
      }
      if (members.size >= maxSize) return groupIsFull(maxSize);
      const member = new ConsumerMember(memberId, factsAfter(NO_FACTS, beat));
      this.state.enter(member);
      return member;
    }
    if (holder.memberId === memberId) {
      if (instanceId === null && holder.facts.instanceId !== null) {
        return fencedInstance(memberId, holder.facts.instanceId, memberId);
      }
      this.state.startAnew(holder);
      return holder;
    }
    // A static member of the classic protocol gives way: it is being restarted with the other one.
    if (!holder.isAway && holder.facts.classic === null) {
      return unreleasedInstance(memberId, instanceId!, holder.memberId);
    }
    if (known !== undefined) return fencedInstance(memberId, instanceId!, holder.memberId);
    const member = new ConsumerMember(memberId, factsAfter(holder.facts, beat));
    this.state.replace(holder, member);
    this.state.raiseEpoch();
    this.state.startAnew(member);
    return member;
  }

  #find(beat: ConsumerHeartbeat): ConsumerMember | GroupRefusal {
    const member = this.#named(beat);
    if ("errorCode" in member) return member;
    if (member.facts.classic !== null) return fencedEpoch(beat.memberEpoch, member.current.epoch);
    const { epoch, previousEpoch, assigned } = member.current;
    if (beat.memberEpoch === epoch) return member;
    const isRetry = beat.memberEpoch === previousEpoch && beat.owned !== null && isSubset(beat.owned, assigned);
    return isRetry ? member : fencedEpoch(beat.memberEpoch, epoch);
  }

  #named({ memberId, instanceId }: ConsumerHeartbeat): ConsumerMember | GroupRefusal {
    if (instanceId === null) return this.state.members.get(memberId) ?? unknownMember(memberId, this.groupId);
    const member = this.state.byInstance(instanceId);
    if (member === undefined) return unknownInstance(instanceId);
    return member.memberId === memberId ? member : fencedInstance(memberId, instanceId, member.memberId);
  }

  #leave(beat: ConsumerHeartbeat, wallMs: number): HeartbeatReply {
    const member = this.#named(beat);
    if ("errorCode" in member) return refusedHeartbeat(member);
    const { memberId, current } = member;
    if (beat.memberEpoch === STATIC_LEAVING_EPOCH) {
      // What it was giving up is given up; what it had, it has when it comes back.
      this.state.setCurrent(member, { ...current, epoch: STATIC_LEAVING_EPOCH, revoking: NO_PARTITIONS });
      member.answerDueMs = Infinity;
    } else this.state.remove(member, wallMs);
    const { memberEpoch } = beat;
    return { errorCode: ErrorCode.NONE, errorMessage: null, memberId, memberEpoch, assignment: null };
  }
}

const NO_FACTS: ConsumerFacts = {
  instanceId: null,
  rackId: null,
  clientId: "",
  clientHost: "",
  rebalanceTimeoutMs: 0,
  topicNames: [],
  regex: null,
  assignor: null,
  classic: null,
};

/** What a member says of itself when it adds this heartbeat to what it said before. */
function factsAfter(before: ConsumerFacts, beat: ConsumerHeartbeat): ConsumerFacts {
  const { memberEpoch, regex } = beat;
  // Joining, a member says everything.
  const kept = memberEpoch === JOINING_EPOCH ? NO_FACTS : before;
  return {
    instanceId: beat.instanceId ?? before.instanceId,
    rackId: beat.rackId ?? kept.rackId,
    clientId: beat.clientId,
    clientHost: beat.clientHost,
    rebalanceTimeoutMs: beat.rebalanceTimeoutMs === -1 ? before.rebalanceTimeoutMs : beat.rebalanceTimeoutMs,
    topicNames: beat.topicNames ?? kept.topicNames,
    regex: regex === null ? kept.regex : regex === "" ? null : regex,
    assignor: beat.assignor ?? kept.assignor,
    classic: null,
  };
}
