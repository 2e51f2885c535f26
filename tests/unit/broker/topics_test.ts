import assert from "node:assert/strict";
import { createTopic, getOrCreateTopic } from "../../../lib/broker/topic_creation.ts";
import type { Topic } from "../../../lib/broker/topics.ts";
import { readJson, replaceJson } from "../../../lib/disk/atomic_replace.ts";
import { type Disk, DiskError } from "../../../lib/disk/disk.ts";
import { HandleRegistry } from "../../../lib/disk/handle_registry.ts";
import { realDisk } from "../../../lib/disk/real_disk.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { type AdminBroker, appendRecords, withAdminBroker } from "../../support/admin_broker.ts";

async function created(broker: AdminBroker, name: string, numPartitions = 1): Promise<Topic> {
  const wish = { name, numPartitions, replicationFactor: 1, assignments: [], configs: [] };
  const topic = await createTopic(broker, wish);
  assert.ok("topicId" in topic);
  return topic;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** The real disk, on which renames fail with `kind` while that is set. */
function failingDisk(): { disk: Disk; refuseRenames: (kind: "no-space" | "io" | null) => void } {
  let failure: "no-space" | "io" | null = null;
  const rename = (from: string, to: string) =>
    failure === null ? realDisk.rename(from, to) : Promise.reject(new DiskError(failure, "rename", from));
  return { disk: { ...realDisk, rename }, refuseRenames: (kind) => failure = kind };
}

Deno.test("a topic is looked up by name and by id, and by neither after it is deleted", async () => {
  await withAdminBroker(async (broker) => {
    const { topics } = broker;
    const topic = await created(broker, "t");
    assert.equal(topics.get("t"), topic);
    assert.equal(topics.getById(topic.topicId), topic);
    assert.equal(await topics.delete(topic), null);
    assert.equal(topics.get("t"), undefined);
    assert.equal(topics.getById(topic.topicId), undefined);
    assert.equal(topics.size, 0);
  });
});

Deno.test("deleting a topic that was deleted or created anew meanwhile leaves the new one alone", async () => {
  await withAdminBroker(async (broker) => {
    const old = await created(broker, "t");
    const [first, second] = await Promise.all([broker.topics.delete(old), broker.topics.delete(old)]);
    assert.deepEqual([first, second?.errorCode], [null, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
    const anew = await created(broker, "t");
    assert.equal((await broker.topics.delete(old))?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    assert.equal(broker.topics.get("t"), anew);
  });
});

Deno.test("every handle on a topic's files is closed before they go", async () => {
  const disk = new HandleRegistry(realDisk);
  await withAdminBroker(async (broker) => {
    const topic = await created(broker, "t");
    await appendRecords(broker, "t", 3);
    const folder = `${broker.dataFolders[0]}/t`;
    assert.ok(disk.openPaths(folder).length > 0);
    assert.equal(await broker.topics.delete(topic), null);
    assert.equal(await exists(folder), false);
  }, { disk });
});

Deno.test("a topic created anew holds nothing of the one of its name before", async () => {
  await withAdminBroker(async (broker) => {
    const old = await created(broker, "t");
    await appendRecords(broker, "t", 3);
    await broker.topics.delete(old);
    await created(broker, "t");
    const log = await broker.partitions.get("t", 0)?.log();
    assert.ok(typeof log === "object");
    assert.deepEqual([log.logStartOffset, log.highWatermark, log.activeProducers()], [0, 0, []]);
  });
});

Deno.test("a topic that the volume did not take is not there, and can be created later", async () => {
  const { disk, refuseRenames } = failingDisk();
  await withAdminBroker(async (broker) => {
    refuseRenames("no-space");
    const refused = await getOrCreateTopic(broker, "t");
    assert.equal("errorCode" in refused && refused.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(broker.topics.get("t"), undefined);
    refuseRenames(null);
    await created(broker, "t");
  }, { disk });
});

Deno.test("a topic that could not be removed is out of sight, and gives its name free when that is wanted", async () => {
  const { disk, refuseRenames } = failingDisk();
  await withAdminBroker(async (broker, restart) => {
    const first = await created(broker, "t");
    refuseRenames("io");
    assert.equal((await broker.topics.delete(first))?.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(broker.topics.get("t"), undefined);
    refuseRenames(null);
    const second = await created(broker, "t");
    assert.notEqual(second.topicId, first.topicId);
    assert.equal((await restart()).topics.get("t")?.topicId, second.topicId);
  }, { disk });
});

Deno.test("a settings change that the volume did not take is not in effect", async () => {
  const { disk, refuseRenames } = failingDisk();
  await withAdminBroker(async (broker) => {
    const topic = await created(broker, "t");
    refuseRenames("io");
    const outcome = await broker.topics.configure(topic, () => new Map([["retention.ms", 5]]));
    assert.equal("errorCode" in outcome && outcome.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(broker.topics.get("t")?.settings["retention.ms"], 604800000);
  }, { disk });
});

Deno.test("a topic's file keeps the keys that kaas does not know", async () => {
  await withAdminBroker(async (broker, restart) => {
    await created(broker, "t");
    const path = `${broker.dataFolders[0]}/t/.config.json`;
    await replaceJson(realDisk, path, { retentionMs: 5, replicas: 3 });
    const again = await restart();
    const topic = again.topics.get("t");
    assert.equal(topic?.settings["retention.ms"], 5);
    await again.topics.configure(topic, () => new Map([["segment.ms", 6]]));
    assert.deepEqual(await readJson(realDisk, path, (json) => json), { replicas: 3, segmentMs: 6 });
  });
});

Deno.test("an altered broker setting reaches every topic that does not set it, and its listeners", async () => {
  await withAdminBroker(async (broker) => {
    const own = await created(broker, "own");
    await broker.topics.configure(own, () => new Map([["segment.bytes", 2000]]));
    await created(broker, "other");
    const heard: [string, number][] = [];
    broker.topics.subscribe({
      topicConfigured: ({ name, settings }) => void heard.push([name, settings["segment.bytes"]]),
    });
    await broker.configStore.alter("dynamic-default", () => new Map([["log.segment.bytes", 3000]]));
    assert.deepEqual(heard.sort(), [["other", 3000], ["own", 2000]]);
    await broker.configStore.alter("dynamic-default", (present) => new Map([...present, ["max.connections", 5]]));
    assert.equal(heard.length, 2);
  });
});

Deno.test("partitions that a crash kept from being added are made, a folder far behind them is not a partition", async () => {
  await withAdminBroker(async (broker, restart) => {
    await created(broker, "t", 2);
    const folder = `${broker.dataFolders[0]}/t`;
    await Deno.mkdir(`${folder}/4`);
    await Deno.mkdir(`${folder}/2147483647`);
    const again = await restart();
    assert.equal(again.topics.get("t")?.partitionCount, 5);
    assert.ok(await exists(`${folder}/2`) && await exists(`${folder}/3`));
    assert.equal(typeof await again.partitions.get("t", 3)?.log(), "object");
  });
});

Deno.test("a partition whose folder somebody removed is not made anew, and the topic keeps its number", async () => {
  await withAdminBroker(async (broker) => {
    const topic = await created(broker, "t", 3);
    const [folder] = broker.dataFolders;
    for (const removed of [0, 2]) {
      await Deno.remove(`${folder}/t/${removed}`, { recursive: true });
      await broker.topics.reload("t");
      assert.equal(broker.topics.get("t")?.partitionCount, topic.partitionCount);
      assert.equal(await exists(`${folder}/t/${removed}`), false);
    }
  });
});

Deno.test("a topic cannot be created where the data folder is gone, and makes none", async () => {
  await withAdminBroker(async (broker) => {
    const [folder] = broker.dataFolders;
    await Deno.rename(folder, `${folder}-aside`);
    const wish = { name: "t", numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };
    const refusal = await createTopic(broker, wish);
    assert.ok("errorCode" in refusal && refusal.errorCode === ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(await exists(folder), false);
    await Deno.rename(`${folder}-aside`, folder);
  });
});
