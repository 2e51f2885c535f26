/**
 * Changes of topics and settings against a machine that stops after the 1st, 2nd … last disk call of a fixed history.
 *
 * The history is a list of steps; each leaves the world in a state that can be written down. After the crash and a
 * restart the world must be in the state after the last answered step or in the one after the step that was under way:
 * nothing answered is lost, nothing is half done. (Of several partitions that are added at once, some may come.)
 */

import assert from "node:assert/strict";
import { BrokerConfig } from "../../lib/broker/broker_config.ts";
import { ConfigStore } from "../../lib/broker/config_store.ts";
import { planTopic } from "../../lib/broker/topic_plan.ts";
import { Topics } from "../../lib/broker/topics.ts";
import type { Disk } from "../../lib/disk/disk.ts";
import { silentLogger } from "../../lib/observability/logger.ts";
import { FolderTopicStore } from "../../lib/storage/topic_store.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

interface World {
  readonly topics: Topics;
  readonly configStore: ConfigStore;
  readonly config: BrokerConfig;
  readonly store: FolderTopicStore;
}

async function start(disk: Disk, random: SeededRandom): Promise<World> {
  const config = BrokerConfig.of();
  const logger = silentLogger;
  await disk.makeFolder("data/__cluster");
  const configStore = await ConfigStore.load({ disk, folder: "data/__cluster/configs", nodeId: 0, config, logger });
  const store = new FolderTopicStore({ disk, dataFolder: "data", clock: new SimulatedClock(), random, logger });
  const topics = await Topics.load({ store, config, random, logger });
  return { topics, configStore, config, store };
}

/** All that clients can see of topics and altered settings, but for the ids, which are random. */
function picture({ topics, config }: World): string {
  const seen = Array.from(
    topics.all(),
    ({ name, partitionCount, settings }) => `${name} ${partitionCount} ${settings["retention.ms"]}`,
  );
  return [...seen.sort(), `max ${config.get("message.max.bytes")}`].join("; ");
}

type Step = (world: World) => Promise<object | null>;

const create = (name: string, numPartitions: number, retentionMs: number): Step => ({ topics, config }) => {
  const configs = [{ name: "retention.ms", value: String(retentionMs) }];
  const wish = { name, numPartitions, replicationFactor: 1, assignments: [], configs };
  return topics.create(
    name,
    () => planTopic(wish, { namesLike: (key) => topics.namesLike(key), brokerIds: [0], config }),
  );
};
const present = ({ topics }: World, name: string) => {
  const topic = topics.get(name);
  assert.ok(topic !== undefined, name);
  return topic;
};
const steps: readonly Step[] = [
  create("a", 2, 10),
  create("b", 1, 20),
  (world) => world.topics.configure(present(world, "a"), () => new Map([["retention.ms", 30]])),
  (world) => world.topics.addPartitions(present(world, "a"), 3, () => ({ leaders: new Map() })),
  ({ configStore }) => configStore.alter("dynamic-default", () => new Map([["message.max.bytes", 5000]])),
  (world) => world.topics.delete(present(world, "a")),
  create("a", 1, 40),
  ({ configStore }) => configStore.alter("dynamic-broker", () => new Map([["message.max.bytes", 6000]])),
  (world) => world.topics.delete(present(world, "b")),
];

/** Runs the steps until the first that is refused, which is what a stopped machine looks like. Returns how many were done. */
async function run(world: World, after: (step: number) => void): Promise<number> {
  for (const [index, step] of steps.entries()) {
    const outcome = await step(world);
    if (outcome !== null && "errorCode" in outcome) return index;
    after(index);
  }
  return steps.length;
}

async function freshDisk(seed: number): Promise<{ disk: SimulatedDisk; random: SeededRandom }> {
  const random = new SeededRandom(seed);
  const disk = new SimulatedDisk({ random: random.fork() });
  await disk.makeFolder("data/__cluster");
  await disk.syncFolder("data");
  await disk.syncFolder(".");
  return { disk, random };
}

Deno.test("a crash after any disk call of a history loses no answered change and leaves none half done", async () => {
  const pictures: string[] = [];
  const { disk: whole, random } = await freshDisk(1);
  const world = await start(whole, random);
  pictures.push(picture(world));
  const before = whole.operations;
  assert.equal(await run(world, () => void pictures.push(picture(world))), steps.length);
  await world.store.settled();
  const calls = whole.operations - before;
  assert.equal(new Set(pictures).size, pictures.length, "each step is to be told from the one before");

  for (let call = 1; call <= calls; call++) {
    for (let seed = 1; seed <= 4; seed++) {
      const { disk, random } = await freshDisk(seed);
      const world = await start(disk, random);
      disk.crashAfter(disk.operations + call);
      const answered = await run(world, () => {});
      disk.crash();
      await world.store.settled();
      const after = picture(await start(disk.restart(), random));
      const allowed = pictures.slice(answered, answered + 2);
      assert.ok(
        allowed.includes(after),
        `call ${call}, seed ${seed}: ${answered} answered, found ${after}\n${disk.log().join("\n")}`,
      );
    }
  }
});
