import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { type RunningBroker, startBroker, type Surroundings } from "../../../lib/broker/start_broker.ts";
import { HandleRegistry } from "../../../lib/disk/handle_registry.ts";
import type { MachineLocks } from "../../../lib/disk/machine.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { type Logger, silentLogger } from "../../../lib/observability/logger.ts";
import { createTopicsRequest, createTopicsResponse } from "../../../lib/protocol/messages/create_topics.ts";
import { fetchRequest, fetchResponse } from "../../../lib/protocol/messages/fetch.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../../lib/protocol/messages/list_offsets.ts";
import { metadataRequest, metadataResponse } from "../../../lib/protocol/messages/metadata.ts";
import { produceRequest, produceResponse } from "../../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../../lib/protocol/schema.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { until } from "../../support/broker_process.ts";
import { RawClient } from "../../support/raw_client.ts";
import { fetchOf } from "../../support/wire_broker.ts";
import { failing, HookedDisk } from "../storage/support.ts";

/** As if each broker of this process were a process of its own. */
const locks: MachineLocks = { lockForLife: () => Promise.resolve(true), isLockFree: () => Promise.resolve(false) };

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  // The broker's own timers keep no process alive.
  const alive = setInterval(() => {}, 1000);
  try {
    await test(folder);
  } finally {
    clearInterval(alive);
    await Deno.remove(folder, { recursive: true });
  }
}

function start(
  folder: string,
  { logger = silentLogger, settings = {}, ...around }: Partial<Surroundings> & {
    readonly logger?: Logger;
    readonly settings?: Parameters<typeof BrokerConfig.of>[0];
  } = {},
): Promise<RunningBroker> {
  const own = { "log.dir": folder, "node.id": 3, listeners: ["PLAINTEXT://127.0.0.1:0"] };
  return startBroker(BrokerConfig.of({ ...own, ...settings }), logger, { locks, ...around });
}

const connect = (broker: RunningBroker) => RawClient.connect(broker.listeners[0].port);

async function createTopic(client: RawClient, name: string, numPartitions: number): Promise<void> {
  const { topics } = await client.call(createTopicsRequest, createTopicsResponse, 7, {
    topics: [{ name, numPartitions, replicationFactor: 1, assignments: [], configs: [] }],
  });
  assert.equal(topics[0].errorCode, ErrorCode.NONE);
}

async function produce(client: RawClient, name: string, count: number): Promise<number> {
  const records = buildBatch({
    timestamp: Date.now(),
    records: Array.from({ length: count }, (_, i) => ({ value: `${i}` })),
  });
  const { responses } = await client.call(produceRequest, produceResponse, 12, {
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{ name, topicId: ZERO_UUID, partitionData: [{ index: 0, records }] }],
  });
  assert.equal(responses[0].partitionResponses[0].errorCode, ErrorCode.NONE);
  return responses[0].partitionResponses[0].baseOffset;
}

/** Who the cluster says it is, and what is in it. */
async function pictureOf(client: RawClient) {
  const { clusterId, topics, brokers } = await client.call(metadataRequest, metadataResponse, 12, {
    topics: null,
    allowAutoTopicCreation: false,
    includeTopicAuthorizedOperations: false,
  });
  return {
    clusterId,
    nodeIds: brokers.map(({ nodeId }) => nodeId),
    topics: topics.map(({ name, topicId, partitions }) => [name, topicId, partitions.length]),
  };
}

async function latestOffset(client: RawClient, name: string): Promise<number> {
  const { topics } = await client.call(listOffsetsRequest, listOffsetsResponse, 7, {
    replicaId: -1,
    isolationLevel: 0,
    topics: [{ name, partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp: -1 }] }],
    timeoutMs: 10_000,
  });
  assert.equal(topics[0].partitions[0].errorCode, ErrorCode.NONE);
  return topics[0].partitions[0].offset;
}

Deno.test("After a stop everything is closed in order, and the next start finds cluster, topics and offsets", async () => {
  await withFolder(async (folder) => {
    const disk = new HandleRegistry(new HookedDisk());
    const first = await start(folder, { disk });
    let client = await connect(first);
    assert.deepEqual([first.nodeId, first.topicCount, first.partitionCount], [3, 0, 0]);
    await createTopic(client, "t", 2);
    assert.equal(await produce(client, "t", 50), 0);
    const before = await pictureOf(client);
    client.close();
    await first.stop();
    assert.deepEqual(disk.openPaths(folder), []);
    const manifest = JSON.parse(await Deno.readTextFile(`${folder}/t/0/manifest.json`));
    assert.deepEqual([manifest.highWatermark, manifest.logStartOffset], [50, 0]);
    const session = JSON.parse(await Deno.readTextFile(`${folder}/__cluster/brokers/3.json`));
    assert.equal(session.released, true);

    const second = await start(folder);
    client = await connect(second);
    assert.deepEqual([second.nodeId, second.topicCount, second.partitionCount], [3, 1, 2]);
    assert.deepEqual(await pictureOf(client), before);
    assert.equal(await latestOffset(client, "t"), 50, "by the first answer without an error");
    assert.equal(await produce(client, "t", 1), 50);
    client.close();
    await second.stop();
  });
});

