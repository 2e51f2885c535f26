/** A group of the consumer protocol: joining, moving partitions, fencing, static members, time-outs, topics. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { beat, described, join, partsOf, shownParts, told } from "../../support/consumer_group_world.ts";
import { type GroupWorld, withGroups } from "../../support/group_world.ts";

const { NONE } = ErrorCode;

function test(name: string, fn: (world: GroupWorld) => Promise<void>): void {
  Deno.test(name, () =>
    withGroups((world) => {
      world.topics.set("t", 4);
      return fn(world);
    }));
}

/** Members "a" and "b" that have two partitions each. */
async function twoMembers(world: GroupWorld, said: { readonly a?: object; readonly b?: object } = {}) {
  await join(world, "a", said.a);
  await join(world, "b", said.b);
  await beat(world, "g", { memberId: "a", memberEpoch: 1 });
  await beat(world, "g", { memberId: "a", memberEpoch: 1, owned: partsOf(world, [0, 1]) });
  const reply = await beat(world, "g", { memberId: "b", memberEpoch: 2 });
  assert.equal(told(world, reply), "t: 2,3");
  assert.equal(described(world).phase, "Stable");
}

function codeOf({ errorCode }: { readonly errorCode: ErrorCode }): ErrorCode {
  return errorCode;
}

test("the first member gets everything, and is told only what is new to it", async (world) => {
  const reply = await join(world, "a");
  assert.deepEqual([reply.memberId, reply.memberEpoch, told(world, reply)], ["a", 1, "t: 0,1,2,3"]);
  const next = await beat(world, "g", { memberId: "a", memberEpoch: 1 });
  assert.deepEqual([next.memberEpoch, told(world, next)], [1, null]);
  const all = { rebalanceTimeoutMs: 1000, topicNames: ["t"], owned: partsOf(world, [0]) };
  const full = await beat(world, "g", { memberId: "a", memberEpoch: 1, ...all });
  assert.equal(told(world, full), "t: 0,1,2,3", "who says everything is told everything");
});

test("a partition goes to its new owner when the old one has confirmed that it gave it up", async (world) => {
  await join(world, "a");
  const newcomer = await join(world, "b");
  assert.deepEqual([newcomer.memberEpoch, told(world, newcomer)], [2, ""]);
  assert.equal(described(world).phase, "Reconciling");
  const asked = await beat(world, "g", { memberId: "a", memberEpoch: 1 });
  assert.deepEqual([asked.memberEpoch, told(world, asked)], [1, "t: 0,1"], "the epoch stays until it has done so");
  const silent = await beat(world, "g", { memberId: "a", memberEpoch: 1 });
  assert.deepEqual([silent.memberEpoch, told(world, silent)], [1, null]);
  assert.equal(told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })), null);
  const done = await beat(world, "g", { memberId: "a", memberEpoch: 1, owned: partsOf(world, [0, 1]) });
  assert.equal(done.memberEpoch, 2);
  assert.equal(told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })), "t: 2,3");
  assert.equal(described(world).phase, "Stable");
});

test("what a member has that goes is free at once", async (world) => {
  await twoMembers(world);
  const gone = await beat(world, "g", { memberId: "a", memberEpoch: -1 });
  assert.deepEqual([codeOf(gone), gone.memberEpoch], [NONE, -1]);
  assert.equal(described(world).phase, "Assigning");
  const reply = await beat(world, "g", { memberId: "b", memberEpoch: 2 });
  assert.deepEqual([reply.memberEpoch, told(world, reply)], [3, "t: 0,1,2,3"]);
  await beat(world, "g", { memberId: "b", memberEpoch: -1 });
  assert.equal(described(world).phase, "Empty");
  assert.equal(codeOf(await beat(world, "g", { memberId: "b", memberEpoch: -1 })), ErrorCode.UNKNOWN_MEMBER_ID);
});

test("epochs above or below are fenced; the one before is good where its answer may be lost", async (world) => {
  await twoMembers(world);
  await beat(world, "g", { memberId: "b", memberEpoch: -1 });
  const moved = await beat(world, "g", { memberId: "a", memberEpoch: 2 });
  assert.deepEqual([moved.memberEpoch, told(world, moved)], [3, "t: 0,1,2,3"]);
  const at = (memberEpoch: number, owned: number[] | null) =>
    beat(world, "g", { memberId: "a", memberEpoch, owned: owned && partsOf(world, owned) });
  assert.equal(codeOf(await at(4, null)), ErrorCode.FENCED_MEMBER_EPOCH);
  assert.equal(codeOf(await at(1, [])), ErrorCode.FENCED_MEMBER_EPOCH);
  assert.equal(codeOf(await at(2, null)), ErrorCode.FENCED_MEMBER_EPOCH);
  const retried = await at(2, [0, 1]);
  assert.deepEqual([retried.memberEpoch, told(world, retried)], [3, "t: 0,1,2,3"]);
  const again = await join(world, "a");
  assert.deepEqual([again.memberEpoch, told(world, again)], [3, "t: 0,1,2,3"], "who begins anew is told all again");
});

