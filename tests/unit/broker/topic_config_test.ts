import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import {
  brokerDefault,
  effectiveSettings,
  layersOfTopicSetting,
  overridesConflict,
  overridesFromJson,
  overridesToJson,
  parseOverrides,
  type TopicOverrides,
} from "../../../lib/broker/topic_config.ts";
import { logConfigOf } from "../../../lib/broker/topic_log_config.ts";

function overrides(texts: Record<string, string>): TopicOverrides {
  const parsed = parseOverrides(Object.entries(texts));
  assert.ok(!("errorCode" in parsed));
  return parsed;
}

Deno.test("a topic's retention.ms falls back to ms, then minutes, then hours of the broker", () => {
  const all = { "log.retention.hours": 1, "log.retention.minutes": 2, "log.retention.ms": 3 };
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of(all)), 3);
  const { "log.retention.ms": _, ...noMs } = all;
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of(noMs)), 120000);
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of({ "log.retention.hours": 1 })), 3600000);
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of()), 604800000);
});

Deno.test("for ever is -1 in every unit", () => {
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of({ "log.retention.hours": -1 })), -1);
  assert.equal(brokerDefault("retention.ms", BrokerConfig.of({ "log.retention.minutes": -1 })), -1);
});

Deno.test("a topic's own setting is stronger than the broker's", () => {
  const broker = BrokerConfig.of({ "message.max.bytes": 500 });
  assert.equal(effectiveSettings(new Map(), broker)["max.message.bytes"], 500);
  const own = overrides({ "max.message.bytes": "700" });
  assert.equal(effectiveSettings(own, broker)["max.message.bytes"], 700);
  assert.deepEqual(layersOfTopicSetting("max.message.bytes", own, broker), [
    { name: "max.message.bytes", layer: "topic", value: 700 },
    { name: "message.max.bytes", layer: "static", value: 500 },
    { name: "message.max.bytes", layer: "default", value: 1048588 },
  ]);
});

Deno.test("an unknown topic setting and a bad value are INVALID_CONFIG", () => {
  assert.equal((parseOverrides([["retention.mss", "1"]]) as { errorCode: number }).errorCode, 40);
  assert.equal((parseOverrides([["retention.ms", "-2"]]) as { errorCode: number }).errorCode, 40);
});

Deno.test("a minimum compaction lag above the maximum is a conflict", () => {
  const broker = BrokerConfig.of();
  const bad = overrides({ "min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5" });
  assert.equal(overridesConflict(bad, broker)?.errorCode, 40);
  assert.equal(
    overridesConflict(overrides({ "min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5" }), broker),
    null,
  );
});

Deno.test("overrides survive the topic's config file", () => {
  const own = overrides({
    "retention.ms": "1000",
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0.25",
    "preallocate": "true",
    "flush.messages": "9223372036854775807",
  });
  const json = overridesToJson(own);
  assert.equal(json.retentionMs, 1000);
  assert.equal(json.cleanupPolicy, "compact,delete");
  assert.deepEqual(overridesFromJson(JSON.parse(JSON.stringify(json))), { overrides: own, foreign: {} });
});

Deno.test("keys of a config file that do not fit have no effect and are handed back", () => {
  const { overrides: own, foreign } = overridesFromJson({ retentionMs: 5, partitions: 3, segmentBytes: "x" });
  assert.deepEqual([...own], [["retention.ms", 5]]);
  assert.deepEqual(foreign, { partitions: 3, segmentBytes: "x" });
});

Deno.test("a log obeys its topic's settings and the broker's producer expiry", () => {
  const broker = BrokerConfig.of({ "producer.id.expiration.ms": 1234 });
  const settings = effectiveSettings(
    overrides({ "segment.bytes": "4096", "message.timestamp.type": "LogAppendTime" }),
    broker,
  );
  const log = logConfigOf(settings, broker);
  assert.equal(log.segmentBytes, 4096);
  assert.equal(log.messageTimestampType, "LogAppendTime");
  assert.equal(log.producerIdExpirationMs, 1234);
});
