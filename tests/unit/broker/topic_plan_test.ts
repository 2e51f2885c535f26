import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { type ClusterFacts, planPartitions, planTopic, type TopicWish } from "../../../lib/broker/topic_plan.ts";
import { ErrorCode } from "../../../lib/errors.ts";

function cluster(names: string[] = [], config: BrokerConfig = BrokerConfig.of({ "num.partitions": 3 })): ClusterFacts {
  return {
    namesLike: (key) => names.filter((name) => name.replaceAll(".", "_") === key),
    brokerIds: [0],
    config,
  };
}

function wish(changes: Partial<TopicWish> = {}): TopicWish {
  return { name: "t", numPartitions: -1, replicationFactor: -1, assignments: [], configs: [], ...changes };
}

function codeOf(outcome: object): number {
  return "errorCode" in outcome ? Number(outcome.errorCode) : ErrorCode.NONE;
}

function byHand(...assigned: (readonly [index: number, ...brokers: number[]])[]): TopicWish {
  return wish({ assignments: assigned.map(([partitionIndex, ...brokerIds]) => ({ partitionIndex, brokerIds })) });
}

Deno.test("planTopic() fills in the broker's defaults", () => {
  const plan = planTopic(wish(), cluster());
  assert.ok(!("errorCode" in plan));
  assert.equal(plan.partitionCount, 3);
  assert.equal(plan.replicationFactor, 1);
});

Deno.test("planTopic() refuses each wrong wish with Kafka's error code", () => {
  const table: [Partial<TopicWish>, number][] = [
    [{ name: "a b" }, ErrorCode.INVALID_TOPIC_EXCEPTION],
    [{ name: "there" }, ErrorCode.TOPIC_ALREADY_EXISTS],
    [{ name: "do.t" }, ErrorCode.INVALID_TOPIC_EXCEPTION],
    [{ numPartitions: 0 }, ErrorCode.INVALID_PARTITIONS],
    [{ numPartitions: -2 }, ErrorCode.INVALID_PARTITIONS],
    [{ replicationFactor: 0 }, ErrorCode.INVALID_REPLICATION_FACTOR],
    [{ replicationFactor: 2 }, ErrorCode.INVALID_REPLICATION_FACTOR],
    [{ numPartitions: 10001 }, ErrorCode.POLICY_VIOLATION],
    [{ configs: [{ name: "no.such", value: "1" }] }, ErrorCode.INVALID_CONFIG],
    [{ configs: [{ name: "retention.ms", value: "soon" }] }, ErrorCode.INVALID_CONFIG],
    [{ configs: [{ name: "retention.ms", value: null }] }, ErrorCode.INVALID_CONFIG],
  ];
  for (const [changes, code] of table) {
    assert.equal(codeOf(planTopic(wish(changes), cluster(["there", "do_t"]))), code, JSON.stringify(changes));
  }
});

Deno.test("planTopic() takes an assignment by hand to the brokers there are", () => {
  const plan = planTopic(byHand([1, 0], [0, 0]), cluster());
  assert.ok(!("errorCode" in plan));
  assert.equal(plan.partitionCount, 2);
  assert.deepEqual([...plan.leaders].sort(), [[0, 0], [1, 0]]);
});

Deno.test("planTopic() refuses wrong assignments by hand", () => {
  const table: [TopicWish, number][] = [
    [byHand([0, 7]), ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [byHand([0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [byHand([0, 0], [0, 0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [byHand([0, 0], [2, 0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [byHand([0, 0, 0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [{ ...byHand([0, 0]), numPartitions: 1 }, ErrorCode.INVALID_REQUEST],
    [{ ...byHand([0, 0]), replicationFactor: 1 }, ErrorCode.INVALID_REQUEST],
  ];
  for (const [asked, code] of table) assert.equal(codeOf(planTopic(asked, cluster())), code, JSON.stringify(asked));
});

Deno.test("planPartitions() only lets the number grow", () => {
  const topic = { name: "t", partitionCount: 3 };
  assert.equal(codeOf(planPartitions({ count: 5, assignments: null }, topic, cluster())), ErrorCode.NONE);
  for (const count of [3, 2, 0, -1]) {
    assert.equal(codeOf(planPartitions({ count, assignments: null }, topic, cluster())), ErrorCode.INVALID_PARTITIONS);
  }
});

Deno.test("planPartitions() wants one assignment for each new partition", () => {
  const topic = { name: "t", partitionCount: 1 };
  const plan = planPartitions({ count: 3, assignments: [{ brokerIds: [0] }, { brokerIds: [0] }] }, topic, cluster());
  assert.deepEqual("leaders" in plan && [...plan.leaders], [[1, 0], [2, 0]]);
  const tooFew = planPartitions({ count: 3, assignments: [{ brokerIds: [0] }] }, topic, cluster());
  assert.equal(codeOf(tooFew), ErrorCode.INVALID_REPLICA_ASSIGNMENT);
  const unknown = planPartitions({ count: 2, assignments: [{ brokerIds: [9] }] }, topic, cluster());
  assert.equal(codeOf(unknown), ErrorCode.INVALID_REPLICA_ASSIGNMENT);
});
