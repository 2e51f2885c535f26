import assert from "node:assert/strict";
import {
  HeldLease,
  LeaseHeldError,
  type LeaseLoss,
  type LeaseOptions,
  parseLease,
} from "../../../lib/cluster/lease.ts";
import { replaceJson } from "../../../lib/disk/atomic_replace.ts";
import type { Disk } from "../../../lib/disk/disk.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";
import { HookedDisk } from "../storage/support.ts";

const DURATION_MS = 8_000;
const PATH = "/data/controller.lease";

/** A volume with a folder for leases, and time that moves when told. */
class World {
  readonly clock = new SimulatedClock();
  readonly simulated = new SimulatedDisk({ random: new SeededRandom(1), clock: this.clock, syncTurns: 2 });
  readonly hooked = new HookedDisk(this.simulated);
  readonly losses: LeaseLoss[] = [];

  static async make(): Promise<World> {
    const world = new World();
    await world.simulated.makeFolder("/data");
    return world;
  }

  acquire(holder: string, options: Partial<LeaseOptions> = {}): Promise<HeldLease> {
    return HeldLease.acquire({
      disk: this.simulated,
      clock: this.clock,
      path: PATH,
      holder,
      incarnation: `${holder}'s`,
      process: { host: holder, bootMs: 0, address: `${holder}:9092` },
      durationMs: DURATION_MS,
      holderIsGone: () => false,
      onLost: (loss) => void this.losses.push(loss),
      ...options,
    });
  }

