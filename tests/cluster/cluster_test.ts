/** Brokers that share a folder, as processes: joining, dying, pausing and leaving while producers write. */

import assert from "node:assert/strict";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../lib/protocol/messages/delete_topics.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../../lib/protocol/messages/find_coordinator.ts";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, until } from "../support/broker_process.ts";
import { Load, openFiles, SESSION_MS, TestCluster } from "../support/cluster_load.ts";
import { RawClient } from "../support/raw_client.ts";

function clusterTest(name: string, brokerCount: number, test: (cluster: TestCluster) => Promise<void>): void {
  Deno.test({
    name,
    ignore: !brokersAreOwned || !brokerIsKaas,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const cluster = await TestCluster.start(brokerCount);
      try {
        await test(cluster);
      } catch (error) {
        for (const broker of cluster.brokers) console.error(`broker on ${broker.port}:\n${broker.logs()}`);
        throw error;
      } finally {
        await cluster.stop();
      }
    },
  });
}

async function loads(cluster: TestCluster, topic: string, partitions: number): Promise<Load[]> {
  await cluster.createTopic(topic, partitions);
  await cluster.spread(topic, cluster.brokers);
  const all = Array.from({ length: partitions }, (_, partition) => new Load(cluster, topic, partition));
  for (const load of all) await load.progress(5);
  return all;
}

async function verifyAll(all: readonly Load[]): Promise<void> {
  for (const load of all) await load.progress(5, 60_000);
  for (const load of all) await load.verify();
}

clusterTest(
  "Brokers join by being started: all name each other, and share partitions and coordinators",
  3,
  async (cluster) => {
    for (const broker of cluster.brokers) {
      await until(async () => (await cluster.metadata([], broker)).brokers.length === 3, "all brokers to be known");
    }
    await cluster.createTopic("orders", 6);
    for (const broker of cluster.brokers) {
      const { brokers, topics } = await cluster.metadata(["orders"], broker);
      assert.deepEqual(brokers.map(({ port }) => port).sort(), cluster.brokers.map(({ port }) => port).sort());
      assert.equal(topics[0].errorCode, 0, "a topic is known to every broker when its creation is answered");
      assert.equal(topics[0].partitions.length, 6);
    }
    await cluster.spread("orders", cluster.brokers);
    await until(async () => {
      using client = await RawClient.connect(cluster.brokers[0].port);
      const { coordinators } = await client.call(findCoordinatorRequest, findCoordinatorResponse, 4, {
        key: "",
        keyType: 0,
        coordinatorKeys: Array.from({ length: 60 }, (_, i) => `group-${i}`),
      });
      return new Set(coordinators.map(({ nodeId }) => nodeId)).size === 3;
    }, "groups to be spread over three brokers");
  },
);

clusterTest(
  "A topic that is deleted is gone everywhere, leaves nothing open, and its name is free",
  2,
  async (cluster) => {
    const all = await loads(cluster, "orders", 4);
    for (const load of all) await load.verify();
    const before = (await cluster.metadata(["orders"])).topics[0].topicId;
    using client = await RawClient.connect(cluster.brokers[1].port);
    const deleted = await client.call(deleteTopicsRequest, deleteTopicsResponse, 5, {
      topics: [],
      topicNames: ["orders"],
      timeoutMs: 10_000,
    });
    assert.equal(deleted.responses[0].errorCode, 0);
    await until(
      () => cluster.brokers.every((broker) => openFiles(broker.pid(), `${cluster.dataFolder}/orders`).length === 0),
      "no file of the deleted topic to be open",
    );
    await cluster.createTopic("orders", 4);
    for (const broker of cluster.brokers) {
      const { topicId } = (await cluster.metadata(["orders"], broker)).topics[0];
      assert.notEqual(topicId, before);
    }
    for (let partition = 0; partition < 4; partition++) {
      assert.deepEqual(
        await cluster.readAll("orders", partition),
        [],
      );
    }
  },
);

