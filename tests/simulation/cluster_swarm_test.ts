/**
 * Schedules of several brokers' lives on one volume, each from its seed: starts, kills, pauses longer than a session,
 * volumes that hang, planned handovers, topics that come and go, held against the rules of `cluster_world.ts`.
 *
 * `KAAS_CLUSTER_SEEDS` sets how many seeds run, `KAAS_CLUSTER_SEED` runs one alone and prints its log.
 */

import assert from "node:assert/strict";
import { ClusterWorld, SESSION_MS } from "./cluster_world.ts";

const SEEDS = Number(Deno.env.get("KAAS_CLUSTER_SEEDS") ?? 60);
const ONE_SEED = Deno.env.get("KAAS_CLUSTER_SEED");
const NODES = [0, 1, 2];
const TOPICS = ["a", "b"];
const PARTITIONS = 2;
const STEPS = 60;

Deno.test("Whatever happens to several brokers, there is one history, and it keeps what was acknowledged", async () => {
  const seeds = ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONE_SEED)];
  let acknowledged = 0;
  for (const seed of seeds) acknowledged += await runSchedule(seed);
  assert.ok(acknowledged > 10 * seeds.length, `only ${acknowledged} records were acknowledged`);
});

Deno.test("Brokers whose clocks stand still while they are paused are caught", async () => {
  let violations = 0;
  for (let seed = 0; seed < 200 && violations === 0; seed++) {
    await runSchedule(seed, { clocksStop: true }).catch((error) => {
      if (error.name === "Violation") violations++;
      else throw error;
    });
  }
  assert.ok(violations > 0, "nothing was noticed");
});

async function runSchedule(seed: number, flaws: { clocksStop?: boolean } = {}): Promise<number> {
  const world = new ClusterWorld(seed, flaws);
  try {
    await run(world);
    return world.acknowledged;
  } catch (error) {
    if (Object.keys(flaws).length === 0) {
      console.error(`${world.log.join("\n")}\n\nreproduce with KAAS_CLUSTER_SEED=${seed}\n`);
    }
    throw error;
  } finally {
    if (ONE_SEED !== undefined) console.log(world.log.join("\n"));
    for (const process of world.processes.values()) world.kill(process);
  }
}

async function run(world: ClusterWorld): Promise<void> {
  const { random } = world;
  await world.prepare();
  world.start(0);
  await world.pass(50);
  const running = () => [...world.processes.values()].filter(({ gate, node }) => gate.isRunning && node !== null);
  const pick = <T>(list: readonly T[]): T | undefined => list[random.below(list.length)];
  const paused: { resume(): void; nodeId: number }[] = [];
  const resumeOne = () => {
    const one = paused.shift();
    if (one === undefined) return;
    world.note(`resume ${one.nodeId}`);
    one.resume();
  };
  for (let step = 0; step < STEPS; step++) {
    const process = pick(running());
    const topic = pick(TOPICS)!;
    switch (random.below(16)) {
      case 0:
      case 1: {
        const absent = NODES.filter((nodeId) => !world.processes.has(nodeId));
        const nodeId = pick(absent);
        if (nodeId !== undefined) world.start(nodeId);
        break;
      }
      case 2:
        if (process && running().length > 1) world.kill(process);
        break;
      case 3:
        if (process && running().length > 1) {
          world.note(`pause ${process.nodeId}`);
          process.gate.pause();
          paused.push({ nodeId: process.nodeId, resume: () => process.gate.resume() });
        }
        break;
      case 4:
        resumeOne();
        break;
      case 5:
        if (process && running().length > 1) world.terminate(process);
        break;
      case 6:
        if (process) {
          const ms = random.below(2 * SESSION_MS);
          world.note(`the volume of ${process.nodeId} hangs for ${ms}`);
          process.gate.stallDisk(ms);
        }
        break;
      case 7:
        if (process && random.below(4) === 0) world.deleteTopic(process, topic);
        break;
      case 8:
      case 9:
        if (process && process.node?.topics.get(topic) === undefined) world.createTopic(process, topic, PARTITIONS);
        break;
      case 10:
        if (random.below(2) === 0) {
          world.note("the volume fails now and then");
          world.disk.faults = { ...world.disk.faults, sync: 0.02, names: 0.01, write: 0.01 };
        } else world.disk.calm();
        break;
      default:
        break;
    }
    for (let i = 0; i < 4; i++) {
      const index = random.below(PARTITIONS);
      for (const leader of world.leaders(topic, index)) {
        if (random.below(3) > 0) world.produce(leader, topic, index);
        if (random.below(3) === 0) world.consume(leader, topic, index, random.below(20));
      }
      await world.pass(random.below(60));
    }
    if (random.below(8) === 0) await world.pass(random.below(2 * SESSION_MS));
  }
  world.disk.calm();
  while (paused.length > 0) resumeOne();
  // In the end one broker is left, which leads everything.
  await world.pass(2 * SESSION_MS);
  for (const process of [...world.processes.values()]) world.kill(process);
  world.start(7);
  await world.pass(5 * SESSION_MS);
  const last = world.processes.get(7)?.node;
  assert.ok(last, "the last broker does not run");
  const verified = world.verify(last);
  let done = false;
  void verified.finally(() => done = true).catch(() => {});
  while (!done) await world.pass(20);
  await verified;
}