test("unknown groups and members are told so", async (world) => {
  assert.equal(codeOf(await beat(world, "none", { memberId: "a", memberEpoch: 1 })), ErrorCode.GROUP_ID_NOT_FOUND);
  assert.equal(codeOf(await beat(world, "none", { memberId: "a", memberEpoch: -1 })), ErrorCode.GROUP_ID_NOT_FOUND);
  await join(world, "a");
  assert.equal(codeOf(await beat(world, "g", { memberId: "x", memberEpoch: 1 })), ErrorCode.UNKNOWN_MEMBER_ID);
  const asStatic = await beat(world, "g", { memberId: "a", memberEpoch: 1, instanceId: "i" });
  assert.equal(codeOf(asStatic), ErrorCode.UNKNOWN_MEMBER_ID);
});

test("before version 1 the server finds a member's id", async (world) => {
  const reply = await beat(world, "g", {
    memberEpoch: 0,
    rebalanceTimeoutMs: 1000,
    topicNames: ["t"],
    owned: partsOf(world, []),
  }, 0);
  assert.match(reply.memberId!, /^[0-9a-f-]{36}$/);
  assert.equal(codeOf(await join(world, "")), ErrorCode.INVALID_REQUEST);
});

test("a full group takes nobody in, but lets a static member come back", async (world) => {
  world.settings = { ...world.settings, consumer: { ...world.settings.consumer, maxSize: 1 } };
  await join(world, "a", { instanceId: "i" });
  assert.equal(codeOf(await join(world, "b")), ErrorCode.GROUP_MAX_SIZE_REACHED);
  await beat(world, "g", { memberId: "a", memberEpoch: -2, instanceId: "i" });
  assert.equal(codeOf(await join(world, "c", { instanceId: "i" })), NONE);
});

test("a silent member goes when its session is over, and what it had goes to others", async (world) => {
  await twoMembers(world);
  await world.pass(30_000);
  await beat(world, "g", { memberId: "b", memberEpoch: 2 });
  await world.pass(15_001);
  assert.deepEqual(described(world).members.map(({ memberId }) => memberId), ["b"]);
  assert.equal(told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })), "t: 0,1,2,3");
  assert.equal(codeOf(await beat(world, "g", { memberId: "a", memberEpoch: 2 })), ErrorCode.UNKNOWN_MEMBER_ID);
});

test("who does not give up what it is asked for goes after its rebalance time, heartbeats or not", async (world) => {
  await join(world, "a", { rebalanceTimeoutMs: 20_000 });
  await join(world, "b");
  for (let second = 0; second < 20; second += 5) {
    assert.equal(codeOf(await beat(world, "g", { memberId: "a", memberEpoch: 1 })), NONE);
    await beat(world, "g", { memberId: "b", memberEpoch: 2 });
    await world.pass(5_000);
  }
  assert.equal(codeOf(await beat(world, "g", { memberId: "a", memberEpoch: 1 })), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })), "t: 0,1,2,3");
});

test("a static member that comes back within its session has what it had, under a new id", async (world) => {
  await twoMembers(world, { a: { instanceId: "i" } });
  const beatOfA = { memberId: "a", instanceId: "i" };
  assert.equal((await beat(world, "g", { ...beatOfA, memberEpoch: -2 })).memberEpoch, -2);
  assert.equal(
    told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })),
    null,
    "nobody gets it meanwhile",
  );
  const back = await join(world, "a2", { instanceId: "i" });
  assert.equal(told(world, back), "t: 0,1");
  const fenced = await beat(world, "g", { ...beatOfA, memberEpoch: 2 });
  assert.equal(codeOf(fenced), ErrorCode.FENCED_INSTANCE_ID);
  assert.equal(codeOf(await beat(world, "g", { ...beatOfA, memberEpoch: -2 })), ErrorCode.FENCED_INSTANCE_ID);
});

test("an instance that is in use is not given to another; one that stays away goes with its session", async (world) => {
  await join(world, "a", { instanceId: "i" });
  assert.equal(codeOf(await join(world, "b", { instanceId: "i" })), ErrorCode.UNRELEASED_INSTANCE_ID);
  assert.equal(codeOf(await join(world, "a", { instanceId: "i" })), NONE, "it may begin anew itself");
  await beat(world, "g", { memberId: "a", memberEpoch: -2, instanceId: "i" });
  await world.pass(45_001);
  assert.equal(described(world).phase, "Empty");
  assert.equal(codeOf(await join(world, "b", { instanceId: "i" })), NONE);
});

