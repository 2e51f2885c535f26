/** Members of one group of the consumer protocol that say what a test wants them to, in a {@link GroupWorld}. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import type { ConsumerHeartbeat } from "../../lib/groups/consumer_heartbeat.ts";
import type { HeartbeatReply } from "../../lib/groups/consumer_replies.ts";
import { NO_PARTITIONS, type Partitions, PartitionsBuilder } from "../../lib/groups/topic_partitions.ts";
import type { GroupWorld } from "./group_world.ts";

/** What a heartbeat says when it says nothing. */
export const SILENT: ConsumerHeartbeat = {
  memberId: "",
  memberEpoch: 0,
  instanceId: null,
  rackId: null,
  clientId: "client",
  clientHost: "/127.0.0.1",
  rebalanceTimeoutMs: -1,
  topicNames: null,
  regex: null,
  assignor: null,
  owned: null,
};

/** Sends a heartbeat; resolves with the answer when all that follows from it has happened. */
export async function beat(
  world: GroupWorld,
  groupId: string,
  said: Partial<ConsumerHeartbeat>,
  apiVersion = 1,
): Promise<HeartbeatReply> {
  const reply = Promise.resolve(world.groups.consumerHeartbeat(groupId, { ...SILENT, ...said }, apiVersion));
  await world.settle();
  return await reply;
}

/** Joins, or joins again. */
export function join(
  world: GroupWorld,
  memberId: string,
  said: Partial<ConsumerHeartbeat> = {},
  groupId = "g",
): Promise<HeartbeatReply> {
  const full = { memberEpoch: 0, rebalanceTimeoutMs: 60_000, topicNames: ["t"], owned: NO_PARTITIONS };
  return beat(world, groupId, { memberId, ...full, ...said });
}

/** The partitions of topic "t", or of another. */
export function partsOf(world: GroupWorld, indexes: readonly number[], topic = "t"): Partitions {
  const builder = new PartitionsBuilder();
  for (const index of indexes) builder.add(world.topics.byName(topic)!.topicId, index);
  return builder.build();
}

/** An assignment as `t: 0,1`, topics in order; null for none. */
export function told(world: GroupWorld, { errorCode, assignment }: HeartbeatReply): string | null {
  assert.equal(errorCode, ErrorCode.NONE);
  return assignment === null ? null : shownParts(world, assignment);
}

export function shownParts(world: GroupWorld, partitions: Partitions): string {
  const topics = Array.from(partitions, ([topicId, indexes]) => {
    return `${world.topics.byId(topicId)?.name}: ${[...indexes].sort((a, b) => a - b)}`;
  });
  return topics.sort().join("; ");
}

/** How far the group and its members are, as ConsumerGroupDescribe tells it. */
export function described(world: GroupWorld, groupId = "g") {
  const group = world.groups.describeConsumer(groupId);
  assert.ok(!("errorCode" in group), `errorCode` in group ? String(group.errorCode) : "");
  return group;
}
