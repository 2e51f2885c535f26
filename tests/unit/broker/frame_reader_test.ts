import assert from "node:assert/strict";
import { FrameBuffers } from "../../../lib/broker/connection_buffers.ts";
import { FrameReader, SMALL_BUFFER_BYTES } from "../../../lib/broker/frame_reader.ts";
import { joined } from "../../support/raw_client.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

const MAX_BYTES = 104_857_600;

function framed(...frames: Uint8Array[]): Uint8Array {
  return joined(frames.flatMap((frame) => [lengthOf(frame.length), frame]));
}

function lengthOf(bytes: number): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setInt32(0, bytes);
  return length;
}

function filled(bytes: number, value: number): Uint8Array {
  return new Uint8Array(bytes).fill(value);
}

/** Puts as much of `bytes` into the reader as one room holds, and gives the count. */
function offer(reader: FrameReader, bytes: Uint8Array): number {
  const room = reader.room();
  if (room === null) return 0;
  const count = Math.min(room.length, bytes.length);
  room.set(bytes.subarray(0, count));
  reader.received(count);
  return count;
}

function put(reader: FrameReader, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) {
    const count = offer(reader, bytes.subarray(at));
    assert.ok(count > 0, "the reader took no more bytes");
    at += count;
  }
}

function take(reader: FrameReader): Uint8Array | null {
  const frame = reader.next()?.slice() ?? null;
  reader.done();
  return frame;
}

function reader(maxBytes = MAX_BYTES): FrameReader {
  return new FrameReader(maxBytes, new FrameBuffers());
}

Deno.test("A frame that comes byte by byte is given out when its last byte is here", () => {
  const frames = reader();
  const bytes = framed(filled(5, 1), filled(0, 0), filled(3, 2));
  const out: { after: number; frame: Uint8Array }[] = [];
  for (let at = 0; at < bytes.length; at++) {
    put(frames, bytes.subarray(at, at + 1));
    for (let frame = take(frames); frame !== null; frame = take(frames)) out.push({ after: at + 1, frame });
  }
  assert.deepEqual(out, [
    { after: 9, frame: filled(5, 1) },
    { after: 13, frame: filled(0, 0) },
    { after: 20, frame: filled(3, 2) },
  ]);
});

Deno.test("Many small frames of one read come out in order", () => {
  const frames = reader();
  const sent = Array.from({ length: 200 }, (_, at) => filled(20, at));
  put(frames, framed(...sent));
  for (const frame of sent) assert.deepEqual(take(frames), frame);
  assert.equal(take(frames), null);
});

Deno.test("A frame in use stays as it is, however much is received behind it", () => {
  for (const bytes of [10, 5000, SMALL_BUFFER_BYTES - 4, SMALL_BUFFER_BYTES * 3]) {
    const frames = reader();
    put(frames, framed(filled(bytes, 7)));
    const inUse = frames.next();
    const following = framed(...Array.from({ length: 300 }, (_, at) => filled(1000, at)));
    let taken = 0;
    for (let count = offer(frames, following); count > 0; count = offer(frames, following.subarray(taken))) {
      taken += count;
    }
    assert.ok(taken > 0, `something is received while a frame of ${bytes} bytes is in use`);
    assert.ok(taken <= 2 * SMALL_BUFFER_BYTES, `${taken} bytes are taken ahead at most`);
    assert.deepEqual(inUse, filled(bytes, 7));
    frames.done();
    put(frames, following.subarray(taken, Math.max(taken, 1004)));
    assert.deepEqual(take(frames), filled(1000, 0));
  }
});

Deno.test("A claimed length alone takes no memory", () => {
  const frames = reader();
  const claimed = 100_000_000;
  put(frames, lengthOf(claimed));
  assert.equal(take(frames), null);
  assert.ok(frames.heldBytes < 300_000, `${frames.heldBytes} bytes for a claim`);
  for (let received = 0; received < 20_000_000;) {
    received += offer(frames, new Uint8Array(50_000));
    assert.ok(frames.heldBytes <= 300_000 + 2 * received, `${frames.heldBytes} bytes held for ${received} received`);
  }
});

