import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { ConfigStore } from "../../../lib/broker/config_store.ts";
import { refuse } from "../../../lib/broker/refusal.ts";
import { readJson, replaceJson } from "../../../lib/disk/atomic_replace.ts";
import { realDisk } from "../../../lib/disk/real_disk.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { silentLogger } from "../../../lib/observability/logger.ts";

async function withFolder(
  test: (open: () => Promise<{ store: ConfigStore; config: BrokerConfig }>, folder: string) => Promise<void>,
) {
  const folder = await Deno.makeTempDir();
  try {
    await test(async () => {
      const config = BrokerConfig.of();
      const options = { disk: realDisk, folder: `${folder}/configs`, nodeId: 3, config, logger: silentLogger };
      return { store: await ConfigStore.load(options), config };
    }, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("what ConfigStore.alter() answers null to is in effect, and still is after a restart", async () => {
  await withFolder(async (open) => {
    const { store, config } = await open();
    assert.equal(await store.alter("dynamic-default", () => new Map([["log.retention.ms", 1000]])), null);
    assert.equal(
      await store.alter("dynamic-broker", () => new Map([["log.cleanup.policy", ["compact", "delete"]]])),
      null,
    );
    for (const present of [config, (await open()).config]) {
      assert.equal(present.get("log.retention.ms"), 1000);
      assert.deepEqual(present.get("log.cleanup.policy"), ["compact", "delete"]);
    }
  });
});

Deno.test("a refused alteration changes nothing", async () => {
  await withFolder(async (open) => {
    const { store, config } = await open();
    const refusal = refuse(ErrorCode.INVALID_CONFIG, "no");
    assert.equal(await store.alter("dynamic-default", () => refusal), refusal);
    assert.equal(config.altered("dynamic-default").size, 0);
  });
});

Deno.test("alterations run one after the other, each on what the one before left", async () => {
  await withFolder(async (open) => {
    const { store, config } = await open();
    const more = (bytes: number) =>
      store.alter(
        "dynamic-default",
        (present) => new Map([["message.max.bytes", Number(present.get("message.max.bytes") ?? 0) + bytes]]),
      );
    await Promise.all([more(100), more(20), more(3)]);
    assert.equal(config.get("message.max.bytes"), 123);
  });
});

Deno.test("settings of a newer kaas in the file have no effect and are kept", async () => {
  await withFolder(async (open, folder) => {
    await Deno.mkdir(`${folder}/configs`);
    const path = `${folder}/configs/brokers.json`;
    await replaceJson(realDisk, path, { version: 1, settings: { "from.the.future": "1", "message.max.bytes": "77" } });
    const { store, config } = await open();
    assert.equal(config.get("message.max.bytes"), 77);
    await store.alter("dynamic-default", () => new Map([["message.max.bytes", 88]]));
    const file = await readJson(realDisk, path, (json) => json as { settings: Record<string, string> });
    assert.deepEqual(file?.settings, { "from.the.future": "1", "message.max.bytes": "88" });
  });
});
