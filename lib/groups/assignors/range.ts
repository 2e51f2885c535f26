/**
 * The assignor `range`: each topic is cut into as many runs of neighbouring partitions as it has consumers, longer runs
 * first. Consumers stand in one order for all topics, static ones by their instance first, so members that consume
 * topics of equal size get equal partitions of each, and a static member keeps its place under a new member id.
 */

import { PartitionsBuilder } from "../topic_partitions.ts";
import { type Assignor, type AssignorMember, consumersByTopic } from "./assignor.ts";

/** See the file's head. */
export const assignByRange: Assignor = (members, partitionCounts) => {
  const builders = new Map(members.map(({ memberId }) => [memberId, new PartitionsBuilder()]));
  for (const [topicId, consumers] of consumersByTopic([...members].sort(inOrder))) {
    const partitionCount = partitionCounts.get(topicId) ?? 0;
    const length = Math.floor(partitionCount / consumers.length);
    const longer = partitionCount % consumers.length;
    let partition = 0;
    for (const [place, { memberId }] of consumers.entries()) {
      const end = partition + length + (place < longer ? 1 : 0);
      for (; partition < end; partition++) builders.get(memberId)!.add(topicId, partition);
    }
  }
  return new Map(Array.from(builders, ([memberId, builder]) => [memberId, builder.build()]));
};

function inOrder(a: AssignorMember, b: AssignorMember): number {
  if (a.instanceId !== null && b.instanceId !== null) return compare(a.instanceId, b.instanceId);
  if (a.instanceId !== null) return -1;
  if (b.instanceId !== null) return 1;
  return compare(a.memberId, b.memberId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
