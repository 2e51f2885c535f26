/**
 * Random sequences of requests and clock steps against what must hold of any group. A failure names its seed and what
 * happened; `KAAS_TEST_SEED=n` runs that one alone.
 */

import { GroupModel } from "../../simulation/group_model.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

const SEEDS = 250;
const STEPS = 300;

Deno.test("whatever six clients do, a generation has one assignment, and everybody is answered in time", async () => {
  const only = Deno.env.get("KAAS_TEST_SEED");
  const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(only)];
  for (const seed of seeds) {
    const model = await GroupModel.start(new SeededRandom(seed));
    try {
      for (let step = 0; step < STEPS; step++) await model.step();
      await model.end();
    } catch (error) {
      throw new Error(`seed ${seed}\n${model.history.slice(-60).join("\n")}`, { cause: error });
    }
  }
});
