import assert from "node:assert/strict";
import {
  brokerSetting,
  brokerSettings,
  explainUnknownBrokerSetting,
  explainUnknownTopicSetting,
  nearestName,
} from "../../../lib/broker/config_definitions.ts";
import {
  formatSetting,
  NO_LIMIT_LONG,
  parseSetting,
  parseSettingValue,
  type Setting,
} from "../../../lib/broker/config_definitions_setting.ts";
import { brokerSynonyms, topicSetting, topicSettings } from "../../../lib/broker/config_definitions_topic.ts";

const allSettings: readonly Setting[] = [...Object.values(brokerSettings), ...Object.values(topicSettings)];

function parsed(name: string, text: string): unknown {
  const setting = topicSetting(name) ?? brokerSetting(name);
  assert.ok(setting !== undefined, name);
  const outcome = parseSetting(setting, text);
  return outcome.ok ? outcome.value : null;
}

function refusalOf(name: string, text: string): string {
  const setting = topicSetting(name) ?? brokerSetting(name);
  assert.ok(setting !== undefined, name);
  const outcome = parseSetting(setting, text);
  assert.ok(!outcome.ok, `${name}=${text} should have been refused`);
  return outcome.message;
}

Deno.test("every default passes its own setting's check and survives being written and read", () => {
  for (const setting of allSettings) {
    const text = formatSetting(setting);
    if (text === null) continue;
    assert.deepEqual(parseSetting(setting, text), { ok: true, value: setting.defaultValue }, setting.name);
  }
});

Deno.test("every setting has a sentence of documentation", () => {
  for (const { name, doc } of allSettings) assert.match(doc, /^[A-Z].*\.$|^[a-z][a-zA-Z.]* .*\.$/, name);
});

Deno.test("every broker synonym of a topic setting exists and has the same type, or an int where a unit differs", () => {
  for (const [name, synonyms] of Object.entries(brokerSynonyms)) {
    for (const synonym of synonyms) {
      const setting = brokerSetting(synonym.name);
      assert.ok(setting !== undefined, synonym.name);
      const topicType = topicSetting(name)?.type;
      assert.equal(setting.type, synonym.factor === 1 ? topicType : "int", synonym.name);
    }
  }
});

Deno.test("a topic's default is the default of the broker setting that it falls back to", () => {
  for (const [name, synonyms] of Object.entries(brokerSynonyms)) {
    const first = synonyms.find((synonym) => brokerSetting(synonym.name)?.defaultValue !== null);
    assert.ok(first !== undefined, name);
    const value = brokerSetting(first.name)?.defaultValue;
    const inTopicUnits = typeof value === "number" ? value * first.factor : value;
    assert.deepEqual(inTopicUnits, topicSetting(name)?.defaultValue, name);
  }
});

Deno.test("retention takes -1 for ever and nothing below", () => {
  assert.equal(parsed("retention.ms", "-1"), -1);
  assert.equal(parsed("retention.bytes", "-1"), -1);
  assert.match(refusalOf("retention.ms", "-2"), /retention\.ms.*"-2".*at least -1/);
  assert.match(refusalOf("retention.bytes", "-2"), /at least -1/);
});

Deno.test("segment.ms starts at 1 and segment.bytes at 14", () => {
  assert.equal(parsed("segment.ms", "1"), 1);
  assert.equal(parsed("segment.bytes", "14"), 14);
  refusalOf("segment.ms", "0");
  refusalOf("segment.bytes", "13");
});

Deno.test("whole numbers are whole and fit their type", () => {
  for (const text of ["", "1.5", "0x10", "ten", "1e3", "9223372036854775808"]) refusalOf("retention.ms", text);
  refusalOf("max.message.bytes", "2147483648");
  assert.equal(parsed("max.message.bytes", "2147483647"), 2147483647);
  assert.equal(parsed("retention.ms", " 1000 "), 1000);
  assert.equal(parsed("retention.ms", "+5"), 5);
});

Deno.test("the largest long saturates and is shown as itself", () => {
  const setting = topicSettings["flush.messages"];
  assert.equal(parsed("flush.messages", "9223372036854775807"), NO_LIMIT_LONG);
  assert.equal(formatSetting(setting, NO_LIMIT_LONG), "9223372036854775807");
});

Deno.test("booleans ignore case and take no other words", () => {
  assert.equal(parsed("preallocate", "TRUE"), true);
  assert.equal(parsed("preallocate", "false"), false);
  refusalOf("preallocate", "yes");
});

Deno.test("cleanup.policy is a list of known words and may be empty", () => {
  assert.deepEqual(parsed("cleanup.policy", "compact, delete"), ["compact", "delete"]);
  assert.deepEqual(parsed("cleanup.policy", ""), []);
  assert.deepEqual(parsed("cleanup.policy", "compact,compact"), ["compact", "compact"]);
  refusalOf("cleanup.policy", "shrink");
});

Deno.test("a refused setting takes its default only", () => {
  assert.equal(parsed("remote.storage.enable", "false"), false);
  assert.match(refusalOf("remote.storage.enable", "true"), /tiered storage/);
});

Deno.test("listeners are NAME://HOST:PORT", () => {
  assert.deepEqual(parsed("listeners", "PLAINTEXT://:9092,IN://[::1]:9093"), ["PLAINTEXT://:9092", "IN://[::1]:9093"]);
  refusalOf("listeners", "localhost:9092");
});

Deno.test("YAML values of the fitting type stand for their text", () => {
  const retention = brokerSettings["log.retention.ms"];
  assert.deepEqual(parseSettingValue(retention, 1000), { ok: true, value: 1000 });
  assert.deepEqual(parseSettingValue(brokerSettings["log.cleanup.policy"], ["compact"]), {
    ok: true,
    value: ["compact"],
  });
  assert.deepEqual(parseSettingValue(brokerSettings["auto.create.topics.enable"], false), { ok: true, value: false });
  assert.equal(parseSettingValue(retention, { ms: 5 }).ok, false);
  assert.equal(parseSettingValue(retention, null).ok, false);
});

Deno.test("an unknown name is explained by the nearest known one or by what kaas lacks", () => {
  assert.match(explainUnknownBrokerSetting("log.retention.msec"), /did you mean log\.retention\.ms\?/);
  assert.match(explainUnknownBrokerSetting("remote.log.reader.threads"), /tiered storage/);
  assert.match(explainUnknownTopicSetting("retention.mss"), /did you mean retention\.ms\?/);
  assert.equal(explainUnknownBrokerSetting("zzzzzz"), "unknown setting zzzzzz");
  assert.equal(nearestName("a".repeat(100000), ["num.partitions"]), null);
});
