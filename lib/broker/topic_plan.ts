/**
 * Whether a topic, or more partitions of one, can be created as asked: pure checks in Kafka's order, each with Kafka's
 * error code. What passes is a plan with all defaults filled in.
 *
 * A partition has one copy, on the shared volume. A replication factor is therefore checked against the number of
 * brokers as Kafka does, and then every partition has one replica: its leader.
 */

import { ErrorCode } from "../errors.ts";
import { collisionKey, topicNameProblem } from "./topic_name.ts";
import { overridesConflict, parseOverrides, type TopicOverrides } from "./topic_config.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";
import type { BrokerConfig } from "./broker_config.ts";

/** Most partitions that one request may create, as in Kafka. */
export const MAX_PARTITIONS_PER_REQUEST = 10000;

/** A replica assignment by hand: the brokers of one new partition. */
export interface ManualAssignment {
  readonly partitionIndex: number;
  readonly brokerIds: readonly number[];
}

/** A topic as a client asks for it; -1 is "the broker's default". */
export interface TopicWish {
  readonly name: string;
  readonly numPartitions: number;
  readonly replicationFactor: number;
  readonly assignments: readonly ManualAssignment[];
  readonly configs: readonly { readonly name: string; readonly value: string | null }[];
}

/** A topic that can be created. */
export interface TopicPlan {
  readonly name: string;
  readonly partitionCount: number;
  readonly replicationFactor: number;
  readonly overrides: TopicOverrides;
  /** Wanted leaders by partition, where they were assigned by hand. */
  readonly leaders: ReadonlyMap<number, number>;
}

/** What the checks need to know of the cluster. */
export interface ClusterFacts {
  /** The names of existing topics that share this collision key. */
  namesLike(key: string): readonly string[];
  /** Ids of the brokers that are alive. */
  readonly brokerIds: readonly number[];
  readonly config: BrokerConfig;
}

/** The plan for a new topic, or why there is none. */
export function planTopic(wish: TopicWish, cluster: ClusterFacts): TopicPlan | Refusal {
  const nameProblem = topicNameProblem(wish.name);
  if (nameProblem !== null) return refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, nameProblem);
  const alike = cluster.namesLike(collisionKey(wish.name));
  if (alike.includes(wish.name)) {
    return refuse(ErrorCode.TOPIC_ALREADY_EXISTS, `topic ${wish.name} already exists`);
  }
  if (alike.length > 0) {
    const problem = `topic name ${wish.name} collides with ${alike.join(", ")} ("." and "_" count as the same)`;
    return refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, problem);
  }
  const overrides = planOverrides(wish, cluster.config);
  if (isRefusal(overrides)) return overrides;
  const shape = wish.assignments.length > 0 ? shapeByHand(wish, cluster) : shapeByNumbers(wish, cluster);
  return isRefusal(shape) ? shape : { name: wish.name, overrides, ...shape };
}

type Shape = Pick<TopicPlan, "partitionCount" | "replicationFactor" | "leaders">;

function planOverrides(wish: TopicWish, config: BrokerConfig): TopicOverrides | Refusal {
  const texts: [string, string][] = [];
  const seen = new Set<string>();
  for (const { name, value } of wish.configs) {
    if (value === null) return refuse(ErrorCode.INVALID_CONFIG, `${name} has no value`);
    if (seen.has(name)) return refuse(ErrorCode.INVALID_REQUEST, `${name} is named more than once`);
    seen.add(name);
    texts.push([name, value]);
  }
  const overrides = parseOverrides(texts);
  if (isRefusal(overrides)) return overrides;
  return overridesConflict(overrides, config) ?? overrides;
}

function shapeByNumbers(wish: TopicWish, cluster: ClusterFacts): Shape | Refusal {
  const { numPartitions, replicationFactor } = wish;
  if (replicationFactor < -1 || replicationFactor === 0) {
    const problem = `replication factor ${replicationFactor} is neither -1 (the default) nor positive`;
    return refuse(ErrorCode.INVALID_REPLICATION_FACTOR, problem);
  }
  if (numPartitions < -1 || numPartitions === 0) {
    const problem = `${numPartitions} partitions is neither -1 (the default) nor positive`;
    return refuse(ErrorCode.INVALID_PARTITIONS, problem);
  }
  if (replicationFactor > cluster.brokerIds.length) {
    const problem =
      `replication factor ${replicationFactor} is more than the ${cluster.brokerIds.length} brokers there are`;
    return refuse(ErrorCode.INVALID_REPLICATION_FACTOR, problem);
  }
  const partitionCount = numPartitions === -1 ? cluster.config.get("num.partitions") : numPartitions;
  if (partitionCount > MAX_PARTITIONS_PER_REQUEST) return tooMany(partitionCount);
  return { partitionCount, replicationFactor: 1, leaders: new Map() };
}

