/** Rounds of a classic group: who is let in, who is waited for, who is dropped when. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { assignmentIn, membershipOf, withGroups } from "../../support/group_world.ts";

const { NONE } = ErrorCode;

Deno.test("a new member that can must come again with the id it is given, until when the id lapses", () =>
  withGroups(async (world) => {
    const first = (await world.join("g", { needsKnownId: true, clientId: "me" })).reply;
    assert.equal(first.errorCode, ErrorCode.MEMBER_ID_REQUIRED);
    assert.match(first.memberId, /^me-[0-9a-f-]{36}$/);
    const joined = (await world.join("g", { needsKnownId: true, id: first.memberId })).reply;
    assert.equal(joined.memberId, first.memberId);
    assert.equal(joined.generationId, 1);
    assert.equal(joined.leader, first.memberId);

    const late = (await world.join("other", { needsKnownId: true, sessionMs: 10_000 })).reply;
    await world.pass(10_001);
    const refused = (await world.join("other", { needsKnownId: true, id: late.memberId })).reply;
    assert.equal(refused.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.stateOf("other"), undefined, "nothing is left of a group nobody joined");
  }));

Deno.test("an id that was given out counts as a member to come: the round waits for it, and goes on when it lapses", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    const pending = (await world.join("g", { needsKnownId: true, sessionMs: 10_000 })).reply;
    const rejoin = await world.join("g", { id: one.id, sessionMs: 30_000 });
    assert.ok(rejoin.isWaiting);
    await world.pass(9_000);
    assert.ok(rejoin.isWaiting);
    await world.pass(1_001);
    assert.equal(rejoin.reply.generationId, 2);

    const again = (await world.join("g", { needsKnownId: true })).reply;
    const waiting = await world.join("g", { id: one.id, sessionMs: 30_000, protocols: { range: "x" } });
    assert.ok(waiting.isWaiting);
    assert.equal(await world.leave("g", again.memberId), NONE);
    assert.equal(waiting.reply.generationId, 3);
    assert.equal(await world.leave("g", pending.memberId), ErrorCode.UNKNOWN_MEMBER_ID);
  }));

Deno.test("an id given to a dynamic member makes no static one", () =>
  withGroups(async (world) => {
    const [holder] = await world.stable("g", [{ instance: "i" }]);
    const { memberId } = (await world.join("g", { needsKnownId: true })).reply;
    const fenced = await world.join("g", { id: memberId, instance: "i" });
    assert.equal(fenced.reply.errorCode, ErrorCode.FENCED_INSTANCE_ID);
    const unknown = await world.join("g", { id: memberId, instance: "another" });
    assert.equal(unknown.reply.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", holder), NONE);
  }));

Deno.test("a session time-out outside the limits is refused, and so is a group without a name", () =>
  withGroups(async (world) => {
    for (const sessionMs of [5_999, 1_800_001, -1, 0]) {
      const { errorCode } = (await world.join("g", { sessionMs })).reply;
      assert.equal(errorCode, ErrorCode.INVALID_SESSION_TIMEOUT, `${sessionMs}`);
    }
    for (const sessionMs of [6_000, 1_800_000]) {
      assert.equal((await world.join(`g${sessionMs}`, { sessionMs })).reply.errorCode, NONE);
    }
    assert.equal((await world.join("")).reply.errorCode, ErrorCode.INVALID_GROUP_ID);
    assert.equal(world.beat("", { id: "m", instance: null, generation: 1 }), ErrorCode.INVALID_GROUP_ID);
    assert.equal(
      (await world.sync("", { id: "m", instance: null, generation: 1 })).reply.errorCode,
      ErrorCode.INVALID_GROUP_ID,
    );
    assert.equal(await world.leave("", "m"), ErrorCode.INVALID_GROUP_ID);
  }));

Deno.test("members agree on type and on a protocol that all can do, by the most votes", () =>
  withGroups(async (world) => {
    const refused = async (options: Parameters<typeof world.join>[1]) =>
      assert.equal((await world.join("g", options)).reply.errorCode, ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    await refused({ type: "", protocols: { range: "" } });
    await refused({ protocols: {} });
    await world.stable("g", [
      { protocols: { range: "r0", sticky: "s0", only: "o" } },
      { protocols: { sticky: "s1", range: "r1" } },
      { protocols: { sticky: "s2", range: "r2" } },
    ]);
    const described = world.groups.describe("g");
    assert.equal(described?.protocolName, "sticky");
    assert.equal(described?.protocolType, "consumer");
    assert.deepEqual(described?.members.map(({ memberMetadata }) => new TextDecoder().decode(memberMetadata)), [
      "s0",
      "s1",
      "s2",
    ]);
    await refused({ protocols: { only: "what one alone can do" } });
    await refused({ protocols: { unheard: "" } });
    await refused({ type: "connect", protocols: { range: "" } });
    assert.equal(world.stateOf("g"), "Stable", "who is refused disturbs nobody");
  }));

Deno.test("what all can do follows those who come, change their minds and go", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [
      { protocols: { a: "", b: "" } },
      { protocols: { b: "", c: "", a: "" } },
    ]);
    assert.equal(
      (await world.join("g", { protocols: { c: "" } })).reply.errorCode,
      ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    );
    assert.equal(await world.leave("g", one.id), NONE);
    const rejoined = await world.join("g", { id: two.id, protocols: { c: "" } });
    assert.equal(rejoined.reply.protocolName, "c");
    const other = await world.join("g", { protocols: { a: "", c: "" } });
    await world.join("g", { id: two.id, protocols: { c: "" } });
    assert.equal(other.reply.protocolName, "c");
    assert.equal(
      (await world.join("g", { protocols: { a: "" } })).reply.errorCode,
      ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    );
  }));

Deno.test("an empty group takes another protocol type", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    await world.leave("g", one.id);
    assert.equal(world.stateOf("g"), "Empty");
    const joined = (await world.join("g", { type: "connect", protocols: { sessioned: "" } })).reply;
    assert.deepEqual([joined.errorCode, joined.protocolType, joined.generationId], [NONE, "connect", 3]);
  }));

Deno.test("the first round waits for newcomers: each delay in which one came is followed by another", () =>
  withGroups(async (world) => {
    const one = await world.join("g", { rebalanceMs: 10_000 });
    await world.pass(2_999);
    const two = await world.join("g", { rebalanceMs: 10_000 });
    await world.pass(1);
    assert.ok(one.isWaiting, "somebody came in the first delay");
    await world.pass(2_999);
    assert.ok(two.isWaiting);
    await world.pass(1);
    assert.equal(one.reply.generationId, 1);
    assert.equal(two.reply.generationId, 1);
    assert.equal(one.reply.members.length, 2);
    assert.equal(two.reply.members.length, 0, "only the leader is told who is there");
  }, { settings: { initialDelayMs: 3_000 } }));

Deno.test("newcomers prolong the first round to the rebalance time-out at most", () =>
  withGroups(async (world) => {
    const joins = [await world.join("g", { rebalanceMs: 8_000 })];
    for (let passed = 0; passed < 8_000; passed += 1_000) {
      assert.ok(joins.every(({ isWaiting }) => isWaiting), `after ${passed} ms`);
      await world.pass(1_000);
      if (passed < 7_000) joins.push(await world.join("g", { rebalanceMs: 8_000 }));
    }
    assert.deepEqual(joins.map(({ reply }) => reply.generationId), joins.map(() => 1));
  }, { settings: { initialDelayMs: 3_000 } }));

Deno.test("without newcomers the first round ends after one delay, and later rounds know no delay", () =>
  withGroups(async (world) => {
    const one = await world.join("g");
    await world.pass(3_000);
    const again = await world.join("g", { id: one.reply.memberId });
    assert.equal(
      again.reply.generationId,
      1,
      "as it waits for the leader's assignment, what was answered is answered again",
    );
    const two = await world.join("g");
    assert.ok(two.isWaiting);
    await world.join("g", { id: one.reply.memberId });
    assert.equal(two.reply.generationId, 2);
  }, { settings: { initialDelayMs: 3_000 } }));

Deno.test("a first round whose members have all gone ends empty", () =>
  withGroups(async (world) => {
    const one = await world.join("g", { needsKnownId: true });
    const { memberId } = one.reply;
    const joining = await world.join("g", { id: memberId, needsKnownId: true });
    assert.equal(await world.leave("g", memberId), NONE);
    assert.equal(joining.reply.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
    await world.pass(3_000);
    assert.equal(world.stateOf("g"), "Empty");
  }, { settings: { initialDelayMs: 3_000 } }));

Deno.test("a round that is over goes on without those who did not come again", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [
      { sessionMs: 60_000, rebalanceMs: 20_000 },
      { sessionMs: 60_000, rebalanceMs: 5_000 },
    ]);
    const three = await world.join("g", { sessionMs: 60_000, rebalanceMs: 1_000 });
    await world.join("g", { id: two.id, sessionMs: 60_000, rebalanceMs: 5_000 });
    assert.equal(world.beat("g", one), ErrorCode.REBALANCE_IN_PROGRESS);
    await world.pass(19_999);
    assert.ok(three.isWaiting, "the longest rebalance time-out counts");
    await world.pass(1);
    assert.equal(three.reply.generationId, 2);
    assert.equal(world.beat("g", one), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(three.reply.leader, two.id, "the leader did not come: another one leads");
  }));

Deno.test("a silent member's session ends, and the others are told to join again", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [{ sessionMs: 10_000 }, { sessionMs: 10_000 }]);
    for (let passed = 0; passed < 9_000; passed += 3_000) {
      await world.pass(3_000);
      assert.equal(world.beat("g", one), NONE);
    }
    await world.pass(999);
    assert.equal(world.stateOf("g"), "Stable");
    await world.pass(1);
    assert.equal(world.stateOf("g"), "PreparingRebalance");
    assert.equal(world.beat("g", two), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", one), ErrorCode.REBALANCE_IN_PROGRESS);
    const rejoined = await world.join("g", { id: one.id });
    assert.equal(rejoined.reply.generationId, 2);
    assert.equal(rejoined.reply.members.length, 1);
  }));

Deno.test("who waits for the round to end stays a member however long it takes; who does not, goes", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [{ sessionMs: 30_000 }, { sessionMs: 10_000 }]);
    const waiting = await world.join("g", { id: two.id, sessionMs: 10_000, protocols: { range: "new" } });
    await world.pass(29_999);
    assert.ok(waiting.isWaiting);
    await world.pass(1);
    assert.equal(waiting.reply.generationId, 2);
    assert.equal(world.beat("g", one), ErrorCode.UNKNOWN_MEMBER_ID);
    await world.pass(9_999);
    assert.equal(world.beat("g", membershipOf(waiting.reply)), NONE, "its session began with the answer");
  }));

Deno.test("a member lost between join and sync ends the generation; who waits for it has its whole session to come again", () =>
  withGroups(async (world) => {
    const [leader, follower] = await world.stable("g", [{ sessionMs: 10_000 }, { sessionMs: 10_000 }]);
    const joins = [
      await world.join("g", { id: follower.id, protocols: { range: "x" } }),
      await world.join("g", { id: leader.id }),
    ];
    assert.deepEqual(joins.map(({ reply }) => reply.leader), [leader.id, leader.id]);
    const next = membershipOf(joins[0].reply);
    const waiting = await world.sync("g", next);
    assert.ok(waiting.isWaiting);
    await world.pass(10_000);
    assert.equal(waiting.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    await world.pass(9_999);
    assert.equal(world.beat("g", next), ErrorCode.REBALANCE_IN_PROGRESS, "it is a member still");
    const rejoined = await world.join("g", { id: follower.id, protocols: { range: "x" } });
    assert.equal(rejoined.reply.leader, follower.id);
    assert.equal(rejoined.reply.generationId, next.generation + 1);
  }));

Deno.test("a leader that beats but never assigns is dropped when the rebalance time-out is over", () =>
  withGroups(async (world) => {
    const joins = [await world.join("g", { rebalanceMs: 20_000 })];
    const two = await world.join("g", { rebalanceMs: 20_000 });
    joins[0] = await world.join("g", { id: joins[0].reply.memberId, rebalanceMs: 20_000 });
    const [leader, follower] = [membershipOf(joins[0].reply), membershipOf(two.reply)];
    const waiting = await world.sync("g", follower);
    for (let passed = 0; passed < 20_000; passed += 5_000) {
      assert.equal(world.beat("g", leader), NONE, "while it should assign, beating is fine");
      await world.pass(5_000);
    }
    assert.equal(waiting.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    assert.equal(world.beat("g", leader), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal((await world.join("g", { id: follower.id })).reply.leader, follower.id);
  }));

Deno.test("a follower that beats but never asks for its part is dropped when the rebalance time-out is over", () =>
  withGroups(async (world) => {
    const one = await world.join("g", { rebalanceMs: 20_000 });
    const two = await world.join("g", { rebalanceMs: 20_000 });
    const again = await world.join("g", { id: one.reply.memberId, rebalanceMs: 20_000 });
    const [leader, follower] = [membershipOf(again.reply), membershipOf(two.reply)];
    const sync = await world.sync("g", leader, { [leader.id]: "0", [follower.id]: "1" });
    assert.equal(assignmentIn(sync.reply), "0");
    for (let passed = 0; passed < 20_000; passed += 5_000) {
      assert.deepEqual([world.beat("g", leader), world.beat("g", follower)], [NONE, NONE]);
      await world.pass(5_000);
    }
    assert.equal(world.beat("g", follower), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", leader), ErrorCode.REBALANCE_IN_PROGRESS);
  }));

Deno.test("a member that has not had its first answer may stay silent for five minutes", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{ sessionMs: 1_800_000, rebalanceMs: 1_800_000 }]);
    const waiting = await world.join("g", { sessionMs: 6_000 });
    await world.pass(299_999);
    assert.ok(waiting.isWaiting);
    await world.pass(1);
    assert.equal(waiting.reply.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(world.beat("g", one), ErrorCode.REBALANCE_IN_PROGRESS);
  }));

Deno.test("followers get their part whether they ask before the leader or after, and nobody gets another's", () =>
  withGroups(async (world) => {
    const one = await world.join("g");
    const [two, three] = [await world.join("g"), await world.join("g")];
    const again = await world.join("g", { id: one.reply.memberId });
    const [leader, early, late] = [again, two, three].map(({ reply }) => membershipOf(reply));
    const waiting = await world.sync("g", early, { [early.id]: "a follower's word counts for nothing" });
    assert.ok(waiting.isWaiting);
    assert.equal(world.beat("g", early), NONE);
    await world.sync("g", leader, { [leader.id]: "L", [early.id]: "E", stranger: "S" });
    assert.equal(assignmentIn(waiting.reply), "E");
    assert.equal(assignmentIn((await world.sync("g", late)).reply), "", "the leader left it out");
    assert.equal(assignmentIn((await world.sync("g", early)).reply), "E", "asking again changes nothing");
    await world.sync("g", leader, { [leader.id]: "other", [early.id]: "other" });
    assert.equal(assignmentIn((await world.sync("g", early)).reply), "E", "one generation has one assignment");
    const ids = world.groups.describe("g")?.members.map(({ memberId }) => memberId);
    assert.deepEqual(ids?.toSorted(), [leader.id, early.id, late.id].sort(), "no stranger is a member");
  }));

Deno.test("JoinGroup sent again while the first one waits: the new one gets the answer", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [{}, {}]);
    const first = await world.join("g", { id: two.id, protocols: { range: "x" } });
    const second = await world.join("g", { id: two.id, protocols: { range: "x" } });
    assert.equal(first.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    assert.ok(second.isWaiting);
    await world.join("g", { id: one.id });
    assert.equal(second.reply.generationId, 2);
  }));

Deno.test("SyncGroup sent again while the first one waits: the new one gets the answer", () =>
  withGroups(async (world) => {
    const one = await world.join("g");
    const two = await world.join("g");
    const leader = membershipOf((await world.join("g", { id: one.reply.memberId })).reply);
    const follower = membershipOf(two.reply);
    const first = await world.sync("g", follower);
    const second = await world.sync("g", follower);
    assert.equal(first.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    await world.sync("g", leader, { [follower.id]: "F" });
    assert.equal(assignmentIn(second.reply), "F");
  }));

Deno.test("a follower that joins again with nothing new is told the generation; the leader, or news, starts a round", () =>
  withGroups(async (world) => {
    const [leader, follower] = await world.stable("g", [{}, {}]);
    const same = (await world.join("g", { id: follower.id })).reply;
    assert.deepEqual([same.errorCode, same.generationId, same.leader], [NONE, 1, leader.id]);
    assert.equal(world.stateOf("g"), "Stable");
    const changed = await world.join("g", { id: follower.id, protocols: { range: "owns 1" } });
    assert.ok(changed.isWaiting);
    assert.equal(world.beat("g", leader), ErrorCode.REBALANCE_IN_PROGRESS);
    const led = (await world.join("g", { id: leader.id })).reply;
    assert.equal(led.generationId, 2);
    assert.deepEqual(led.members.map(({ metadata }) => new TextDecoder().decode(metadata)), ["any", "owns 1"]);
    // What a member says while the leader assigns counts only in a new round.
    const waiting = await world.sync("g", membershipOf(led, null));
    assert.ok(!waiting.isWaiting);
  }));

Deno.test("news of a member while the leader assigns makes a new round", () =>
  withGroups(async (world) => {
    const one = await world.join("g");
    const two = await world.join("g");
    const leader = membershipOf((await world.join("g", { id: one.reply.memberId })).reply);
    const follower = membershipOf(two.reply);
    const waiting = await world.sync("g", follower);
    const rejoin = await world.join("g", { id: follower.id, protocols: { range: "news" } });
    assert.equal(waiting.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    const stale = await world.sync("g", leader, { [leader.id]: "all" });
    assert.equal(stale.reply.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
    await world.join("g", { id: leader.id });
    assert.equal(rejoin.reply.generationId, 3);
  }));

Deno.test("unknown members and other generations are told apart, in every request", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    const stranger = { ...one, id: "nobody" };
    const stale = { ...one, generation: one.generation - 1 };
    const ahead = { ...one, generation: one.generation + 1 };
    const unknown = ErrorCode.UNKNOWN_MEMBER_ID;
    for (
      const [group, member, code] of [
        ["g", stranger, unknown],
        ["g", stale, ErrorCode.ILLEGAL_GENERATION],
        ["g", ahead, ErrorCode.ILLEGAL_GENERATION],
        ["none", one, unknown],
      ] as const
    ) {
      const what = JSON.stringify([group, member]);
      assert.equal(world.beat(group, member), code, `beat ${what}`);
      assert.equal((await world.sync(group, member)).reply.errorCode, code, `sync ${what}`);
      const committed = await world.commit(group, { 0: 1 }, { as: member });
      assert.equal(committed, group === "none" ? ErrorCode.ILLEGAL_GENERATION : code, `commit ${what}`);
    }
    assert.equal((await world.join("g", { id: "nobody" })).reply.errorCode, unknown);
    assert.equal((await world.join("none", { id: "nobody" })).reply.errorCode, unknown);
    assert.equal(await world.leave("g", "nobody"), unknown);
    assert.equal(await world.leave("none", "nobody"), unknown);
    assert.equal(world.groups.list().length, 1, "nothing of this made a group");
  }));

Deno.test("a SyncGroup that names another protocol than the group's is refused", () =>
  withGroups(async (world) => {
    const [one] = await world.stable("g", [{}]);
    const code = async (protocol: { type?: string; name?: string }) =>
      (await world.sync("g", one, {}, protocol)).reply.errorCode;
    assert.equal(await code({ type: "connect" }), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    assert.equal(await code({ type: "consumer", name: "sticky" }), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    assert.equal(await code({ type: "consumer", name: "range" }), NONE);
  }));

Deno.test("a group takes no more members than allowed, and keeps those it has", () =>
  withGroups(async (world) => {
    const members = await world.stable("g", [{}, {}]);
    assert.equal((await world.join("g")).reply.errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
    assert.equal((await world.join("g", { needsKnownId: true })).reply.errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
    assert.equal(world.stateOf("g"), "Stable");
    const joins = [];
    for (const { id } of members) joins.push(await world.join("g", { id, protocols: { range: "again" } }));
    assert.deepEqual(joins.map(({ reply }) => [reply.errorCode, reply.generationId]), [[NONE, 2], [NONE, 2]]);
    await world.leave("g", members[0].id);
    const rejoin = await world.join("g", { id: members[1].id });
    assert.equal(rejoin.reply.generationId, 3);
    const newcomer = await world.join("g");
    await world.join("g", { id: members[1].id });
    assert.equal(newcomer.reply.errorCode, NONE);
  }, { settings: { maxSize: 2 } }));

Deno.test("what members say of themselves has a bound over the whole group", () =>
  withGroups(async (world) => {
    const many = "x".repeat(20 << 20);
    await world.stable("g", [{ protocols: { range: many } }, { protocols: { range: many } }, {
      protocols: { range: many },
    }]);
    assert.equal(
      (await world.join("g", { protocols: { range: many } })).reply.errorCode,
      ErrorCode.GROUP_MAX_SIZE_REACHED,
    );
    const [one] = world.groups.describe("g")!.members;
    assert.ok(
      (await world.join("g", { id: one.memberId, protocols: { range: many } })).isWaiting,
      "it says no more than before",
    );
    assert.equal(await world.leave("g", one.memberId), NONE);
    assert.ok((await world.join("g", { protocols: { range: many } })).isWaiting, "there is room again");
    const tooMuch = "x".repeat(65 << 20);
    const alone = membershipOf((await world.join("h")).reply);
    assert.equal((await world.sync("h", alone, { [alone.id]: tooMuch })).reply.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
    assert.equal(assignmentIn((await world.sync("h", alone, { [alone.id]: "less" })).reply), "less");
  }));

Deno.test("the last member that leaves ends the generation at once, and the group is empty", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [{}, {}]);
    assert.equal(await world.leave("g", one.id), NONE);
    assert.equal(world.beat("g", two), ErrorCode.REBALANCE_IN_PROGRESS);
    assert.equal(await world.leave("g", two.id), NONE);
    assert.equal(world.stateOf("g"), "Empty");
    assert.equal(world.beat("g", two), ErrorCode.UNKNOWN_MEMBER_ID);
    const joined = (await world.join("g")).reply;
    assert.equal(joined.generationId, 3);
  }));

Deno.test("a member that leaves while others wait for it lets them go on", () =>
  withGroups(async (world) => {
    const [one, two] = await world.stable("g", [{}, {}]);
    const waiting = await world.join("g", { id: two.id, protocols: { range: "x" } });
    assert.ok(waiting.isWaiting);
    assert.equal(await world.leave("g", one.id), NONE);
    assert.equal(waiting.reply.generationId, 2);
    assert.equal(waiting.reply.leader, two.id);
  }));

Deno.test("a new member that sends its JoinGroup again is as patiently waited for", () =>
  withGroups(async (world) => {
    await world.stable("g", [{ sessionMs: 1_800_000, rebalanceMs: 1_800_000 }]);
    const { memberId } = (await world.join("g", { needsKnownId: true, sessionMs: 6_000 })).reply;
    await world.join("g", { id: memberId, sessionMs: 6_000 });
    const again = await world.join("g", { id: memberId, sessionMs: 6_000 });
    await world.pass(299_999);
    assert.ok(again.isWaiting);
  }));
