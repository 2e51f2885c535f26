import assert from "node:assert/strict";
import { crc32 } from "node:zlib";
import { ErrorCode, errorName } from "../../../lib/errors.ts";
import {
  applyTimestampType,
  checkBatch,
  Compression,
  compressionOf,
  magic,
  maxTimestamp,
  setBaseOffset,
  sizeInBytes,
  writeInt32,
} from "../../../lib/records/batch.ts";
import { decompress } from "../../../lib/records/compression.ts";
import { buildEndTransactionMarker } from "../../../lib/records/control.ts";
import { RecordsFault } from "../../../lib/records/fault.ts";
import { downConvert, upConvert } from "../../../lib/records/legacy.ts";
import { buildBatch, recordsOf } from "../../../lib/records/record.ts";
import type { ProduceRules } from "../../../lib/records/validate.ts";
import { damaged, type JavaBatch, javaBatch, largeValue, seeded, smallRecords } from "./golden.ts";

const rules: ProduceRules = {
  apiVersion: 2,
  partition: "topic-0",
  nowMs: 1_700_000_000_000,
  maxMessageBytes: 1_048_588,
  timestampType: "createTime",
  timestampBeforeMaxMs: Infinity,
  timestampAfterMaxMs: 3_600_000,
  requiresKeys: false,
};
const kinds = ["none", "gzip", "snappy", "lz4"] as const;
const decoder = new TextDecoder();
const readable = (bytes: Uint8Array | null) => bytes === null ? null : decoder.decode(bytes);

