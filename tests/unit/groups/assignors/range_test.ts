/** The assignor `range`: complete, in runs of neighbours, equal for equal topics. */

import assert from "node:assert/strict";
import { assignByRange } from "../../../../lib/groups/assignors/range.ts";
import { SeededRandom } from "../../../simulation/seeded_random.ts";
import { assertComplete, member, randomTopics, shown } from "./assignors_world.ts";

Deno.test("each consumer gets a run of neighbours, longer ones first, and equal runs of equal topics", () => {
  const members = ["c", "a", "b"].map((id) => member(id, ["t", "u"]));
  const assignment = assignByRange(members, new Map([["t", 7], ["u", 7]]));
  assert.deepEqual(shown(assignment.get("a")), { t: [0, 1, 2], u: [0, 1, 2] });
  assert.deepEqual(shown(assignment.get("b")), { t: [3, 4], u: [3, 4] });
  assert.deepEqual(shown(assignment.get("c")), { t: [5, 6], u: [5, 6] });
});

Deno.test("with more consumers than partitions the first have one each", () => {
  const members = ["a", "b", "c"].map((id) => member(id, ["t"]));
  const assignment = assignByRange(members, new Map([["t", 2]]));
  assert.deepEqual(["a", "b", "c"].map((id) => shown(assignment.get(id))), [{ t: [0] }, { t: [1] }, {}]);
});

Deno.test("static members stand first, by their instances, whatever their ids are", () => {
  const named = (memberId: string, instanceId: string) => ({ ...member(memberId, ["t"]), instanceId });
  const topics = new Map([["t", 3]]);
  for (const ids of [["x", "y"], ["y", "x"]]) {
    const assignment = assignByRange([member("a", ["t"]), named(ids[0], "two"), named(ids[1], "one")], topics);
    assert.deepEqual([ids[1], ids[0], "a"].map((id) => shown(assignment.get(id))), [{ t: [0] }, { t: [1] }, {
      t: [2],
    }]);
  }
});

Deno.test("random groups: complete, in runs whose lengths differ by one at most", () => {
  for (let seed = 0; seed < 200; seed++) {
    const random = new SeededRandom(seed);
    const topics = randomTopics(random);
    const members = Array.from({ length: random.between(1, 8) }, (_, at) => ({
      ...member(`m${at}`, [...topics.keys()].filter(() => random.chance(0.7))),
      instanceId: random.chance(0.3) ? `i${at}` : null,
    }));
    const assignment = assertComplete(assignByRange, members, topics);
    for (const [topic, count] of topics) {
      const runs = members.filter(({ topicIds }) => topicIds.includes(topic))
        .map(({ memberId }) => shown(assignment.get(memberId))[topic] ?? []);
      for (const run of runs) {
        assert.ok(run.every((index, at) => index === run[0] + at), "a run has no gap");
        assert.ok(Math.abs(run.length - count / runs.length) < 1);
      }
    }
  }
});
