import assert from "node:assert/strict";
import { TransactionGuards } from "../../../lib/broker/transaction_guards.ts";

const place = { topic: "t", partition: 0 };

Deno.test("a guard is tripped by the end of its producer's transaction in its place, and by no other", () => {
  const guards = new TransactionGuards();
  const guard = guards.take(place, 7);
  guards.trip({ topic: "t", partition: 1 }, 7);
  guards.trip(place, 8);
  assert.equal(guard.isTripped, false);
  guards.trip(place, 7);
  assert.equal(guard.isTripped, true);
});

Deno.test("guards that are taken afterwards, or were released, are not tripped", () => {
  const guards = new TransactionGuards();
  const released = guards.take(place, 7);
  const held = guards.take(place, 7);
  released.release();
  guards.trip(place, 7);
  assert.deepEqual([released.isTripped, held.isTripped, guards.take(place, 7).isTripped], [false, true, false]);
  held.release();
  held.release();
});
