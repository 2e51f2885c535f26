/** What the coordinator adds to groups: commits, expiry, deletion, what lasts over a restart, and refusals. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import type { Asked, GroupWorld, Membership } from "../../support/group_world.ts";
import { assignmentIn, membershipOf, offsetOf, subscriptionTo, withGroups } from "../../support/group_world.ts";

const { NONE } = ErrorCode;
const DAY_MS = 86_400_000;

function commitOf(groupId: string, offsets: ReturnType<typeof offsetOf>[]) {
  return { groupId, memberId: "", instanceId: null, generationId: -1, retentionMs: -1, offsets };
}

/** A round of two members up to where the leader has to assign. */
async function assigning(world: GroupWorld): Promise<[leader: Membership, follower: Membership]> {
  const one = await world.join("g");
  const two = await world.join("g");
  const led = await world.join("g", { id: one.reply.memberId });
  return [membershipOf(led.reply), membershipOf(two.reply)];
}

Deno.test("anybody commits to a group that has no members, under any name, the empty one too", () =>
  withGroups(async (world) => {
    for (const groupId of ["simple", ""]) {
      assert.deepEqual(await world.commit(groupId, { 0: 5, 3: 7 }), [NONE, NONE]);
      assert.equal(world.committed(groupId, 3), 7);
    }
    assert.equal(world.stateOf("simple"), "Empty");
    assert.equal(world.groups.describe("simple")?.protocolType, "");
    assert.deepEqual(await world.commit("simple", { 0: 4 }), [NONE]);
    assert.equal(world.committed("simple"), 4, "an offset may go back");
    assert.equal(
      await world.commit("other", { 0: 1 }, { as: { id: "m", instance: null, generation: 0 } }),
      ErrorCode.ILLEGAL_GENERATION,
    );
    assert.equal(world.groups.list().length, 2);
  }));

Deno.test("a group with members takes commits from them alone", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    assert.equal(await world.commit("g", { 0: 1 }), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(await world.commit("g", { 0: 1 }, { as: { ...one, generation: -1 } }), ErrorCode.ILLEGAL_GENERATION);
    assert.equal(world.committed("g"), null);
    assert.deepEqual(await world.commit("g", { 0: 1 }, { as: one }), [NONE]);
    await world.leave("g", one.id);
    assert.equal(await world.commit("g", { 0: 2 }, { as: one }), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.deepEqual(await world.commit("g", { 0: 3 }), [NONE]);
    assert.equal(world.committed("g"), 3);
  }));

Deno.test("members commit while a round is joined, not while its assignment is awaited", () =>
  withGroups(async (world) => {
    const [leader, follower] = await world.stable("g", [{}, {}]);
    const rejoin = await world.join("g", { id: follower.id, protocols: { range: "x" } });
    assert.deepEqual(await world.commit("g", { 0: 1 }, { as: leader }), [NONE], "what was read must not be read again");
    await world.join("g", { id: leader.id });
    const now = membershipOf(rejoin.reply);
    assert.equal(await world.commit("g", { 0: 2 }, { as: now }), ErrorCode.REBALANCE_IN_PROGRESS);
    assert.equal(await world.commit("g", { 0: 2 }, { as: follower }), ErrorCode.ILLEGAL_GENERATION);
    assert.equal(world.committed("g"), 1);
  }));

Deno.test("a commit shows that its member lives", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ sessionMs: 10_000 }]);
    for (let round = 0; round < 5; round++) {
      await world.pass(9_000);
      assert.deepEqual(await world.commit("g", { 0: round }, { as: one }), [NONE]);
    }
    assert.equal(world.beat("g", one), NONE);
  }));

Deno.test("metadata that is too long is refused by itself, counted in bytes", () =>
  withGroups(async (world) => {
    const outcome = await world.groups.commit(commitOf("g", [
      offsetOf(0, 1, "t", "12345678"),
      offsetOf(1, 1, "t", "123456789"),
      offsetOf(2, 1, "t", "äöüß"),
      offsetOf(3, 1, "t", "äöüßx"),
    ]));
    const tooLarge = ErrorCode.OFFSET_METADATA_TOO_LARGE;
    assert.deepEqual(outcome, [NONE, tooLarge, NONE, tooLarge]);
    assert.deepEqual([0, 1, 2, 3].map((partition) => world.committed("g", partition)), [1, null, 1, null]);
    assert.deepEqual(await world.groups.commit(commitOf("none", [offsetOf(0, 1, "t", "123456789")])), [tooLarge]);
    assert.equal(world.groups.offsetsOf("none"), undefined, "a commit that keeps nothing makes no group");
  }, { settings: { offsetMetadataMaxBytes: 8 } }));

