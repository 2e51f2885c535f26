import assert from "node:assert/strict";
import { crc32c, crc32cInScript, ready } from "../../../lib/records/crc32c.ts";
import { compressible, seeded } from "./golden.ts";

const ascii = (text: string) => new TextEncoder().encode(text);

Deno.test("crc32c gives the check values of RFC 3720", () => {
  assert.equal(crc32c(ascii("123456789")), 0xe3069283);
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e);
  assert.equal(crc32c(new Uint8Array(0)), 0);
});

Deno.test("crc32c in wasm and in JavaScript agree at every size and place", async () => {
  await ready;
  const bytes = compressible(seeded(1), 70_000);
  for (const length of [0, 1, 7, 8, 9, 1023, 1024, 2047, 2048, 2049, 4100, 16384, 16385, 65536]) {
    for (const start of [0, 1, 3, 8]) {
      const end = start + length;
      const one = crc32c(bytes.slice(start, end));
      assert.equal(crc32c(bytes, start, end), one);
      assert.equal(crc32cInScript(bytes, start, end), one);
    }
  }
});
