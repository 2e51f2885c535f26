import assert from "node:assert/strict";
import { collisionKey, isInternalTopic, topicNameProblem } from "../../../lib/broker/topic_name.ts";

Deno.test("topicNameProblem() accepts what Kafka accepts", () => {
  for (const name of ["a", "a.b", "a_b", "a-b", "...", ".a", "A0", "x".repeat(249)]) {
    assert.equal(topicNameProblem(name), null);
  }
});

Deno.test("topicNameProblem() refuses empty, long, special and reserved names", () => {
  for (const name of ["", ".", "..", "a b", "a/b", "ä", "a\n", "x".repeat(250), "__cluster", ".deleted", ".new-x"]) {
    assert.notEqual(topicNameProblem(name), null, JSON.stringify(name));
  }
});

Deno.test("names that differ only in dot and underscore collide", () => {
  assert.equal(collisionKey("a.b_c"), collisionKey("a_b.c"));
  assert.notEqual(collisionKey("a-b"), collisionKey("a_b"));
});

Deno.test("Kafka's own topics are internal", () => {
  assert.ok(isInternalTopic("__consumer_offsets"));
  assert.ok(!isInternalTopic("__mine"));
});
