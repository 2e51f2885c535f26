import assert from "node:assert/strict";
import { type Partition, Partitions, type PartitionsOptions } from "../../../lib/broker/partitions.ts";
import type { Disk } from "../../../lib/disk/disk.ts";
import { HandleRegistry } from "../../../lib/disk/handle_registry.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { PartitionLog } from "../../../lib/storage/log.ts";
import { defaultLogConfig } from "../../../lib/storage/log_config.ts";
import { until } from "../../support/broker_process.ts";
import { append, batchOf, failing, HookedDisk, ManualClock, offsetsOf, produce } from "../storage/support.ts";
import { loggedLines } from "./toy_broker.ts";

/** Partitions on a folder of their own, whose disk can be made to fail or to wait. */
class World {
  readonly clock = new ManualClock();
  readonly hooked = new HookedDisk();
  readonly disk: Disk = new HandleRegistry(this.hooked);
  readonly stalled: Partition[] = [];
  readonly logged;
  readonly partitions: Partitions;

  constructor(readonly folder: string, options: Partial<PartitionsOptions>) {
    const { logged, logger } = loggedLines();
    this.logged = logged;
    this.partitions = new Partitions({
      disk: this.disk,
      clock: this.clock,
      logger,
      logConfigOf: () => defaultLogConfig,
      onStalled: (partition) => void this.stalled.push(partition),
      ...options,
    });
  }

  lead(index: number, epoch = 1): Partition {
    const folder = `${this.folder}/${index}`;
    Deno.mkdirSync(folder, { recursive: true });
    return this.partitions.lead("t", index, folder, epoch);
  }
}

async function withPartitions(
  test: (world: World) => Promise<void>,
  options: Partial<PartitionsOptions> = {},
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const world = new World(folder, options);
  try {
    await test(world);
    await world.partitions.abandonAll();
    assert.deepEqual((world.disk as HandleRegistry).openPaths(folder), [], "every handle is closed");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function opened(partition: Partition): Promise<PartitionLog> {
  const log = await partition.log();
  assert.ok(log instanceof PartitionLog, `refused by ${log}`);
  return log;
}

Deno.test("A partition is opened when it is first used, once, and is there at once from then on", async () => {
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    assert.deepEqual([partition.state, partition.openLog], ["unopened", null]);
    assert.deepEqual(world.hooked.operations, [], "nothing is touched before");
    const asked = [partition.log(), partition.log()];
    assert.equal(partition.state, "opening");
    const [first, second] = await Promise.all(asked);
    assert.equal(first, second);
    assert.equal(partition.state, "leading");
    assert.equal(partition.log(), first);
  });
});

Deno.test("Who asks for a partition that takes long to open is told to come back, others are not held up", async () => {
  await withPartitions(async (world) => {
    const letGo = Promise.withResolvers<void>();
    world.hooked.hook = (operation, path) => operation === "list" && path.endsWith("/0") ? letGo.promise : undefined;
    const slow = world.lead(0);
    const asked = slow.log();
    await opened(world.lead(1));
    world.clock.advance(400);
    assert.equal(await asked, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.equal(slow.state, "opening");
    letGo.resolve();
    await slow.opened();
    assert.ok(slow.log() instanceof PartitionLog);
  });
});

Deno.test("A failed takeover is reported, refused for a while without touching the volume, and tried again", async () => {
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    world.hooked.hook = failing("rename", /manifest\.json$/);
    assert.equal(await partition.log(), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(partition.state, "unopened");
    assert.deepEqual(world.stalled, [partition]);
    assert.ok(world.logged.some(({ message }) => message === "cannot open partition"));
    world.hooked.hook = () => {};
    const operations = world.hooked.operations.length;
    assert.equal(await partition.log(), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(world.hooked.operations.length, operations);
    world.clock.advance(2_000);
    await opened(partition);
  });
});

Deno.test("A partition whose folder is gone is refused again and again, and none is made", async () => {
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    Deno.removeSync(partition.folder);
    for (let tries = 0; tries < 3; tries++) {
      assert.equal(await partition.log(), ErrorCode.KAFKA_STORAGE_ERROR);
      world.clock.advance(2_000);
    }
    assert.throws(() => Deno.statSync(partition.folder), Deno.errors.NotFound);
  });
});

Deno.test("A stall is told once in a while, reads go on, and the next epoch heals it without a loss", async () => {
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    const log = await opened(partition);
    await produce(log, batchOf(2));
    world.hooked.hook = failing("sync", /\.log$/);
    assert.equal(await log.durable(append(log, batchOf(1)).ticket), ErrorCode.KAFKA_STORAGE_ERROR);
    assert.equal(partition.state, "stalled");
    assert.deepEqual(world.stalled, [], "told when somebody asks");
    world.clock.advance(2_000);
    for (let asked = 0; asked < 3; asked++) assert.equal(partition.log(), log);
    assert.deepEqual(world.stalled, [partition]);
    world.clock.advance(2_000);
    partition.log();
    assert.deepEqual(world.stalled, [partition, partition]);
    const refused = log.append(batchOf(1), 5_000);
    assert.ok(refused.kind === "refused" && refused.errorCode === ErrorCode.KAFKA_STORAGE_ERROR);
    assert.deepEqual(await offsetsOf(log), [0, 1]);

    world.hooked.hook = () => {};
    const healed = await opened(world.lead(0, 2));
    assert.deepEqual((await offsetsOf(healed)).slice(0, 2), [0, 1]);
    await produce(healed, batchOf(1));
    assert.equal(healed.leaderEpoch, 2);
  });
});