Deno.test("an offset is seen when it is durable, and not before", () =>
  withGroups(async (world) => {
    const committing = world.commit("g", { 0: 5 });
    assert.equal(world.committed("g"), null);
    assert.deepEqual(await committing, [NONE]);
    assert.equal(world.committed("g"), 5);
  }));

Deno.test("commits to one partition take effect in the order in which they came", () =>
  withGroups(async (world) => {
    await Promise.all(Array.from({ length: 50 }, (_, offset) => world.commit("g", { 0: offset })));
    assert.equal(world.committed("g"), 49);
    await world.crash();
    assert.equal(world.committed("g"), 49);
  }));

Deno.test("offsets of what members subscribe to stay; others go when they are old enough", () =>
  withGroups(async (world) => {
    const beats = { sessionMs: 1_800_000, rebalanceMs: 1_800_000 };
    const [one] = await world.stable("g", [{ ...beats, protocols: { range: subscriptionTo("used") } }]);
    await world.commit("g", { 0: 1 }, { as: one, topic: "used" });
    await world.commit("g", { 0: 1 }, { as: one, topic: "left" });
    for (let passed = 0; passed <= 2 * DAY_MS; passed += 1_200_000) {
      await world.pass(1_200_000);
      assert.equal(world.beat("g", one), NONE);
    }
    assert.equal(world.committed("g", 0, "left"), null);
    assert.equal(world.committed("g", 0, "used"), 1);
  }, { settings: { offsetRetentionMs: DAY_MS } }));

Deno.test("where it cannot be known what members consume, no offset goes", () =>
  withGroups(async (world) => {
    const patient = { sessionMs: 1_800_000, rebalanceMs: 1_800_000 };
    const [one] = await world.stable("g", [{ ...patient, protocols: { range: "no subscription" } }]);
    const [two] = await world.stable("h", [{
      ...patient,
      type: "connect",
      protocols: { sessioned: subscriptionTo("x") },
    }]);
    await world.commit("g", { 0: 1 }, { as: one });
    await world.commit("h", { 0: 1 }, { as: two });
    for (let passed = 0; passed < 2 * DAY_MS; passed += 1_200_000) {
      await world.pass(1_200_000);
      assert.deepEqual([world.beat("g", one), world.beat("h", two)], [NONE, NONE]);
    }
    assert.deepEqual([world.committed("g"), world.committed("h")], [1, 1]);
  }, { settings: { offsetRetentionMs: DAY_MS } }));

Deno.test("an empty group goes with the last of its offsets, counted from when it became empty", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ protocols: { range: subscriptionTo("t") } }]);
    await world.commit("g", { 0: 1 }, { as: one });
    await world.leave("g", one.id);
    await world.pass(DAY_MS - 600_000);
    assert.equal(world.committed("g"), 1);
    await world.crash();
    assert.equal(world.committed("g"), 1, "a restart does not expire it");
    await world.pass(1_200_000);
    assert.equal(world.groups.describe("g"), undefined);
    await world.crash();
    assert.equal(world.groups.describe("g"), undefined);
    assert.equal(world.groups.offsetsOf("g"), undefined);
  }, { settings: { offsetRetentionMs: DAY_MS } }));

Deno.test("the end that a client gave for its offsets is kept over a restart", () =>
  withGroups(async (world) => {
    await world.commit("g", { 0: 1 }, { retentionMs: 3_600_000 });
    await world.commit("g", { 1: 1 });
    await world.crash();
    await world.pass(3_000_000);
    assert.equal(world.committed("g", 0), 1);
    await world.pass(1_200_000);
    assert.deepEqual([world.committed("g", 0), world.committed("g", 1)], [null, 1]);
  }));

Deno.test("expiry takes no offset that is being committed", () =>
  withGroups(async (world) => {
    await world.commit("g", { 0: 1, 1: 1 });
    world.clock.jumpWall(2 * DAY_MS);
    const [committed] = await Promise.all([world.commit("g", { 0: 2 }), world.groups.expire()]);
    assert.deepEqual(committed, [NONE]);
    assert.equal(world.committed("g"), 2);
    await world.crash();
    assert.equal(world.committed("g"), 2);
    await world.groups.expire();
    assert.deepEqual([world.committed("g", 0), world.committed("g", 1)], [2, null]);
  }, { settings: { offsetRetentionMs: DAY_MS } }));

