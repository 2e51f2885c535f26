/** Groups between the two protocols: members of the classic one as guests, and the ways up and down. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { readAssignment, writeAssignment } from "../../../lib/groups/consumer_protocol.ts";
import { subscribing } from "../../simulation/consumer_group_clients.ts";
import { beat, described, join, shownParts, told } from "../../support/consumer_group_world.ts";
import {
  type GroupWorld,
  type JoinOptions,
  type Membership,
  membershipOf,
  withGroups,
} from "../../support/group_world.ts";

const { NONE } = ErrorCode;

function test(name: string, fn: (world: GroupWorld) => Promise<void>): void {
  Deno.test(name, () =>
    withGroups((world) => {
      world.topics.set("t", 4);
      return fn(world);
    }));
}

function policy(world: GroupWorld, migrationPolicy: "disabled" | "upgrade" | "downgrade"): void {
  world.settings = { ...world.settings, consumer: { ...world.settings.consumer, migrationPolicy } };
}

/** Joins as a classic consumer that has these partitions of "t". */
async function enter(world: GroupWorld, has: readonly number[], options: JoinOptions = {}) {
  const metadata = subscribing(["t"], has.map((partition) => `t/${partition}`));
  return (await world.join("g", { protocols: { sticky: metadata }, ...options })).reply;
}

async function assigned(world: GroupWorld, member: Membership): Promise<string> {
  const { reply } = await world.sync("g", member);
  assert.equal(reply.errorCode, NONE);
  return readAssignment(reply.assignment)!.map(({ topic, partitions }) => `${topic}: ${partitions}`).join("; ");
}

/** A classic group of one member, which has all of "t". */
async function classicGroup(world: GroupWorld, options: JoinOptions = {}): Promise<Membership> {
  const member = membershipOf(await enter(world, [], options), options.instance);
  const assignment = writeAssignment(1, [{ topic: "t", partitions: [0, 1, 2, 3] }]);
  const synced = world.groups.sync("g", {
    memberId: member.id,
    instanceId: member.instance,
    generationId: member.generation,
    protocolType: null,
    protocolName: null,
    assignments: [{ memberId: member.id, assignment }],
  });
  await world.settle();
  assert.equal((await synced).errorCode, NONE);
  return member;
}

/** The classic member gives up what it is asked for: joins, syncs, joins again with what is left. */
async function rejoin(world: GroupWorld, { id, instance }: Membership, has: readonly number[]): Promise<Membership> {
  return membershipOf(await enter(world, has, { id, instance }), instance);
}

test("a member of the consumer protocol takes a classic group up, and what classic members have stays theirs", async (world) => {
  const old = await classicGroup(world);
  const newcomer = await join(world, "new");
  assert.equal(told(world, newcomer), "");
  assert.deepEqual(world.groups.list().map(({ type, state }) => [type, state]), [["consumer", "Reconciling"]]);
  assert.equal(world.groups.describe("g"), undefined);
  assert.equal(world.beat("g", old), ErrorCode.REBALANCE_IN_PROGRESS);

  const asked = await rejoin(world, old, [0, 1, 2, 3]);
  assert.equal(asked.generation, old.generation);
  assert.equal(await assigned(world, asked), "t: 0,1");
  assert.equal(world.beat("g", asked), ErrorCode.REBALANCE_IN_PROGRESS, "it has to say that it gave the rest up");
  const done = await rejoin(world, old, [0, 1]);
  assert.equal(await assigned(world, done), "t: 0,1");
  assert.equal(world.beat("g", done), NONE);
  const reply = await beat(world, "g", { memberId: "new", memberEpoch: newcomer.memberEpoch });
  assert.equal(told(world, reply), "t: 2,3");
  assert.deepEqual(described(world).members.map(({ isClassic }) => isClassic), [true, false]);
  assert.equal(described(world).phase, "Stable");
});

test("the last member of the consumer protocol takes the group down, and the others begin a round", async (world) => {
  const old = await classicGroup(world);
  await join(world, "new");
  await rejoin(world, old, [0, 1]);
  await beat(world, "g", { memberId: "new", memberEpoch: -1 });
  const description = world.groups.describe("g")!;
  assert.deepEqual([description.state, description.members.length], ["PreparingRebalance", 1]);
  const after = membershipOf(await enter(world, [0, 1], { id: old.id }));
  assert.equal(world.stateOf("g"), "CompletingRebalance");
  assert.equal(after.id, old.id);
});

