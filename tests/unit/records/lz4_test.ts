import assert from "node:assert/strict";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { lz4Compress, lz4Decompress } from "../../../lib/records/lz4.ts";
import { compressible, damaged, framesOf, seeded, text } from "./golden.ts";

const limit = 10_000_000;
const isFault = (result: unknown) => result instanceof RecordsFault;
const frame = (name: string) => framesOf("lz4").find(([found]) => found === name)![1];
const checked = "linked=True contentChecksum=True blockChecksum=True contentSize=True";

Deno.test("lz4Compress writes independent blocks of 64 KiB, as Java's consumer demands", () => {
  const packed = lz4Compress(new Uint8Array(200_000));
  assert.deepEqual(packed.subarray(0, 7), Uint8Array.of(0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82));
  let blocks = 0;
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  let at = 7;
  for (let field = view.getUint32(at, true); field !== 0; field = view.getUint32(at, true)) {
    blocks++;
    at += 4 + (field & 0x7fff_ffff);
  }
  assert.equal(blocks, 4);
  assert.equal(at + 4, packed.length);
});

Deno.test("lz4Compress stores what does not shrink", () => {
  const random = seeded(3);
  const bytes = Uint8Array.from({ length: 70_000 }, () => Math.floor(random() * 256));
  const packed = lz4Compress(bytes);
  assert.equal(packed.length, 7 + 4 + 65536 + 4 + (70_000 - 65536) + 4);
  assert.deepEqual(lz4Decompress(packed, limit), bytes);
});

Deno.test("lz4Compress comes back for random inputs of random sizes", () => {
  const random = seeded(8);
  for (let round = 0; round < 60; round++) {
    const bytes = compressible(random, Math.floor(random() ** 3 * 150_000));
    assert.deepEqual(lz4Decompress(lz4Compress(bytes), limit), bytes, `round ${round}`);
  }
});

Deno.test("lz4Decompress reads several frames and steps over skippable ones", () => {
  const one = lz4Compress(text);
  const skippable = Uint8Array.of(0x5f, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2);
  const all = new Uint8Array(one.length * 2 + skippable.length);
  all.set(one);
  all.set(skippable, one.length);
  all.set(one, one.length + skippable.length);
  const unpacked = lz4Decompress(all, limit) as Uint8Array;
  assert.equal(unpacked.length, 2 * text.length);
  assert.deepEqual(unpacked.subarray(text.length), text);
  assert.ok(isFault(lz4Decompress(skippable.subarray(0, 9), limit)));
});

Deno.test("lz4Decompress verifies header, block and content checksums and the content size", () => {
  const good = frame(checked);
  assert.deepEqual(lz4Decompress(good, limit), text);
  const flipped = (at: number) => {
    const copy = good.slice();
    copy[at < 0 ? copy.length + at : at] ^= 1;
    return lz4Decompress(copy, limit);
  };
  const faultAt = (at: number) => (flipped(at) as RecordsFault).message;
  assert.match(faultAt(6), /header checksum/);
  assert.match(faultAt(14), /header checksum/);
  assert.match(faultAt(40), /block checksum/);
  assert.match(faultAt(-1), /content checksum/);
});

Deno.test("lz4Decompress takes the header checksum of magic 0 only where it is asked to", () => {
  const old = lz4Compress(text, true);
  assert.notEqual(old[6], lz4Compress(text)[6]);
  assert.deepEqual(lz4Decompress(old, limit, true), text);
  assert.deepEqual(lz4Decompress(lz4Compress(text), limit, true), text);
  assert.ok(isFault(lz4Decompress(old, limit)));
});

Deno.test("lz4Decompress refuses a match that reaches out of an independent block", () => {
  const twoBlocks = (flags: number) => {
    const header = lz4Compress(new Uint8Array(0)).subarray(0, 7).slice();
    header[4] = flags;
    const stored = [4, 0, 0, 0x80, 65, 66, 67, 68];
    const match = [8, 0, 0, 0, 0x00, 4, 0, 0x50, 1, 2, 3, 4, 5];
    match[0] = match.length - 4;
    return Uint8Array.of(...header, ...stored, ...match, 0, 0, 0, 0);
  };
  assert.match((lz4Decompress(twoBlocks(0x60), limit) as RecordsFault).message, /match before the start/);
  // The same blocks linked: only the header checksum differs, which depends on the flags.
  const linked = twoBlocks(0x40);
  for (let checksum = 0; checksum < 256; checksum++) {
    linked[6] = checksum;
    const result = lz4Decompress(linked, limit);
    if (result instanceof Uint8Array) {
      assert.deepEqual(result, Uint8Array.of(65, 66, 67, 68, 65, 66, 67, 68, 1, 2, 3, 4, 5));
      return;
    }
  }
  assert.fail("no header checksum was accepted");
});

Deno.test("lz4Decompress of damaged frames of every form never throws and keeps to the limit", () => {
  const random = seeded(6);
  for (const [, good] of framesOf("lz4")) {
    for (const broken of damaged(good, random, 40)) {
      const result = lz4Decompress(broken, 200_000);
      assert.ok(isFault(result) || (result as Uint8Array).length <= 200_000);
    }
  }
});
