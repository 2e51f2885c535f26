/**
 * Transactions over several brokers that are killed and whose duties move, from seeds. The rules stand in
 * `transaction_rules.ts`.
 *
 * `KAAS_SEEDS` sets how many seeds run, `KAAS_SEED` runs one alone.
 */

import assert from "node:assert/strict";
import { SeededRandom } from "./seeded_random.ts";
import { TransactionCluster } from "./transaction_cluster.ts";

const SEEDS = Number(Deno.env.get("KAAS_SEEDS") ?? 60);
const ONE_SEED = Deno.env.get("KAAS_SEED");
const NODES = 3;

const clients = [
  { id: "old", protocol: 1 },
  { id: "elder", protocol: 1 },
  { id: "new", protocol: 2 },
  { id: "newer", protocol: 2 },
] as const;

async function runSeed(seed: number): Promise<TransactionCluster> {
  const random = new SeededRandom(seed);
  const cluster = new TransactionCluster(random, clients, NODES);
  await cluster.start();
  await cluster.work(random.between(5, 15), async () => {
    if (random.chance(0.7)) return await cluster.move();
    const id = random.below(NODES);
    cluster.kill(id);
    await cluster.restart(id);
  });
  await cluster.finish();
  await cluster.check();
  return cluster;
}

Deno.test("transactions over several brokers are whole and ended though brokers die and duties move", async () => {
  const seeds = ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONE_SEED)];
  let committed = 0;
  let asked = 0;
  for (const seed of seeds) {
    try {
      const { attempts } = await runSeed(seed);
      committed += attempts.filter((one) => one.asked === "commit" && one.acknowledged).length;
      asked += attempts.filter((one) => one.asked === "commit").length;
    } catch (error) {
      console.error(`reproduce with KAAS_SEED=${seed}`);
      throw error;
    }
  }
  assert.ok(committed > asked / 4, `only ${committed} of ${asked} commits were acknowledged`);
});
