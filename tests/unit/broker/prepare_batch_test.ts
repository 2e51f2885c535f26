import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { effectiveSettings, type TopicOverrides } from "../../../lib/broker/topic_config.ts";
import { prepareBatch, storedCodec } from "../../../lib/broker/prepare_batch.ts";
import type { Topic } from "../../../lib/broker/topics.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { Compression, compressionOf } from "../../../lib/records/batch.ts";
import { type BatchInput, buildBatch, recordsOf } from "../../../lib/records/record.ts";
import { javaBatch } from "../records/golden.ts";

const nowMs = 1_700_000_000_000;

function topicWith(overrides: Record<string, unknown> = {}): Topic {
  const settings = effectiveSettings(new Map(Object.entries(overrides)) as TopicOverrides, BrokerConfig.of());
  return { name: "t", settings } as Topic;
}

function prepared(records: Uint8Array | null, topic: Topic, apiVersion = 9): Uint8Array {
  const outcome = prepareBatch(records, topic, 3, { apiVersion, nowMs });
  assert.ok(outcome.kind === "valid", outcome.kind === "refused" ? outcome.message : "");
  return outcome.batch;
}

function refusal(records: Uint8Array | null, topic: Topic, apiVersion = 9) {
  const outcome = prepareBatch(records, topic, 3, { apiVersion, nowMs });
  assert.ok(outcome.kind === "refused");
  return outcome;
}

const batch = (input: Partial<BatchInput> = {}) =>
  buildBatch({ timestamp: nowMs, records: [{ key: "k", value: "v".repeat(1_000) }], ...input });

Deno.test("A batch that follows the topic's rules is the producer's own bytes, not a copy", () => {
  const records = batch({ compression: Compression.gzip });
  for (const topic of [topicWith(), topicWith({ "compression.type": "gzip" })]) {
    const stored = prepared(records, topic);
    assert.deepEqual([stored.buffer === records.buffer, stored.byteOffset, stored.length], [
      ...[true, records.byteOffset, records.length],
    ]);
  }
});

Deno.test("A topic with a codec of its own stores everything with it, and the same records", () => {
  for (const [name, codec] of [["uncompressed", Compression.none], ["lz4", Compression.lz4]] as const) {
    const topic = topicWith({ "compression.type": name });
    assert.equal(storedCodec(topic.settings), codec);
    const records = batch({ compression: Compression.gzip });
    const stored = prepared(records.slice(), topic);
    assert.equal(compressionOf(stored), codec);
    assert.deepEqual(recordsOf(stored), recordsOf(records));
  }
  assert.equal(storedCodec(topicWith().settings), null);
});

Deno.test("A batch that becomes too large in the topic's codec is refused by the size that it would have", () => {
  const topic = topicWith({ "compression.type": "uncompressed", "max.message.bytes": 500 });
  const { errorCode, message } = refusal(batch({ compression: Compression.gzip }), topic);
  assert.equal(errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  assert.match(message, /t-3 takes 1\d\d\d bytes .* more than the 500 that max\.message\.bytes allows/);
});

Deno.test("Old formats are converted, and refused where record batches have to come", () => {
  const old = javaBatch("v1 none");
  assert.ok(Array.isArray(recordsOf(prepared(old.slice(), topicWith(), 2))));
  assert.equal(refusal(old.slice(), topicWith(), 3).errorCode, ErrorCode.INVALID_RECORD);
});

Deno.test("The topic's rules reach the check: size, keys, times", () => {
  const code = (overrides: Record<string, unknown>, input: Partial<BatchInput> = {}) =>
    refusal(batch(input), topicWith(overrides)).errorCode;
  assert.equal(code({ "max.message.bytes": 500 }), ErrorCode.MESSAGE_TOO_LARGE);
  const keyless = { records: [{ value: "v" }] };
  assert.equal(code({ "cleanup.policy": ["compact"] }, keyless), ErrorCode.INVALID_RECORD);
  assert.ok(prepared(batch(keyless), topicWith()));
  assert.equal(code({ "message.timestamp.before.max.ms": 10 }, { timestamp: nowMs - 11 }), ErrorCode.INVALID_TIMESTAMP);
  assert.equal(code({ "message.timestamp.after.max.ms": 10 }, { timestamp: nowMs + 11 }), ErrorCode.INVALID_TIMESTAMP);
  const appended = topicWith({ "message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": 10 });
  assert.ok(
    prepared(batch({ timestamp: 0 }), appended),
    "a producer's time stamp is of no account where ours replaces it",
  );
});

Deno.test("No records are no batch", () => {
  for (const records of [null, new Uint8Array(0)]) {
    for (const version of [2, 3, 9]) {
      assert.equal(prepareBatch(records, topicWith(), 0, { apiVersion: version, nowMs }).kind, "refused");
    }
  }
});
