import assert from "node:assert/strict";
import { VarintReader, varintSize, varlongSize, writeVarint, writeVarlong } from "../../../lib/records/varint.ts";

const int32s = [0, 1, -1, 63, -64, 64, -65, 8191, 8192, 2 ** 20, -(2 ** 27), 2 ** 27, 2 ** 31 - 1, -(2 ** 31)];
const int53s = [...int32s, 2 ** 31, 2 ** 32, -(2 ** 40), 2 ** 41 + 1, 2 ** 52 - 1, -(2 ** 52) + 1];

Deno.test("varints come back as written and take the stated size", () => {
  const bytes = new Uint8Array(16);
  for (const value of int32s) {
    const end = writeVarint(bytes, 0, value);
    assert.equal(end, varintSize(value));
    const reader = new VarintReader(bytes, 0, end);
    assert.equal(reader.varint(), value);
    assert.deepEqual([reader.at, reader.bad], [end, false]);
  }
});

Deno.test("varlongs come back as written, and small ones have the bytes of varints", () => {
  const bytes = new Uint8Array(16);
  for (const value of int53s) {
    const end = writeVarlong(bytes, 0, value);
    assert.equal(end, varlongSize(value));
    assert.equal(new VarintReader(bytes, 0, end).varlong(), value);
  }
  const other = new Uint8Array(16);
  for (const value of int32s) {
    bytes.fill(0);
    other.fill(0);
    writeVarlong(bytes, 0, value);
    writeVarint(other, 0, value);
    assert.deepEqual(bytes, other);
  }
});

Deno.test("a varlong at the ends of int64 is read as the nearest double", () => {
  const longMax = Uint8Array.of(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
  const longMin = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
  assert.equal(new VarintReader(longMax).varlong(), 2 ** 63);
  assert.equal(new VarintReader(longMin).varlong(), -(2 ** 63));
});

Deno.test("a cut or endless varint marks the reader bad", () => {
  const endless = new Uint8Array(20).fill(0xff);
  for (const read of [(reader: VarintReader) => reader.varint(), (reader: VarintReader) => reader.varlong()]) {
    for (const bytes of [new Uint8Array(0), Uint8Array.of(0x80), endless]) {
      const reader = new VarintReader(bytes);
      assert.equal(read(reader), 0);
      assert.equal(reader.bad, true);
    }
  }
});

Deno.test("skip stays in place for null and marks the reader bad past the end", () => {
  const reader = new VarintReader(new Uint8Array(5));
  reader.skip(-1);
  reader.skip(5);
  assert.deepEqual([reader.at, reader.bad], [5, false]);
  reader.skip(1);
  assert.equal(reader.bad, true);
});
