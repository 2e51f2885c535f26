import assert from "node:assert/strict";
import { DiskError } from "../../../lib/disk/disk.ts";
import { FolderTopicStore, type StoredTopic } from "../../../lib/storage/topic_store.ts";
import { batchOf, Bench, failing, produce, storageTest } from "./support.ts";

const ids = ["11111111", "22222222", "33333333"].map((head) => `${head}-1111-4111-8111-111111111111`);

function storeOn(bench: Bench, messages: string[] = []): FolderTopicStore {
  let next = 0;
  const note = (message: string, fields?: unknown) => messages.push(`${message} ${JSON.stringify(fields)}`);
  return new FolderTopicStore({
    disk: bench.disk,
    dataFolder: bench.folder,
    clock: bench.clock,
    random: { next: () => 0.5, uuid: () => ids[2 - next++] },
    logger: { info: note, warn: note, error: note },
  });
}

function topic(name: string, changes: Partial<StoredTopic> = {}): StoredTopic {
  return { name, topicId: ids[0], config: {}, partitions: [0], ...changes };
}

storageTest("a topic is found again with its id, settings and partitions", async (bench) => {
  const created = topic("orders", { config: { retentionMs: 1000, cleanupPolicy: "compact" }, partitions: [0, 1, 2] });
  await storeOn(bench).createTopic(created);
  assert.deepEqual(await storeOn(bench).scan(), [created]);
  assert.deepEqual(bench.json("orders/.topic-id.json"), { topicId: ids[0] });
  assert.deepEqual(bench.json("orders/.config.json"), { retentionMs: 1000, cleanupPolicy: "compact" });
});

storageTest("a topic of a taken name is refused and leaves the one that is there alone", async (bench) => {
  const store = storeOn(bench);
  await store.createTopic(topic("t"));
  await assert.rejects(store.createTopic(topic("t", { topicId: ids[1] })), { name: "DiskError", kind: "exists" });
  Deno.mkdirSync(bench.path("empty"));
  await assert.rejects(store.createTopic(topic("empty", { topicId: ids[1] })), { name: "DiskError", kind: "exists" });
  assert.deepEqual((await store.scan()).map((found) => [found.name, found.topicId]), [["t", ids[0]]]);
});

storageTest("creating a topic that fails half-way leaves nothing of it", async (bench) => {
  const store = storeOn(bench);
  for (const operation of ["makeFolder", "open-create", "sync", "rename"]) {
    bench.hooked.hook = failing(operation, /./, "no-space");
    await assert.rejects(store.createTopic(topic("t", { config: { a: 1 } })), { name: "DiskError" });
    bench.hooked.hook = () => {};
    assert.deepEqual(await store.scan(), [], operation);
  }
  await store.createTopic(topic("t"));
});

storageTest("partitions and settings are added to the topic that is meant, and to no other", async (bench) => {
  const store = storeOn(bench);
  await store.createTopic(topic("t"));
  await store.addPartitions({ name: "t", topicId: ids[0] }, [1, 2]);
  await store.writeConfig({ name: "t", topicId: ids[0] }, { segmentBytes: 5 });
  const other = { name: "t", topicId: ids[1] };
  const isGone = (error: unknown) => error instanceof DiskError && error.kind === "not-found";
  await assert.rejects(store.addPartitions(other, [7]), isGone);
  await assert.rejects(store.writeConfig(other, {}), isGone);
  assert.deepEqual(await store.scan(), [topic("t", { config: { segmentBytes: 5 }, partitions: [0, 1, 2] })]);
});

storageTest("a deleted topic frees its name at once; the new one has nothing of the old", async (bench) => {
  const store = storeOn(bench);
  await store.createTopic(topic("t", { config: { a: 1 }, partitions: [0, 1] }));
  Deno.writeTextFileSync(bench.path("t/0/some.log"), "old");
  await store.deleteTopic(topic("t"));
  await store.createTopic(topic("t", { topicId: ids[1] }));
  assert.deepEqual([...Deno.readDirSync(bench.path("t/0"))], []);
  await store.settled();
  assert.deepEqual([...Deno.readDirSync(bench.path(".deleted"))], []);
  assert.deepEqual(await store.scan(), [topic("t", { topicId: ids[1] })]);
});

