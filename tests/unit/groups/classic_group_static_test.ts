/** Static members of a classic group (KIP-345) and what a leader that comes back is told (KIP-814). */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { assignmentIn, membershipOf, withGroups } from "../../support/group_world.ts";

const { NONE } = ErrorCode;
const FENCED = ErrorCode.FENCED_INSTANCE_ID;

Deno.test("a static member needs no second join to be known", () =>
  withGroups(async (world) => {
    const joined = (await world.join("g", { instance: "i", needsKnownId: true })).reply;
    assert.equal(joined.errorCode, NONE);
    assert.match(joined.memberId, /^i-/);
    assert.equal(joined.members[0].groupInstanceId, "i");
  }));

Deno.test("a static member that comes back within its session goes on with its part, and nobody notices", () =>
  withGroups(async (world) => {
    const [leader, old] = await world.stable("g", [{ instance: "a" }, { instance: "b" }]);
    await world.pass(9_000);
    assert.equal(world.beat("g", leader), NONE);
    const back = (await world.join("g", { instance: "b", needsKnownId: true })).reply;
    assert.notEqual(back.memberId, old.id);
    assert.deepEqual([back.errorCode, back.generationId, back.leader, back.members], [NONE, 1, leader.id, []]);
    const now = membershipOf(back, "b");
    assert.equal(assignmentIn((await world.sync("g", now)).reply), "1");
    assert.deepEqual([world.beat("g", leader), world.beat("g", now)], [NONE, NONE]);
    await world.pass(9_999);
    assert.equal(world.beat("g", now), NONE, "its session began anew");
  }));

