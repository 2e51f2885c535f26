/** Choosing leaders by hand, with Kafka's own tools, while producers write. */

import assert from "node:assert/strict";
import { brokerIsKaas, brokersAreOwned, until } from "../support/broker_process.ts";
import { Load, TestCluster } from "../support/cluster_load.ts";
import { tool } from "../support/kafka_tools.ts";
import { clientCommand } from "../support/toolchain.ts";

Deno.test({
  name: "kafka-reassign-partitions and kafka-leader-election move leaders and bring them back; no record is lost",
  ignore: clientCommand("kafka-tools") === null || !brokersAreOwned || !brokerIsKaas,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const cluster = await TestCluster.start(2);
    const folder = await Deno.makeTempDir();
    try {
      await cluster.createTopic("orders", 2);
      await cluster.spread("orders", cluster.brokers);
      const loads = [new Load(cluster, "orders", 0), new Load(cluster, "orders", 1)];
      const [first, second] = cluster.brokers;
      const at = ["--bootstrap-server", second.bootstrap];
      const leaderIdOf = async (partition: number) =>
        (await cluster.metadata(["orders"])).topics[0].partitions.find((one) => one.partitionIndex === partition)!
          .leaderId;
      const [before, other] = [await leaderIdOf(0), await leaderIdOf(1)];

      const plan = `${folder}/plan.json`;
      const moveTo = async (nodeId: number) => {
        const partitions = [{ topic: "orders", partition: 0, replicas: [nodeId] }];
        await Deno.writeTextFile(plan, JSON.stringify({ version: 1, partitions }));
        const printed = await tool(
          "kafka-reassign-partitions",
          [...at, "--reassignment-json-file", plan, "--execute"],
        );
        assert.match(printed, /Successfully started partition reassignment/);
        await until(async () => await leaderIdOf(0) === nodeId, "the partition to move");
        const verified = await tool("kafka-reassign-partitions", [...at, "--reassignment-json-file", plan, "--verify"]);
        assert.match(verified, /orders-0 is completed/);
      };
      await moveTo(other);
      for (const load of loads) await load.progress(5);
      assert.doesNotMatch(await tool("kafka-reassign-partitions", [...at, "--list"]), /orders-0/);

      // The chosen broker goes, and is chosen again when it is back.
      const chosen = await cluster.leaderOf("orders", 0);
      await chosen.terminate();
      await until(async () => await leaderIdOf(0) === before, "the other broker to lead");
      await chosen.restart();
      const rest = ["--bootstrap-server", first.bootstrap, "--election-type", "PREFERRED"];
      const elected = await tool("kafka-leader-election", [...rest, "--topic", "orders", "--partition", "0"]);
      assert.match(elected, /orders-0/);
      await until(async () => await leaderIdOf(0) === other, "the chosen broker to lead again");

      await moveTo(before);
      for (const load of loads) await load.progress(5);
      for (const load of loads) await load.verify();
    } catch (error) {
      for (const broker of cluster.brokers) console.error(`broker on ${broker.port}:\n${broker.logs()}`);
      throw error;
    } finally {
      await cluster.stop();
      await Deno.remove(folder, { recursive: true });
    }
  },
});
