import assert from "node:assert/strict";
import type { Assignment } from "../../../lib/cluster/assignment.ts";
import { planAssignment, type PlanInput, type PlannedBroker } from "../../../lib/cluster/assignment_plan.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

function broker(id: string, facts: Partial<PlannedBroker> = {}): PlannedBroker {
  return { id, alive: true, draining: false, tenure: 1, given: [], changes: 0, ...facts };
}

function topic(name: string, partitionCount: number, topicId = `id of ${name}`) {
  return { name, topicId, partitionCount, revision: 0 };
}

function plan(previous: Assignment | null, facts: Partial<PlanInput>): Assignment | null {
  return planAssignment({
    previous,
    topics: [],
    coordinators: [],
    brokers: [],
    controller: { name: "kaas-0", epoch: 1 },
    wallMs: 0,
    epochOnDisk: () => -1,
    mayBeLed: () => false,
    wanted: () => undefined,
    movesAtOnce: 1,
    ...facts,
  });
}

function planned(previous: Assignment | null, facts: Partial<PlanInput>): Assignment {
  const next = plan(previous, facts);
  assert.ok(next !== null, "nothing changes");
  return next;
}

/** `topic/partition=broker@epoch>target` of every entry. */
function shown(assignment: Assignment): string {
  return assignment.partitions
    .map(({ topic, partition, broker, epoch, moveTo }) =>
      `${topic}/${partition}=${broker}@${epoch}${moveTo === undefined ? "" : `>${moveTo}`}`
    ).join(" ");
}

Deno.test("New partitions go to the brokers with the least to do, under epoch 0", () => {
  const next = planned(null, { topics: [topic("a", 4)], brokers: [broker("x"), broker("y")] });
  assert.equal(shown(next), "a/0=x@0 a/1=y@0 a/2=x@0 a/3=y@0");
});

Deno.test("A partition that no assignment knows gets an epoch above those of its segments", () => {
  const next = planned(null, { topics: [topic("a", 1)], brokers: [broker("x")], epochOnDisk: () => 7 });
  assert.equal(shown(next), "a/0=x@8");
});

Deno.test("A partition with segments is given to nobody while a broker may still lead it", () => {
  const facts = { topics: [topic("a", 2)], brokers: [broker("x")], epochOnDisk: (_: string, p: number) => p - 1 };
  const first = planned(null, { ...facts, mayBeLed: () => true });
  assert.equal(shown(first), "a/0=x@0");
  assert.equal(shown(planned(first, facts)), "a/0=x@0 a/1=x@1");
});

Deno.test("Nothing changes while nothing changes", () => {
  const facts = { topics: [topic("a", 4)], brokers: [broker("x"), broker("y")] };
  assert.equal(plan(planned(null, facts), facts), null);
});

Deno.test("Without a live broker nothing changes, whatever else is seen", () => {
  const first = planned(null, { topics: [topic("a", 2)], brokers: [broker("x")] });
  assert.equal(plan(first, { topics: [], brokers: [] }), null);
  assert.equal(plan(first, { topics: [topic("b", 2)], brokers: [broker("x", { alive: false })] }), null);
});

Deno.test("The partitions of a dead broker go to the others under the next epoch, the rest stays", () => {
  const first = planned(null, { topics: [topic("a", 4)], brokers: [broker("x"), broker("y")] });
  const next = planned(first, { topics: [topic("a", 4)], brokers: [broker("x", { alive: false }), broker("y")] });
  assert.equal(shown(next), "a/0=y@1 a/1=y@0 a/2=y@1 a/3=y@0");
});

Deno.test("A broker with a new session keeps its partitions under the next epoch", () => {
  const first = planned(null, { topics: [topic("a", 2)], brokers: [broker("x"), broker("y")] });
  const next = planned(first, { topics: [topic("a", 2)], brokers: [broker("x", { tenure: 2 }), broker("y")] });
  assert.equal(shown(next), "a/0=x@1 a/1=y@0");
});

Deno.test("A broker that drains is relieved of one partition after the other, each after it was closed", () => {
  const topics = [topic("a", 2)];
  const [draining, other] = [broker("x", { draining: true }), broker("y")];
  let assignment = planned(null, { topics, brokers: [broker("x")] });
  assert.equal(shown(assignment), "a/0=x@0 a/1=x@0");
  assignment = planned(assignment, { topics, brokers: [draining, other] });
  assert.equal(shown(assignment), "a/0=x@0>y a/1=x@0");
  assert.equal(plan(assignment, { topics, brokers: [draining, other] }), null, "it waits for the first to be closed");
  const closed = { ...draining, given: [{ topic: "a", partition: 0, epoch: 0, why: "closed" as const }] };
  assignment = planned(assignment, { topics, brokers: [closed, other] });
  assert.equal(shown(assignment), "a/0=y@1 a/1=x@0>y");
});

Deno.test("A broker that drains alone keeps everything: there is nowhere to move it", () => {
  const topics = [topic("a", 2)];
  const first = planned(null, { topics, brokers: [broker("x")] });
  assert.equal(shown(planned(first, { topics, brokers: [broker("x", { draining: true })] })), "a/0=x@0 a/1=x@0");
});

Deno.test("A move whose target dies is called off; what was closed for it comes back under the next epoch", () => {
  const topics = [topic("a", 1)];
  const draining = broker("x", { draining: true });
  const moving = planned(planned(null, { topics, brokers: [broker("x")] }), {
    topics,
    brokers: [draining, broker("y")],
  });
  assert.equal(shown(moving), "a/0=x@0>y");
  const dead = broker("y", { alive: false });
  assert.equal(shown(planned(moving, { topics, brokers: [broker("x"), dead] })), "a/0=x@0");
  const closed = broker("x", { given: [{ topic: "a", partition: 0, epoch: 0, why: "closed" }] });
  assert.equal(shown(planned(moving, { topics, brokers: [closed, dead] })), "a/0=x@1");
});