function shapeByHand(wish: TopicWish, cluster: ClusterFacts): Shape | Refusal {
  if (wish.replicationFactor !== -1) {
    const problem = "with assignments by hand the replication factor must be -1";
    return refuse(ErrorCode.INVALID_REQUEST, problem);
  }
  if (wish.numPartitions !== -1) {
    return refuse(ErrorCode.INVALID_REQUEST, "with assignments by hand the number of partitions must be -1");
  }
  if (wish.assignments.length > MAX_PARTITIONS_PER_REQUEST) return tooMany(wish.assignments.length);
  const leaders = new Map<number, number>();
  for (const { partitionIndex, brokerIds } of wish.assignments) {
    if (leaders.has(partitionIndex)) {
      return refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, `partition ${partitionIndex} is assigned more than once`);
    }
    const leader = leaderByHand(brokerIds, wish.assignments[0].brokerIds.length, cluster);
    if (typeof leader !== "number") return leader;
    leaders.set(partitionIndex, leader);
  }
  for (let index = 0; index < leaders.size; index++) {
    if (!leaders.has(index)) {
      const problem = `partitions must be numbered from 0 without a gap, ${index} is missing`;
      return refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem);
    }
  }
  return { partitionCount: leaders.size, replicationFactor: 1, leaders };
}

function leaderByHand(brokerIds: readonly number[], factor: number, cluster: ClusterFacts): number | Refusal {
  const refuseAssignment = (problem: string) => refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem);
  if (brokerIds.length === 0) return refuseAssignment("a partition is assigned to no broker");
  if (new Set(brokerIds).size < brokerIds.length) return refuseAssignment(`brokers ${brokerIds.join(", ")} repeat`);
  if (brokerIds.length !== factor) {
    return refuseAssignment(`a partition is assigned to ${brokerIds.length} brokers, another one to ${factor}`);
  }
  const unknown = brokerIds.find((id) => !cluster.brokerIds.includes(id));
  return unknown === undefined ? brokerIds[0] : refuseAssignment(`there is no broker ${unknown}`);
}

/** More partitions as a client asks for them; `assignments` holds the brokers of each new one, `null` leaves it open. */
export interface PartitionsWish {
  readonly count: number;
  readonly assignments: readonly { readonly brokerIds: readonly number[] }[] | null;
}

/** Wanted leaders of the new partitions (empty if left open), or why there cannot be that many. */
export function planPartitions(
  wish: PartitionsWish,
  present: { readonly name: string; readonly partitionCount: number },
  cluster: ClusterFacts,
): { readonly leaders: ReadonlyMap<number, number> } | Refusal {
  const { count, assignments } = wish;
  if (count === present.partitionCount) {
    return refuse(ErrorCode.INVALID_PARTITIONS, `topic ${present.name} has ${count} partitions already`);
  }
  if (count < present.partitionCount) {
    const problem = `topic ${present.name} has ${present.partitionCount} partitions, ${count} would be fewer`;
    return refuse(ErrorCode.INVALID_PARTITIONS, problem);
  }
  const additional = count - present.partitionCount;
  if (additional > MAX_PARTITIONS_PER_REQUEST) return tooMany(additional);
  const leaders = new Map<number, number>();
  if (assignments === null) return { leaders };
  if (assignments.length !== additional) {
    const problem = `${additional} partitions are to be added, but ${assignments.length} are assigned`;
    return refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem);
  }
  for (const [index, { brokerIds }] of assignments.entries()) {
    const leader = leaderByHand(brokerIds, 1, cluster);
    if (typeof leader !== "number") return leader;
    leaders.set(present.partitionCount + index, leader);
  }
  return { leaders };
}

function tooMany(count: number): Refusal {
  const problem = `${count} partitions in one request are more than the ${MAX_PARTITIONS_PER_REQUEST} allowed`;
  return refuse(ErrorCode.POLICY_VIOLATION, problem);
}
