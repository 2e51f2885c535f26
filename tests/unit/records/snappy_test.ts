import assert from "node:assert/strict";
import { compress as rawCompress } from "snappyjs";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { snappyCompress, snappyDecompress } from "../../../lib/records/snappy.ts";
import { compressible, damaged, seeded, text } from "./golden.ts";

const limit = 10_000_000;
const isFault = (result: unknown) => result instanceof RecordsFault;

Deno.test("snappyDecompress reads a raw block, as some clients send it", () => {
  assert.deepEqual(snappyDecompress(rawCompress(text), limit), text);
  const mixed = compressible(seeded(4), 90_000);
  assert.deepEqual(snappyDecompress(rawCompress(mixed), limit), mixed);
  assert.deepEqual(snappyDecompress(Uint8Array.of(0), limit), new Uint8Array(0));
});

Deno.test("snappyCompress writes the framing of snappy-java with blocks of 32 KiB", () => {
  const packed = snappyCompress(new Uint8Array(70_000));
  assert.deepEqual(packed.subarray(0, 16), Uint8Array.of(0x82, 83, 78, 65, 80, 80, 89, 0, 0, 0, 0, 1, 0, 0, 0, 1));
  let blocks = 0;
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  for (let at = 16; at < packed.length; at += 4 + view.getInt32(at)) blocks++;
  assert.equal(blocks, 3);
});

Deno.test("snappyDecompress reads streams joined with their headers", () => {
  const one = snappyCompress(text);
  const joined = new Uint8Array(one.length * 2);
  joined.set(one);
  joined.set(one, one.length);
  const unpacked = snappyDecompress(joined, limit) as Uint8Array;
  assert.equal(unpacked.length, text.length * 2);
  assert.deepEqual(unpacked.subarray(text.length), text);
});

Deno.test("snappyDecompress refuses a literal whose length wraps around, instead of running in circles", () => {
  const literal = Uint8Array.of(10, 0xfc, 0xf9, 0xff, 0xff, 0xff, 1, 2, 3);
  assert.ok(isFault(snappyDecompress(literal, limit)));
});

Deno.test("snappyDecompress refuses a block that unpacks to less or more than it claims", () => {
  const block = rawCompress(text.subarray(0, 50));
  for (const claimed of [49, 51]) {
    const lying = block.slice();
    lying[0] = claimed;
    assert.ok(isFault(snappyDecompress(lying, limit)), `claims ${claimed} of 50`);
  }
});

Deno.test("snappyDecompress refuses a claimed size that no block of that length can reach", () => {
  const huge = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x07, 0, 65);
  assert.ok(isFault(snappyDecompress(huge, 2 ** 31)));
});

Deno.test("snappyDecompress refuses copies from before the start and of distance 0", () => {
  assert.ok(isFault(snappyDecompress(Uint8Array.of(5, 0, 65, 0x01, 2), limit)));
  assert.ok(isFault(snappyDecompress(Uint8Array.of(5, 0, 65, 0x01, 0), limit)));
  assert.deepEqual(snappyDecompress(Uint8Array.of(5, 0, 65, 0x01, 1), limit), new Uint8Array(5).fill(65));
});

Deno.test("snappyDecompress of damaged raw blocks never throws and never exceeds the claimed size", () => {
  const random = seeded(9);
  for (const broken of damaged(rawCompress(compressible(random, 2000)), random, 1000)) {
    const result = snappyDecompress(broken, 5000);
    assert.ok(isFault(result) || (result as Uint8Array).length <= 5000);
  }
});
