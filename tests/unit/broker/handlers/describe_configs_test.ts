import assert from "node:assert/strict";
import { describeConfigsHandler } from "../../../../lib/broker/handlers/describe_configs.ts";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { topicSettings } from "../../../../lib/broker/config_definitions_topic.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { describeConfigsRequest, describeConfigsResponse } from "../../../../lib/protocol/messages/describe_configs.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: describeConfigsRequest, response: describeConfigsResponse };
const [TOPIC, BROKER] = [2, 4];

interface Wish {
  readonly type: number;
  readonly name: string;
  readonly keys?: string[] | null;
}

async function describe(broker: AdminBroker, version: number, { type, name, keys = null }: Wish) {
  const { results: [result] } = await ask(describeConfigsHandler(broker), messages, version, {
    resources: [{ resourceType: type, resourceName: name, configurationKeys: keys }],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  return result;
}

async function withTopic(test: (broker: AdminBroker) => Promise<void>, settings = {}): Promise<void> {
  await withAdminBroker(async (broker) => {
    const configs = [{ name: "retention.ms", value: "1000" }];
    await createTopic(broker, { name: "t", numPartitions: 1, replicationFactor: 1, assignments: [], configs });
    await test(broker);
  }, { settings });
}

Deno.test("DescribeConfigs of a topic shows all its settings in every version", async () => {
  await withTopic(async (broker) => {
    for (let version = describeConfigsRequest.minVersion; version <= describeConfigsRequest.maxVersion; version++) {
      const { errorCode, configs } = await describe(broker, version, { type: TOPIC, name: "t" });
      assert.equal(errorCode, ErrorCode.NONE);
      assert.deepEqual(configs.map(({ name }) => name), Object.keys(topicSettings).sort());
      const retention = configs.find(({ name }) => name === "retention.ms");
      assert.equal(retention?.value, "1000");
      assert.ok(configs.every(({ readOnly, isSensitive }) => !readOnly && !isSensitive));
      if (version === 0) assert.equal(retention?.isDefault, false);
      if (version >= 1) assert.equal(retention?.configSource, 1);
      if (version >= 3) {
        assert.ok(configs.every(({ configType, documentation }) => configType > 0 && documentation !== null));
      }
    }
  });
});

Deno.test("DescribeConfigs tells where a topic's value comes from and could come from", async () => {
  await withTopic(async (broker) => {
    const { configs } = await describe(broker, 4, {
      type: TOPIC,
      name: "t",
      keys: ["retention.ms", "file.delete.delay.ms"],
    });
    assert.deepEqual(configs.map(({ name, value, configSource, synonyms }) => [name, value, configSource, synonyms]), [
      ["file.delete.delay.ms", "1000", 4, [
        { name: "log.segment.delete.delay.ms", value: "1000", source: 4 },
        { name: "log.segment.delete.delay.ms", value: "60000", source: 5 },
      ]],
      ["retention.ms", "1000", 1, [
        { name: "retention.ms", value: "1000", source: 1 },
        { name: "log.retention.minutes", value: "7", source: 4 },
        { name: "log.retention.hours", value: "168", source: 5 },
      ]],
    ]);
  }, { "log.segment.delete.delay.ms": 1000, "log.retention.minutes": 7 });
});

Deno.test("DescribeConfigs leaves out synonyms and documentation that are not asked for", async () => {
  await withTopic(async (broker) => {
    const { results: [{ configs }] } = await ask(describeConfigsHandler(broker), messages, 4, {
      resources: [{ resourceType: TOPIC, resourceName: "t", configurationKeys: ["retention.ms"] }],
    });
    assert.deepEqual([configs[0].synonyms, configs[0].documentation], [[], null]);
  });
});

Deno.test("DescribeConfigs leaves out settings that the resource does not have", async () => {
  await withTopic(async (broker) => {
    const { configs } = await describe(broker, 4, { type: TOPIC, name: "t", keys: ["no.such", "segment.ms"] });
    assert.deepEqual(configs.map(({ name }) => name), ["segment.ms"]);
  });
});

Deno.test("DescribeConfigs of this broker tells which settings can be altered", async () => {
  await withTopic(async (broker) => {
    const { errorCode, configs } = await describe(broker, 4, { type: BROKER, name: "0" });
    assert.equal(errorCode, ErrorCode.NONE);
    const byName = new Map(configs.map((config) => [config.name, config]));
    assert.equal(byName.get("num.partitions")?.readOnly, true);
    assert.equal(byName.get("message.max.bytes")?.readOnly, false);
    assert.deepEqual(
      [byName.get("num.partitions")?.value, byName.get("num.partitions")?.configSource],
      ["4", 4],
    );
    assert.deepEqual([byName.get("log.retention.ms")?.value, byName.get("log.retention.ms")?.configSource], [null, 5]);
  }, { "num.partitions": 4 });
});

Deno.test("DescribeConfigs of all brokers shows what was altered for all of them", async () => {
  await withTopic(async (broker) => {
    assert.deepEqual((await describe(broker, 4, { type: BROKER, name: "" })).configs, []);
    await broker.configStore.alter("dynamic-default", () => new Map([["message.max.bytes", 5000]]));
    const { configs } = await describe(broker, 4, { type: BROKER, name: "" });
    assert.deepEqual(configs.map(({ name, value, configSource }) => [name, value, configSource]), [
      ["message.max.bytes", "5000", 3],
    ]);
  });
});

Deno.test("DescribeConfigs refuses resources that are not here", async () => {
  await withTopic(async (broker) => {
    const table: [Wish, number][] = [
      [{ type: TOPIC, name: "nothere" }, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
      [{ type: TOPIC, name: "a b" }, ErrorCode.INVALID_TOPIC_EXCEPTION],
      [{ type: BROKER, name: "1" }, ErrorCode.INVALID_REQUEST],
      [{ type: BROKER, name: "me" }, ErrorCode.INVALID_REQUEST],
      [{ type: 8, name: "0" }, ErrorCode.INVALID_REQUEST],
      [{ type: 16, name: "x" }, ErrorCode.INVALID_REQUEST],
      [{ type: 32, name: "g" }, ErrorCode.INVALID_REQUEST],
      [{ type: 3, name: "x" }, ErrorCode.INVALID_REQUEST],
    ];
    for (const [wish, code] of table) {
      const { errorCode, errorMessage, configs } = await describe(broker, 4, wish);
      assert.equal(errorCode, code, JSON.stringify(wish));
      assert.ok(errorMessage !== null);
      assert.deepEqual(configs, []);
    }
  });
});
