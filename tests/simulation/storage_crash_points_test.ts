/**
 * Each durable operation of a partition, stopped after its 1st, 2nd … last disk call, several times with other parts of
 * the unsynced surviving; then the partition is taken over, held against its history, written to, and taken over again.
 */

import assert from "node:assert/strict";
import { SeededRandom } from "./seeded_random.ts";
import { demand } from "./storage_history.ts";
import { World } from "./storage_world.ts";

/** Survivals of the unsynced that are tried for each crash point. */
const SURVIVALS = 8;

interface Operation {
  /** Brings the world to where the operation begins. */
  readonly before: (world: World) => Promise<void>;
  readonly run: (world: World) => Promise<void>;
  /** Fewer calls than this are a sign that the operation did not happen. */
  readonly calls: number;
}

/** A led partition with some batches in several segments, all durable. */
async function ledWithBatches(world: World): Promise<void> {
  await world.takeOver();
  for (let i = 0; i < 12; i++) i % 3 === 0 ? world.append(world.leader!) : world.produce(world.leader!);
  await world.settle();
}

/** The same, but the last batches are not synced when the machine stops. */
async function crashedWithBatches(world: World): Promise<void> {
  await ledWithBatches(world);
  for (let i = 0; i < 4; i++) world.append(world.leader!);
  await world.crash();
}

const operations: Readonly<Record<string, Operation>> = {
  "the first takeover of an empty folder": {
    before: () => Promise.resolve(),
    run: async (world) => void await world.takeOver(),
    calls: 10,
  },
  "appends and their sync": {
    before: ledWithBatches,
    run: async (world) => {
      for (let i = 0; i < 3; i++) world.append(world.leader!);
      await world.settle();
    },
    calls: 4,
  },
  "appends one after the other, each synced": {
    before: ledWithBatches,
    run: async (world) => {
      for (let i = 0; i < 3 && !world.disk.crashed; i++) {
        world.produce(world.leader!);
        await world.settle();
      }
    },
    calls: 6,
  },
  "a roll, with its syncs and checkpoint": {
    before: ledWithBatches,
    run: async (world) => {
      for (let i = 0; i < 12; i++) world.append(world.leader!);
      await world.settle();
    },
    calls: 20,
  },
  "a takeover after a clean end": {
    before: async (world) => {
      await ledWithBatches(world);
      await world.relinquish();
    },
    run: async (world) => void await world.takeOver(),
    calls: 10,
  },
  "a takeover after a crash": {
    before: crashedWithBatches,
    run: async (world) => void await world.takeOver(),
    calls: 20,
  },
  "a takeover of an empty active segment": {
    before: async (world) => {
      await crashedWithBatches(world);
      await world.takeOver();
      await world.crash();
    },
    run: async (world) => void await world.takeOver(),
    calls: 10,
  },
  "a takeover with the epoch that is there": {
    before: crashedWithBatches,
    run: async (world) => void await world.takeOver({ sameEpoch: true }),
    calls: 10,
  },
  "a takeover from a leader that goes on": {
    before: ledWithBatches,
    run: async (world) => {
      await world.takeOver();
      for (const zombie of world.zombies) world.append(zombie);
      if (world.leader !== null) world.append(world.leader);
      await world.settle();
    },
    calls: 15,
  },
  "relinquishing": {
    before: async (world) => {
      await ledWithBatches(world);
      for (let i = 0; i < 4; i++) world.append(world.leader!);
    },
    run: async (world) => await world.relinquish(),
    calls: 10,
  },
  "deleting some records": {
    before: ledWithBatches,
    run: async (world) => await world.deleteRecords(world.leader!, Math.floor(world.leader!.log.highWatermark * 0.8)),
    calls: 6,
  },
  "deleting all records": {
    before: ledWithBatches,
    run: async (world) => await world.deleteRecords(world.leader!, -1),
    calls: 10,
  },
  "retention of some segments": {
    before: ledWithBatches,
    run: async (world) => await world.retain(world.leader!, 1),
    calls: 10,
  },
  "retention of all segments": {
    before: ledWithBatches,
    run: async (world) => await world.retain(world.leader!, 0),
    calls: 10,
  },
  "a takeover after records were deleted": {
    before: async (world) => {
      await ledWithBatches(world);
      await world.deleteRecords(world.leader!, -1);
      world.append(world.leader!);
      await world.crash();
    },
    run: async (world) => void await world.takeOver(),
    calls: 10,
  },
};

/** Runs one crash point. Answers how many calls the operation made. */
async function crashAt(operation: Operation, point: number, seed: number): Promise<number> {
  const world = await World.create({ random: new SeededRandom(seed) });
  try {
    await operation.before(world);
    const { disk } = world;
    const first = disk.operations;
    disk.crashAfter(first + point);
    await operation.run(world);
    await disk.settle();
    const calls = disk.operations - first;
    await world.crash();
    for (let again = 0; again < 2; again++) {
      demand(await world.takeOver(), "the partition cannot be taken over");
      demand(world.append(world.leader!) !== null, "the new leader refuses a batch");
      world.produce(world.leader!);
      await world.settle();
      await world.crash();
    }
    return calls;
  } catch (error) {
    console.error(`${world.log}\n\nafter call ${point}, seed ${seed}`);
    throw error;
  }
}

for (const [name, operation] of Object.entries(operations)) {
  Deno.test(`a crash after any disk call of ${name} loses nothing acknowledged`, async () => {
    let calls = 0;
    for (let seed = 0; seed < SURVIVALS; seed++) {
      calls = await crashAt(operation, Infinity, seed);
      for (let point = 1; point <= calls; point++) await crashAt(operation, point, seed);
    }
    assert.ok(calls >= operation.calls, `only ${calls} calls: the operation did not happen`);
  });
}
