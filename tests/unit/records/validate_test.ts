import assert from "node:assert/strict";
import { ErrorCode, errorName } from "../../../lib/errors.ts";
import { Compression, HEADER_BYTES, sealCrc, writeInt16, writeInt32, writeInt64 } from "../../../lib/records/batch.ts";
import { buildBatch, type RecordInput } from "../../../lib/records/record.ts";
import { type ProduceRules, validateProduced } from "../../../lib/records/validate.ts";
import { damaged, javaBatch, seeded } from "./golden.ts";

const nowMs = 1_700_000_000_000;
const rules: ProduceRules = {
  apiVersion: 9,
  partition: "topic-0",
  nowMs,
  maxMessageBytes: 1_048_588,
  timestampType: "createTime",
  timestampBeforeMaxMs: Infinity,
  timestampAfterMaxMs: 3_600_000,
  requiresKeys: false,
};
const kinds = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

function concatenate(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A good batch changed by `change`, with a right CRC again. */
function changed(change: (batch: Uint8Array) => void): Uint8Array {
  const batch = javaBatch("v2 transactional");
  change(batch);
  sealCrc(batch);
  return batch;
}

/** Like {@link changed}, for changes after which no CRC can be computed. */
function unsealed(change: (batch: Uint8Array) => void): Uint8Array {
  const batch = javaBatch("v2 none");
  change(batch);
  return batch;
}

function refusal(records: Uint8Array | null, overrides: Partial<ProduceRules> = {}) {
  const outcome = validateProduced(records, { ...rules, ...overrides });
  assert.equal(outcome.kind, "refused");
  assert.ok(outcome.kind === "refused");
  return outcome;
}

function assertRefused(records: Uint8Array | null, code: number, overrides: Partial<ProduceRules> = {}) {
  assert.equal(errorName(refusal(records, overrides).errorCode), errorName(code));
}

function assertValid(records: Uint8Array, overrides: Partial<ProduceRules> = {}) {
  const outcome = validateProduced(records, { ...rules, ...overrides });
  assert.equal(outcome.kind, "valid", outcome.kind === "refused" ? outcome.message : "");
}

for (const name of kinds) {
  Deno.test(`a batch of Java's producer with ${name} is valid as it is`, () => {
    const batch = javaBatch(`v2 ${name}`);
    assert.deepEqual(validateProduced(batch, rules), { kind: "valid", batch });
  });
}

Deno.test("no records, or records of length 0, are invalid", () => {
  assertRefused(null, ErrorCode.INVALID_RECORD);
  assertRefused(new Uint8Array(0), ErrorCode.INVALID_RECORD);
});

Deno.test("two batches are invalid", () => {
  assertRefused(concatenate(javaBatch("v2 none"), javaBatch("v2 gzip")), ErrorCode.INVALID_RECORD);
  assertRefused(concatenate(javaBatch("v2 none"), javaBatch("v1 none")), ErrorCode.INVALID_RECORD);
});

Deno.test("bytes behind the batch that are no whole batch are left out", () => {
  const batch = javaBatch("v2 none");
  for (const rest of [Uint8Array.of(1), new Uint8Array(16), javaBatch("v2 gzip").subarray(0, 80)]) {
    assert.deepEqual(validateProduced(concatenate(batch, rest), rules), { kind: "valid", batch });
  }
  assertRefused(concatenate(batch, new Uint8Array(30)), ErrorCode.CORRUPT_MESSAGE);
});

Deno.test("messages of magic 0 and 1 are invalid from Produce v3 on", () => {
  assertRefused(javaBatch("v0 none"), ErrorCode.INVALID_RECORD);
  assertRefused(javaBatch("v1 gzip"), ErrorCode.INVALID_RECORD);
});

Deno.test("an unknown magic is corrupt", () => {
  for (const magic of [3, 127, 128, 255]) {
    assertRefused(changed((batch) => batch[16] = magic), ErrorCode.CORRUPT_MESSAGE);
  }
});

Deno.test("a wrong CRC is corrupt, whichever covered byte changed", () => {
  const good = javaBatch("v2 none");
  for (let at = HEADER_BYTES; at < good.length; at++) {
    const batch = good.slice();
    batch[at] ^= 1;
    assertRefused(batch, ErrorCode.CORRUPT_MESSAGE);
  }
});
Deno.test("base offset and leader epoch as sent do not matter", () => {
  assertValid(changed((batch) => writeInt64(batch, 0, 999)));
  assertValid(changed((batch) => writeInt64(batch, 0, -5)));
  assertValid(changed((batch) => writeInt32(batch, 12, 7)));
});

Deno.test("lengths that are negative, too small or beyond the buffer are refused", () => {
  for (const length of [-1, -2147483648, 0, 1]) {
    assertRefused(unsealed((batch) => writeInt32(batch, 8, length)), ErrorCode.CORRUPT_MESSAGE);
  }
  for (const length of [2, 30, 48]) {
    assertRefused(unsealed((batch) => writeInt32(batch, 8, length)), ErrorCode.CORRUPT_MESSAGE);
  }
  for (const extra of [1, 100, 2147483647 - 200]) {
    const batch = javaBatch("v2 none");
    writeInt32(batch, 8, batch.length - 12 + extra);
    assertRefused(batch, ErrorCode.INVALID_RECORD);
  }
});

Deno.test("a batch of max.message.bytes is valid, one byte more is too large", () => {
  const batch = javaBatch("v2 none");
  assertValid(batch, { maxMessageBytes: batch.length });
  assertRefused(batch, ErrorCode.MESSAGE_TOO_LARGE, { maxMessageBytes: batch.length - 1 });
});

Deno.test("zstd is unsupported before Produce v7", () => {
  assertRefused(javaBatch("v2 zstd"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, { apiVersion: 6 });
  assertRefused(javaBatch("v2 zstd"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, { apiVersion: 3 });
  assertValid(javaBatch("v2 zstd"), { apiVersion: 7 });
  assertValid(javaBatch("v2 lz4"), { apiVersion: 3 });
});

Deno.test("compression types 5 to 7 are unsupported", () => {
  for (const kind of [5, 6, 7]) {
    assertRefused(changed((batch) => batch[22] |= kind), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
  }
});

Deno.test("a count that is not positive or does not fit the offsets is invalid", () => {
  for (const count of [0, -1, 3, 5, 2147483647]) {
    assertRefused(changed((batch) => writeInt32(batch, 57, count)), ErrorCode.INVALID_RECORD);
  }
  for (const delta of [-1, 0, 2, 4, 2147483647]) {
    assertRefused(changed((batch) => writeInt32(batch, 23, delta)), ErrorCode.INVALID_RECORD);
  }
});

Deno.test("control batches from clients are invalid", () => {
  assertRefused(javaBatch("v2 marker commit"), ErrorCode.INVALID_RECORD);
  assertRefused(changed((batch) => batch[22] |= 0x20), ErrorCode.INVALID_RECORD);
});

Deno.test("producer fields must make sense together", () => {
  assertValid(javaBatch("v2 transactional"));
  assertRefused(changed((batch) => writeInt32(batch, 53, -1)), ErrorCode.INVALID_RECORD);
  assertRefused(changed((batch) => writeInt16(batch, 51, -1)), ErrorCode.INVALID_RECORD);
  assertRefused(changed((batch) => writeInt64(batch, 43, -2)), ErrorCode.INVALID_RECORD);
  assertRefused(changed((batch) => writeInt64(batch, 43, -1)), ErrorCode.INVALID_RECORD);
});

const hour = 3_600_000;
const at = (...offsetsMs: number[]): RecordInput[] => offsetsMs.map((ms) => ({ timestamp: nowMs + ms, value: "v" }));

for (const name of kinds) {
  Deno.test(`records too far in the future are named (${name})`, () => {
    const compression = Compression[name];
    assertValid(buildBatch({ records: at(0, hour, -hour), compression }));
    const outcome = refusal(buildBatch({ records: at(0, hour + 1, -5, 2 * hour), compression }));
    assert.equal(outcome.errorCode, ErrorCode.INVALID_TIMESTAMP);
    assert.deepEqual(outcome.recordErrors.map((error) => error.batchIndex), [1, 3]);
    assert.match(outcome.recordErrors[0].message, new RegExp(`Timestamp ${nowMs + hour + 1} of message with offset 1`));
  });

  Deno.test(`records too far in the past are named, also behind a newer first record (${name})`, () => {
    const limits = { timestampBeforeMaxMs: hour };
    const compression = Compression[name];
    assertValid(buildBatch({ records: at(0, -hour), compression }), limits);
    const outcome = refusal(buildBatch({ records: at(0, -hour - 1, 5), compression }), limits);
    assert.equal(outcome.errorCode, ErrorCode.INVALID_TIMESTAMP);
    assert.deepEqual(outcome.recordErrors.map((error) => error.batchIndex), [1]);
  });
}

Deno.test("records without timestamp pass the limits", () => {
  assertValid(buildBatch({ records: [{ value: "a" }, { value: "b" }] }), { timestampBeforeMaxMs: 1 });
});

Deno.test("limits of Long.MAX are none, and with append time there are none", () => {
  const old = buildBatch({ records: [{ timestamp: 0 }] });
  const future = buildBatch({ records: [{ timestamp: nowMs * 3 }] });
  assertValid(old, { timestampBeforeMaxMs: 2 ** 63 });
  assertValid(future, { timestampAfterMaxMs: 2 ** 63 });
  assertValid(old, { timestampBeforeMaxMs: 1, timestampType: "logAppendTime" });
  assertValid(future, { timestampType: "logAppendTime" });
});

Deno.test("a max timestamp out of range that no record has is refused all the same", () => {
  const outcome = refusal(buildBatch({ records: at(0), maxTimestamp: nowMs * 2 }));
  assert.equal(outcome.errorCode, ErrorCode.INVALID_TIMESTAMP);
  assert.deepEqual(outcome.recordErrors, []);
});

for (const name of kinds) {
  Deno.test(`a compacted topic refuses the whole batch and names the records without key (${name})`, () => {
    const outcome = refusal(javaBatch(`v2 ${name}`), { requiresKeys: true });
    assert.equal(outcome.errorCode, ErrorCode.INVALID_RECORD);
    assert.deepEqual(outcome.recordErrors.map((error) => error.batchIndex), [1]);
    assert.match(outcome.recordErrors[0].message, /Compacted topic cannot accept message without key .* topic-0/);
    const keyed = buildBatch({ records: [{ key: "" }, { key: "k" }], compression: Compression[name] });
    assertValid(keyed, { requiresKeys: true });
  });
}

Deno.test("records that cannot be read are invalid where a rule needs to read them", () => {
  const broken = changed((batch) => batch[61] = 0xff);
  assertValid(broken);
  assertRefused(broken, ErrorCode.INVALID_RECORD, { requiresKeys: true });
  const notGzip = changed((batch) => batch[22] |= Compression.gzip);
  assertRefused(notGzip, ErrorCode.INVALID_RECORD, { requiresKeys: true });
});

Deno.test("a bomb is invalid where a rule needs to read its records", () => {
  const bomb = buildBatch({ records: [{ key: "k", value: new Uint8Array(500_000) }], compression: Compression.zstd });
  assertValid(bomb, { requiresKeys: true });
  assertRefused(bomb, ErrorCode.INVALID_RECORD, { requiresKeys: true, maxUnpackedBytes: 400_000 });
});

Deno.test("a refusal names 1000 records at most", () => {
  const records = Array.from({ length: 5000 }, () => ({ value: "" }));
  assert.equal(refusal(buildBatch({ records }), { requiresKeys: true }).recordErrors.length, 1000);
});

Deno.test("validateProduced never throws, whatever the bytes", () => {
  const random = seeded(41);
  for (const name of kinds) {
    for (const broken of damaged(javaBatch(`v2 ${name}`), random, 2000)) {
      // With a right CRC the damage reaches everything behind that check.
      if (broken.length > HEADER_BYTES && random() < 0.8) {
        writeInt32(broken, 8, broken.length - 12);
        sealCrc(broken);
      }
      const outcome = validateProduced(broken, { ...rules, requiresKeys: true, timestampBeforeMaxMs: hour });
      assert.ok(outcome.kind === "valid" || outcome.errorCode > 0);
    }
  }
});
