import assert from "node:assert/strict";
import { brokersFolder, Membership, type MembershipOptions, NodeIdInUseError } from "../../../lib/broker/membership.ts";
import type { LeaseLoss } from "../../../lib/cluster/lease.ts";
import type { MachineLocks } from "../../../lib/disk/machine.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";
import { loggedLines } from "./toy_broker.ts";

const SESSION_MS = 4_000;

/** Several processes on one volume; which of them has which lock is kept here, as a machine's kernel does. */
class World {
  readonly clock = new SimulatedClock();
  readonly disk = new SimulatedDisk({ random: new SeededRandom(1), clock: this.clock, syncTurns: 2 });
  readonly random = new SeededRandom(2);
  readonly held = new Set<string>();
  readonly logged;
  readonly #logger;

  constructor() {
    const { logged, logger } = loggedLines();
    this.logged = logged;
    this.#logger = logger;
  }

  static async make(): Promise<World> {
    const world = new World();
    await world.disk.makeFolder(brokersFolder("/data"));
    return world;
  }

  join(host: string, options: Partial<MembershipOptions> = {}): Promise<Membership> {
    const locks: MachineLocks = {
      lockForLife: (path) => Promise.resolve(!this.held.has(path) && this.held.add(path) !== undefined),
      isLockFree: (path) => Promise.resolve(!this.held.has(path)),
    };
    return Membership.join({
      disk: this.disk,
      clock: this.clock,
      logger: this.#logger,
      dataFolder: "/data",
      machine: { host, bootMs: 0 },
      locks,
      nodeId: null,
      preferredNodeId: null,
      rack: null,
      listeners: [{ name: "PLAINTEXT", host, port: 9092 }],
      durationMs: SESSION_MS,
      newIncarnation: () => this.random.uuid(),
      ...options,
    });
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      this.clock.advance(250);
      await this.settle();
    }
  }

  async record(nodeId: number) {
    const bytes = await this.disk.readFile(`${brokersFolder("/data")}/${nodeId}.json`);
    return JSON.parse(new TextDecoder().decode(bytes));
  }
}

/** Resolves to the session's end, as a listener is told of it. */
function lossOf(membership: Membership): { readonly losses: LeaseLoss[] } {
  const losses: LeaseLoss[] = [];
  membership.listen({ sessionLost: (loss) => Promise.resolve(void losses.push(loss)) });
  return { losses };
}

Deno.test("Brokers without a node id take the lowest that are free, or the one that their host's name has", async () => {
  const world = await World.make();
  assert.equal((await world.join("a")).nodeId, 0);
  assert.equal((await world.join("b")).nodeId, 1);
  const named = await world.join("kaas-7", { preferredNodeId: 7 });
  assert.deepEqual([named.nodeId, named.name, named.isValid(), named.tenure], [7, "kaas-7", true, 1]);
  assert.equal((await world.join("c")).nodeId, 2);
});

Deno.test("A broker that comes back to its address has its node id again, under a later tenure", async () => {
  const world = await World.make();
  await world.join("a");
  const before = await world.join("b");
  await before.leave();
  world.held.clear();
  const after = await world.join("b");
  assert.deepEqual([after.nodeId, after.tenure], [1, 2]);
});

Deno.test("A node id that a live broker has is refused to others, with where that broker is", async () => {
  const world = await World.make();
  const first = await world.join("a", { nodeId: 5 });
  let refusal: unknown = null;
  world.join("b", { nodeId: 5 }).catch((error) => refusal = error);
  await world.pass(SESSION_MS / 2);
  assert.ok(refusal instanceof NodeIdInUseError);
  assert.match(refusal.message, /\/data is served by another broker with node id 5, kaas-5 on a \(a:9092\)/);
  assert.ok(first.isValid());
  await first.leave();
});

Deno.test("A process that died on this machine is followed at once, one on another machine after its session", async () => {
  const world = await World.make();
  const dead = await world.join("a", { nodeId: 0 });
  // What a killed process leaves: its file, and a lock that the kernel has taken back.
  world.held.clear();
  dead.listen({ sessionLost: () => Promise.resolve() });
  const next = await world.join("a", { nodeId: 0 });
  assert.deepEqual([next.nodeId, next.tenure], [0, 2]);

  const path = `${brokersFolder("/data")}/1.json`;
  const file = await world.disk.open(path, "create");
  const record = { ...await world.record(0), nodeId: 1, incarnation: "other", renewals: 0, released: false };
  file.writeSync(0, new TextEncoder().encode(JSON.stringify(record)));
  file.close();
  let joined: Membership | null = null;
  world.join("elsewhere", { nodeId: 1 }).then((membership) => joined = membership);
  await world.pass(SESSION_MS - 500);
  assert.equal(joined, null);
  await world.pass(1_000);
  assert.equal((joined as Membership | null)?.nodeId, 1);
});