Deno.test("the id that a static member had before is fenced in every request", () =>
  withGroups(async (world) => {
    const [, old] = await world.stable("g", [{ instance: "a" }, { instance: "b" }]);
    const now = membershipOf((await world.join("g", { instance: "b" })).reply, "b");
    assert.equal(world.beat("g", old), FENCED);
    assert.equal((await world.sync("g", old)).reply.errorCode, FENCED);
    assert.equal((await world.join("g", { id: old.id, instance: "b" })).reply.errorCode, FENCED);
    assert.equal(await world.commit("g", { 0: 1 }, { as: old }), FENCED);
    assert.equal(await world.leave("g", old.id, "b"), FENCED);
    assert.equal(world.beat("g", { ...old, instance: null }), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", { ...now, instance: "c" }), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.deepEqual(await world.commit("g", { 0: 1 }, { as: now }), [NONE]);
  }));

Deno.test("whoever waits under the old id of a static member is fenced when it comes back", () =>
  withGroups(async (world) => {
    const [leader, old] = await world.stable("g", [{ instance: "a" }, { instance: "b" }]);
    const waiting = await world.join("g", { id: old.id, instance: "b", protocols: { range: "news" } });
    assert.ok(waiting.isWaiting);
    const back = await world.join("g", { instance: "b" });
    assert.equal(waiting.reply.errorCode, FENCED);
    assert.ok(back.isWaiting, "a round is under way");
    await world.join("g", { id: leader.id, instance: "a" });
    assert.equal(back.reply.generationId, 2);
    const follower = membershipOf(back.reply, "b");
    const syncing = await world.sync("g", follower);
    const again = await world.join("g", { instance: "b" });
    assert.equal(syncing.reply.errorCode, FENCED);
    assert.ok(again.isWaiting, "the leader assigns to one that is no more: a new round");
    await world.join("g", { id: leader.id, instance: "a" });
    assert.equal(again.reply.generationId, 3);
  }));

Deno.test("a static leader that comes back is told to leave the assignment alone, where it understands that", () =>
  withGroups(async (world) => {
    const [leader, other] = await world.stable("g", [{ instance: "a" }, { instance: "b" }]);
    const back = (await world.join("g", { instance: "a", knowsSkipAssignment: true })).reply;
    assert.equal(back.skipAssignment, true);
    assert.equal(back.leader, back.memberId);
    assert.deepEqual(back.members.map(({ groupInstanceId }) => groupInstanceId).toSorted(), ["a", "b"]);
    const now = membershipOf(back, "a");
    assert.equal(assignmentIn((await world.sync("g", now)).reply), "0");
    assert.equal(world.beat("g", other), NONE);

    const older = (await world.join("g", { instance: "a", knowsSkipAssignment: false })).reply;
    assert.equal(older.skipAssignment, false);
    assert.notEqual(older.leader, older.memberId, "it must not think that it should assign");
    assert.deepEqual(older.members, []);
    assert.equal(assignmentIn((await world.sync("g", membershipOf(older, "a"))).reply), "0");
    assert.notEqual(leader.id, now.id);

    const rejoined = await world.join("g", { id: older.memberId, instance: "a", protocols: { range: "new" } });
    assert.ok(rejoined.isWaiting);
    await world.join("g", { id: other.id, instance: "b" });
    assert.equal(rejoined.reply.leader, older.memberId, "it leads all the same");
  }));

Deno.test("a static member that comes back with what changes the choice of protocol starts a round", () =>
  withGroups(async (world) => {
    const both = { range: "r", sticky: "s" };
    const [leader] = await world.stable("g", [{ instance: "a", protocols: both }, { instance: "b", protocols: both }]);
    const back = await world.join("g", { instance: "b", protocols: { sticky: "s" } });
    assert.ok(back.isWaiting);
    assert.equal(world.beat("g", leader), ErrorCode.REBALANCE_IN_PROGRESS);
    await world.join("g", { id: leader.id, instance: "a", protocols: both });
    assert.equal(back.reply.protocolName, "sticky");
  }));

Deno.test("a static member that is away keeps its place over a round, until its session ends", () =>
  withGroups(async (world) => {
    const [leader, away] = await world.stable("g", [
      { instance: "a", sessionMs: 30_000, rebalanceMs: 5_000 },
      { instance: "b", sessionMs: 30_000, rebalanceMs: 5_000 },
    ]);
    const led = await world.join("g", { id: leader.id, instance: "a", sessionMs: 30_000, rebalanceMs: 5_000 });
    await world.pass(5_000);
    assert.deepEqual(led.reply.members.map(({ memberId }) => memberId), [leader.id, away.id]);
    const now = membershipOf(led.reply, "a");
    await world.sync("g", now, { [now.id]: "0", [away.id]: "1" });
    await world.pass(10_000);
    assert.equal(
      world.beat("g", now),
      NONE,
      "nobody asks a static member to sync that does not know of the generation",
    );
    const back = membershipOf((await world.join("g", { instance: "b", sessionMs: 6_000 })).reply, "b");
    assert.equal(assignmentIn((await world.sync("g", back)).reply), "1");
    await world.pass(6_000);
    assert.equal(world.beat("g", back), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", now), ErrorCode.REBALANCE_IN_PROGRESS);
  }));

Deno.test("a round in which only absent static members are left waits for one of them, or for the end of their sessions", () =>
  withGroups(async (world) => {
    const [, away] = await world.stable("g", [{ rebalanceMs: 5_000 }, {
      instance: "b",
      sessionMs: 60_000,
      rebalanceMs: 5_000,
    }]);
    await world.pass(10_000);
    assert.equal(world.stateOf("g"), "PreparingRebalance");
    await world.pass(12_000);
    assert.equal(world.stateOf("g"), "PreparingRebalance");
    const back = await world.join("g", { id: away.id, instance: "b", sessionMs: 60_000 });
    assert.equal(back.reply.leader, away.id);
    await world.pass(60_000);
    assert.equal(world.stateOf("g"), "Empty");
  }));

Deno.test("a static member leaves by its instance, with or without its id", () =>
  withGroups(async (world) => {
    const [, two, three] = await world.stable("g", [{ instance: "a" }, { instance: "b" }, { instance: "c" }]);
    assert.equal(await world.leave("g", "", "b"), NONE);
    assert.equal(world.beat("g", two), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.stateOf("g"), "PreparingRebalance");
    assert.equal(await world.leave("g", "other", "c"), FENCED);
    assert.equal(await world.leave("g", three.id, "c"), NONE);
    assert.equal(await world.leave("g", "", "c"), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(await world.leave("g", "", null), ErrorCode.UNKNOWN_MEMBER_ID);
  }));

Deno.test("several members leave at once, each with its own answer", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}, { instance: "b" }]);
    const outcome = world.groups.leave("g", [
      { memberId: one.id, groupInstanceId: null },
      { memberId: "", groupInstanceId: "b" },
      { memberId: "nobody", groupInstanceId: null },
    ]);
    assert.deepEqual(outcome, [NONE, NONE, ErrorCode.UNKNOWN_MEMBER_ID]);
    assert.equal(world.stateOf("g"), "Empty");
  }));

Deno.test("a static member takes its place again in a group that is full", () =>
  withGroups(async (world) => {
    await world.stable("g", [{ instance: "a" }, { instance: "b" }]);
    assert.equal((await world.join("g", { instance: "c" })).reply.errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
    assert.equal((await world.join("g", { instance: "b" })).reply.errorCode, NONE);
  }, { settings: { maxSize: 2 } }));

Deno.test("a static member that leaves its instance unsaid when it joins again stays one", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ instance: "a" }]);
    assert.equal((await world.join("g", { id: one.id })).reply.generationId, 2);
    assert.equal(world.groups.describe("g")?.members[0].groupInstanceId, "a");
    const back = (await world.join("g", { instance: "a" })).reply;
    assert.equal(back.generationId, 3);
    assert.equal(back.members.length, 1);
  }));