test("it goes down also when the last such member is silent for too long", async (world) => {
  const old = await classicGroup(world, { sessionMs: 100_000 });
  await join(world, "new");
  await enter(world, [0, 1], { id: old.id, sessionMs: 100_000 });
  await world.pass(45_001);
  assert.equal(world.groups.list()[0].type, "classic");
  const lost = await beat(world, "g", { memberId: "new", memberEpoch: 2 });
  assert.equal(lost.errorCode, ErrorCode.UNKNOWN_MEMBER_ID, "it may join again");
});

test("where the policy forbids it, groups stay what they are", async (world) => {
  policy(world, "disabled");
  const old = await classicGroup(world);
  assert.equal((await join(world, "new")).errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
  assert.equal(world.beat("g", old), NONE);
  policy(world, "upgrade");
  assert.equal((await join(world, "new")).errorCode, NONE);
  await rejoin(world, old, [0, 1]);
  await beat(world, "g", { memberId: "new", memberEpoch: -1 });
  assert.equal(world.groups.list()[0].type, "consumer", "without leave to go down it stays up");
  const alone = await rejoin(world, old, [0, 1]);
  assert.equal(await assigned(world, alone), "t: 0,1,2,3");
  policy(world, "downgrade");
  assert.equal(world.beat("g", alone), NONE);
  assert.equal(world.groups.list()[0].type, "classic");
});

test("an empty group is of the protocol of whoever comes first, and keeps its offsets", async (world) => {
  policy(world, "disabled");
  await world.commit("g", { 0: 7 });
  await join(world, "a");
  await beat(world, "g", { memberId: "a", memberEpoch: -1 });
  assert.deepEqual(world.groups.list().map(({ type, state }) => [type, state]), [["consumer", "Empty"]]);
  const member = await classicGroup(world);
  assert.equal(world.groups.list()[0].type, "classic");
  await world.leave("g", member.id);
  assert.equal((await join(world, "a")).errorCode, NONE);
  await world.crash();
  assert.equal(world.groups.list()[0].type, "consumer");
  assert.equal(world.committed("g"), 7);
});

test("members of another protocol type, or without a subscription, have no way up", async (world) => {
  await world.stable("g", [{ type: "connect" }]);
  assert.equal((await join(world, "new")).errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
  await join(world, "a", {}, "other");
  const joined = (type: string, metadata: Uint8Array) => world.join("other", { type, protocols: { range: metadata } });
  const { INCONSISTENT_GROUP_PROTOCOL } = ErrorCode;
  assert.equal((await joined("connect", subscribing(["t"], []))).reply.errorCode, INCONSISTENT_GROUP_PROTOCOL);
  assert.equal((await joined("consumer", new Uint8Array(1))).reply.errorCode, INCONSISTENT_GROUP_PROTOCOL);
});

test("classic members of a consumer group must share a protocol, as they may be among themselves one day", async (world) => {
  await join(world, "a");
  const metadata = subscribing(["t"], []);
  const joined = async (...names: string[]) => {
    const protocols = Object.fromEntries(names.map((name) => [name, metadata]));
    return (await world.join("g", { protocols })).reply.errorCode;
  };
  assert.equal(await joined("range", "sticky"), NONE);
  assert.equal(await joined("sticky"), NONE);
  assert.equal(await joined("range"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
});

test("a guest that must know its id is given one; one that claims partitions but is nobody is sent away", async (world) => {
  await join(world, "a");
  const first = await enter(world, [], { needsKnownId: true });
  assert.equal(first.errorCode, ErrorCode.MEMBER_ID_REQUIRED);
  assert.equal((await enter(world, [], { needsKnownId: true, id: first.memberId })).errorCode, NONE);
  assert.equal((await enter(world, [1], { id: "ghost" })).errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
});

test("guests are held to their generation, protocol and instance", async (world) => {
  await join(world, "a");
  const guest = membershipOf(await enter(world, [], { instance: "i" }), "i");
  const codeOf = async (member: Membership, name: string | null = null) =>
    (await world.sync("g", member, {}, { name })).reply.errorCode;
  assert.equal(await codeOf({ ...guest, generation: 99 }), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(await codeOf({ ...guest, id: "other" }), ErrorCode.FENCED_INSTANCE_ID);
  assert.equal(await codeOf(guest, "range"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  assert.equal(await codeOf({ id: "a", instance: null, generation: 1 }), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await codeOf(guest, "sticky"), NONE);
  assert.equal(world.beat("g", { ...guest, generation: 99 }), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(await world.leave("g", "", "i"), NONE);
  assert.equal(world.beat("g", guest), ErrorCode.UNKNOWN_MEMBER_ID);
});

test("a guest that does not join or sync in its time goes, however much alive it is", async (world) => {
  await join(world, "a");
  const guest = membershipOf(await enter(world, [], { rebalanceMs: 10_000 }));
  for (let second = 0; second < 10; second += 2) {
    assert.equal(world.beat("g", guest), NONE);
    await beat(world, "g", { memberId: "a", memberEpoch: 1 });
    await world.pass(2_000);
  }
  assert.equal(world.beat("g", guest), ErrorCode.UNKNOWN_MEMBER_ID);
});

test("a static member may come back with the other protocol", async (world) => {
  const old = await classicGroup(world, { instance: "i" });
  const up = await join(world, "new", { instanceId: "i" });
  assert.equal(told(world, up), "t: 0,1,2,3");
  assert.equal(world.beat("g", old), ErrorCode.FENCED_INSTANCE_ID);
  await beat(world, "g", { memberId: "new", memberEpoch: -2, instanceId: "i" });
  const down = await enter(world, [], { instance: "i" });
  assert.equal(down.errorCode, NONE);
  assert.equal(world.groups.list()[0].type, "classic");
});

test("commits and reads of members are held to their epochs", async (world) => {
  await join(world, "a");
  const guest = membershipOf(await enter(world, []));
  const commit = (memberId: string, generationId: number, knowsEpochs = true) =>
    world.groups.commit({
      groupId: "g",
      memberId,
      instanceId: null,
      generationId,
      knowsEpochs,
      retentionMs: -1,
      offsets: [{ topic: "t", partition: 0, offset: 1, leaderEpoch: -1, metadata: "" }],
    });
  assert.deepEqual(await commit("a", 1), [NONE]);
  assert.equal(await commit("a", 2), ErrorCode.STALE_MEMBER_EPOCH);
  assert.equal(await commit("a", 1, false), ErrorCode.UNSUPPORTED_VERSION);
  assert.equal(await commit("x", 1), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await commit("", -1), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.deepEqual(await commit(guest.id, guest.generation, false), [NONE]);
  assert.equal(await commit(guest.id, guest.generation + 1), ErrorCode.ILLEGAL_GENERATION);
  const { groups } = world;
  assert.deepEqual(
    [groups.fetchProblem("g", null, -1), groups.fetchProblem("g", "a", 1), groups.fetchProblem("g", "a", 3)],
    [NONE, NONE, ErrorCode.STALE_MEMBER_EPOCH],
  );
  assert.equal(groups.fetchProblem("g", "x", 1), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(groups.fetchProblem("none", "x", 1), NONE);
});

test("offsets of what the group consumes stay; others can be deleted; the group only when it is empty", async (world) => {
  world.topics.set("u", 1);
  await join(world, "a", { topicNames: [], regex: "t" });
  const as = { id: "a", instance: null, generation: 1 };
  const commit = (topic: string) =>
    world.groups.commit({
      groupId: "g",
      memberId: as.id,
      instanceId: null,
      generationId: as.generation,
      knowsEpochs: true,
      retentionMs: -1,
      offsets: [{ topic, partition: 0, offset: 1, leaderEpoch: -1, metadata: "" }],
    });
  await commit("t");
  await commit("u");
  const both = ["t", "u"].map((topic) => ({ topic, partition: 0 }));
  assert.deepEqual(await world.groups.deleteOffsets("g", both), [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE]);
  assert.equal(await world.groups.deleteGroup("g"), ErrorCode.NON_EMPTY_GROUP);
  await beat(world, "g", { memberId: "a", memberEpoch: -1 });
  world.clock.jumpWall(world.settings.offsetRetentionMs - 1);
  await world.groups.expire();
  assert.equal(world.committed("g"), 1, "retention runs from when the group was left");
  assert.equal(await world.groups.deleteGroup("g"), NONE);
  await world.crash();
  assert.deepEqual(world.groups.list(), []);
});

test("what a classic member may still have is nobody else's when the group goes up between its steps", async (world) => {
  const old = await classicGroup(world);
  // It is told to keep two of four, and has not joined again without the others.
  const again = await rejoin(world, old, [0, 1, 2, 3]);
  const assignment = writeAssignment(1, [{ topic: "t", partitions: [0, 1] }]);
  void world.groups.sync("g", {
    memberId: again.id,
    instanceId: null,
    generationId: again.generation,
    protocolType: null,
    protocolName: null,
    assignments: [{ memberId: again.id, assignment }],
  });
  await world.settle();
  assert.equal(told(world, await join(world, "new")), "");
  const [first] = described(world).members;
  assert.equal(shownParts(world, first.assigned), "t: 0,1,2,3");
});
