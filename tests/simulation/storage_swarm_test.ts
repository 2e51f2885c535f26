/**
 * Thousands of schedules of one partition's life, each from its seed, held against the rules of `storage_history.ts`; and
 * broken brokers, which the same schedules must catch in every run.
 *
 * `KAAS_SEEDS` sets how many seeds run, `KAAS_SEED` runs one alone and prints its log.
 */

import assert from "node:assert/strict";
import { WithoutEpochs, WithoutFileSync, WithoutFolderSync } from "./flawed_disk.ts";
import { runSchedule } from "./storage_schedule.ts";
import type { Flaws } from "./storage_world.ts";

const SEEDS = Number(Deno.env.get("KAAS_SEEDS") ?? 2000);
const ONE_SEED = Deno.env.get("KAAS_SEED");
/** A flaw that so many schedules do not show would stay unnoticed. */
const CANARY_SEEDS = 300;

Deno.test("acknowledged batches survive whatever a seed does to a partition", async () => {
  const seeds = ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONE_SEED)];
  let acknowledged = 0;
  for (const seed of seeds) {
    const failed = (log: string) => console.error(`${log}\n\nreproduce with KAAS_SEED=${seed}\n`);
    acknowledged += (await runSchedule(seed, { failed })).acknowledgedBatches;
  }
  assert.ok(acknowledged > seeds.length || ONE_SEED !== undefined, `only ${acknowledged} batches were acknowledged`);
});

Deno.test("a schedule is the same each time its seed is run", async () => {
  for (const seed of [3, 14, 15]) assert.deepEqual(await runSchedule(seed), await runSchedule(seed));
});

const flawed: Readonly<Record<string, Flaws>> = {
  "that does not sync folders": { wrapDisk: (disk) => new WithoutFolderSync(disk) },
  "that does not sync files": { wrapDisk: (disk) => new WithoutFileSync(disk) },
  "that acknowledges before the sync": { acknowledgesBeforeSync: true },
  "that acknowledges after its session": { acknowledgesAfterSession: true },
  "that does not look at epochs": { wrapDisk: (disk) => new WithoutEpochs(disk) },
};

for (const [flaw, flaws] of Object.entries(flawed)) {
  Deno.test(`a broker ${flaw} is caught`, async () => {
    let violations = 0;
    for (let seed = 0; seed < CANARY_SEEDS && violations === 0; seed++) {
      await runSchedule(seed, { flaws }).catch((error) => {
        if (error.name === "Violation") violations++;
      });
    }
    assert.ok(violations > 0, `nothing was noticed in ${CANARY_SEEDS} schedules`);
  });
}
