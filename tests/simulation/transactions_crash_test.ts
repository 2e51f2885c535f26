/**
 * Transactions while the machine stops at every disk call in turn, and at calls that a seed chooses, several times in a
 * row. The rules stand in `transaction_world.ts`.
 *
 * `KAAS_SEEDS` sets how many seeds run, `KAAS_SEED` runs one alone.
 */

import { SeededRandom } from "./seeded_random.ts";
import { TransactionWorld } from "./transaction_world.ts";

const SEEDS = Number(Deno.env.get("KAAS_SEEDS") ?? 150);
const ONE_SEED = Deno.env.get("KAAS_SEED");

const clients = [
  { id: "old", protocol: 1 },
  { id: "new", protocol: 2 },
  { id: "newer", protocol: 2 },
] as const;

/** Starts after a crash; the machine may stop again at some call of that, too. */
async function restarted(world: TransactionWorld): Promise<void> {
  await world.crash();
  await world.start();
}

async function runSeed(seed: number): Promise<void> {
  const random = new SeededRandom(seed);
  const world = new TransactionWorld(random, clients);
  await world.start();
  for (let crashes = random.between(1, 4); crashes > 0; crashes--) {
    world.disk.crashAfter(world.disk.operations + random.between(1, 250));
    if (!world.disk.crashed) await world.work(random.between(1, 6));
    await world.crash();
    // The next start may be cut short as well.
    if (random.chance(0.3)) {
      world.disk.crashAfter(random.between(1, 120));
      await world.start();
      await world.crash();
    }
    await world.start();
  }
  await world.finish();
  await world.check();
}

Deno.test("transactions are whole and ended whatever a seed does to the machine", async () => {
  const seeds = ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONE_SEED)];
  for (const seed of seeds) {
    try {
      await runSeed(seed);
    } catch (error) {
      console.error(`reproduce with KAAS_SEED=${seed}`);
      throw error;
    }
  }
});

for (const protocol of [1, 2] as const) {
  Deno.test(`transactions of protocol ${protocol} are whole and ended wherever the machine stops`, async () => {
    for (let call = 1;; call++) {
      const world = new TransactionWorld(new SeededRandom(7), [{ id: "only", protocol }]);
      await world.start();
      world.disk.crashAfter(world.disk.operations + call);
      await world.work(3);
      if (!world.disk.crashed) break;
      await restarted(world);
      await world.finish();
      await world.check();
    }
  });
}