Deno.test("offsets of topics that members consume cannot be deleted, others can", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ protocols: { range: subscriptionTo("used") } }]);
    await world.commit("g", { 0: 1 }, { as: one, topic: "used" });
    await world.commit("g", { 0: 1 }, { as: one, topic: "left" });
    const partitions = [["used", 0], ["left", 0], ["left", 9], ["never", 0]] as const;
    const outcome = await world.groups.deleteOffsets(
      "g",
      partitions.map(([topic, partition]) => ({ topic, partition })),
    );
    assert.deepEqual(outcome, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE, NONE, NONE]);
    assert.deepEqual([world.committed("g", 0, "used"), world.committed("g", 0, "left")], [1, null]);
    await world.crash();
    assert.deepEqual([world.committed("g", 0, "used"), world.committed("g", 0, "left")], [1, null]);
  }));

Deno.test("offsets of a group with members of another kind cannot be deleted; those of an empty group can", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ type: "connect" }]);
    await world.commit("g", { 0: 1 }, { as: one });
    const partitions = [{ topic: "t", partition: 0 }];
    assert.equal(await world.groups.deleteOffsets("g", partitions), ErrorCode.NON_EMPTY_GROUP);
    await world.leave("g", one.id);
    assert.deepEqual(await world.groups.deleteOffsets("g", partitions), [NONE]);
    assert.equal(world.committed("g"), null);
    assert.equal(await world.groups.deleteOffsets("none", partitions), ErrorCode.GROUP_ID_NOT_FOUND);
    assert.equal(await world.groups.deleteOffsets("", partitions), ErrorCode.INVALID_GROUP_ID);
  }));

Deno.test("a group is deleted with its offsets, for good, unless it has members", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    await world.commit("g", { 0: 1 }, { as: one });
    assert.equal(await world.groups.deleteGroup("g"), ErrorCode.NON_EMPTY_GROUP);
    assert.equal(await world.groups.deleteGroup("none"), ErrorCode.GROUP_ID_NOT_FOUND);
    await world.leave("g", one.id);
    assert.equal(await world.groups.deleteGroup("g"), NONE);
    for (let start = 0; start < 2; start++) {
      assert.equal(world.groups.describe("g"), undefined);
      assert.equal(world.groups.offsetsOf("g"), undefined);
      assert.equal(await world.groups.deleteGroup("g"), ErrorCode.GROUP_ID_NOT_FOUND);
      await world.crash();
    }
    await world.commit("", { 0: 1 });
    assert.equal(await world.groups.deleteGroup(""), NONE, "the empty name too");
  }));

Deno.test("who joins or commits while a group is being deleted has a group afterwards, also after a restart", () =>
  withGroups(async (world) => {
    await world.commit("g", { 0: 1, 1: 1 });
    const deleting = world.groups.deleteGroup("g");
    const joining = world.join("g");
    const committing = world.commit("h", { 0: 1 }).then(() => {
      const gone = world.groups.deleteGroup("h");
      return Promise.all([gone, world.commit("h", { 1: 2 })]);
    });
    assert.equal(await deleting, NONE);
    const one = membershipOf((await joining).reply);
    await world.sync("g", one, { [one.id]: "all" });
    assert.deepEqual(await committing, [NONE, [NONE]]);
    assert.equal(world.committed("g", 0), null);
    assert.deepEqual([world.committed("h", 0), world.committed("h", 1)], [null, 2]);
    await world.crash();
    assert.equal(world.stateOf("g"), "Stable");
    assert.equal(world.committed("g", 0), null);
    assert.deepEqual([world.committed("h", 0), world.committed("h", 1)], [null, 2]);
  }));

Deno.test("the offsets of a deleted topic go, in every group", () =>
  withGroups(async (world) => {
    await world.commit("g", { 0: 1, 1: 1 }, { topic: "gone" });
    await world.commit("h", { 0: 1 }, { topic: "gone" });
    await world.commit("h", { 0: 1 }, { topic: "stays" });
    await world.groups.topicDeleted("gone");
    for (let start = 0; start < 2; start++) {
      assert.deepEqual(world.groups.list().map(({ groupId }) => groupId), ["h"]);
      assert.deepEqual([world.committed("h", 0, "gone"), world.committed("h", 0, "stays")], [null, 1]);
      await world.crash();
    }
  }));

Deno.test("a stable group is stable after a restart: same generation, same members, same parts", () =>
  withGroups(async (world) => {
    const members = await world.stable("g", [{}, { instance: "b" }, {}]);
    const before = world.groups.describe("g");
    await world.crash();
    assert.deepEqual(world.groups.describe("g"), before);
    for (const [at, member] of members.entries()) {
      assert.equal(world.beat("g", member), NONE);
      assert.equal(assignmentIn((await world.sync("g", member)).reply), String(at));
    }
    const leader = await world.join("g", { id: members[0].id });
    assert.ok(leader.isWaiting);
    assert.equal(world.beat("g", members[2]), ErrorCode.REBALANCE_IN_PROGRESS);
  }));

