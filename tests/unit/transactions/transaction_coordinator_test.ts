import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import type { EndTransactionMarker } from "../../../lib/records/control.ts";
import type { ProducerIdentity, TransactionProtocol } from "../../../lib/transactions/transaction.ts";
import { TransactionCoordinator, type TransactionSettings } from "../../../lib/transactions/transaction_coordinator.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";

const TIMEOUT_MS = 60_000;
const one = [{ topic: "t", partition: 0 }];

/** A coordinator whose surroundings note what they are told, and may be out of reach. */
class World {
  readonly clock = new SimulatedClock();
  settings: TransactionSettings = {
    maxTimeoutMs: 900_000,
    timeoutIntervalMs: 10_000,
    idExpirationMs: 1_000_000,
    idExpiryIntervalMs: 100_000,
  };
  readonly markers: string[] = [];
  readonly problems: string[] = [];
  /** The marker that was asked for last. */
  lastMarker: EndTransactionMarker | null = null;
  outOfReach = false;
  noProducerIds = false;
  nextProducerId = 1000;
  epoch = 1;
  coordinator!: TransactionCoordinator;

  private constructor(public disk: SimulatedDisk) {}

  static async start(): Promise<World> {
    const disk = new SimulatedDisk({ random: new SeededRandom(1) });
    await disk.makeFolder("data");
    await disk.syncFolder("");
    const world = new World(disk);
    await world.open();
    return world;
  }

  async open(): Promise<void> {
    this.coordinator = this.begin();
    await this.coordinator.loaded;
    await this.disk.settle();
  }

  begin(): TransactionCoordinator {
    const { disk } = this;
    // A stopped machine writes no markers.
    const unlessStopped = <T>(codes: T) => disk.crashed ? new Promise<T>(() => {}) : Promise.resolve(codes);
    return new TransactionCoordinator({
      journal: { disk: this.disk, folder: "data/transactions", epoch: this.epoch++ },
      clock: this.clock,
      surroundings: {
        newProducerId: () => Promise.resolve(this.noProducerIds ? null : this.nextProducerId++),
        endPlaces: (places, marker) => {
          this.lastMarker = marker;
          for (const { topic, partition } of places) {
            this.#note(disk, `${marker.result} ${topic}/${partition} by ${marker.producerEpoch}`);
          }
          const code = this.outOfReach ? ErrorCode.KAFKA_STORAGE_ERROR : ErrorCode.NONE;
          return unlessStopped(places.map(() => code));
        },
      },
      settings: () => this.settings,
      onProblem: (problem) => this.problems.push(problem),
    });
  }

  #note(disk: SimulatedDisk, what: string): void {
    if (!this.outOfReach && !disk.crashed) this.markers.push(what);
  }

  async crash(): Promise<void> {
    this.disk.crash();
    await this.disk.settle();
    this.disk = this.disk.restart();
    await this.open();
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      this.clock.advance(Math.min(50, ms - passed));
      await this.disk.settle();
    }
  }

  async init(expected: ProducerIdentity | null = null, timeoutMs = TIMEOUT_MS, id = "x") {
    return await this.coordinator.init(id, { expected, timeoutMs });
  }

  /** A producer with an open transaction. */
  async ongoing(timeoutMs = TIMEOUT_MS): Promise<ProducerIdentity> {
    const { producerId, producerEpoch, errorCode } = await this.init(null, timeoutMs);
    assert.equal(errorCode, ErrorCode.NONE);
    assert.equal(
      await this.coordinator.add("x", { producerId, producerEpoch }, one),
      ErrorCode.NONE,
    );
    return { producerId, producerEpoch };
  }

  async end(producer: ProducerIdentity, commits: boolean, protocol: TransactionProtocol = 1) {
    return await this.coordinator.end("x", { ...producer, commits, protocol });
  }

  get state(): string | undefined {
    return this.coordinator.describe("x")?.state;
  }
}

Deno.test("a transaction is ended in its partitions and groups before its producer is told", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  const ended = await world.end(producer, true);
  assert.deepEqual(ended, { errorCode: ErrorCode.NONE, ...producer });
  assert.deepEqual(world.markers, ["commit t/0 by 0"]);
  assert.equal(world.state, "CompleteCommit");
  assert.equal(world.lastMarker?.coordinatorEpoch, 1);
});

Deno.test("a new transaction may begin as soon as the last one has ended", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  for (let i = 0; i < 3; i++) {
    assert.equal((await world.end(producer, i % 2 === 0)).errorCode, ErrorCode.NONE);
    assert.equal(await world.coordinator.add("x", producer, one), ErrorCode.NONE);
  }
});

Deno.test("what was answered survives a crash, and nothing is answered before it would", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  await world.crash();
  assert.equal(world.state, "Ongoing");
  assert.equal(world.coordinator.verify("x", producer, one), ErrorCode.NONE);
  const asked = world.init();
  let answered = false;
  void asked.then(() => answered = true);
  await null;
  assert.equal(answered, false);
  assert.equal((await asked).errorCode, ErrorCode.CONCURRENT_TRANSACTIONS);
});

