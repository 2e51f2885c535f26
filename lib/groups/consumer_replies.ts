/** What a group of the consumer protocol answers, free of any wire format, and the refusals it has. */

import { ErrorCode } from "../errors.ts";
import type { Partitions } from "./topic_partitions.ts";

export interface HeartbeatReply {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly memberId: string | null;
  readonly memberEpoch: number;
  /** All that the member shall have now; null where that is what it was told before. */
  readonly assignment: Partitions | null;
}

/** A refusal and its reason. */
export interface GroupRefusal {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string;
}

export function refusal(errorCode: ErrorCode, errorMessage: string): GroupRefusal {
  return { errorCode, errorMessage };
}

export function refusedHeartbeat({ errorCode, errorMessage }: GroupRefusal): HeartbeatReply {
  return { errorCode, errorMessage, memberId: null, memberEpoch: 0, assignment: null };
}

export function unknownMember(memberId: string, groupId: string): GroupRefusal {
  return refusal(ErrorCode.UNKNOWN_MEMBER_ID, `Member ${memberId} is not a member of group ${groupId}.`);
}

export function unknownInstance(instanceId: string): GroupRefusal {
  return refusal(ErrorCode.UNKNOWN_MEMBER_ID, `Instance id ${instanceId} is unknown.`);
}

export function fencedInstance(memberId: string, instanceId: string, holder: string): GroupRefusal {
  const message = `Static member ${memberId} with instance id ${instanceId} was fenced by member ${holder}.`;
  return refusal(ErrorCode.FENCED_INSTANCE_ID, message);
}

export function unreleasedInstance(memberId: string, instanceId: string, holder: string): GroupRefusal {
  const message = `Static member ${memberId} with instance id ${instanceId} cannot join the group because the ` +
    `instance id is owned by member ${holder}.`;
  return refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message);
}

export function fencedEpoch(given: number, known: number): GroupRefusal {
  const message = `The member epoch ${given} is ${given > known ? "above" : "below"} the one known by the group ` +
    `coordinator (${known}). The member must abandon all its partitions and rejoin.`;
  return refusal(ErrorCode.FENCED_MEMBER_EPOCH, message);
}

export function groupIsFull(maxSize: number): GroupRefusal {
  return refusal(
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    `The consumer group has reached its maximum capacity of ${maxSize} members.`,
  );
}

export function notAConsumerGroup(groupId: string): GroupRefusal {
  return refusal(ErrorCode.GROUP_ID_NOT_FOUND, `Group ${groupId} is not a consumer group.`);
}

export function noSuchGroup(groupId: string): GroupRefusal {
  return refusal(ErrorCode.GROUP_ID_NOT_FOUND, `Consumer group ${groupId} not found.`);
}