Deno.test("members that do not come back after a restart are dropped when their sessions end", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ sessionMs: 20_000 }, { sessionMs: 10_000 }]);
    await world.crash();
    await world.pass(9_999);
    assert.equal(world.beat("g", one), NONE);
    await world.pass(1);
    assert.equal(world.beat("g", one), ErrorCode.REBALANCE_IN_PROGRESS);
    assert.equal((await world.join("g", { id: one.id })).reply.members.length, 1);
  }));

Deno.test("an assignment is answered only when it is durable, and a crash before that leaves the generation before", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    const joined = await world.join("g", { id: one.id });
    const next = membershipOf(joined.reply);
    assert.equal(next.generation, one.generation + 1);
    await world.crash();
    assert.equal(world.beat("g", next), ErrorCode.ILLEGAL_GENERATION, "the round was not over");
    assert.equal(world.beat("g", one), NONE);
  }));

Deno.test("a commit that cannot be made durable is refused, and so is everything from then on", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    await world.commit("g", { 0: 1 }, { as: one });
    world.disk.faults = { ...world.disk.faults, sync: 1 };
    const refused = ErrorCode.COORDINATOR_NOT_AVAILABLE;
    assert.equal(await world.commit("g", { 0: 2 }, { as: one }), refused);
    world.disk.calm();
    assert.equal(world.groups.availability, refused);
    assert.equal(await world.commit("g", { 0: 3 }, { as: one }), refused);
    assert.equal(world.beat("g", one), refused);
    assert.equal((await world.join("g")).reply.errorCode, refused);
    assert.equal((await world.sync("g", one)).reply.errorCode, refused);
    assert.equal(await world.leave("g", one.id), refused);
    assert.equal(await world.groups.deleteGroup("g"), refused);
    await world.crash();
    assert.equal(world.groups.availability, NONE);
    assert.ok([1, 2].includes(world.committed("g") ?? 0));
  }));

Deno.test("an assignment that cannot be made durable is given to nobody", () =>
  withGroups(async (world) => {
    const [leader, follower] = await assigning(world);
    const waiting = await world.sync("g", follower);
    world.disk.faults = { ...world.disk.faults, sync: 1 };
    const led = await world.sync("g", leader, { [leader.id]: "0", [follower.id]: "1" });
    const outcome = (
      { reply }: Asked<{ errorCode: ErrorCode; assignment: Uint8Array }>,
    ) => [reply.errorCode, reply.assignment.length];
    assert.deepEqual([led, waiting].map(outcome), [
      [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0],
      [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0],
    ]);
  }));

Deno.test("while the state is read everything is refused, with a word to try again", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    const restarting = world.crash();
    await world.disk.settle();
    let refusals = 0;
    for (let turn = 0; world.groups.availability !== NONE || refusals === 0; turn++) {
      assert.ok(turn < 10_000);
      if (world.groups.availability === ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) {
        assert.equal(world.beat("g", one), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
        assert.equal(await world.commit("g", { 0: 1 }), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
        refusals++;
      }
      await null;
    }
    await restarting;
    assert.equal(world.beat("g", one), NONE);
  }));

Deno.test("a coordinator that stops answers everybody who waits", () =>
  withGroups(async (world) => {
    const [leader, follower] = await assigning(world);
    const syncing = await world.sync("g", follower);
    await world.stable("h", [{}]);
    const joining = await world.join("h");
    await world.groups.stop();
    await world.settle();
    assert.equal(syncing.reply.errorCode, ErrorCode.NOT_COORDINATOR);
    assert.equal(joining.reply.errorCode, ErrorCode.NOT_COORDINATOR);
    assert.equal(world.beat("g", leader), ErrorCode.NOT_COORDINATOR);
    await world.pass(DAY_MS);
    await world.crash();
  }));

Deno.test("names of groups that come to nothing leave nothing", () =>
  withGroups(async (world) => {
    for (let index = 0; index < 2_000; index++) {
      const groupId = `g${index}`;
      world.beat(groupId, { id: "m", instance: null, generation: 1 });
      world.groups.leave(groupId, [{ memberId: "m", groupInstanceId: null }]);
      void world.groups.join(groupId, {
        memberId: "",
        protocolType: "consumer",
        needsKnownId: true,
        knowsSkipAssignment: true,
        facts: {
          instanceId: null,
          clientId: "c",
          clientHost: "/h",
          sessionTimeoutMs: 6_000,
          rebalanceTimeoutMs: 6_000,
          protocols: [{ name: "range", metadata: new Uint8Array(0) }],
        },
      });
    }
    assert.equal(world.groups.list().length, 2_000, "ids have been given out");
    await world.pass(6_001);
    assert.equal(world.groups.list().length, 0);
  }));
