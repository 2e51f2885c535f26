import assert from "node:assert/strict";
import { alterConfigsHandler } from "../../../../lib/broker/handlers/alter_configs.ts";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { alterConfigsRequest, alterConfigsResponse } from "../../../../lib/protocol/messages/alter_configs.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: alterConfigsRequest, response: alterConfigsResponse };
const TOPIC = 2;

async function alter(broker: AdminBroker, version: number, texts: Record<string, string | null>, validateOnly = false) {
  const configs = Object.entries(texts).map(([name, value]) => ({ name, value }));
  const resources = [{ resourceType: TOPIC, resourceName: "t", configs }];
  const { responses } = await ask(alterConfigsHandler(broker), messages, version, { resources, validateOnly });
  return responses[0].errorCode;
}

async function withTopic(test: (broker: AdminBroker) => Promise<void>): Promise<void> {
  await withAdminBroker(async (broker) => {
    const configs = [{ name: "retention.ms", value: "1000" }];
    await createTopic(broker, { name: "t", numPartitions: 1, replicationFactor: 1, assignments: [], configs });
    await test(broker);
  });
}

Deno.test("AlterConfigs replaces: what it does not name falls back to the default, in every version", async () => {
  for (let version = alterConfigsRequest.minVersion; version <= alterConfigsRequest.maxVersion; version++) {
    await withTopic(async (broker) => {
      assert.equal(await alter(broker, version, { "segment.ms": "6" }), ErrorCode.NONE);
      const settings = broker.topics.get("t")?.settings;
      assert.deepEqual([settings?.["retention.ms"], settings?.["segment.ms"]], [604800000, 6]);
    });
  }
});

Deno.test("AlterConfigs changes nothing where anything is wrong or with validate_only", async () => {
  await withTopic(async (broker) => {
    assert.equal(await alter(broker, 2, { "segment.ms": "6", "no.such": "1" }), ErrorCode.INVALID_CONFIG);
    assert.equal(await alter(broker, 2, { "segment.ms": "0" }), ErrorCode.INVALID_CONFIG);
    assert.equal(await alter(broker, 2, { "segment.ms": null }), ErrorCode.INVALID_REQUEST);
    assert.equal(await alter(broker, 2, { "segment.ms": "6" }, true), ErrorCode.NONE);
    const settings = broker.topics.get("t")?.settings;
    assert.deepEqual([settings?.["retention.ms"], settings?.["segment.ms"]], [1000, 604800000]);
  });
});
