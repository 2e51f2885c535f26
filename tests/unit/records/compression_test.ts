import assert from "node:assert/strict";
import { zstdCompressSync } from "node:zlib";
import { ErrorCode } from "../../../lib/errors.ts";
import { Compression, compressionOf } from "../../../lib/records/batch.ts";
import { compress, compressionName, decompress, isKnownCompression } from "../../../lib/records/compression.ts";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { recordsOf } from "../../../lib/records/record.ts";
import { compressible, damaged, framesOf, javaBatch, largeValue, noise, seeded, text } from "./golden.ts";

const kinds = Object.entries(Compression) as [keyof typeof Compression, Compression][];
const packing = kinds.filter(([name]) => name !== "none");
const limit = 10_000_000;

function faultOf(result: Uint8Array | RecordsFault): RecordsFault {
  assert.ok(result instanceof RecordsFault, "expected a fault");
  return result;
}

for (const [name, kind] of kinds) {
  Deno.test(`${name}: bytes of many sizes come back as they were`, () => {
    const random = seeded(kind + 1);
    for (const length of [0, 1, 5, 13, 100, 5000, 32768, 65535, 65536, 65537, 200_000]) {
      const bytes = compressible(random, length);
      assert.deepEqual(decompress(kind, compress(kind, bytes), limit), bytes, `${length} bytes`);
    }
  });
}

for (const [name, kind] of packing) {
  Deno.test(`${name}: a large batch of Java's producer unpacks`, () => {
    const batch = javaBatch(`v2 ${name as "gzip"} large`);
    assert.equal(compressionOf(batch), kind);
    const records = recordsOf(batch);
    assert.ok(!(records instanceof RecordsFault));
    assert.deepEqual(records[0].value, largeValue);
  });

  Deno.test(`${name}: what unpacks to more than the limit is refused, what just fits is taken`, () => {
    const packed = compress(kind, new Uint8Array(100_000));
    assert.match(faultOf(decompress(kind, packed, 99_999)).message, /more than 99999 bytes/);
    assert.equal((decompress(kind, packed, 100_000) as Uint8Array).length, 100_000);
  });

  Deno.test(`${name}: cut and damaged input ends in the right bytes or in a fault, never in an exception`, () => {
    const random = seeded(kind + 77);
    const bytes = compressible(random, 3000);
    const packed = compress(kind, bytes);
    for (const broken of damaged(packed, random, 500)) {
      const result = decompress(kind, broken, 20_000);
      if (result instanceof RecordsFault) assert.equal(result.errorCode, ErrorCode.INVALID_RECORD);
      else assert.ok(result.length <= 20_000);
    }
  });

  Deno.test(`${name}: input that was cut anywhere is a fault`, () => {
    const packed = compress(kind, compressible(seeded(kind), 500));
    for (let length = 1; length < packed.length; length++) {
      const result = decompress(kind, packed.subarray(0, length), limit);
      // Snappy's framing has no end mark: cut between its header and a block it is a shorter stream.
      if (kind === Compression.snappy && length === 16) continue;
      faultOf(result);
    }
  });

  Deno.test(`${name}: noise does not unpack to anything`, () => {
    faultOf(decompress(kind, noise, limit));
  });
}

for (const codec of ["lz4", "zstd", "gzip"] as const) {
  for (const [name, frame] of framesOf(codec)) {
    Deno.test(`${codec} of other libraries unpacks: ${name}`, () => {
      assert.deepEqual(decompress(Compression[codec], frame, limit), name === "noise" ? noise : text);
    });

    Deno.test(`${codec} of other libraries keeps to the limit: ${name}`, () => {
      const expected = name === "noise" ? noise : text;
      faultOf(decompress(Compression[codec], frame, expected.length - 1));
      assert.deepEqual(decompress(Compression[codec], frame, expected.length), expected);
    });
  }
}

Deno.test("zstd: a bomb is refused without unpacking it", () => {
  const bomb = zstdCompressSync(new Uint8Array(50_000_000));
  assert.ok(bomb.length < 10_000);
  assert.match(faultOf(decompress(Compression.zstd, bomb, 1_000_000)).message, /more than 1000000/);
});

Deno.test("zstd: the limit counts all frames together", () => {
  const frame = zstdCompressSync(new Uint8Array(600));
  const two = new Uint8Array(frame.length * 2);
  two.set(frame);
  two.set(frame, frame.length);
  assert.equal((decompress(Compression.zstd, two, 1200) as Uint8Array).length, 1200);
  faultOf(decompress(Compression.zstd, two, 1199));
  faultOf(decompress(Compression.zstd, two, 600));
});

Deno.test("zstd: a skippable frame is stepped over", () => {
  const frame = zstdCompressSync(text);
  const skippable = Uint8Array.of(0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9);
  const both = new Uint8Array(skippable.length + frame.length);
  both.set(skippable);
  both.set(frame, skippable.length);
  assert.deepEqual(decompress(Compression.zstd, both, limit), text);
  faultOf(decompress(Compression.zstd, skippable.subarray(0, 10), limit));
});

Deno.test("a compression kind that Kafka does not know is refused as unsupported", () => {
  for (const kind of [5, 6, 7, -1]) {
    assert.equal(faultOf(decompress(kind, text, limit)).errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
    assert.equal(isKnownCompression(kind), false);
    assert.equal(compressionName(kind), null);
  }
  assert.deepEqual([0, 1, 2, 3, 4].map(compressionName), ["none", "gzip", "snappy", "lz4", "zstd"]);
});
