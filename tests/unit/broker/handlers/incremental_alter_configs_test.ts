import assert from "node:assert/strict";
import { incrementalAlterConfigsHandler } from "../../../../lib/broker/handlers/incremental_alter_configs.ts";
import { getOrCreateTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from "../../../../lib/protocol/messages/incremental_alter_configs.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: incrementalAlterConfigsRequest, response: incrementalAlterConfigsResponse };
const [TOPIC, BROKER] = [2, 4];
const [SET, DELETE, APPEND, SUBTRACT] = [0, 1, 2, 3];

type Change = readonly [name: string, operation: number, value: string | null];

async function alter(
  broker: AdminBroker,
  [resourceType, resourceName]: readonly [type: number, name: string],
  changes: readonly Change[],
  { version = 1, validateOnly = false } = {},
): Promise<number> {
  const configs = changes.map(([name, configOperation, value]) => ({ name, configOperation, value }));
  const reply = await ask(incrementalAlterConfigsHandler(broker), messages, version, {
    resources: [{ resourceType, resourceName, configs }],
    validateOnly,
  });
  const [{ errorCode, errorMessage }] = reply.responses;
  assert.equal(errorCode === ErrorCode.NONE, errorMessage === null);
  return errorCode;
}

Deno.test("IncrementalAlterConfigs changes what it names, at once and for good, in every version", async () => {
  await withAdminBroker(async (broker, restart) => {
    await getOrCreateTopic(broker, "t");
    const topic = [TOPIC, "t"] as const;
    assert.equal(await alter(broker, topic, [["retention.ms", SET, "5"], ["segment.ms", SET, "6"]], { version: 0 }), 0);
    assert.equal(await alter(broker, topic, [["segment.ms", DELETE, null], ["cleanup.policy", APPEND, "compact"]]), 0);
    for (const next of [() => Promise.resolve(broker), restart]) {
      const present = await next();
      const settings = present.topics.get("t")?.settings;
      assert.equal(settings?.["retention.ms"], 5);
      assert.equal(settings?.["segment.ms"], 604800000);
      assert.deepEqual(settings?.["cleanup.policy"], ["delete", "compact"]);
    }
  });
});

Deno.test("IncrementalAlterConfigs subtracts from the list in effect", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    assert.equal(await alter(broker, [TOPIC, "t"], [["cleanup.policy", SUBTRACT, "delete"]]), 0);
    assert.deepEqual(broker.topics.get("t")?.settings["cleanup.policy"], ["compact"]);
  }, { settings: { "log.cleanup.policy": "compact,delete" } });
});

Deno.test("IncrementalAlterConfigs makes all changes of a resource or none, and none with validate_only", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const topic = [TOPIC, "t"] as const;
    const mixed: Change[] = [["retention.ms", SET, "5"], ["no.such", SET, "1"]];
    assert.equal(await alter(broker, topic, mixed), ErrorCode.INVALID_CONFIG);
    assert.equal(await alter(broker, topic, [["retention.ms", SET, "5"]], { validateOnly: true }), 0);
    assert.equal(
      await alter(broker, topic, [["retention.ms", SET, "-2"]], { validateOnly: true }),
      ErrorCode.INVALID_CONFIG,
    );
    assert.equal(broker.topics.get("t")?.settings["retention.ms"], 604800000);
    const conflict: Change[] = [["min.compaction.lag.ms", SET, "2"], ["max.compaction.lag.ms", SET, "1"]];
    assert.equal(await alter(broker, topic, conflict), ErrorCode.INVALID_CONFIG);
  });
});

Deno.test("altered settings of all brokers and of one reach the topics that do not set their own", async () => {
  await withAdminBroker(async (broker, restart) => {
    await getOrCreateTopic(broker, "t");
    assert.equal(await alter(broker, [BROKER, ""], [["message.max.bytes", SET, "5000"]]), 0);
    assert.equal(broker.topics.get("t")?.settings["max.message.bytes"], 5000);
    assert.equal(await alter(broker, [BROKER, "0"], [["message.max.bytes", SET, "6000"]]), 0);
    for (const next of [() => Promise.resolve(broker), restart]) {
      const present = await next();
      assert.equal(present.topics.get("t")?.settings["max.message.bytes"], 6000);
      assert.equal(present.config.get("message.max.bytes"), 6000);
    }
  });
});

Deno.test("IncrementalAlterConfigs tells a broker's read-only setting from an unknown one and from a bad value", async () => {
  await withAdminBroker(async (broker) => {
    const self = [BROKER, "0"] as const;
    assert.equal(await alter(broker, self, [["num.partitions", SET, "5"]]), ErrorCode.INVALID_REQUEST);
    assert.equal(await alter(broker, self, [["no.such", SET, "5"]]), ErrorCode.INVALID_CONFIG);
    assert.equal(await alter(broker, self, [["message.max.bytes", SET, "x"]]), ErrorCode.INVALID_CONFIG);
    assert.equal(broker.config.altered("dynamic-broker").size, 0);
  });
});

Deno.test("IncrementalAlterConfigs leaves a resource alone that is named twice", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const resource = {
      resourceType: TOPIC,
      resourceName: "t",
      configs: [{ name: "retention.ms", configOperation: SET, value: "5" }],
    };
    const { responses } = await ask(incrementalAlterConfigsHandler(broker), messages, 1, {
      resources: [resource, resource],
      validateOnly: false,
    });
    assert.deepEqual(responses.map(({ errorCode }) => errorCode), [ErrorCode.INVALID_REQUEST]);
    assert.equal(broker.topics.get("t")?.settings["retention.ms"], 604800000);
  });
});

Deno.test("two alterations of one topic at a time are both kept", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    await Promise.all([
      alter(broker, [TOPIC, "t"], [["retention.ms", SET, "5"]]),
      alter(broker, [TOPIC, "t"], [["segment.ms", SET, "6"]]),
    ]);
    const settings = broker.topics.get("t")?.settings;
    assert.deepEqual([settings?.["retention.ms"], settings?.["segment.ms"]], [5, 6]);
  });
});