storageTest("deleting a topic that was made anew meanwhile does nothing", async (bench) => {
  const store = storeOn(bench);
  await store.createTopic(topic("t", { topicId: ids[1] }));
  await store.deleteTopic(topic("t"));
  await store.deleteTopic(topic("never was"));
  assert.equal((await store.scan()).length, 1);
});

storageTest("what the volume does not let go of a deleted topic is removed by a later sweep", async (bench) => {
  const messages: string[] = [];
  const store = storeOn(bench, messages);
  await store.createTopic(topic("t"));
  bench.hooked.hook = failing("remove", /\.deleted/, "not-empty");
  await store.deleteTopic(topic("t"));
  await store.settled();
  await store.sweep();
  assert.deepEqual(await store.scan(), []);
  assert.ok(messages.some((message) => message.includes("could not be removed yet")));
  bench.hooked.hook = () => {};
  await store.sweep();
  assert.deepEqual([...Deno.readDirSync(bench.path(".deleted"))], []);
});

storageTest("a sweep leaves a topic alone that is being made, until it is surely forgotten", async (bench) => {
  const store = storeOn(bench);
  const making = bench.path(`.deleted/.new-${ids[0]}`);
  Deno.mkdirSync(making, { recursive: true });
  bench.clock.nowMs = Date.now();
  await store.sweep();
  assert.ok(Deno.statSync(making).isDirectory);
  bench.clock.nowMs += 2 * 60 * 60 * 1000;
  await store.sweep();
  assert.deepEqual([...Deno.readDirSync(bench.path(".deleted"))], []);
});

storageTest("a topic of an older writer is given an id for good; other folders are none of ours", async (bench) => {
  for (const path of ["t1/0", "t1/1", "__cluster/topics/0", "lost+found/0", "empty", ".snapshot/0", "other/stuff"]) {
    Deno.mkdirSync(bench.path(path), { recursive: true });
  }
  Deno.writeTextFileSync(bench.path("file"), "");
  assert.deepEqual(await storeOn(bench).scan(), [topic("t1", { topicId: ids[2], partitions: [0, 1] })]);
  assert.equal((await storeOn(bench).scan())[0].topicId, ids[2]);
  assert.deepEqual(bench.names(), [".snapshot", "__cluster", "empty", "file", "lost+found", "other", "t1"]);
});

storageTest("a topic whose settings are damaged is left out, reported, and not overwritten", async (bench) => {
  const messages: string[] = [];
  const store = storeOn(bench, messages);
  await store.createTopic(topic("bad"));
  await store.createTopic(topic("good", { topicId: ids[1] }));
  Deno.writeTextFileSync(bench.path("bad/.config.json"), '{"retentionMs":');
  assert.deepEqual((await store.scan()).map((found) => found.name), ["good"]);
  assert.ok(messages.some((message) => message.includes("bad/.config.json")));
  await assert.rejects(store.createTopic(topic("bad", { topicId: ids[2] })), { kind: "exists" });
});

storageTest("the longest topic name goes through create, takeover, roll, delete and anew", async (bench) => {
  const store = storeOn(bench);
  const name = "x".repeat(249);
  for (const topicId of ids) {
    await store.createTopic(topic(name, { topicId, partitions: [0, 12345] }));
    const partition = new Bench(bench.path(`${name}/12345`));
    for (const epoch of [1, 2]) {
      const log = await partition.takeOver(epoch, { segmentBytes: 100 });
      for (let i = 0; i < 3; i++) await produce(log, batchOf(1));
      await log.relinquish();
    }
    await store.deleteTopic(topic(name, { topicId }));
    await store.settled();
  }
  for (const path of bench.hooked.operations) assert.ok(path.slice(path.indexOf(" ") + 1).length <= 255, path);
  assert.deepEqual(await store.scan(), []);
});