function concatenate(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function converted(messages: Uint8Array, overrides: Partial<ProduceRules> = {}): Uint8Array {
  const outcome = upConvert(messages, { ...rules, ...overrides });
  assert.ok(outcome.kind === "valid", outcome.kind === "refused" ? outcome.message : "");
  assert.equal(checkBatch(outcome.batch, 0), "whole");
  return outcome.batch;
}

function refusal(messages: Uint8Array | null, overrides: Partial<ProduceRules> = {}) {
  const outcome = upConvert(messages, { ...rules, ...overrides });
  assert.ok(outcome.kind === "refused");
  return outcome;
}

function plainRecords(batch: Uint8Array) {
  const found = recordsOf(batch);
  assert.ok(!(found instanceof RecordsFault));
  return found.map(({ timestamp, key, value }) => ({ timestamp, key: readable(key), value: readable(value) }));
}

function expectedRecords(format: 0 | 1) {
  return smallRecords.map(({ timestamp, key, value }) => ({ timestamp: format === 0 ? -1 : timestamp, key, value }));
}

/** Writes the CRC of the message at the head of `message` after a change. */
function sealed(message: Uint8Array): Uint8Array {
  writeInt32(message, 12, crc32(message.subarray(16, sizeInBytes(message))));
  return message;
}

for (const format of [0, 1] as const) {
  for (const name of kinds) {
    Deno.test(`messages of magic ${format} with ${name} become one batch with the same records`, () => {
      const batch = converted(javaBatch(`v${format} ${name}`));
      assert.equal(magic(batch), 2);
      assert.equal(compressionOf(batch), Compression[name]);
      assert.deepEqual(plainRecords(batch), expectedRecords(format));
      assert.equal(maxTimestamp(batch), format === 0 ? -1 : 1700000000250);
      const found = recordsOf(batch);
      assert.ok(!(found instanceof RecordsFault));
      assert.deepEqual(found.map((record) => record.offset), [0, 1, 2, 3]);
    });

    Deno.test(`down-conversion to magic ${format} with ${name} comes back with offsets, keys and values`, () => {
      const batch = buildBatch({ records: smallRecords, compression: Compression[name], baseOffset: 5000 });
      const set = downConvert(batch, format);
      assert.ok(!(set instanceof RecordsFault));
      assert.equal(magic(set), format);
      assert.deepEqual(plainRecords(converted(set)), expectedRecords(format));
      const view = new DataView(set.buffer, set.byteOffset);
      assert.equal(view.getBigInt64(0), name === "none" ? 5000n : 5003n);
    });
  }

  for (const name of ["gzip", "snappy", "lz4"] as const) {
    Deno.test(`a large wrapper of magic ${format} with ${name} unpacks`, () => {
      assert.deepEqual(
        plainRecords(converted(javaBatch(`v${format} ${name} large`)))[0].value,
        readable(largeValue),
      );
    });
  }

  for (const name of ["gzip", "snappy", "lz4"] as const) {
    Deno.test(`down-conversion to magic ${format} with ${name} wraps the very message set that Java wraps`, () => {
      const valueAt = format === 0 ? 26 : 34;
      const unwrap = (wrapper: Uint8Array) =>
        decompress(Compression[name], wrapper.subarray(valueAt), 10_000, { lz4BrokenHeaderChecksum: format === 0 });
      const ours = downConvert(javaBatch(`v2 ${name}`), format);
      assert.ok(!(ours instanceof RecordsFault));
      const java = javaBatch(`v${format} ${name}`);
      const inside = unwrap(ours);
      assert.ok(inside instanceof Uint8Array);
      assert.deepEqual(inside, unwrap(java));
      assert.deepEqual(ours.subarray(0, 8), java.subarray(0, 8));
      assert.deepEqual(ours.subarray(16, valueAt - 4), java.subarray(16, valueAt - 4));
    });
  }

  Deno.test(`uncompressed down-conversion to magic ${format} gives Java's very bytes`, () => {
    assert.deepEqual(downConvert(javaBatch("v2 none"), format), javaBatch(`v${format} none`));
  });
}

Deno.test("a wrapper stamped with append time gives its time to all messages inside", () => {
  const records = plainRecords(converted(javaBatch("v1 gzip log append time"), { timestampAfterMaxMs: 1e12 }));
  assert.deepEqual(records.map((record) => record.timestamp), Array(4).fill(1700000009999));
});

Deno.test("several wrappers of one set become one batch in their order", () => {
  const batch = converted(concatenate(javaBatch("v1 gzip"), javaBatch("v1 none"), javaBatch("v1 gzip")));
  assert.deepEqual(plainRecords(batch), [...expectedRecords(1), ...expectedRecords(1), ...expectedRecords(1)]);
  assert.equal(compressionOf(batch), Compression.gzip);
});

Deno.test("a cut last message is dropped, a set without a whole message is corrupt", () => {
  const whole = javaBatch("v1 none");
  const firstEnd = sizeInBytes(whole);
  assert.deepEqual(plainRecords(converted(whole.subarray(0, firstEnd + 20))), expectedRecords(1).slice(0, 1));
  assert.deepEqual(plainRecords(converted(whole.subarray(0, firstEnd + 3))), expectedRecords(1).slice(0, 1));
  assert.equal(refusal(whole.subarray(0, firstEnd - 1)).errorCode, ErrorCode.CORRUPT_MESSAGE);
  assert.equal(refusal(new Uint8Array(0)).errorCode, ErrorCode.INVALID_RECORD);
  assert.equal(refusal(null).errorCode, ErrorCode.INVALID_RECORD);
});

Deno.test("a wrong CRC-32 is corrupt, outside and inside a wrapper", () => {
  for (const name of ["v0 none", "v1 none", "v0 gzip", "v1 lz4"] as JavaBatch[]) {
    const set = javaBatch(name);
    set[set.length - 1] ^= 1;
    assert.equal(errorName(refusal(set).errorCode), "CORRUPT_MESSAGE", name);
  }
  const inner = javaBatch("v1 none");
  inner[20] ^= 1;
  const wrapper = concatenate(new Uint8Array(34), inner);
  writeInt32(wrapper, 8, wrapper.length - 12);
  wrapper[16] = 1;
  wrapper[17] = Compression.snappy;
  writeInt32(wrapper, 26, -1);
  // A raw snappy literal holds the inner set as it is.
  const literal = concatenate(Uint8Array.of(0x80 | (inner.length & 0x7f), inner.length >> 7, 0xf0, 0), inner);
  literal[3] = inner.length - 1;
  const whole = concatenate(wrapper.subarray(0, 34), literal);
  writeInt32(whole, 8, whole.length - 12);
  writeInt32(whole, 30, literal.length);
  assert.match(refusal(sealed(whole)).message, /wrong CRC/);
  whole[34 + 4 + 20] ^= 1;
  assert.deepEqual(plainRecords(converted(sealed(whole))), expectedRecords(1));
});

Deno.test("impossible sizes, magics and field lengths are corrupt", () => {
  const corrupt: [string, (message: Uint8Array) => void][] = [
    ["size 0", (message) => writeInt32(message, 8, 0)],
    ["size 13", (message) => writeInt32(message, 8, 13)],
    ["negative size", (message) => writeInt32(message, 8, -1)],
    ["magic 3", (message) => message[16] = 3],
    ["magic −1", (message) => message[16] = 255],
    ["key beyond the message", (message) => writeInt32(message, 26, 10_000)],
    ["key of length −2", (message) => writeInt32(message, 26, -2)],
    ["value beyond the message", (message) => writeInt32(message, 35, 12)],
    ["value too short", (message) => writeInt32(message, 35, 10)],
  ];
  for (const [name, change] of corrupt) {
    const set = javaBatch("v1 none");
    change(set);
    if (sizeInBytes(set) > 16) sealed(set);
    assert.equal(errorName(refusal(set).errorCode), "CORRUPT_MESSAGE", name);
  }
});

Deno.test("messages of different magic in one set are invalid", () => {
  const mixed = concatenate(javaBatch("v0 none"), javaBatch("v1 none"));
  assert.equal(refusal(mixed).errorCode, ErrorCode.INVALID_RECORD);
});

Deno.test("zstd and unknown compression in old messages are unsupported", () => {
  for (const kind of [Compression.zstd, 5, 7]) {
    const set = javaBatch("v1 gzip");
    set[17] = kind;
    assert.equal(refusal(sealed(set)).errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
  }
});

Deno.test("a topic's rules hold for converted batches too", () => {
  const keyless = refusal(javaBatch("v1 none"), { requiresKeys: true });
  assert.equal(keyless.errorCode, ErrorCode.INVALID_RECORD);
  assert.deepEqual(keyless.recordErrors.map((error) => error.batchIndex), [1]);
  const late = refusal(javaBatch("v1 snappy"), { timestampAfterMaxMs: 200 });
  assert.equal(late.errorCode, ErrorCode.INVALID_TIMESTAMP);
  assert.deepEqual(late.recordErrors.map((error) => error.batchIndex), [1]);
  assert.equal(refusal(javaBatch("v0 none"), { maxMessageBytes: 60 }).errorCode, ErrorCode.MESSAGE_TOO_LARGE);
});

Deno.test("a batch of magic 2 in an old request is checked as it is", () => {
  assert.deepEqual(converted(javaBatch("v2 gzip")), javaBatch("v2 gzip"));
  assert.equal(refusal(javaBatch("v2 zstd")).errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
});

Deno.test("upConvert never throws, whatever the bytes", () => {
  const random = seeded(51);
  for (const format of [0, 1] as const) {
    for (const name of kinds) {
      for (const broken of damaged(javaBatch(`v${format} ${name}`), random, 300)) {
        if (broken.length > 30 && random() < 0.8) {
          writeInt32(broken, 8, broken.length - 12);
          sealed(broken);
        }
        const outcome = upConvert(broken, rules);
        assert.ok(outcome.kind === "valid" || outcome.errorCode > 0);
      }
    }
  }
});

Deno.test("down-conversion leaves out control batches, batches without records and what lies before the offset", () => {
  const first = buildBatch({ records: [{ value: "a" }, { value: "b" }, { value: "c" }] });
  const marker = buildEndTransactionMarker(
    { result: "commit", producerId: 1, producerEpoch: 0, coordinatorEpoch: 0 },
    5,
  );
  const empty = buildBatch({ records: [], baseOffset: 4, lastOffsetDelta: 3 });
  const last = buildBatch({ records: [{ value: "d" }], baseOffset: 8, compression: Compression.gzip });
  setBaseOffset(marker, 0, 3);
  const set = downConvert(concatenate(first, marker, empty, last), 1, 1);
  assert.ok(!(set instanceof RecordsFault));
  assert.deepEqual(plainRecords(converted(set)).map((record) => record.value), ["b", "c", "d"]);
  assert.equal(new DataView(set.buffer, set.byteOffset).getBigInt64(0), 1n);
  assert.deepEqual(downConvert(marker, 0), new Uint8Array(0));
});

Deno.test("down-conversion to magic 1 carries append time, to magic 0 no time", () => {
  const batch = buildBatch({ records: smallRecords, compression: Compression.lz4 });
  applyTimestampType(batch, 0, "logAppendTime", 1700000001111);
  const set = downConvert(batch, 1);
  assert.ok(!(set instanceof RecordsFault));
  assert.equal(set[17], Compression.lz4 | 8);
  assert.deepEqual(plainRecords(converted(set)).map((record) => record.timestamp), Array(4).fill(1700000001111));
  const old = downConvert(batch, 0);
  assert.ok(!(old instanceof RecordsFault));
  assert.equal(old[17], Compression.lz4);
});

Deno.test("lz4 for magic 0 has the header checksum that those clients compute", () => {
  const set = downConvert(javaBatch("v2 lz4"), 0);
  assert.ok(!(set instanceof RecordsFault));
  const java = javaBatch("v0 lz4");
  assert.deepEqual(set.subarray(26, 33), java.subarray(26, 33));
  const next = downConvert(javaBatch("v2 lz4"), 1);
  assert.ok(!(next instanceof RecordsFault));
  assert.deepEqual(next.subarray(34, 41), javaBatch("v1 lz4").subarray(34, 41));
});

Deno.test("zstd cannot be down-converted, and cut batches are a fault", () => {
  for (const format of [0, 1] as const) {
    const zstd = downConvert(javaBatch("v2 zstd"), format);
    assert.ok(zstd instanceof RecordsFault);
    assert.equal(zstd.errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
    assert.ok(downConvert(javaBatch("v2 none").subarray(0, 100), format) instanceof RecordsFault);
    assert.ok(downConvert(new Uint8Array(100), format) instanceof RecordsFault);
  }
});
