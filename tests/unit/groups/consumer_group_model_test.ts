/**
 * Random members of a group of the consumer protocol, some of them of the classic one, against what must hold of any
 * group. A failure names its seed and what happened; `KAAS_TEST_SEED=n` runs that one alone.
 */

import { ConsumerGroupModel } from "../../simulation/consumer_group_model.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

const SEEDS = 100;
const TICKS = 100;

Deno.test("whatever members do, no partition has two readers, and all have one in the end", async () => {
  const only = Deno.env.get("KAAS_TEST_SEED");
  const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(only)];
  for (const seed of seeds) {
    const model = await ConsumerGroupModel.start(new SeededRandom(seed));
    try {
      for (let tick = 0; tick < TICKS; tick++) await model.tick();
      await model.end();
    } catch (error) {
      throw new Error(`seed ${seed}\n${model.history.slice(-100).join("\n")}`, { cause: error });
    }
  }
});
