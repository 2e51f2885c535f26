/** Random groups for assignors, and what must be true of every assignment. */

import assert from "node:assert/strict";
import type { Assignor, AssignorMember } from "../../../../lib/groups/assignors/assignor.ts";
import { NO_PARTITIONS, type Partitions } from "../../../../lib/groups/topic_partitions.ts";
import type { SeededRandom } from "../../../simulation/seeded_random.ts";

export function member(memberId: string, topicIds: readonly string[], target = NO_PARTITIONS): AssignorMember {
  return { memberId, instanceId: null, topicIds, target };
}

/** `t: [0, 1]` for each topic. */
export function shown(partitions: Partitions | undefined): Record<string, number[]> {
  return Object.fromEntries(
    Array.from(partitions ?? [], ([topic, indexes]) => [topic, [...indexes].sort((a, b) => a - b)]),
  );
}

export function loadOf(partitions: Partitions | undefined): number {
  return Object.values(shown(partitions)).flat().length;
}

export function randomTopics(random: SeededRandom): Map<string, number> {
  return new Map(Array.from({ length: random.between(0, 6) }, (_, at) => [`t${at}`, random.between(1, 12)]));
}

/** Members whose last target is what `last` gave them. */
export function withTargets(
  members: readonly AssignorMember[],
  last: ReadonlyMap<string, Partitions>,
): AssignorMember[] {
  return members.map((one) => ({ ...one, target: last.get(one.memberId) ?? NO_PARTITIONS }));
}

/** Every partition of a topic with consumers has one owner, which consumes it; nothing else is given out. */
export function assertComplete(
  assign: Assignor,
  members: readonly AssignorMember[],
  topics: ReadonlyMap<string, number>,
): Map<string, Partitions> {
  const assignment = assign(members, topics);
  assert.deepEqual([...assignment.keys()].sort(), members.map(({ memberId }) => memberId).sort());
  const given: string[] = [];
  for (const { memberId, topicIds } of members) {
    for (const [topic, indexes] of assignment.get(memberId)!) {
      assert.ok(topicIds.includes(topic), `${memberId} does not consume ${topic}`);
      for (const index of indexes) given.push(`${topic}/${index}`);
    }
  }
  const wanted = [...topics].flatMap(([topic, count]) =>
    members.some(({ topicIds }) => topicIds.includes(topic))
      ? Array.from({ length: count }, (_, index) => `${topic}/${index}`)
      : []
  );
  assert.deepEqual(given.sort(), wanted.sort());
  return assignment;
}
