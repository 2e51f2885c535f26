import assert from "node:assert/strict";
import { subscribedTopics } from "../../../lib/groups/consumer_protocol.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { subscriptionTo } from "../../support/group_world.ts";

Deno.test("the topics of a subscription are read whatever follows them", () => {
  assert.deepEqual(subscribedTopics(subscriptionTo("orders", "größe", "")), ["orders", "größe", ""]);
  assert.deepEqual(subscribedTopics(subscriptionTo()), []);
  assert.deepEqual(subscribedTopics(Uint8Array.of(0, 3, 0, 0, 0, 1, 0, 1, 0x74)), ["t"]);
  // Version 3 with user data, one owned partition, a generation and a rack behind the topics.
  const newest = "0003 00000001 0001 74 00000002 abcd 00000001 0001 74 00000001 00000000 00000007 0001 72";
  const bytes = Uint8Array.from(newest.replaceAll(" ", "").match(/../g)!, (hex) => parseInt(hex, 16));
  assert.deepEqual(subscribedTopics(bytes), ["t"]);
});

Deno.test("a subscription that is cut short is none, at whatever byte", () => {
  const whole = subscriptionTo("orders", "payments");
  // The last four bytes are user data, which nobody looks at.
  for (let length = 0; length < whole.length - 4; length++) {
    assert.equal(subscribedTopics(whole.subarray(0, length)), null);
  }
});

Deno.test("counts and lengths out of any proportion are no subscription", () => {
  const bytes = subscriptionTo("orders");
  const view = new DataView(bytes.buffer);
  for (const count of [-1, 2, 0x7fff_ffff, -0x8000_0000]) {
    view.setInt32(2, count);
    assert.equal(subscribedTopics(bytes), null, `${count} topics`);
  }
  view.setInt32(2, 1);
  for (const length of [-1, 0x7fff, -0x8000, 11]) {
    view.setInt16(6, length);
    assert.equal(subscribedTopics(bytes), null, `a name of ${length} bytes`);
  }
});

Deno.test("no bytes at all make it throw", () => {
  const random = new SeededRandom(4);
  for (let round = 0; round < 2_000; round++) {
    const bytes = Uint8Array.from(
      { length: random.below(40) },
      () => random.chance(0.7) ? random.below(3) : random.below(256),
    );
    const topics = subscribedTopics(bytes);
    assert.ok(topics === null || topics.length <= bytes.length);
  }
});
