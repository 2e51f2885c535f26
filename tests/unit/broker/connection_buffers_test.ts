import assert from "node:assert/strict";
import { FrameBuffers, KEPT_BYTES, LARGEST_KEPT_BYTES } from "../../../lib/broker/connection_buffers.ts";

Deno.test("A buffer that was given back is taken again by a frame of its size", () => {
  const buffers = new FrameBuffers();
  const buffer = buffers.take(1_000_000, 1_000_000);
  buffers.give(buffer);
  assert.equal(buffers.take(900_000, 0), buffer);
  assert.equal(buffers.keptBytes, 0);
  assert.notEqual(buffers.take(900_000, 0), buffer);
});

Deno.test("Where no whole buffer is at hand there is room for what is asked now", () => {
  const buffers = new FrameBuffers();
  assert.equal(buffers.take(100_000_000, 10).length, 128 * 1024);
  assert.equal(buffers.take(100_000_000, 300_000).length, 512 * 1024);
  assert.ok(buffers.take(300_000, 100_000_000).length >= 300_000);
});

Deno.test("A smaller buffer that was given back is taken again where room for now is enough", () => {
  const buffers = new FrameBuffers();
  const small = buffers.take(200_000, 200_000);
  buffers.give(small);
  assert.equal(buffers.take(5_000_000, 200_000), small);
});

Deno.test("Bytes that wait for reuse are bounded", () => {
  const buffers = new FrameBuffers();
  for (let count = 0; count < 100; count++) buffers.give(new Uint8Array(1 << 20));
  assert.equal(buffers.keptBytes, KEPT_BYTES);
  const empty = new FrameBuffers();
  empty.give(new Uint8Array(2 * LARGEST_KEPT_BYTES));
  assert.equal(empty.keptBytes, 0);
});
