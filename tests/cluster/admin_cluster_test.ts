/** `kaas admin cluster|brokers|partitions|drain` on the folder of brokers that run, with producers that write. */

import assert from "node:assert/strict";
import { brokerIsKaas, brokersAreOwned, until } from "../support/broker_process.ts";
import { Load, TestCluster } from "../support/cluster_load.ts";
import { run } from "../unit/cli/support.ts";

Deno.test({
  name: "A cluster is shown by its folder alone, and a broker is drained, stays so over its restart, and comes back",
  ignore: !brokersAreOwned || !brokerIsKaas,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const cluster = await TestCluster.start(2);
    try {
      const admin = (...args: string[]) => run(["admin", ...args, "--data", cluster.dataFolder]);
      const says = async (...args: string[]) => {
        const { code, out, err } = await admin(...args);
        assert.equal(code, 0, err);
        return out;
      };
      const json = async (...args: string[]) => JSON.parse(await says(...args, "--json"));
      await cluster.createTopic("orders", 4);
      await cluster.spread("orders", cluster.brokers);
      const loads = [0, 1, 2, 3].map((partition) => new Load(cluster, "orders", partition));
      for (const load of loads) await load.progress(3);

      const facts = await json("cluster");
      assert.deepEqual(facts.brokers, { alive: 2, known: 2, draining: 0 });
      assert.deepEqual([facts.topics, facts.partitions, facts.withoutLiveLeader], [1, 4, 0]);
      assert.match(await says("cluster"), /^controller kaas-0 in epoch 1, assignment \d+\n2 brokers alive of 2 known/);
      assert.match(
        await says("brokers"),
        /NODE +STATE +TENURE +PARTITIONS +COORDINATORS +HOST +ADDRESSES\n +0 +alive +1 +2 /,
      );
      assert.equal((await json("partitions", "orders", "--broker", "1")).length, 2);
      assert.match(await says("partitions"), /TOPIC +PARTITION +LEADER +EPOCH +MOVES TO +CHOSEN\norders +0 /);
      assert.match((await admin("partitions", "nowhere")).err, /there is no topic nowhere/);

      assert.match(await says("drain", "1"), /^broker 1 is drained: \d+ partitions moved\n$/);
      assert.deepEqual(await json("partitions", "--broker", "1"), []);
      assert.match(await says("drain", "1", "--status"), /^broker 1 is being drained and leads 0 partitions\n$/);
      assert.equal((await json("brokers"))[1].draining, true);
      for (const load of loads) await load.progress(3);
      await cluster.brokers[1].terminate();
      await cluster.brokers[1].restart();
      await cluster.createTopic("more", 2);
      assert.deepEqual(await json("partitions", "--broker", "1"), [], "the order stands");
      const alone = await admin("drain", "0");
      assert.deepEqual([alone.code, /no other broker is alive that could take over/.test(alone.err)], [1, true]);
      const unknown = await admin("drain", "7");
      assert.match(unknown.err, /no broker 7 has ever been/);

      assert.equal(await says("drain", "1", "--cancel"), "broker 1 gets its share again\n");
      assert.equal(await says("drain", "1", "--cancel"), "broker 1 was not being drained\n");
      await until(async () => (await json("partitions", "--broker", "1")).length === 3, "broker 1 to get its share");
      for (const load of loads) await load.progress(3);
      for (const load of loads) await load.verify();
    } catch (error) {
      for (const broker of cluster.brokers) console.error(`broker on ${broker.port}:\n${broker.logs()}`);
      throw error;
    } finally {
      await cluster.stop();
    }
  },
});
