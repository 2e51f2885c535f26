/** Requests about classic groups with what tests care about; the rest is filled in. Each gives what is to be sent. */

import type { InputOf } from "../../lib/protocol/schema.ts";
import type { joinGroupRequest } from "../../lib/protocol/messages/join_group.ts";
import type { leaveGroupRequest } from "../../lib/protocol/messages/leave_group.ts";
import type { offsetCommitRequest } from "../../lib/protocol/messages/offset_commit.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";

export function joinOf(
  groupId: string,
  {
    memberId = "",
    metadata = new Uint8Array(0) as Uint8Array,
    sessionTimeoutMs = 30_000,
    groupInstanceId = null as string | null,
  } = {},
): InputOf<typeof joinGroupRequest> {
  return {
    groupId,
    memberId,
    groupInstanceId,
    sessionTimeoutMs,
    rebalanceTimeoutMs: 60_000,
    protocolType: "consumer",
    protocols: [{ name: "range", metadata }],
  };
}

export function leaveOf(groupId: string, memberId: string): InputOf<typeof leaveGroupRequest> {
  return { groupId, memberId, members: [{ memberId }] };
}

export function commitOf(
  groupId: string,
  topic: string,
  offsets: Readonly<Record<number, { readonly offset: number; readonly metadata?: string }>>,
  { memberId = "", generationId = -1 } = {},
): InputOf<typeof offsetCommitRequest> {
  const partitions = Object.entries(offsets).map(([partition, { offset, metadata = "" }]) => ({
    partitionIndex: Number(partition),
    committedOffset: offset,
    committedMetadata: metadata,
  }));
  return {
    groupId,
    memberId,
    generationIdOrMemberEpoch: generationId,
    topics: [{ name: topic, topicId: ZERO_UUID, partitions }],
  };
}