Deno.test("nothing may be written to what joins before that is durable", async () => {
  const world = await World.start();
  const { producerId, producerEpoch } = await world.init();
  const producer = { producerId, producerEpoch };
  const joining = world.coordinator.add("x", producer, one);
  assert.equal(world.coordinator.verify("x", producer, one), ErrorCode.CONCURRENT_TRANSACTIONS);
  assert.equal(await joining, ErrorCode.NONE);
  assert.equal(world.coordinator.verify("x", producer, one), ErrorCode.NONE);
  assert.equal(world.coordinator.add("x", producer, one), ErrorCode.NONE, "what has joined is answered at once");
});

Deno.test("a prepared end is carried out after a crash", async () => {
  for (const commits of [true, false]) {
    const world = await World.start();
    const producer = await world.ongoing();
    world.outOfReach = true;
    const ending = world.end(producer, commits);
    await world.pass(1_100);
    assert.equal((await ending).errorCode, ErrorCode.NONE, "that it ends so is certain");
    assert.equal(world.state, commits ? "PrepareCommit" : "PrepareAbort");
    const again = await world.end(producer, commits);
    assert.equal(again.errorCode, ErrorCode.CONCURRENT_TRANSACTIONS);
    await world.crash();
    world.outOfReach = false;
    await world.pass(5_000);
    assert.equal(world.state, commits ? "CompleteCommit" : "CompleteAbort");
    assert.ok(world.markers.length > 0);
    assert.deepEqual(new Set(world.markers), new Set([`${commits ? "commit" : "abort"} t/0 by 0`]));
    assert.equal((await world.end(producer, commits)).errorCode, ErrorCode.NONE);
    assert.equal((await world.end(producer, !commits)).errorCode, ErrorCode.INVALID_TXN_STATE);
    await world.crash();
    assert.equal((await world.end(producer, commits)).errorCode, ErrorCode.NONE);
  }
});

Deno.test("what cannot be ended everywhere at once is tried again, only where it is missing, and said once", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  world.outOfReach = true;
  const ending = world.end(producer, true);
  await world.pass(1_500);
  world.outOfReach = false;
  await world.pass(2_100);
  assert.equal((await ending).errorCode, ErrorCode.NONE);
  assert.equal(world.state, "CompleteCommit");
  assert.equal(world.problems.length, 1);
});

Deno.test("an open transaction is aborted at its timeout with a raised epoch, and its producer is fenced", async () => {
  for (const protocol of [1, 2] as const) {
    const world = await World.start();
    const producer = await world.ongoing(2_000);
    await world.pass(1_900);
    assert.equal(world.state, "Ongoing");
    await world.pass(200);
    assert.equal(world.state, "CompleteAbort");
    assert.deepEqual(world.markers, ["abort t/0 by 1"]);
    for (const commits of [true, false]) {
      assert.equal((await world.end(producer, commits, protocol)).errorCode, ErrorCode.PRODUCER_FENCED);
    }
    const anew = await world.init();
    assert.deepEqual(anew, { errorCode: ErrorCode.NONE, producerId: producer.producerId, producerEpoch: 2 });
  }
});

Deno.test("the timeout goes on over a crash, whether it ran out before or runs out after", async () => {
  const before = await World.start();
  await before.ongoing(2_000);
  before.disk.crash();
  before.clock.advance(60_000);
  await before.crash();
  await before.pass(100);
  assert.equal(before.state, "CompleteAbort");
  const after = await World.start();
  await after.ongoing(2_000);
  await after.pass(1_000);
  await after.crash();
  assert.equal(after.state, "Ongoing");
  await after.pass(1_100);
  assert.equal(after.state, "CompleteAbort");
});

Deno.test("a wall clock that jumps ends no transaction", async () => {
  const world = await World.start();
  await world.ongoing(60_000);
  world.clock.jumpWall(3_600_000);
  await world.pass(20_000);
  assert.equal(world.state, "Ongoing");
});

Deno.test("an ended transaction does not time out, nor does the next one by the first one's time", async () => {
  const world = await World.start();
  const producer = await world.ongoing(2_000);
  await world.end(producer, true);
  await world.pass(1_500);
  await world.coordinator.add("x", producer, one);
  await world.pass(1_000);
  assert.equal(world.state, "Ongoing");
  await world.pass(1_100);
  assert.equal(world.state, "CompleteAbort");
});

