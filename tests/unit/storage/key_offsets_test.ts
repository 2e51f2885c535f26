import assert from "node:assert/strict";
import { KeyOffsets } from "../../../lib/storage/key_offsets.ts";

const encoder = new TextEncoder();
const noPace = { moved: () => {}, isDue: () => false, rest: () => Promise.resolve() };

function table(maxBytes: number, loadFactor = 0.9): KeyOffsets {
  return new KeyOffsets({ maxBytes, loadFactor, secret: [0x1234567, 0x89abcdef] });
}

async function put(keys: KeyOffsets, key: string, offset: number): Promise<boolean> {
  if (keys.isCrowded) await keys.grow(noPace);
  const bytes = encoder.encode(`<${key}>`);
  return keys.put(bytes, 1, bytes.length - 2, offset);
}

function get(keys: KeyOffsets, key: string): number {
  const bytes = encoder.encode(`[[${key}]]`);
  return keys.get(bytes, 2, bytes.length - 4);
}

Deno.test("the table tells the newest offset of each key, whatever its length, and -1 of others", async () => {
  const keys = table(1 << 20);
  const names = Array.from({ length: 5_000 }, (_, i) => "k".repeat(i % 40) + i);
  for (const [i, name] of names.entries()) assert.ok(await put(keys, name, i));
  for (const [i, name] of names.entries()) if (i % 3 === 0) await put(keys, name, 10_000 + i);
  assert.equal(keys.size, 5_000);
  for (const [i, name] of names.entries()) assert.equal(get(keys, name), i % 3 === 0 ? 10_000 + i : i);
  assert.deepEqual([get(keys, ""), get(keys, "unknown")], [-1, -1]);
  await put(keys, "", 7);
  assert.equal(get(keys, ""), 7);
});

Deno.test("an offset is never lowered", async () => {
  const keys = table(10_000);
  await put(keys, "a", 9);
  await put(keys, "a", 3);
  assert.equal(get(keys, "a"), 9);
});

Deno.test("a full table takes no new key, knows those it has, and never grows past its bytes", async () => {
  for (const maxBytes of [1, 1_024, 100_000]) {
    const keys = table(maxBytes);
    let taken = 0;
    while (await put(keys, `key ${taken}`, taken)) taken++;
    assert.ok(taken >= 1 && taken === keys.size);
    assert.ok(keys.bytes * 1.5 <= Math.max(maxBytes, 72), `${keys.bytes} bytes of ${maxBytes}`);
    assert.ok(taken * 24 >= maxBytes * 0.55 || maxBytes < 100, `${taken} keys in ${maxBytes} bytes`);
    assert.equal(await put(keys, "key 0", 1_000_000), true);
    assert.deepEqual([get(keys, "key 0"), get(keys, `key ${taken}`)], [1_000_000, -1]);
  }
});

Deno.test("a load factor of 1 still leaves a free slot, so that every search ends", async () => {
  const keys = table(2_000, 1);
  for (let i = 0; i < 200; i++) await put(keys, `key ${i}`, i);
  assert.equal(get(keys, "not there"), -1);
});

Deno.test("growing gives others a turn", async () => {
  const keys = table(10_000_000);
  let rests = 0;
  const pace = { moved: () => {}, isDue: () => true, rest: () => Promise.resolve(void rests++) };
  for (let i = 0; i < 30_000; i++) {
    if (keys.isCrowded) await keys.grow(pace);
    const bytes = encoder.encode(`key ${i}`);
    keys.put(bytes, 0, bytes.length, i);
  }
  assert.ok(rests > 5, `${rests} rests`);
  assert.equal(get(keys, "key 29999"), 29_999);
});