Deno.test("A stop answers who waits, accepts nobody any more, and ends once however often it is asked for", async () => {
  await withFolder(async (folder) => {
    const disk = new HookedDisk();
    const broker = await start(folder, { disk });
    const { port } = broker.listeners[0];
    const client = await connect(broker);
    await createTopic(client, "t", 1);
    await produce(client, "t", 1);
    await client.send(fetchRequest, 12, fetchOf("t", 1, 12, { maxWaitMs: 600_000, minBytes: 1 }));
    const idle = await connect(broker);

    const letGo = Promise.withResolvers<void>();
    let leaving = false;
    disk.hook = (operation, path) => {
      if (operation !== "rename" || !path.endsWith("/t/0/manifest.json")) return;
      leaving = true;
      return letGo.promise;
    };
    const stops = [broker.stop(), broker.stop()];
    const { body } = await client.receive(fetchResponse, 12);
    assert.equal(body.responses[0].partitions[0].records?.length ?? 0, 0);
    await client.closedByBroker();
    await idle.closedByBroker();
    await until(() => leaving, "the partition to be closed");
    await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port }), Deno.errors.ConnectionRefused);
    letGo.resolve();
    await Promise.all([...stops, broker.stop()]);
    const renames = disk.operations.filter((operation) => operation === "rename manifest.json").length;
    await broker.stop();
    assert.equal(disk.operations.filter((operation) => operation === "rename manifest.json").length, renames);
    client.close();
    idle.close();
  });
});

Deno.test("A request that runs when the broker stops is answered, and what it wrote is there", async () => {
  await withFolder(async (folder) => {
    const disk = new HookedDisk();
    const broker = await start(folder, { disk });
    const client = await connect(broker);
    await createTopic(client, "t", 1);
    await produce(client, "t", 1);
    const letGo = Promise.withResolvers<void>();
    let syncing = false;
    disk.hook = (operation, path) => {
      if (operation !== "sync" || !path.includes("/t/0/")) return;
      syncing = true;
      return letGo.promise;
    };
    const running = produce(client, "t", 1);
    await until(() => syncing, "the request to run");
    const stopping = broker.stop();
    letGo.resolve();
    assert.equal(await running, 1);
    await stopping;
    client.close();
    const manifest = JSON.parse(await Deno.readTextFile(`${folder}/t/0/manifest.json`));
    assert.equal(manifest.highWatermark, 2);
  });
});

Deno.test("A stop that cannot close a partition in order names it, and closes the others", async () => {
  await withFolder(async (folder) => {
    const disk = new HookedDisk();
    const broker = await start(folder, { disk });
    const client = await connect(broker);
    for (const name of ["a", "b", "c"]) {
      await createTopic(client, name, 1);
      await produce(client, name, 5);
    }
    disk.hook = failing("rename", /\/b\/0\/manifest\.json$/);
    const stopping = broker.stop();
    await assert.rejects(stopping, /partitions not relinquished: b\/0: /);
    await assert.rejects(broker.stop(), /b\/0/, "the same answer for whoever asks again");
    client.close();
    for (const name of ["a", "c"]) {
      assert.equal(JSON.parse(await Deno.readTextFile(`${folder}/${name}/0/manifest.json`)).highWatermark, 5);
    }
    const session = JSON.parse(await Deno.readTextFile(`${folder}/__cluster/brokers/3.json`));
    assert.equal(session.released, true, "the next one need not wait");
    disk.hook = () => {};
    const next = await start(folder);
    const again = await connect(next);
    assert.equal(await latestOffset(again, "b"), 5);
    again.close();
    await next.stop();
  });
});

for (
  const [what, operation, path] of [
    ["the data folder cannot be made", "makeFolder", /__cluster\/brokers$/],
    ["the settings cannot be read", "readFile", /\/configs\//],
    ["the topics cannot be listed", "list", /^[^_]*$/],
    ["the cluster has no id", "rename", /cluster\.json$/],
  ] as const
) {
  Deno.test(`A start that fails because ${what} leaves its port and its session to the next one`, async () => {
    await withFolder(async (parent) => {
      const folder = `${parent}/data`;
      const disk = new HookedDisk();
      disk.hook = failing(operation, path, "permission");
      const probe = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const { port } = probe.addr;
      probe.close();
      const settings = { listeners: [`PLAINTEXT://127.0.0.1:${port}`] };
      await assert.rejects(start(folder, { disk, settings }), { name: "DiskError", kind: "permission" });
      disk.hook = () => {};
      // Another machine would have to wait for the end of a session that was not given back.
      const session = await Deno.readTextFile(`${folder}/__cluster/brokers/3.json`).catch(() => null);
      if (session !== null) assert.equal(JSON.parse(session).released, true);
      const next = await start(folder, { settings });
      assert.equal(next.listeners[0].port, port);
      await next.stop();
    });
  });
}

Deno.test("A taken port is known before anything is written", async () => {
  await withFolder(async (parent) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const settings = { listeners: ["A://127.0.0.1:0", `B://127.0.0.1:${taken.addr.port}`] };
    const folder = `${parent}/data`;
    await assert.rejects(
      start(folder, {
        settings: { ...settings, "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT" },
      }),
      new RegExp(`listener B cannot listen on 127\\.0\\.0\\.1:${taken.addr.port}`),
    );
    await assert.rejects(Deno.stat(folder), Deno.errors.NotFound);
  });
});
