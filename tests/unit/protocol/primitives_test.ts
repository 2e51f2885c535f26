import assert from "node:assert/strict";
import { readText, readUuid, readVarint, skipTaggedFields } from "../../../lib/protocol/primitives.ts";
import { MalformedFrame } from "../../../lib/protocol/malformed_frame.ts";
import { ZERO_UUID } from "../../../lib/protocol/schema.ts";
import { golden } from "../../golden/message_bodies.ts";

function view(text: string): DataView {
  return new DataView(golden(text).buffer);
}

Deno.test("text of every length and script is read as it was written, a byte order mark included", () => {
  for (
    const text of [
      "",
      "a",
      "12345678",
      "123456789",
      "x".repeat(24),
      "x".repeat(25),
      "é",
      "aé",
      "1234567é",
      "日本語",
      "🦀",
      "\ufeffa",
      "\0",
    ]
  ) {
    const utf8 = new TextEncoder().encode(text);
    const bytes = new Uint8Array([255, ...utf8, 255]);
    assert.equal(readText(bytes, 1, utf8.length), text);
  }
});

Deno.test("bytes that are not UTF-8 read as U+FFFD", () => {
  assert.equal(readText(golden("61 ff 62"), 0, 3), "a\ufffdb");
  assert.equal(readText(golden("6161616161616161 c3"), 0, 9), "aaaaaaaa\ufffd");
});

Deno.test("a UUID reads as canonical text, and 16 zero bytes as the zero UUID", () => {
  assert.equal(readUuid(golden("ff 00112233445566778899aabbccddeeff"), 1), "00112233-4455-6677-8899-aabbccddeeff");
  assert.equal(readUuid(new Uint8Array(16), 0), ZERO_UUID);
});

Deno.test("varints of up to 32 bits are read, longer ones refused", () => {
  const read = (text: string) => readVarint(view(text), { position: 0 });
  assert.deepEqual(["00", "7f", "8001", "ffffffff0f", "8000"].map(read), [0, 127, 128, 0xffffffff, 0]);
  assert.throws(() => read("ffffffff10"), MalformedFrame);
  assert.throws(() => read("808080808000"), MalformedFrame);
  assert.throws(() => read("80"), RangeError);
});

Deno.test("skipping tagged fields ends behind the last one", () => {
  const cursor = { position: 1 };
  skipTaggedFields(view("ff 02 00 00 8001 02 aabb cc"), cursor);
  assert.equal(cursor.position, 9);
  assert.throws(() => skipTaggedFields(view("01 00 05 aa"), { position: 0 }), MalformedFrame);
});
