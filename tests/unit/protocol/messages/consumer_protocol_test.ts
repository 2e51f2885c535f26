import assert from "node:assert/strict";
import { MalformedFrame } from "../../../../lib/protocol/malformed_frame.ts";
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
} from "../../../../lib/protocol/messages/consumer_protocol.ts";
import { golden } from "../../../golden/message_bodies.ts";

const FULL = { topics: ["t"], userData: null, ownedPartitions: [], generationId: 4, rackId: "r" };

Deno.test("a subscription is read in each of its versions", () => {
  const bytes = golden("0003 00000001 0001 't' ffffffff 00000000 00000004 0001 'r'");
  assert.deepEqual(encodeSubscription(FULL), bytes);
  assert.deepEqual(decodeSubscription(bytes), FULL);
  assert.deepEqual(decodeSubscription(golden("0000 00000001 0001 't' 00000001 aa")), {
    topics: ["t"],
    userData: golden("aa"),
    ownedPartitions: [],
    generationId: -1,
    rackId: null,
  });
});

Deno.test("a subscription of a later version is read as far as it is known", () => {
  const later = golden("0063 00000001 0001 't' ffffffff 00000000 00000004 0001 'r' c0ffee");
  assert.deepEqual(decodeSubscription(later), FULL);
});

Deno.test("an assignment comes back with its user data, and bytes behind it are let be", () => {
  const value = { assignedPartitions: [{ topic: "t", partitions: [0, 5] }], userData: golden("0102") };
  for (const version of [0, 1, 2, 3]) {
    assert.deepEqual(decodeAssignment(new Uint8Array([...encodeAssignment(value, version), 1])), value);
  }
});

Deno.test("bytes that are no subscription are malformed", () => {
  for (const text of ["", "00", "ffff", "0000", "0000 7fffffff", "0000 00000001 0005 't'"]) {
    assert.throws(() => decodeSubscription(golden(text)), MalformedFrame, text);
  }
});