Deno.test("A partition under a new epoch is opened only after the one before has closed", async () => {
  await withPartitions(async (world) => {
    const before = world.lead(0, 1);
    const log = await opened(before);
    const letGo = Promise.withResolvers<void>();
    world.hooked.hook = (operation) => operation === "sync" ? letGo.promise : undefined;
    const syncing = log.durable(append(log, batchOf(1)).ticket);
    const after = world.lead(0, 2);
    assert.equal(before.state, "closed");
    assert.equal(await syncing, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    const asked = after.log();
    world.clock.advance(400);
    assert.equal(await asked, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    world.hooked.hook = () => {};
    letGo.resolve();
    await after.opened();
    assert.equal((await opened(after)).leaderEpoch, 2);
    assert.equal(world.partitions.get("t", 0), after);
  });
});

Deno.test("Nothing is opened while this broker may not lead, or where the topic is another one", async () => {
  let mayLead = false;
  let present = true;
  const options = { mayLead: () => mayLead, isPresent: () => Promise.resolve(present) };
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    assert.equal(await partition.log(), ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.deepEqual(world.hooked.operations, []);
    mayLead = true;
    present = false;
    const other = world.partitions.lead("t", 1, `${world.folder}/1`, 1, "some-id");
    assert.equal(await other.log(), ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.deepEqual(world.hooked.operations, []);
    present = true;
    await opened(partition);
    mayLead = false;
    assert.equal(partition.log(), ErrorCode.NOT_LEADER_OR_FOLLOWER, "not even what is open");
  }, options);
});

Deno.test("Who watches is told when records become readable and when the partition closes", async () => {
  await withPartitions(async (world) => {
    const partition = world.lead(0);
    const log = await opened(partition);
    const told: string[] = [];
    const watcher = { partitionChanged: ({ state }: Partition) => void told.push(state) };
    partition.watch(watcher);
    await produce(log, batchOf(1));
    await partition.relinquish();
    assert.deepEqual(
      told,
      ["leading", "closed", "closed"],
      "readable; closing wakes twice: the log, then the partition",
    );
    assert.equal(partition.log(), ErrorCode.NOT_LEADER_OR_FOLLOWER);
    partition.unwatch(watcher);
    await partition.abandon();
    assert.equal(told.length, 3);
  });
});

Deno.test("Leaving in order leaves a manifest of everything; one partition's failure does not keep the others", async () => {
  await withPartitions(async (world) => {
    for (const index of [0, 1, 2]) await produce(await opened(world.lead(index)), batchOf(index + 1));
    world.lead(3);
    world.hooked.hook = failing("rename", /\/1\/manifest\.json$/);
    const failures = await world.partitions.relinquishAll();
    assert.deepEqual(failures.map(({ partition }) => partition.index), [1]);
    for (const index of [0, 2]) {
      const manifest = JSON.parse(Deno.readTextFileSync(`${world.folder}/${index}/manifest.json`));
      assert.equal(manifest.highWatermark, index + 1);
    }
    assert.deepEqual([...world.partitions.all()], []);
    assert.deepEqual((world.disk as HandleRegistry).openPaths(world.folder), []);
    assert.deepEqual([...Deno.readDirSync(`${world.folder}/3`)], [], "what was never used was never touched");
  });
});

Deno.test("A partition that is dropped while it opens never leads", async () => {
  await withPartitions(async (world) => {
    const letGo = Promise.withResolvers<void>();
    world.hooked.hook = (operation) => operation === "list" ? letGo.promise : undefined;
    const partition = world.lead(0);
    const asked = partition.log();
    await until(() => world.hooked.operations.some((operation) => operation.startsWith("list")), "the takeover");
    const dropped = world.partitions.drop("t", 0);
    assert.equal(world.partitions.get("t", 0), undefined);
    letGo.resolve();
    await dropped;
    assert.equal(await asked, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.equal(partition.state, "closed");
  });
});

Deno.test("New settings reach the partitions that are open, and those that open later", async () => {
  let segmentBytes = 1_000;
  await withPartitions(async (world) => {
    const log = await opened(world.lead(0));
    segmentBytes = 50;
    world.partitions.applyConfig("t");
    const refused = log.append(batchOf(1), 5_000);
    assert.ok(refused.kind === "refused" && refused.errorCode === ErrorCode.RECORD_LIST_TOO_LARGE);
    const later = (await opened(world.lead(1))).append(batchOf(1), 5_000);
    assert.equal(later.kind, "refused");
  }, { logConfigOf: () => ({ ...defaultLogConfig, segmentBytes }) });
});
