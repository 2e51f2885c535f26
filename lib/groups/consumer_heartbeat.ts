/** What a member of the consumer protocol says in a heartbeat (KIP-848), and what it may not say. */

import { ErrorCode } from "../errors.ts";
import { JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH } from "./consumer_member.ts";
import { type GroupRefusal, refusal } from "./consumer_replies.ts";
import { SubscriptionRegex } from "./subscription_regex.ts";
import type { Partitions } from "./topic_partitions.ts";

/** A heartbeat. What is null, or −1, has not changed since it was last said. */
export interface ConsumerHeartbeat {
  /** Empty where the server shall find one. */
  readonly memberId: string;
  /** An epoch, or one of those that say that the member joins or goes. */
  readonly memberEpoch: number;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly rebalanceTimeoutMs: number;
  readonly topicNames: readonly string[] | null;
  /** An empty one takes the subscription by pattern back. */
  readonly regex: string | null;
  readonly assignor: string | null;
  readonly owned: Partitions | null;
}

/** Longest list of topics that a member may name. */
const MAX_TOPICS = 100_000;

/**
 * Why a heartbeat cannot be right, or null.
 *
 * @param needsMemberId whether members make their ids themselves (since version 1)
 * @param offered the assignors that may be asked for
 */
export function heartbeatProblem(
  beat: ConsumerHeartbeat,
  { needsMemberId, offered }: { readonly needsMemberId: boolean; readonly offered: readonly string[] },
): GroupRefusal | null {
  const { memberEpoch: epoch, assignor } = beat;
  if (beat.instanceId === "") return invalid("InstanceId can't be empty.");
  if (beat.rackId === "") return invalid("RackId can't be empty.");
  if (epoch < STATIC_LEAVING_EPOCH) return invalid(`MemberEpoch ${epoch} is invalid.`);
  if (beat.memberId === "" && (needsMemberId || epoch > 0 || epoch === LEAVING_EPOCH)) {
    return invalid("MemberId can't be empty.");
  }
  if (epoch === STATIC_LEAVING_EPOCH && beat.instanceId === null) return invalid("InstanceId can't be null.");
  if (epoch === JOINING_EPOCH) {
    if (beat.rebalanceTimeoutMs === -1) return invalid("RebalanceTimeoutMs must be provided in first request.");
    if (beat.owned === null || beat.owned.size > 0) {
      return invalid("TopicPartitions must be empty when (re-)joining.");
    }
    if (beat.topicNames === null && beat.regex === null) {
      return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
    }
  }
  if ((beat.topicNames?.length ?? 0) > MAX_TOPICS) return invalid("SubscribedTopicNames has too many topics.");
  if (assignor !== null && !offered.includes(assignor)) {
    const message = `ServerAssignor ${assignor} is not supported. Supported assignors: ${offered.join(", ")}.`;
    return refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message);
  }
  return beat.regex === null || beat.regex === "" ? null : regexProblem(beat.regex);
}

function regexProblem(regex: string): GroupRefusal | null {
  const compiled = SubscriptionRegex.compile(regex);
  if (!("problem" in compiled)) return null;
  const message = `SubscribedTopicRegex \`${regex.slice(0, 200)}\` is not a valid regular expression: ` +
    `${compiled.problem}.`;
  return refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message);
}

function invalid(message: string): GroupRefusal {
  return refusal(ErrorCode.INVALID_REQUEST, message);
}
