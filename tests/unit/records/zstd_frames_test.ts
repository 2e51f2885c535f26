import assert from "node:assert/strict";
import { zstdCompressSync } from "node:zlib";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { zstdFrames } from "../../../lib/records/zstd_frames.ts";
import { compressible, damaged, framesOf, seeded, text } from "./golden.ts";

const frame = (name: string) => framesOf("zstd").find(([found]) => found === name)![1];

Deno.test("zstdFrames finds the frames and what they say they unpack to", () => {
  const frames = zstdFrames(frame("two frames"));
  assert.ok(!(frames instanceof RecordsFault));
  assert.deepEqual(frames.map((found) => found.contentBytes), [70_000, null]);
  assert.equal(frames.reduce((sum, found) => sum + found.bytes.length, 0), frame("two frames").length);
});

Deno.test("zstdFrames reads content sizes of every width", () => {
  for (const length of [1, 255, 256, 257, 65_000, 65_791, 65_792, 100_000]) {
    const frames = zstdFrames(zstdCompressSync(new Uint8Array(length)));
    assert.ok(!(frames instanceof RecordsFault));
    const [{ contentBytes }] = frames;
    assert.ok(contentBytes === length || contentBytes === null, `${length} bytes: says ${contentBytes}`);
  }
});

Deno.test("zstdFrames sees every cut", () => {
  const whole = frame("checksum");
  for (let length = 1; length < whole.length; length++) {
    assert.ok(zstdFrames(whole.subarray(0, length)) instanceof RecordsFault, `cut to ${length}`);
  }
  assert.deepEqual(zstdFrames(new Uint8Array(0)), []);
});

Deno.test("zstdFrames of damaged frames stays within the bytes", () => {
  const random = seeded(12);
  for (const broken of damaged(zstdCompressSync(compressible(random, 3000)), random, 300)) {
    const frames = zstdFrames(broken);
    if (frames instanceof RecordsFault) continue;
    assert.equal(frames.reduce((sum, found) => sum + found.bytes.length, 0) <= broken.length, true);
  }
  assert.ok(zstdFrames(text) instanceof RecordsFault);
});
