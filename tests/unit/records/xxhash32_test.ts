import assert from "node:assert/strict";
import { createXXHash32 } from "hash-wasm";
import { xxhash32 } from "../../../lib/records/xxhash32.ts";
import { compressible, seeded } from "./golden.ts";

Deno.test("xxhash32 gives the known values of the empty input and of abc", () => {
  assert.equal(xxhash32(new Uint8Array(0)), 0x02cc5d05);
  assert.equal(xxhash32(new TextEncoder().encode("abc")), 0x32d153ff);
});

Deno.test("xxhash32 agrees with hash-wasm's at every length up to 100", async () => {
  const oracle = await createXXHash32(0);
  const bytes = compressible(seeded(2), 104);
  for (let length = 0; length <= 100; length++) {
    const expected = parseInt(oracle.init().update(bytes.subarray(4, 4 + length)).digest("hex"), 16);
    assert.equal(xxhash32(bytes, 4, 4 + length), expected);
  }
});
