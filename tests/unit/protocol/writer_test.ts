import assert from "node:assert/strict";
import { LINKED_BYTES, UnencodableValue, Writer } from "../../../lib/protocol/writer.ts";
import { golden } from "../../golden/message_bodies.ts";
import { Seeded } from "./support/seeded.ts";

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
}

function written(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer(64);
  write(writer);
  return joined(writer.finish());
}

Deno.test("records from 8 KiB on are linked, smaller ones copied", () => {
  const writer = new Writer(64);
  const small = new Uint8Array(LINKED_BYTES - 1).fill(1);
  const large = new Uint8Array(LINKED_BYTES).fill(2);
  writer.int8(7);
  writer.records(small);
  writer.records(large);
  writer.records(large);
  writer.int8(8);
  const chunks = writer.finish();
  assert.deepEqual(chunks.map((chunk) => chunk.length), [LINKED_BYTES, LINKED_BYTES, LINKED_BYTES, 1]);
  assert.equal(chunks[1], large);
  assert.equal(chunks[2], large);
  assert.equal(writer.byteLength, 3 * LINKED_BYTES + 1);
});

Deno.test("a frame's length is filled in, wherever the buffer has moved since", () => {
  for (const before of [0, 1, 60, 64, 5000]) {
    for (const bodies of [[0], [3], [100], [9000], [10, 9000, 10], [9000, 9000, 100, 9000]]) {
      const writer = new Writer(64);
      writer.raw(new Uint8Array(before).fill(9));
      writer.beginFrame();
      for (const size of bodies) writer.records(new Uint8Array(size).fill(5));
      const size = bodies.reduce((sum, each) => sum + each, 0);
      assert.equal(writer.endFrame(), size + 4);
      const bytes = joined(writer.finish());
      assert.equal(bytes.length, before + 4 + size);
      assert.equal(new DataView(bytes.buffer).getInt32(before), size);
      assert.ok(bytes.subarray(before + 4).every((byte) => byte === 5));
    }
  }
});

Deno.test("abandoning a frame leaves what stood before it and room for the next one", () => {
  const random = new Seeded(7);
  for (let round = 0; round < 300; round++) {
    const writer = new Writer(64);
    const expected: number[] = [];
    for (let frames = 0; frames < 6; frames++) {
      const kept = random.oneIn(2);
      writer.beginFrame();
      const body: number[] = [];
      for (let parts = random.below(4); parts > 0; parts--) {
        const part = random.bytes(random.pick([0, 1, 30, 200])).subarray();
        const linked = random.oneIn(3) ? new Uint8Array(LINKED_BYTES).fill(frames) : part;
        writer.records(linked);
        body.push(...linked);
      }
      if (!kept) {
        writer.abandonFrame();
        continue;
      }
      writer.endFrame();
      expected.push(...[24, 16, 8, 0].map((shift) => body.length >>> shift & 255), ...body);
    }
    assert.equal(writer.byteLength, expected.length);
    assert.deepEqual(joined(writer.finish()), Uint8Array.from(expected), `round ${round}`);
  }
});

Deno.test("what finish gave stays as it is while more is written, until reset", () => {
  const writer = new Writer(64);
  writer.int32(1);
  const first = writer.finish()[0];
  writer.raw(new Uint8Array(5000).fill(255));
  assert.deepEqual(first, golden("00000001"));
  writer.reset();
  assert.equal(writer.byteLength, 0);
  assert.deepEqual(writer.finish(), []);
  writer.int8(1);
  assert.deepEqual(joined(writer.finish()), golden("01"));
});

Deno.test("a huge buffer is not kept after reset", () => {
  const writer = new Writer();
  writer.raw(new Uint8Array(5 << 20));
  writer.reset();
  assert.equal(writer.bytes.length, 1 << 20);
});

Deno.test("varints take one to five bytes", () => {
  const bytes = written((writer) => [0, 127, 128, 16383, 16384, 0xffffffff].forEach((value) => writer.varint(value)));
  assert.deepEqual(bytes, golden("00 7f 8001 ff7f 808001 ffffffff0f"));
});

Deno.test("strings of any script and length are written behind their length in bytes", () => {
  for (
    const text of ["", "a", "é", "x".repeat(32), "x".repeat(33), "é".repeat(63), "é".repeat(64), "🦀".repeat(8191)]
  ) {
    const utf8 = new TextEncoder().encode(text);
    const classic = written((writer) => writer.string(text));
    assert.deepEqual(classic, Uint8Array.from([utf8.length >> 8, utf8.length & 255, ...utf8]));
    const length = written((writer) => writer.varint(utf8.length + 1));
    assert.deepEqual(written((writer) => writer.compactString(text)), Uint8Array.from([...length, ...utf8]));
  }
});

Deno.test("a string beyond 32,767 bytes cannot be written in either form", () => {
  const text = "é".repeat(16384);
  assert.throws(() => written((writer) => writer.string(text)), UnencodableValue);
  assert.throws(() => written((writer) => writer.compactString(text)), UnencodableValue);
  assert.equal(written((writer) => writer.string("x".repeat(32767))).length, 32769);
});

Deno.test("a UUID is written as its 16 bytes, and only in canonical form", () => {
  const bytes = written((writer) => writer.uuid("00112233-4455-6677-8899-AABBccddeeff"));
  assert.deepEqual(bytes, golden("00112233445566778899aabbccddeeff"));
  assert.throws(() => written((writer) => writer.uuid("00112233")), UnencodableValue);
});

Deno.test("a size is put in front of what it measures, also when the buffer grows for it", () => {
  for (const size of [0, 1, 60, 127, 128, 16384]) {
    const content = new Seeded(size).bytes(size);
    const bytes = written((writer) => {
      writer.raw(new Uint8Array(3).fill(9));
      const before = writer.byteLength;
      writer.raw(content);
      writer.insertSize(before);
      writer.int8(1);
    });
    const length = written((writer) => writer.varint(size));
    assert.deepEqual(bytes, Uint8Array.from([9, 9, 9, ...length, ...content, 1]));
  }
});
