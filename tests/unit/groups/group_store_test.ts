import assert from "node:assert/strict";
import { ClassicGroup } from "../../../lib/groups/classic_group.ts";
import type { MemberFacts } from "../../../lib/groups/group_member.ts";
import { groupEntry, groupRemoval, offsetEntry, offsetRemoval, readEntry } from "../../../lib/groups/group_store.ts";
import type { CommittedOffset } from "../../../lib/groups/offsets.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

const effects = { save() {}, answer: (give: () => void) => give(), newMemberId: (prefix: string) => prefix };
const text = new TextDecoder("latin1");

function group(): ClassicGroup {
  const made = new ClassicGroup("größe\u0000/ group", effects, 1_700_000_000_123);
  made.generationId = 2 ** 31 - 1;
  made.protocolType = "consumer";
  made.protocolName = "range";
  made.leaderId = "m1";
  const facts: MemberFacts = {
    instanceId: "i",
    clientId: "client",
    clientHost: "/::1",
    sessionTimeoutMs: 6_000,
    rebalanceTimeoutMs: 2 ** 31 - 1,
    protocols: [{ name: "range", metadata: Uint8Array.of(0, 255) }, { name: "", metadata: new Uint8Array(0) }],
  };
  made.restore("m1", facts, Uint8Array.of(1, 2, 3), 0);
  made.restore("m2", { ...facts, instanceId: null, protocols: [] }, new Uint8Array(0), 0);
  return made;
}

const offset: CommittedOffset = {
  offset: Number.MAX_SAFE_INTEGER,
  leaderEpoch: 7,
  metadata: "où j'étais \u{1f600}",
  committedAtMs: 1_700_000_000_456,
  expiresAtMs: -1,
};

Deno.test("a group comes back from its entry with all its members", () => {
  const made = group();
  const stored = readEntry(groupEntry(made));
  assert.ok(stored?.kind === "group");
  assert.equal(stored.groupId, made.groupId);
  assert.deepEqual(stored.group, {
    generationId: 2 ** 31 - 1,
    protocolType: "consumer",
    protocolName: "range",
    leaderId: "m1",
    emptySinceMs: 1_700_000_000_123,
    members: Array.from(made.members.values(), ({ memberId, facts, assignment }) => ({ memberId, facts, assignment })),
  });
});

Deno.test("an empty group keeps what is null null", () => {
  const stored = readEntry(groupEntry(new ClassicGroup("", effects, 5)));
  assert.ok(stored?.kind === "group");
  const { protocolType, protocolName, leaderId, members, emptySinceMs } = stored.group;
  assert.deepEqual([stored.groupId, protocolType, protocolName, leaderId, members, emptySinceMs], [
    "",
    null,
    null,
    null,
    [],
    5,
  ]);
});

Deno.test("an offset comes back from its entry, negative numbers and all", () => {
  for (const one of [offset, { ...offset, offset: -1, leaderEpoch: -1, metadata: "", expiresAtMs: 2 ** 53 - 1 }]) {
    const stored = readEntry(offsetEntry("g", "topic", 2 ** 31 - 1, one));
    assert.deepEqual(stored, { kind: "offset", groupId: "g", topic: "topic", partition: 2 ** 31 - 1, offset: one });
  }
});

Deno.test("different things have different keys, and a removal the key of what it removes", () => {
  const keyOf = ({ key }: { key: Uint8Array }) => text.decode(key);
  const keys = [
    ...[["a", "bc"], ["ab", "c"], ["abc", ""], ["", "abc"]].map(([groupId, topic]) =>
      offsetEntry(groupId, topic, 0, offset)
    ),
    offsetEntry("a", "bc", 1, offset),
    groupEntry(new ClassicGroup("a", effects, 0)),
    groupEntry(new ClassicGroup("", effects, 0)),
  ].map(keyOf);
  assert.equal(new Set(keys).size, keys.length);
  assert.deepEqual(offsetRemoval("a", "bc", 1), { key: offsetEntry("a", "bc", 1, offset).key, value: null });
  assert.deepEqual(groupRemoval("a"), { key: groupEntry(new ClassicGroup("a", effects, 0)).key, value: null });
});

Deno.test("entries of a layout or kind from the future are passed over", () => {
  const { key, value } = offsetEntry("g", "t", 0, offset);
  const with0 = (bytes: Uint8Array, at: number, byte: number) => bytes.with(at, byte);
  assert.equal(readEntry({ key: with0(key, 0, 9), value }), null);
  assert.equal(readEntry({ key, value: with0(value!, 0, 9) }), null);
  assert.equal(readEntry({ key: with0(key, 1, 9), value }), null);
});

Deno.test("an entry that is cut, or not one at all, is a RangeError and nothing else", () => {
  for (const { key, value } of [groupEntry(group()), offsetEntry("g", "t", 0, offset)]) {
    for (let length = 0; length < value!.length; length++) {
      assert.throws(() => readEntry({ key, value: value!.slice(0, length) }), RangeError, `value of ${length} bytes`);
    }
    for (let length = 0; length < key.length; length++) {
      assert.throws(() => readEntry({ key: key.slice(0, length), value }), RangeError, `key of ${length} bytes`);
    }
  }
  const random = new SeededRandom(5);
  for (let round = 0; round < 3_000; round++) {
    const { key, value } = groupEntry(group());
    for (let flips = 0; flips < 3; flips++) value![random.below(value!.length)] = random.below(256);
    try {
      readEntry({ key, value });
    } catch (error) {
      assert.ok(error instanceof RangeError, `${error}`);
    }
  }
});