Deno.test("a new producer of the id aborts the open transaction, waits, and gets a raised epoch of the same id", async () => {
  const world = await World.start();
  const zombie = await world.ongoing();
  world.outOfReach = true;
  assert.equal((await world.init()).errorCode, ErrorCode.CONCURRENT_TRANSACTIONS);
  await world.pass(200);
  assert.equal((await world.init()).errorCode, ErrorCode.CONCURRENT_TRANSACTIONS);
  assert.equal((await world.end(zombie, true)).errorCode, ErrorCode.PRODUCER_FENCED);
  world.outOfReach = false;
  await world.pass(2_100);
  const { errorCode, producerId, producerEpoch } = await world.init();
  assert.deepEqual([errorCode, producerId, producerEpoch], [ErrorCode.NONE, zombie.producerId, 2]);
});

Deno.test("a stranger that names another epoch does not abort the open transaction", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  const stranger = { ...producer, producerEpoch: 9 };
  assert.equal((await world.init(stranger)).errorCode, ErrorCode.PRODUCER_FENCED);
  assert.equal(world.state, "Ongoing");
});

Deno.test("timeouts that are none, or longer than allowed, are refused", async () => {
  const world = await World.start();
  for (const timeoutMs of [0, -1, 900_001]) {
    assert.equal((await world.init(null, timeoutMs)).errorCode, ErrorCode.INVALID_TRANSACTION_TIMEOUT);
  }
  assert.equal((await world.init(null, 900_000)).errorCode, ErrorCode.NONE);
});

Deno.test("ids that nobody has initialised are unknown, the empty one is invalid", async () => {
  const world = await World.start();
  const producer = { producerId: 1, producerEpoch: 0 };
  assert.equal(await world.coordinator.add("x", producer, one), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  assert.equal(world.coordinator.verify("x", producer, one), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  assert.equal((await world.end(producer, true)).errorCode, ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  assert.equal(await world.coordinator.add("", producer, one), ErrorCode.INVALID_REQUEST);
});

Deno.test("two that initialise one id at the same time get epochs of the same producer id", async () => {
  const world = await World.start();
  const both = await Promise.all([world.init(), world.init()]);
  assert.equal(both[0].producerId, both[1].producerId);
  assert.equal(world.coordinator.describe("x")?.producerEpoch, 1);
  await world.crash();
  assert.equal(world.coordinator.describe("x")?.producerEpoch, 1);
});

Deno.test("without producer ids a new transactional id is refused, and no trace is left of it", async () => {
  const world = await World.start();
  world.noProducerIds = true;
  assert.equal((await world.init()).errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(world.coordinator.describe("x"), undefined);
});

Deno.test("while the state is read everything is refused as loading, and once the journal fails as not available", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  await world.coordinator.stop();
  assert.equal((await world.init()).errorCode, ErrorCode.NOT_COORDINATOR);
  world.coordinator = world.begin();
  assert.equal((await world.init()).errorCode, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
  await world.coordinator.loaded;
  world.disk.faults = { ...world.disk.faults, write: 1 };
  assert.equal((await world.end(producer, true)).errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal((await world.init()).errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.deepEqual(world.markers, [], "what is not durably decided is not carried out");
  world.disk.calm();
  await world.crash();
  assert.equal(world.state, "Ongoing");
});

Deno.test("an id that was not used for long is forgotten, durably, and its producer id is never seen again", async () => {
  const world = await World.start();
  const before = await world.init();
  await world.ongoing();
  await world.init(null, TIMEOUT_MS, "idle");
  world.clock.advance(999_000);
  await world.coordinator.expire();
  assert.notEqual(world.coordinator.describe("idle"), undefined);
  world.clock.advance(2_000);
  await world.disk.settle();
  await world.coordinator.expire();
  assert.equal(world.coordinator.describe("idle"), undefined);
  await world.crash();
  assert.equal(world.coordinator.describe("idle"), undefined);
  const anew = await world.init({ producerId: before.producerId + 1, producerEpoch: 0 }, TIMEOUT_MS, "idle");
  assert.equal(anew.errorCode, ErrorCode.NONE);
  assert.notEqual(anew.producerId, before.producerId + 1);
});

Deno.test("a deleted topic is no part of a transaction any more", async () => {
  const world = await World.start();
  const producer = await world.ongoing();
  await world.coordinator.topicDeleted("t");
  assert.equal(world.coordinator.verify("x", producer, one), ErrorCode.TRANSACTION_ABORTABLE);
  await world.end(producer, true);
  assert.deepEqual(world.markers, []);
});

Deno.test("an unreadable entry is passed over and reported, the others are served", async () => {
  const world = await World.start();
  await world.ongoing();
  await world.coordinator.stop();
  const { Journal } = await import("../../../lib/journal/journal.ts");
  const journal = await Journal.open({ disk: world.disk, folder: "data/transactions", epoch: world.epoch++ });
  await journal.append([{ key: Uint8Array.of(1, 1, 0, 0, 0, 1, 121), value: Uint8Array.of(1, 0, 0) }]);
  await journal.close();
  await world.open();
  assert.equal(world.problems.length, 1);
  assert.equal(world.state, "Ongoing");
});
