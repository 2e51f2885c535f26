/** The assignor `uniform`: complete, balanced, and sticky. */

import assert from "node:assert/strict";
import type { AssignorMember } from "../../../../lib/groups/assignors/assignor.ts";
import { assignUniformly } from "../../../../lib/groups/assignors/uniform.ts";
import type { Partitions } from "../../../../lib/groups/topic_partitions.ts";
import { SeededRandom } from "../../../simulation/seeded_random.ts";
import { assertComplete, loadOf, member, randomTopics, shown, withTargets } from "./assignors_world.ts";

Deno.test("one member gets all, and none of what does not exist", () => {
  const assignment = assignUniformly([member("a", ["t", "u"])], new Map([["t", 2], ["u", 1]]));
  assert.deepEqual(shown(assignment.get("a")), { t: [0, 1], u: [0] });
});

Deno.test("equal members differ by one partition at most, also over many small topics", () => {
  const topics = Array.from({ length: 10 }, (_, at) => `t${at}`);
  const members = ["a", "b", "c"].map((id) => member(id, topics));
  const assignment = assertComplete(assignUniformly, members, new Map(topics.map((topic) => [topic, 1])));
  assert.deepEqual([...assignment.values()].map(loadOf).sort(), [3, 3, 4]);
});

Deno.test("a member that comes takes its share and nothing else moves", () => {
  const before = [member("a", ["t"]), member("b", ["t"])];
  const counts = new Map([["t", 12]]);
  const first = assignUniformly(before, counts);
  const second = assignUniformly([...withTargets(before, first), member("c", ["t"])], counts);
  assert.equal(loadOf(second.get("c")), 4);
  assert.equal(moved(first, second), 4);
});

Deno.test("what a member that goes leaves is dealt out and nothing else moves", () => {
  const members = ["a", "b", "c"].map((id) => member(id, ["t"]));
  const counts = new Map([["t", 12]]);
  const first = assignUniformly(members, counts);
  const second = assignUniformly(withTargets(members.slice(1), first), counts);
  assert.equal(loadOf(second.get("b")), 6);
  assert.equal(moved(first, second), 4);
});

Deno.test("members of different subscriptions are as even as these allow", () => {
  const members = [member("all", ["t", "u"]), member("only-t", ["t"]), member("only-u", ["u"])];
  const assignment = assertComplete(assignUniformly, members, new Map([["t", 2], ["u", 4]]));
  assert.deepEqual([...assignment.values()].map(loadOf), [2, 2, 2]);
});

Deno.test("random groups: complete, no partition could move to a consumer with two fewer, and a second run moves nothing", () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = new SeededRandom(seed);
    let topics = randomTopics(random);
    let last = new Map<string, Partitions>();
    for (let round = 0; round < 4; round++) {
      const isUniform = random.chance(0.4);
      const members = Array.from({ length: random.between(1, 8) }, () => {
        const mine = [...topics.keys()].filter(() => isUniform || random.chance(0.6));
        return member(`m${random.below(12)}`, mine);
      });
      const distinct = withTargets([...new Map(members.map((one) => [one.memberId, one])).values()], last);
      last = assertComplete(assignUniformly, distinct, topics);
      assertBalanced(distinct, last);
      assert.equal(moved(last, assignUniformly(withTargets(distinct, last), topics)), 0);
      if (random.chance(0.5)) topics = randomTopics(random);
    }
  }
});

function assertBalanced(members: readonly AssignorMember[], assignment: ReadonlyMap<string, Partitions>): void {
  for (const rich of members) {
    for (const topic of assignment.get(rich.memberId)!.keys()) {
      for (const poor of members) {
        if (!poor.topicIds.includes(topic)) continue;
        const difference = loadOf(assignment.get(rich.memberId)) - loadOf(assignment.get(poor.memberId));
        assert.ok(difference < 2, `${topic} could move from ${rich.memberId} to ${poor.memberId}`);
      }
    }
  }
}

/** How many partitions have another owner than before. */
function moved(before: ReadonlyMap<string, Partitions>, after: ReadonlyMap<string, Partitions>): number {
  let count = 0;
  for (const [memberId, partitions] of after) {
    for (const [topic, indexes] of partitions) {
      for (const index of indexes) if (!before.get(memberId)?.get(topic)?.has(index)) count++;
    }
  }
  return count;
}
