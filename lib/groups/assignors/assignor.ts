/** What assignors on the server's side have in common (KIP-848). */

import type { Partitions } from "../topic_partitions.ts";

export interface AssignorMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Ids of the topics it consumes, of those that exist, without repetition. Members may share one array. */
  readonly topicIds: readonly string[];
  /** Its part of the last target. */
  readonly target: Partitions;
}

/**
 * Gives every partition of every topic to exactly one of the members that consume the topic.
 *
 * @param partitionCounts by topic id, for at least all topics that members consume
 * @returns each member's part, by member id; every member has one
 */
export type Assignor = (
  members: readonly AssignorMember[],
  partitionCounts: ReadonlyMap<string, number>,
) => Map<string, Partitions>;

/** Members that consume each topic, in the order of `members`. */
export function consumersByTopic<M extends AssignorMember>(members: readonly M[]): Map<string, M[]> {
  const consumers = new Map<string, M[]>();
  for (const member of members) {
    for (const topicId of member.topicIds) {
      const others = consumers.get(topicId);
      if (others === undefined) consumers.set(topicId, [member]);
      else others.push(member);
    }
  }
  return consumers;
}