test("topics that come, grow and go change the target", async (world) => {
  await join(world, "a", { topicNames: ["t", "u"] });
  const next = (memberEpoch: number, owned: ReturnType<typeof partsOf> | null = null) =>
    beat(world, "g", { memberId: "a", memberEpoch, owned });
  world.topics.set("u", 1);
  assert.equal(told(world, await next(1)), "t: 0,1,2,3; u: 0");
  world.topics.set("t", 5);
  assert.equal(told(world, await next(2)), "t: 0,1,2,3,4; u: 0");
  world.topics.set("other", 5);
  assert.equal((await next(3)).memberEpoch, 3, "what nobody consumes changes nothing");
  world.topics.delete("t");
  const reply = await next(3);
  assert.deepEqual([reply.memberEpoch, told(world, reply)], [3, "u: 0"]);
  assert.equal((await next(3, partsOf(world, [0], "u"))).memberEpoch, 4);
});

test("a pattern is held against all topics but internal ones, whenever they come", async (world) => {
  world.topics.set("__consumer_offsets", 1);
  const reply = await join(world, "a", { topicNames: [], regex: "(t|v.*|__.*)" });
  assert.equal(told(world, reply), "t: 0,1,2,3");
  world.topics.set("v1", 1);
  assert.equal(told(world, await beat(world, "g", { memberId: "a", memberEpoch: 1 })), "t: 0,1,2,3; v1: 0");
  const taken = await beat(world, "g", { memberId: "a", memberEpoch: 2, regex: "", owned: partsOf(world, []) });
  assert.equal(told(world, taken), "");
});

test("a changed subscription gives others what a member does not consume any more", async (world) => {
  world.topics.set("u", 2);
  await join(world, "a", { topicNames: ["t", "u"] });
  await join(world, "b", { topicNames: ["u"] });
  const reply = await beat(world, "g", { memberId: "a", memberEpoch: 1, topicNames: ["t"] });
  assert.equal(told(world, reply), "t: 0,1,2,3");
  await beat(world, "g", { memberId: "a", memberEpoch: 1, owned: partsOf(world, [0, 1, 2, 3]) });
  assert.equal(told(world, await beat(world, "g", { memberId: "b", memberEpoch: 2 })), "u: 0,1");
});

test("most votes choose the assignor, and no vote the first one offered", async (world) => {
  await join(world, "a");
  assert.equal(described(world).assignor, "uniform");
  await join(world, "b", { assignor: "range" });
  await join(world, "c", { assignor: "range" });
  await join(world, "d", { assignor: "uniform" });
  assert.equal(described(world).assignor, "range");
});

test("a large group gets a new target for newcomers from time to time only, for subscriptions at once", async (world) => {
  world.topics.set("t", 300);
  for (let index = 0; index < 202; index++) await join(world, `m${index}`);
  const { targetEpoch } = described(world);
  assert.equal(described(world).phase, "Assigning");
  await beat(world, "g", { memberId: "m1", memberEpoch: 2, topicNames: ["t", "x"], owned: partsOf(world, []) });
  assert.ok(described(world).targetEpoch > targetEpoch);
  await join(world, "late");
  assert.equal(described(world).phase, "Assigning");
  await world.pass(1_000);
  await beat(world, "g", { memberId: "late", memberEpoch: described(world).targetEpoch });
  assert.equal(described(world).phase, "Reconciling");
});

test("after a crash everybody goes on in its epoch, with what it had", async (world) => {
  await twoMembers(world, { a: { instanceId: "i", assignor: "uniform", rackId: "r" } });
  await join(world, "c");
  const asked = await beat(world, "g", { memberId: "a", memberEpoch: 2, instanceId: "i" });
  assert.equal(told(world, asked), "t: 0");
  const before = described(world);
  await world.crash();
  assert.deepEqual(described(world), before);
  assert.deepEqual(world.problems, []);
  const beatOfA = { memberId: "a", memberEpoch: 2, instanceId: "i" };
  assert.equal((await beat(world, "g", beatOfA)).memberEpoch, 2, "what is to be given up still is");
  const done = await beat(world, "g", { ...beatOfA, owned: partsOf(world, [0]) });
  assert.equal(done.memberEpoch, before.targetEpoch);
  await world.crash();
  const [first] = described(world).members;
  assert.equal(shownParts(world, first.assigned), "t: 0");
});

test("a heartbeat that cannot be saved is refused", async (world) => {
  await join(world, "a");
  world.disk.faults = { ...world.disk.faults, sync: 1 };
  const code = codeOf(await join(world, "b"));
  assert.equal(code, ErrorCode.COORDINATOR_NOT_AVAILABLE);
});
