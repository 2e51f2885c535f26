/** What of groups of the consumer protocol is stored, and what comes back after a crash in between. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { changeEntries, consumerGroupRemovals } from "../../../lib/groups/consumer_group_store.ts";
import { ConsumerGroupState } from "../../../lib/groups/consumer_group_state.ts";
import { type ConsumerFacts, ConsumerMember, NOTHING_YET } from "../../../lib/groups/consumer_member.ts";
import { readEntry, type StoredEntry } from "../../../lib/groups/group_store.ts";
import { type Partitions, PartitionsBuilder } from "../../../lib/groups/topic_partitions.ts";
import { Journal, type JournalEntry } from "../../../lib/journal/journal.ts";
import { described, join } from "../../support/consumer_group_world.ts";
import { type GroupWorld, ToyTopics, withGroups } from "../../support/group_world.ts";

const TOPIC = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0ff";
const facts: ConsumerFacts = {
  instanceId: "i",
  rackId: "r",
  clientId: "größe",
  clientHost: "/::1",
  rebalanceTimeoutMs: 2 ** 31 - 1,
  topicNames: ["t", ""],
  regex: "t.*",
  assignor: "range",
  classic: { sessionTimeoutMs: 6000, protocols: [{ name: "sticky", metadata: Uint8Array.of(0, 255) }] },
};

function partitions(...indexes: number[]): Partitions {
  const builder = new PartitionsBuilder();
  for (const index of indexes) builder.add(TOPIC, index);
  return builder.build();
}

/** A group with one member, and all that is to be saved of it. */
function groupOf(member: ConsumerMember): { group: ConsumerGroupState; entries: JournalEntry[] } {
  const group = new ConsumerGroupState("g", new ToyTopics(), 1234);
  Object.assign(group, { epoch: 7, targetEpoch: 6, fingerprint: 2 ** 53 - 1 });
  group.restore(member);
  group.markAll();
  return { group, entries: changeEntries(group, group.takeChanges()) };
}

Deno.test("everything of a group and its members comes back from its entries", () => {
  const member = new ConsumerMember("m", facts);
  member.target = partitions(0, 5, 300, 100_000);
  const assigned = partitions(2);
  member.current = { epoch: 5, previousEpoch: 4, state: "unrevoked", assigned, revoking: partitions(1, 0) };
  const read = groupOf(member).entries.map(readEntry);
  const of = { kind: "consumer", groupId: "g", memberId: "m" };
  assert.deepEqual(read, [
    { ...of, part: "facts", facts },
    { ...of, part: "target", target: member.target },
    { ...of, part: "current", current: { ...member.current, revoking: partitions(0, 1) } },
    {
      kind: "consumer",
      groupId: "g",
      part: "group",
      group: { epoch: 7, targetEpoch: 6, fingerprint: 2 ** 53 - 1, emptySinceMs: 1234 },
    },
  ]);
});

Deno.test("nulls stay nulls", () => {
  const plain = { ...facts, instanceId: null, rackId: null, regex: null, assignor: null, classic: null };
  const [said, , current] = groupOf(new ConsumerMember("m", plain)).entries.map(readEntry) as (StoredEntry & object)[];
  assert.deepEqual("facts" in said && said.facts, plain);
  assert.deepEqual("current" in current && current.current, NOTHING_YET);
});

Deno.test("a target of neighbours takes about a byte for each", () => {
  const member = new ConsumerMember("m", facts);
  member.target = partitions(...Array.from({ length: 1000 }, (_, index) => index));
  const target = groupOf(member).entries[1];
  assert.ok(target.value!.length < 1050, String(target.value!.length));
});

Deno.test("an entry that is cut is a RangeError and nothing else", () => {
  for (const { key, value } of groupOf(new ConsumerMember("m", facts)).entries) {
    for (let length = 0; length < value!.length; length++) {
      assert.throws(() => readEntry({ key, value: value!.slice(0, length) }), RangeError);
    }
  }
});

Deno.test("removals have the keys of what they remove", () => {
  const { entries } = groupOf(new ConsumerMember("m", facts));
  const keys = (some: readonly JournalEntry[]) => some.map(({ key }) => String(key)).sort();
  assert.deepEqual(keys(consumerGroupRemovals("g", ["m"])), keys(entries));
});

/** Adds to what is stored, as a crash may leave it, and starts again. */
async function storedToo(world: GroupWorld, entries: readonly JournalEntry[]): Promise<void> {
  await world.groups.stop();
  const journal = await Journal.open({ disk: world.disk, folder: "data/groups", epoch: 2 });
  await Promise.all([journal.append(entries), world.settle()]);
  await journal.close();
  await world.crash();
  await world.crash();
}

Deno.test("of a group that is stored under both protocols the classic form holds, for good", () =>
  withGroups(async (world) => {
    world.topics.set("t", 1);
    const [member] = await world.stable("g", [{}]);
    await storedToo(world, groupOf(new ConsumerMember("m", facts)).entries);
    assert.equal(world.groups.describe("g")?.members.length, 1);
    await world.settle();
    await world.leave("g", member.id);
    assert.equal(await world.groups.deleteGroup("g"), ErrorCode.NONE);
    await world.crash();
    assert.deepEqual(world.groups.list(), [], "nothing of the other form comes back when it has gone");
  }));

Deno.test("where two members claim one partition, one of them is left out and must join again", () =>
  withGroups(async (world) => {
    world.topics.set("t", 2);
    await join(world, "a");
    const [{ assigned }] = described(world).members;
    const thief = new ConsumerMember("b", { ...facts, instanceId: null, classic: null });
    thief.current = { ...NOTHING_YET, epoch: 1, assigned };
    const { entries } = groupOf(thief);
    await storedToo(world, entries.slice(0, 3));
    assert.deepEqual(described(world).members.map(({ memberId }) => memberId), ["a"]);
    assert.equal(world.problems.length, 1);
  }));