  /** Lets time pass in small steps, and everything happen that it brings. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      this.clock.advance(Math.min(250, ms - passed));
      await this.settle();
    }
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 80; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async content(): Promise<ReturnType<typeof parseLease>> {
    return parseLease(JSON.parse(new TextDecoder().decode(await this.simulated.readFile(PATH))));
  }
}

/** Whether a promise has settled, and how. */
function outcomeOf(promise: Promise<unknown>): { now: "pending" | "done" | unknown } {
  const outcome: { now: "pending" | "done" | unknown } = { now: "pending" };
  promise.then(() => outcome.now = "done", (error) => outcome.now = error);
  return outcome;
}

Deno.test("A lease is held from its first epoch on, is renewed for as long as it is held, and carries its facts", async () => {
  const world = await World.make();
  let facts = 1;
  const lease = await world.acquire("a", { facts: () => ({ facts }) });
  assert.equal(lease.epoch, 1);
  for (let round = 0; round < 10; round++) {
    await world.pass(DURATION_MS / 2);
    assert.ok(lease.isValid());
  }
  const { renewals } = await world.content();
  assert.ok(renewals >= 10, `${renewals} renewals`);
  facts = 2;
  await lease.renewNow();
  assert.equal((await world.content()).facts, 2);
  assert.deepEqual(world.losses, []);
  await lease.release();
});

Deno.test("A lease that was released is followed at once, by a higher epoch, and is not held any more", async () => {
  const world = await World.make();
  const first = await world.acquire("a");
  await first.release();
  assert.equal(first.isValid(), false);
  assert.equal((await world.content()).released, true);
  const second = await world.acquire("b");
  assert.equal(second.epoch, 2);
  await first.renewNow();
  await world.pass(DURATION_MS);
  assert.equal((await world.content()).holder, "b");
  assert.ok(second.isValid());
  await second.release();
  assert.deepEqual(world.losses, []);
});

Deno.test("Another machine's lease is waited out for as long as its own duration says, not shorter", async () => {
  const world = await World.make();
  await replaceJson(world.simulated, PATH, {
    ...{ holder: "dead", incarnation: "dead's", epoch: 7, durationMs: 5_000, renewals: 3, released: false },
    process: { host: "elsewhere", bootMs: 0, address: "elsewhere:9092" },
  });
  const acquiring = world.acquire("b");
  const outcome = outcomeOf(acquiring);
  await world.pass(4_500);
  assert.equal(outcome.now, "pending");
  await world.pass(1_500);
  assert.equal(outcome.now, "done");
  const lease = await acquiring;
  assert.equal(lease.epoch, 8);
  await lease.release();
});

Deno.test("Who finds a lease that is renewed is refused, and is told whose it is and where", async () => {
  const world = await World.make();
  const lease = await world.acquire("a");
  const outcome = outcomeOf(world.acquire("b"));
  await world.pass(DURATION_MS / 2);
  assert.ok(outcome.now instanceof LeaseHeldError);
  assert.match(outcome.now.message, /controller\.lease is held by a on a \(a:9092\)/);
  assert.ok(lease.isValid());
  await lease.release();
});

Deno.test("A holder that is known to be gone is followed at once", async () => {
  const world = await World.make();
  await world.acquire("a");
  const lease = await world.acquire("b", { holderIsGone: ({ holder }) => holder === "a" });
  assert.equal(lease.epoch, 2);
  await lease.release();
});

Deno.test("A lease in whose place another's is found is lost at the next renewal, and is not written again", async () => {
  const world = await World.make();
  const lost = await world.acquire("a");
  const taken = await world.acquire("b", { holderIsGone: () => true });
  await world.pass(DURATION_MS / 4);
  assert.equal(lost.isValid(), false);
  assert.deepEqual(world.losses.map((loss) => loss.kind === "taken" && loss.by.holder), ["b"]);
  await lost.release();
  await world.pass(DURATION_MS);
  const { holder, released } = await world.content();
  assert.deepEqual([holder, released], ["b", false]);
  assert.equal(world.losses.length, 1, "told once");
  await taken.release();
});

for (const gone of ["the lease", "the folder"]) {
  Deno.test(`A lease is lost at the next renewal when ${gone} is gone, and nothing is made in its place`, async () => {
    const world = await World.make();
    const lease = await world.acquire("a");
    await world.simulated.remove(gone === "the lease" ? PATH : "/data", { recursive: true });
    await world.pass(DURATION_MS / 4);
    assert.equal(lease.isValid(), false);
    assert.deepEqual(world.losses, [{ kind: "removed" }]);
    await lease.release();
    await world.pass(DURATION_MS * 2);
    await assert.rejects(world.simulated.stat(PATH), { kind: "not-found" });
  });
}

Deno.test("A volume that fails renewals ends the lease when its duration is over, not before", async () => {
  const world = await World.make();
  const lease = await world.acquire("a");
  world.simulated.faults = { ...world.simulated.faults, read: 1 };
  await world.pass(DURATION_MS - 250);
  assert.ok(lease.isValid());
  world.clock.advance(250);
  assert.equal(lease.isValid(), false);
  world.simulated.calm();
  await world.pass(DURATION_MS);
  assert.equal(lease.isValid(), false, "over for good");
  assert.deepEqual(world.losses, [{ kind: "lapsed" }]);
});

Deno.test("A volume that fails for less than the duration leaves the lease as it is", async () => {
  const world = await World.make();
  const lease = await world.acquire("a");
  world.simulated.faults = { ...world.simulated.faults, names: 1 };
  await world.pass(DURATION_MS - 1_000);
  world.simulated.calm();
  await world.pass(DURATION_MS * 2);
  assert.ok(lease.isValid());
  assert.deepEqual(world.losses, []);
  await lease.release();
});

Deno.test("A lease whose file is damaged cannot be judged: it is neither taken nor renewed", async () => {
  const world = await World.make();
  const lease = await world.acquire("a");
  const file = world.simulated.openSync(PATH, "write");
  file.truncateSync(5);
  file.close();
  await assert.rejects(world.acquire("b", { holderIsGone: () => true }), { name: "DiskError", kind: "io" });
  await world.pass(DURATION_MS);
  assert.equal(lease.isValid(), false);
});

for (const which of ["the monotonic clock", "the wall clock"]) {
  Deno.test(`A holder that was away for longer than its lease, by ${which}, is not valid when it wakes`, async () => {
    const world = await World.make();
    const lease = await world.acquire("a");
    let fire = () => {};
    const asleep = {
      wallMs: () => world.clock.wallMs(),
      monotonicMs: () => world.clock.monotonicMs(),
      schedule: (_: number, then: () => void) => {
        fire = then;
        return { cancel: () => {} };
      },
    };
    const paused = await world.acquire("b", { clock: asleep, path: "/data/paused.lease" });
    if (which === "the wall clock") world.clock.jumpWall(DURATION_MS + 1);
    else world.clock.advance(DURATION_MS + 1);
    assert.equal(paused.isValid(), false);
    // The renewal that was due long ago comes now, and finds nobody in its place; still it is too late.
    fire();
    await world.settle();
    assert.equal(paused.isValid(), false);
    assert.deepEqual(world.losses.at(-1), { kind: "lapsed" });
    await lease.release();
  });
}

Deno.test("A renewal that takes longer than the lease lasts does not prolong it", async () => {
  const world = await World.make();
  const lease = await world.acquire("a", { disk: world.hooked });
  const letGo = Promise.withResolvers<void>();
  world.hooked.hook = (operation) => operation === "rename" ? letGo.promise : undefined;
  await world.pass(DURATION_MS);
  assert.equal(lease.isValid(), false);
  letGo.resolve();
  await world.settle();
  assert.equal((await world.content()).renewals, 1, "it was written, too late");
  assert.equal(lease.isValid(), false);
  await world.pass(DURATION_MS);
  assert.deepEqual(world.losses, [{ kind: "lapsed" }]);
});

Deno.test("A renewal in time counts, although the candidate's last look had begun before it", async () => {
  const world = await World.make();
  const lease = await world.acquire("a");
  await replaceJson(world.simulated, PATH, { ...await world.content(), durationMs: 1_000 });
  const letGo = Promise.withResolvers<void>();
  const disk: Disk = new HookedDisk(world.simulated);
  const slow = disk as HookedDisk;
  const outcome = outcomeOf(world.acquire("b", { disk }));
  await world.pass(750);
  // The look that comes now sees the file as it is, and is not done before the time is over.
  const before = await world.simulated.readFile(PATH);
  slow.readFile = () => letGo.promise.then(() => before);
  await world.pass(125);
  await replaceJson(world.simulated, PATH, { ...await world.content(), renewals: 5 });
  await world.pass(250);
  slow.readFile = (path) => world.simulated.readFile(path);
  letGo.resolve();
  await world.pass(1_000);
  assert.ok(outcome.now instanceof LeaseHeldError, String(outcome.now));
  assert.equal((await world.content()).holder, "a");
  await lease.release();
});

Deno.test("Of many candidates at a time one wins each epoch, whatever their order", async () => {
  const world = await World.make();
  const outcomes = ["a", "b", "c", "d"].map((holder) => outcomeOf(world.acquire(holder)));
  await world.pass(DURATION_MS * 2);
  assert.deepEqual(outcomes.map(({ now }) => now === "done" ? "done" : (now as Error).name).sort(), [
    ...["LeaseHeldError", "LeaseHeldError", "LeaseHeldError", "done"],
  ]);
  assert.equal((await world.content()).epoch, 1);
});

Deno.test("A claim whose maker died of it is passed over after the time of a lease", async () => {
  const world = await World.make();
  (await world.simulated.open(`${PATH}.1`, "create")).close();
  const acquiring = world.acquire("a");
  const outcome = outcomeOf(acquiring);
  await world.pass(DURATION_MS - 500);
  assert.equal(outcome.now, "pending");
  await world.pass(1_000);
  assert.equal(outcome.now, "done");
  const lease = await acquiring;
  assert.equal(lease.epoch, 2);
  const names = (await world.simulated.list("/data")).map(({ name }) => name);
  assert.deepEqual(names, ["controller.lease", "controller.lease.2"], "older claims are gone");
  await lease.release();
});
