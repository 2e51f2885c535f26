/**
 * Schedules of a partition's life drawn from a seed: how often what happens and fails is itself drawn, then events follow
 * one another; at the end all faults stop, and the partition must be taken over, written to and read.
 */

import { SeededRandom } from "./seeded_random.ts";
import { demand } from "./storage_history.ts";
import type { Leader } from "./storage_leader.ts";
import { type Flaws, World } from "./storage_world.ts";

type Event = (world: World, random: SeededRandom) => Promise<void> | void;

/** Does something with the leader if there is one, else tries to get one. */
function led(act: (world: World, leader: Leader, random: SeededRandom) => Promise<void> | void): Event {
  return async (world, random) => {
    if (world.leader === null) await world.takeOver();
    else await act(world, world.leader, random);
  };
}

function zombie(act: (world: World, leader: Leader, random: SeededRandom) => Promise<void> | void): Event {
  return async (world, random) => {
    if (world.zombies.length > 0) await act(world, random.pick(world.zombies), random);
  };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await null;
}

const EVENTS: Readonly<Record<string, Event>> = {
  append: led((world, leader) => void world.append(leader)),
  produce: led((world, leader) => world.produce(leader)),
  endTransaction: led((world, leader) => world.endTransaction(leader)),
  burst: led((world, leader, random) => {
    for (let i = random.between(2, 12); i > 0; i--) random.chance(0.5) ? world.produce(leader) : world.append(leader);
  }),
  wait: (_, random) => turns(random.between(1, 60)),
  settle: async (world) => await world.settle(),
  consume: led(async (world, leader) => await world.consume(leader)),
  deleteRecords: led(async (world, leader, random) => {
    const { logStartOffset, highWatermark } = leader.log;
    await world.deleteRecords(leader, random.chance(0.3) ? -1 : random.between(logStartOffset, highWatermark));
  }),
  retain: led(async (world, leader, random) => {
    await world.retain(leader, random.chance(0.2) ? 0 : random.below(leader.log.sizeBytes + 1));
  }),
  passTime: (world, random) => world.clock.advance(random.between(1, 5000)),
  handOver: async (world) => {
    await world.relinquish();
    await world.takeOver();
  },
  depose: async (world) => void await world.takeOver(),
  deposeAmid: async (world, random) => {
    await world.deposeAmid((leader) =>
      random.chance(0.5) ? leader.log.relinquish() : leader.log.deleteRecords(leader.log.highWatermark)
    );
  },
  zombieAppends: zombie((world, leader) => void world.append(leader)),
  zombieProduces: zombie((world, leader) => world.produce(leader)),
  zombieRelinquishes: zombie(async (world, leader) => {
    await leader.log.relinquish().catch((error) => world.note(`a deposed leader could not relinquish: ${error}`));
  }),
  zombieRetains: zombie(async (world, leader) => await world.retain(leader, 0)),
  zombieDeletes: zombie(async (world, leader) => await world.deleteRecords(leader, -1)),
  crash: async (world) => await world.crash(),
  crashSoon: (world, random) => world.disk.crashAfter(world.disk.operations + random.between(1, 40)),
  restart: async (world, random) => {
    random.chance(0.5) ? await world.crash() : await world.kill();
    await world.takeOver({ sameEpoch: random.chance(0.3) });
  },
  crashInTakeover: async (world, random) => {
    await world.crash();
    world.disk.crashAfter(random.between(1, 60));
    await world.takeOver();
  },
  syncsFail: (world) => void (world.disk.faults = { ...world.disk.faults, sync: 0.5 }),
  writesFail: (world) => void (world.disk.faults = { ...world.disk.faults, write: 0.3 }),
  everythingFails: (world, random) => {
    const rate = () => random.chance(0.5) ? random.next() * 0.2 : 0;
    world.disk.faults = { read: rate(), write: rate(), sync: rate(), open: rate(), names: rate(), noSpace: rate() };
  },
  fillUp: async (world, random) => {
    const { totalBytes, freeBytes } = await world.disk.space("/").catch(() => ({ totalBytes: 0, freeBytes: 0 }));
    world.disk.capacityBytes = totalBytes - freeBytes + random.below(2000);
  },
  heal: (world) => world.disk.calm(),
};

