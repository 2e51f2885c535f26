import assert from "node:assert/strict";
import { RecentBytes, RecentTail } from "../../../lib/storage/recent_bytes.ts";

const MIB = 1024 * 1024;

Deno.test("RecentTail begins nowhere before the first append", () => {
  assert.equal(new RecentTail(new RecentBytes(MIB, 1_000)).startOffset(0), Infinity);
});

Deno.test("RecentTail moves on when this log, or another one, was written to", () => {
  const all = new RecentBytes(MIB, 1_000);
  const [one, other] = [new RecentTail(all), new RecentTail(all)];
  for (let offset = 0; offset < 40; offset++) one.appended(offset, 64 * 1024, 0);
  const start = one.startOffset(0);
  assert.ok(start > 20 && start <= 24, `${start}`);
  for (let offset = 0; offset < 40; offset++) other.appended(offset, 64 * 1024, 0);
  assert.equal(one.startOffset(0), Infinity);
});

Deno.test("RecentTail grows old", () => {
  const tail = new RecentTail(new RecentBytes(MIB, 1_000));
  tail.appended(0, 10, 0);
  tail.appended(1, 10, 900);
  assert.equal(tail.startOffset(1_000), 0);
  assert.equal(tail.startOffset(1_001), 1);
  assert.equal(tail.startOffset(1_901), Infinity);
});