Deno.test("A frame larger than any before it does not take memory for one that was proven", () => {
  const frames = reader();
  put(frames, framed(filled(1_000_000, 1)));
  assert.deepEqual(take(frames), filled(1_000_000, 1));
  put(frames, lengthOf(100_000_000));
  assert.equal(take(frames), null);
  frames.room();
  assert.ok(frames.heldBytes <= 2_500_000, `${frames.heldBytes} bytes held`);
});

Deno.test("A large frame is read to its end and no further, so that it is received in place", () => {
  const frames = reader();
  const large = filled(500_000, 3);
  const bytes = framed(large, filled(10, 4));
  let at = 0;
  while (take(frames) === null && at < large.length) at += offer(frames, bytes.subarray(at));
  assert.equal(at, large.length + 4);
  put(frames, bytes.subarray(at));
  assert.deepEqual(take(frames), filled(10, 4));
});

Deno.test("A length is accepted up to the limit and refused above it or below zero", () => {
  const most = reader(1000);
  put(most, framed(filled(1000, 1)));
  assert.deepEqual(take(most), filled(1000, 1));
  for (const length of [1001, MAX_BYTES + 1, 0x47455420, 0x7fffffff, -1, -0x80000000]) {
    const frames = reader(1000);
    const held = frames.heldBytes;
    put(frames, joined([framed(filled(3, 1)), lengthOf(length)]));
    assert.deepEqual(take(frames), filled(3, 1));
    assert.equal(frames.refusedLength, null);
    assert.equal(take(frames), null);
    assert.equal(frames.refusedLength, length);
    assert.equal(frames.room(), null);
    assert.equal(frames.heldBytes, held);
  }
});

Deno.test("The buffer of a frame that is in use when the connection ends goes to nobody else", () => {
  const buffers = new FrameBuffers();
  const ended = new FrameReader(MAX_BYTES, buffers);
  put(ended, framed(filled(200_000, 5)));
  const inUse = ended.next();
  ended.dispose();
  const other = new FrameReader(MAX_BYTES, buffers);
  put(other, framed(filled(200_000, 6)));
  assert.deepEqual(inUse, filled(200_000, 5));
  ended.done();
  assert.ok(buffers.keptBytes > 0, "after its use the buffer waits for the next frame");
});

Deno.test("Any frames in any pieces, taken at any time, come out as they went in", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new SeededRandom(seed);
    const below = (limit: number) => Math.floor(random.next() * limit);
    const sizes = [30, 3000, 40_000, SMALL_BUFFER_BYTES - 4, SMALL_BUFFER_BYTES, 300_000];
    const sent = Array.from({ length: 30 }, (_, at) => filled(below(sizes[below(sizes.length)] + 1), at + 1));
    const bytes = framed(...sent);
    const frames = reader();
    const got: Uint8Array[] = [];
    let at = 0;
    let inUse: { frame: Uint8Array; copy: Uint8Array } | null = null;
    while (got.length < sent.length) {
      let moved = offer(frames, bytes.subarray(at, at + 1 + below(100_000)));
      at += moved;
      if (inUse !== null && random.next() < 0.5) {
        assert.deepEqual(inUse.frame, inUse.copy, `seed ${seed}: a frame changed while it was in use`);
        frames.done();
        inUse = null;
        moved++;
      }
      while (inUse === null) {
        const frame = frames.next();
        if (frame === null) break;
        moved++;
        got.push(frame.slice());
        if (random.next() < 0.2) inUse = { frame, copy: frame.slice() };
        else frames.done();
      }
      assert.ok(moved > 0 || inUse !== null, `seed ${seed}: nothing moves any more`);
    }
    assert.deepEqual(got, sent, `seed ${seed}`);
  }
});
