import assert from "node:assert/strict";
import { createCRC32 } from "hash-wasm";
import { crc32c, crc32cByTables, isFolding } from "../../../lib/records/crc32c.ts";
import { compressible, seeded } from "./golden.ts";

const ascii = (text: string) => new TextEncoder().encode(text);

for (const [name, compute] of Object.entries({ crc32c, crc32cByTables })) {
  Deno.test(`${name} gives the check values of RFC 3720`, () => {
    assert.equal(compute(ascii("123456789")), 0xe3069283);
    assert.equal(compute(new Uint8Array(32)), 0x8a9136aa);
    assert.equal(compute(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
    assert.equal(compute(Uint8Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e);
    assert.equal(compute(new Uint8Array(0)), 0);
  });

  Deno.test(`${name} agrees with hash-wasm's at sizes around every border and at random ones`, async () => {
    const oracle = await createCRC32(0x82f63b78);
    const random = seeded(1);
    const bytes = compressible(random, 300_000);
    const borders = [0, 16, 512, 836 + 1024, 3344 + 1024, 4096, 61440, 65536, 69632, 131072, 135168, 200_704];
    const sizes = borders.flatMap((border) =>
      [-17, -16, -1, 0, 1, 15, 16, 17].map((more) => Math.max(0, border + more))
    );
    for (let round = 0; round < 100; round++) sizes.push(Math.floor(random() ** 3 * 290_000));
    for (const size of sizes) {
      const start = Math.floor(random() * 40);
      const expected = parseInt(oracle.init().update(bytes.subarray(start, start + size)).digest("hex"), 16);
      assert.equal(compute(bytes, start, start + size), expected, `${size} bytes`);
    }
  });
}

Deno.test("crc32c folds larger inputs on this runtime", () => {
  assert.equal(isFolding, true);
});

Deno.test("crc32c of one input does not depend on the inputs before it", () => {
  const bytes = compressible(seeded(2), 200_000);
  const sizes = [512, 2000, 5000, 70_000, 200_000];
  for (const first of sizes) {
    for (const second of sizes) {
      crc32c(bytes, 0, first);
      assert.equal(crc32c(bytes, 0, second), crc32cByTables(bytes, 0, second), `${second} bytes after ${first}`);
    }
  }
});