/** How often an event is drawn, at most; each seed draws its own rates from these. */
const WEIGHTS: Readonly<Record<string, number>> = {
  append: 10,
  produce: 14,
  endTransaction: 4,
  burst: 6,
  wait: 10,
  settle: 6,
  consume: 3,
  deleteRecords: 2,
  retain: 1.5,
  passTime: 1,
  handOver: 2,
  depose: 1.5,
  deposeAmid: 1,
  zombieAppends: 3,
  zombieProduces: 3,
  zombieRelinquishes: 1,
  zombieDeletes: 0.7,
  zombieRetains: 0.5,
  crash: 1,
  crashSoon: 2,
  restart: 1.5,
  crashInTakeover: 1,
  syncsFail: 0.7,
  writesFail: 0.7,
  everythingFails: 0.7,
  fillUp: 0.7,
  heal: 2,
};

export interface ScheduleResult {
  readonly acknowledgedBatches: number;
  readonly operations: number;
}

/**
 * Runs the schedule of a seed.
 * @throws {Violation} and whatever else storage throws; `failed` is called first with the world's log
 */
export async function runSchedule(
  seed: number,
  options: { readonly flaws?: Flaws; readonly failed?: (log: string) => void } = {},
): Promise<ScheduleResult> {
  const random = new SeededRandom(seed);
  const config = {
    segmentBytes: random.pick([900, 1500, 4000, 1_000_000]),
    indexIntervalBytes: random.pick([1, 200, 4096]),
    checkpointIntervalBytes: random.pick([300, 2000, 1_000_000]),
    segmentMs: random.pick([3000, 604_800_000]),
    flushMessages: random.chance(0.1) ? random.between(2, 40) : null,
  };
  const world = await World.create({ random, config, flaws: options.flaws });
  try {
    const silent = random.pick([0.1, 0.3, 0.7]);
    const weights = Object.entries(WEIGHTS).map(([name, weight]) => ({
      name,
      weight: random.chance(silent) ? 0 : weight * random.next(),
    }));
    for (let i = random.between(20, 80); i > 0; i--) {
      const name = draw(weights, random);
      world.note(`event ${name}`);
      await EVENTS[name](world, random);
      if (world.disk.crashed) await world.crash();
      else world.observe();
    }
    await endWell(world);
    return { acknowledgedBatches: world.history.acknowledgedBatches, operations: world.disk.operations };
  } catch (error) {
    world.note(`${error}`);
    options.failed?.(world.log);
    throw error;
  }
}

/** Faults stop: the partition must come to work again, show all it promised, and do so once more after a crash. */
async function endWell(world: World): Promise<void> {
  world.note("all faults stop");
  world.disk.calm();
  world.disk.crashAfter(Infinity);
  demand(await world.takeOver(), "the partition cannot be taken over although nothing fails");
  const leader = world.leader!;
  for (let i = 0; i < 3; i++) demand(world.append(leader) !== null, "a healthy leader refuses a batch");
  await world.settle();
  demand(leader.log.highWatermark === leader.log.logEndOffset, "a healthy leader does not make records durable");
  for (const abandon of [() => world.crash(), () => world.relinquish(), () => world.kill()]) {
    await abandon();
    demand(await world.takeOver(), "the partition cannot be taken over although nothing fails");
  }
  await world.abandonAll();
  demand(world.disk.openHandles === 0, `${world.disk.openHandles} handles are open at the end`);
}

function draw(weights: readonly { name: string; weight: number }[], random: SeededRandom): string {
  let left = random.next() * weights.reduce((sum, { weight }) => sum + weight, 0);
  for (const { name, weight } of weights) {
    left -= weight;
    if (left < 0) return name;
  }
  return weights[0].name;
}