Deno.test("A session that runs out is told, and followed by another one under the same node id", async () => {
  const world = await World.make();
  const membership = await world.join("a");
  const { losses } = lossOf(membership);
  await membership.give([{ topic: "t", partition: 0, epoch: 3 }], "stalled");
  assert.equal((await world.record(0)).given.length, 1);
  world.clock.jumpWall(SESSION_MS);
  assert.deepEqual([membership.isValid(), membership.tenure], [false, -1]);
  await world.pass(SESSION_MS);
  assert.deepEqual(losses, [{ kind: "lapsed" }]);
  assert.deepEqual([membership.isValid(), membership.tenure], [true, 2]);
  assert.deepEqual((await world.record(0)).given, [], "all of it is assigned anew");
  await membership.leave();
});

Deno.test("No new session begins before the end of the old one has been dealt with", async () => {
  const world = await World.make();
  const membership = await world.join("a");
  const closed = Promise.withResolvers<void>();
  membership.listen({ sessionLost: () => closed.promise });
  world.clock.jumpWall(SESSION_MS);
  await world.pass(SESSION_MS);
  assert.equal(membership.isValid(), false);
  closed.resolve();
  await world.settle();
  assert.equal(membership.isValid(), true);
  await membership.leave();
});

for (const gone of ["at once", "after the session had run out"]) {
  Deno.test(`A volume that is gone ends the broker for good, noticed ${gone}`, async () => {
    const world = await World.make();
    const membership = await world.join("a");
    const { losses } = lossOf(membership);
    let reason = "";
    membership.superseded.then((why) => reason = why);
    if (gone !== "at once") {
      world.disk.faults = { ...world.disk.faults, names: 1, read: 1 };
      await world.pass(SESSION_MS + 1_000);
      assert.deepEqual(losses, [{ kind: "lapsed" }]);
      assert.ok(world.logged.some(({ message }) => message === "no new session: the volume refuses"));
      world.disk.calm();
    }
    await world.disk.remove("/data", { recursive: true });
    await world.disk.makeFolder(brokersFolder("/data"));
    await world.pass(SESSION_MS);
    assert.match(reason, /the data folder is gone/);
    assert.equal(membership.isValid(), false);
    assert.deepEqual(await world.disk.list(brokersFolder("/data")), []);
  });
}

Deno.test("A broker whose node id was taken ends for good, and says by whom", async () => {
  const world = await World.make();
  const membership = await world.join("a", { nodeId: 0 });
  lossOf(membership);
  let reason = "";
  membership.superseded.then((why) => reason = why);
  // Its lock is lost, as on a volume that carries none: the other takes it for dead.
  world.held.clear();
  const other = await world.join("a", { nodeId: 0 });
  await world.pass(SESSION_MS / 2);
  assert.match(reason, /node id 0 was taken by a broker on a/);
  assert.deepEqual([membership.isValid(), other.isValid()], [false, true]);
  await membership.leave();
  assert.equal((await world.record(0)).released, false, "what is another's is not given back");
});

Deno.test("What a broker says of itself is on the volume when it has said it, and is forgotten when acted on", async () => {
  const world = await World.make();
  const membership = await world.join("a", { rack: "r" });
  const said = async () => {
    const { rack, draining, wishes, given, changes, assignmentVersion } = await world.record(0);
    return { rack, draining, wishes: wishes.length, given: given.length, changes, assignmentVersion };
  };
  await membership.drain(true);
  await membership.wish([{ topic: "t", partition: 0, broker: "kaas-1" }, {
    topic: "t",
    partition: 1,
    broker: "kaas-1",
  }]);
  await membership.give([{ topic: "t", partition: 0, epoch: 1 }], "closed");
  for (let i = 0; i < 70; i++) await membership.topicChanged(`t${i}`);
  const latest = Array.from({ length: 64 }, (_, i) => `t${i + 6}`);
  const facts = { rack: "r", draining: true, changes: { count: 70, latest } };
  assert.deepEqual(await said(), { ...facts, wishes: 2, given: 1, assignmentVersion: 0 });
  membership.assigned(9, () => true, ({ partition }) => partition === 0);
  await membership.publish();
  assert.deepEqual(await said(), { ...facts, wishes: 1, given: 0, assignmentVersion: 9 });
  await membership.leave();
});
