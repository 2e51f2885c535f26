/**
 * Each durable operation on topics, stopped after its 1st, 2nd … last disk call; then the volume is scanned as a broker
 * does at its start. A topic is there whole or not at all; what resolved stays; nobody else's files are touched.
 */

import assert from "node:assert/strict";
import { DiskError } from "../../lib/disk/disk.ts";
import { HandleRegistry } from "../../lib/disk/handle_registry.ts";
import { FolderTopicStore, type StoredTopic } from "../../lib/storage/topic_store.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedClock } from "./simulated_clock.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

const SURVIVALS = 20;
const HOUR_MS = 60 * 60 * 1000;

const OTHER: StoredTopic = {
  name: "other",
  topicId: "00000000-0000-4000-8000-000000000001",
  config: { retentionMs: 1000 },
  partitions: [0, 1],
};
const TOPIC: StoredTopic = {
  name: "t".repeat(249),
  topicId: "00000000-0000-4000-8000-000000000002",
  config: { segmentBytes: 5000 },
  partitions: [0, 1, 2],
};
const SUCCESSOR: StoredTopic = { ...TOPIC, topicId: "00000000-0000-4000-8000-000000000003", config: {} };

/** What a topic may be after an operation: before it, after it (`null`: there is none). */
interface Operation {
  readonly before: StoredTopic | null;
  readonly after: StoredTopic | null;
  readonly run: (store: FolderTopicStore) => Promise<void>;
}

const operations: Readonly<Record<string, Operation>> = {
  "creating a topic": { before: null, after: TOPIC, run: (store) => store.createTopic(TOPIC) },
  "adding partitions": {
    before: TOPIC,
    after: { ...TOPIC, partitions: [0, 1, 2, 3, 4] },
    run: (store) => store.addPartitions(TOPIC, [3, 4]),
  },
  "changing settings": {
    before: TOPIC,
    after: { ...TOPIC, config: { retentionMs: 7 } },
    run: (store) => store.writeConfig(TOPIC, { retentionMs: 7 }),
  },
  "deleting a topic": {
    before: TOPIC,
    after: null,
    run: async (store) => {
      await store.deleteTopic(TOPIC);
      await store.settled();
    },
  },
};

class TopicWorld {
  readonly clock = new SimulatedClock();
  readonly random: SeededRandom;
  disk: SimulatedDisk;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.disk = new SimulatedDisk({ random: this.random.fork(), clock: this.clock });
  }

  /** A store as a broker that just started has it. */
  store(): FolderTopicStore {
    const logger = { info: () => {}, warn: () => {}, error: () => {} };
    const { clock, random } = this;
    return new FolderTopicStore({ disk: new HandleRegistry(this.disk), dataFolder: "/data", clock, random, logger });
  }

  async prepare(before: StoredTopic | null): Promise<void> {
    await this.disk.makeFolder("/data/not-ours/deep");
    const handle = await this.disk.open("/data/not-ours/deep/file", "create");
    await handle.sync();
    handle.close();
    for (const folder of ["/data/not-ours/deep", "/data/not-ours", "/data", "/"]) await this.disk.syncFolder(folder);
    await this.store().createTopic(OTHER);
    if (before === null) return;
    await this.store().createTopic(before);
    const log = await this.disk.open(`/data/${before.name}/0/00000000-00000000000000000000.log`, "create");
    log.writeSync(0, new Uint8Array(10));
    log.close();
  }

  /** The topic as a scan finds it, after a check that nothing else changed. */
  async topic(): Promise<StoredTopic | null> {
    const found = await this.store().scan();
    assert.deepEqual(found.filter(({ name }) => name !== TOPIC.name), [OTHER]);
    assert.equal((await this.disk.stat("/data/not-ours/deep/file")).isFolder, false);
    return found.find(({ name }) => name === TOPIC.name) ?? null;
  }
}

async function crashAt({ before, after, run }: Operation, point: number, seed: number): Promise<number> {
  const world = new TopicWorld(seed);
  await world.prepare(before);
  const { disk } = world;
  const first = disk.operations;
  disk.crashAfter(first + point);
  const done = await run(world.store()).then(() => true, (error) => {
    if (!(error instanceof DiskError)) throw error;
    return false;
  });
  await disk.settle();
  const calls = disk.operations - first;
  world.disk = disk.restart();

  const left = await world.topic();
  if (done) assert.deepEqual(left, after);
  else assert.ok(isOneOf(left, [before, after]), `neither old nor new: ${JSON.stringify(left)}`);

  // The name can be given away, and sweeping takes leftovers only.
  if (left !== null) await world.store().deleteTopic(left);
  await world.store().createTopic(SUCCESSOR);
  world.disk = world.disk.restart();
  world.clock.advance(2 * HOUR_MS);
  await world.store().sweep();
  assert.deepEqual(await world.topic(), SUCCESSOR);
  assert.deepEqual(await world.disk.list("/data/.deleted").catch(() => []), []);
  return calls;
}

/** Partitions are added one by one: any number of the new ones may be there. */
function isOneOf(left: StoredTopic | null, states: readonly (StoredTopic | null)[]): boolean {
  const plain = (topic: StoredTopic | null) => JSON.stringify(topic && { ...topic, partitions: [] });
  const [before, after] = states.map((topic) => new Set(topic?.partitions));
  if (!states.some((state) => plain(state) === plain(left))) return false;
  if (left === null || states.includes(null)) return states.some((state) => sameTopic(state, left));
  return left.partitions.every((p) => after.has(p)) && [...before].every((p) => left.partitions.includes(p));
}

function sameTopic(a: StoredTopic | null, b: StoredTopic | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

for (const [name, operation] of Object.entries(operations)) {
  Deno.test(`a crash after any disk call of ${name} leaves all of it or nothing`, async () => {
    for (let seed = 0; seed < SURVIVALS; seed++) {
      const calls = await crashAt(operation, Infinity, seed);
      assert.ok(calls >= 4, `only ${calls} calls: the operation did not happen`);
      for (let point = 1; point <= calls; point++) await crashAt(operation, point, seed);
    }
  });
}

Deno.test("no name on the volume grows past 255 bytes", async () => {
  const world = new TopicWorld(1);
  await world.prepare(TOPIC);
  await world.store().deleteTopic(TOPIC);
  const names = world.disk.log().flatMap((line) => line.split(/[ /]/));
  assert.ok(names.some((name) => name.length > 240), "the long name did not occur");
  for (const name of names) assert.ok(new TextEncoder().encode(name).byteLength <= 255, name);
});