Deno.test("A stalled partition goes to another broker, or to the same one where there is no other", () => {
  const topics = [topic("a", 1)];
  const stalled = broker("x", { given: [{ topic: "a", partition: 0, epoch: 0, why: "stalled" }] });
  const first = planned(null, { topics, brokers: [broker("x")] });
  assert.equal(shown(planned(first, { topics, brokers: [stalled, broker("y")] })), "a/0=y@1");
  assert.equal(shown(planned(first, { topics, brokers: [stalled] })), "a/0=x@1");
  assert.equal(shown(planned(first, { topics, brokers: [stalled], epochOnDisk: () => 5 })), "a/0=x@6");
});

Deno.test("A broker that joins gets its share, a few partitions at a time", () => {
  const topics = [topic("a", 6)];
  const first = planned(null, { topics, brokers: [broker("x")] });
  const next = planned(first, { topics, brokers: [broker("x"), broker("y")], movesAtOnce: 2 });
  assert.equal(shown(next), "a/0=x@0>y a/1=x@0>y a/2=x@0 a/3=x@0 a/4=x@0 a/5=x@0");
});

Deno.test("A leader chosen by hand stays, whatever the load, and comes back when its broker does", () => {
  const topics = [topic("a", 2)];
  const both = [broker("x"), broker("y")];
  const first = planned(null, { topics, brokers: both, wanted: () => "x" });
  assert.equal(shown(first), "a/0=x@0 a/1=x@0");
  const without = planned(first, { topics, brokers: [broker("x", { alive: false }), broker("y")] });
  assert.equal(shown(without), "a/0=y@1 a/1=y@1");
  const back = planned(without, { topics, brokers: [broker("x", { tenure: 2 }), broker("y")], movesAtOnce: 2 });
  assert.equal(shown(back), "a/0=y@1>x a/1=y@1>x");
});

Deno.test("A topic that was made anew under its old name begins anew", () => {
  const first = planned(null, { topics: [topic("a", 1)], brokers: [broker("x"), broker("y")] });
  const dead = [broker("x", { alive: false }), broker("y")];
  const second = planned(first, { topics: [topic("a", 1)], brokers: dead });
  assert.equal(shown(second), "a/0=y@1");
  assert.equal(shown(planned(second, { topics: [topic("a", 2, "another")], brokers: dead })), "a/0=y@0 a/1=y@0");
});

Deno.test("A deleted topic leaves the assignment", () => {
  const brokers = [broker("x")];
  const first = planned(null, { topics: [topic("a", 1), topic("b", 1)], brokers });
  assert.equal(shown(planned(first, { topics: [topic("b", 1)], brokers })), "b/0=x@0");
});

Deno.test("Whatever happens: epochs rise by one with each change, live brokers close before others lead, all ends even", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new SeededRandom(seed);
    const pick = (n: number) => Math.floor(random.next() * n);
    const ids = ["u", "v", "w"];
    const brokers = new Map(ids.map((id) => [id, broker(id)]));
    const topics = [topic("a", 5), topic("b", 4)];
    let assignment: Assignment | null = null;
    const step = () => {
      const next = plan(assignment, { topics, brokers: [...brokers.values()], movesAtOnce: 1 + pick(3) });
      for (const entry of next?.partitions ?? []) {
        const before: Assignment["partitions"][number] | undefined = assignment?.partitions
          .find(({ topic, partition }) => topic === entry.topic && partition === entry.partition);
        if (before === undefined) continue;
        const message: string = `seed ${seed}: ${shown(assignment!)} → ${shown(next!)}`;
        assert.ok(entry.epoch === before.epoch || entry.epoch === before.epoch + 1, message);
        if (entry.broker === before.broker) continue;
        assert.equal(entry.epoch, before.epoch + 1, message);
        const former = brokers.get(before.broker)!;
        const gaveUp = former.given.some(({ topic, partition, epoch }) =>
          topic === before.topic && partition === before.partition && epoch === before.epoch
        );
        const tenure = assignment!.brokers.find(({ id }) => id === before.broker)?.tenure;
        assert.ok(!former.alive || gaveUp || former.tenure !== tenure, `taken from a live broker, ${message}`);
      }
      assignment = next ?? assignment;
      for (const [id, one] of brokers) {
        if (!one.alive) continue;
        const given = (assignment?.partitions ?? [])
          .filter(({ broker, moveTo }) => broker === id && moveTo !== undefined && random.next() < 0.7)
          .map(({ topic, partition, epoch }) => ({ topic, partition, epoch, why: "closed" as const }));
        brokers.set(id, { ...one, given });
      }
    };
    for (let turn = 0; turn < 40; turn++) {
      const id = ids[pick(3)];
      const one = brokers.get(id)!;
      const what = pick(5);
      if (what === 0) {
        brokers.set(id, { ...one, alive: !one.alive, given: [], tenure: one.tenure + (one.alive ? 0 : 1) });
      }
      if (what === 1) brokers.set(id, { ...one, draining: !one.draining });
      if (what === 2) brokers.set(id, { ...one, tenure: one.tenure + 1, given: [] });
      step();
    }
    for (const id of ids) brokers.set(id, { ...brokers.get(id)!, alive: true, draining: false });
    for (let turn = 0; turn < 80; turn++) step();
    const counts = ids.map((id) => assignment!.partitions.filter(({ broker }) => broker === id).length);
    assert.deepEqual(counts, [3, 3, 3], `seed ${seed}: ${shown(assignment!)}`);
  }
});
