import assert from "node:assert/strict";
import { BufferPool } from "../../../lib/storage/buffer_pool.ts";

Deno.test("BufferPool lends what was given back again", () => {
  const pool = new BufferPool(1 << 20);
  const first = pool.lend(5_000);
  assert.equal(first.bytes.byteLength, 8_192);
  first.release();
  const second = pool.lend(8_192);
  assert.equal(second.bytes, first.bytes);
  assert.notEqual(pool.lend(5_000).bytes, second.bytes);
});

Deno.test("BufferPool takes a buffer back once only", () => {
  const pool = new BufferPool(1 << 20);
  const loan = pool.lend(10);
  loan.release();
  loan.release();
  assert.deepEqual([pool.lentBytes, pool.freeBytes], [0, 4_096]);
  assert.notEqual(pool.lend(10).bytes, pool.lend(10).bytes);
});

Deno.test("BufferPool keeps no more than its bound, and no giants", () => {
  const pool = new BufferPool(10_000);
  const loans = Array.from({ length: 5 }, () => pool.lend(4_096));
  for (const loan of loans) loan.release();
  assert.equal(pool.freeBytes, 8_192);
  const large = new BufferPool(1 << 30);
  const giant = large.lend((1 << 24) + 1);
  assert.equal(giant.bytes.byteLength, (1 << 24) + 1);
  giant.release();
  assert.equal(large.freeBytes, 0);
});

Deno.test("BufferPool grants small reads when much is lent, never none", () => {
  const pool = new BufferPool(1 << 20);
  assert.equal(pool.grant(900_000), 900_000);
  const loan = pool.lend(1 << 20);
  assert.equal(pool.grant(900_000), 65_536);
  assert.equal(pool.grant(100), 100);
  loan.release();
  assert.equal(pool.grant(900_000), 900_000);
});