clusterTest("Only a partition's leader has its files open", 2, async (cluster) => {
  const all = await loads(cluster, "orders", 4);
  for (const load of all) await load.verify();
  for (let partition = 0; partition < 4; partition++) {
    const leader = await cluster.leaderOf("orders", partition);
    for (const broker of cluster.brokers) {
      const open = openFiles(broker.pid(), `${cluster.dataFolder}/orders/${partition}/`);
      if (broker === leader) assert.ok(open.some((path) => path.endsWith(".log")), `the leader of ${partition}`);
      else assert.deepEqual(open, [], `who does not lead ${partition}`);
    }
  }
});

clusterTest("A leader that is killed is followed, and nothing acknowledged is lost", 3, async (cluster) => {
  const all = await loads(cluster, "orders", 6);
  await (await cluster.leaderOf("orders", 0)).kill();
  await verifyAll(all);
});

clusterTest(
  "A leader that is paused for longer than its session loses what it led, and nothing it writes counts",
  3,
  async (cluster) => {
    const all = await loads(cluster, "orders", 6);
    const paused = await cluster.leaderOf("orders", 0);
    signal(paused, "SIGSTOP");
    await until(async () => await cluster.leaderOf("orders", 0) !== paused, "another leader");
    for (const load of all) await load.progress(5, 60_000);
    signal(paused, "SIGCONT");
    await cluster.spread("orders", cluster.brokers);
    await verifyAll(all);
  },
);

clusterTest("The controller may die or pause: another broker goes on assigning", 3, async (cluster) => {
  const all = await loads(cluster, "orders", 6);
  const controller = async () => {
    const { controllerId, brokers } = await cluster.metadata();
    const port = brokers.find(({ nodeId }) => nodeId === controllerId)?.port;
    return cluster.brokers.find((broker) => broker.port === port);
  };
  const first = (await controller())!;
  signal(first, "SIGSTOP");
  await until(async () => ![undefined, first].includes(await controller()), "another controller");
  signal(first, "SIGCONT");
  const second = (await controller())!;
  await second.kill();
  await until(async () => ![undefined, second].includes(await controller()), "a third controller");
  await cluster.createTopic("more", 3);
  await cluster.leaderOf("more", 2);
  await verifyAll(all);
});

clusterTest(
  "All brokers are restarted one after the other while producers write: no error, no loss, no duplicate",
  3,
  async (cluster) => {
    const all = await loads(cluster, "orders", 6);
    for (const broker of cluster.brokers) {
      assert.equal(await broker.terminate(), 0);
      assert.match(broker.logs(), /"message":"drained"/);
      for (const load of all) await load.progress(5);
      await broker.restart();
      await cluster.spread("orders", cluster.brokers);
    }
    await verifyAll(all);
  },
);

clusterTest("The last broker closes everything in order, and the next start serves it", 2, async (cluster) => {
  const all = await loads(cluster, "orders", 4);
  for (const load of all) await load.verify();
  for (const broker of cluster.brokers) assert.equal(await broker.terminate(), 0);
  await cluster.brokers[1].restart();
  for (const load of all) {
    assert.equal((await cluster.readAll("orders", load.partition)).length, load.acknowledged);
  }
});

clusterTest(
  "A broker whose data folder is removed ends, says why, and acknowledges nothing more",
  1,
  async (cluster) => {
    const [broker] = cluster.brokers;
    const [load] = await loads(cluster, "orders", 1);
    await Deno.remove(cluster.dataFolder, { recursive: true });
    await Deno.mkdir(cluster.dataFolder);
    await until(() => broker.logs().includes("the data folder is gone"), "the broker to notice", 4 * SESSION_MS);
    const { acknowledged } = load;
    await until(async () => await refuses(broker), "the broker to end");
    assert.ok(load.acknowledged >= acknowledged);
  },
);

function signal(broker: BrokerProcess, name: Deno.Signal): void {
  Deno.kill(broker.pid(), name);
}

async function refuses({ port }: BrokerProcess): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return false;
  } catch {
    return true;
  }
}
