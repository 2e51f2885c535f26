import assert from "node:assert/strict";
import { baseOffset, sizeInBytes } from "../../../lib/records/batch.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { walkSegment } from "../../../lib/storage/segment_walk.ts";

const batch = (offset: number, value = "value") => buildBatch({ baseOffset: offset, records: [{ value }, { value }] });

function sourceOf(bytes: Uint8Array) {
  return {
    read: (position: number, into: Uint8Array) => {
      const part = bytes.subarray(position, position + into.length);
      into.set(part);
      return Promise.resolve(part.length);
    },
  };
}

function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

async function walk(bytes: Uint8Array, options: { minOffset?: number; endOffset?: number } = {}) {
  const offsets: number[] = [];
  const range = { endPosition: bytes.length, minOffset: 0, endOffset: Infinity, ...options };
  const result = await walkSegment(
    sourceOf(bytes),
    range,
    (batch, start) => void offsets.push(baseOffset(batch, start)),
  );
  return { offsets, ...result };
}

Deno.test("A walk over whole batches visits each of them and finds no damage", async () => {
  const { offsets, damages, nextOffset } = await walk(concat(batch(0), batch(2), batch(4)));
  assert.deepEqual(offsets, [0, 2, 4]);
  assert.deepEqual(damages, []);
  assert.equal(nextOffset, 6);
});

Deno.test("A batch with a wrong checksum is named with its exact place, and the walk goes on behind it", async () => {
  const size = batch(0).length;
  const bytes = concat(batch(0), batch(2), batch(4));
  bytes[size + 70] ^= 1;
  const { offsets, damages } = await walk(bytes);
  assert.deepEqual(offsets, [0, 4]);
  assert.equal(damages.length, 1);
  assert.deepEqual({ ...damages[0], reason: "" }, {
    position: size,
    bytes: size,
    expectedOffset: 2,
    kind: "corrupt",
    reason: "",
  });
  assert.match(
    damages[0].reason,
    /^checksum of the batch at offset 2 is 0x[0-9a-f]{8}, its header says 0x[0-9a-f]{8}$/,
  );
});

Deno.test("Each kind of damage is told apart by its reason", async () => {
  const size = batch(0).length;
  const damaged = (at: number, value: number) => {
    const bytes = concat(batch(0), batch(2));
    bytes[size + at] = value;
    return bytes;
  };
  const cases: [Uint8Array, string, RegExp][] = [
    [damaged(16, 7), "corrupt", /^magic is 7, expected 2$/],
    [damaged(8, 0x7f), "corrupt", /^length field is \d+, which no batch has$/],
    [damaged(23, 0xff), "corrupt", /^last offset delta is -\d+, expected at least 0$/],
    [damaged(7, 1), "corrupt", /^base offset is 1, expected at least 2$/],
    [concat(batch(0), batch(2)).slice(0, -3), "tail", /^the batch has \d+ bytes, the file only \d+ more$/],
    [concat(batch(0), batch(2).slice(0, 5)), "tail", /^5 bytes are too few for a batch$/],
    [concat(batch(0), new Uint8Array(500)), "zeros", /^zero bytes stand where a batch should begin$/],
    [concat(batch(0), new Uint8Array(500).fill(9)), "corrupt", /^magic is 9, expected 2$/],
  ];
  for (const [bytes, kind, reason] of cases) {
    const { offsets, damages, position } = await walk(bytes);
    assert.deepEqual(offsets, [0]);
    assert.deepEqual(damages.map((damage) => [damage.position, damage.kind]), [[size, kind]]);
    assert.match(damages[0].reason, reason);
    assert.equal(position, bytes.length);
  }
});

Deno.test("Batches at or past the end offset do not count", async () => {
  const { offsets, position, damages } = await walk(concat(batch(0), batch(2), batch(4)), { endOffset: 4 });
  assert.deepEqual(offsets, [0, 2]);
  assert.equal(position, 2 * batch(0).length);
  assert.deepEqual(damages, []);
});

Deno.test("Batches and damages cover the file without a hole, wherever a byte is wrong", async () => {
  const whole = concat(batch(0, "first"), batch(2, "the second one"), batch(4, "x"));
  for (let at = 0; at < whole.length; at++) {
    const bytes = whole.slice();
    bytes[at] ^= 0x55;
    let covered = 0;
    const range = { endPosition: bytes.length, minOffset: 0, endOffset: Infinity };
    const { damages } = await walkSegment(sourceOf(bytes), range, (chunk, start) => {
      covered += sizeInBytes(chunk, start);
    });
    covered += damages.reduce((sum, damage) => sum + damage.bytes, 0);
    assert.equal(covered, bytes.length, `byte ${at}`);
  }
});
