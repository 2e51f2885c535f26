/**
 * What clients see of a broker whose volume hangs, fails, fills up or goes away under it: nothing is acknowledged that is
 * not durable, what can go on goes on, and all is well again when the volume is.
 */

import assert from "node:assert/strict";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import type { MachineLocks } from "../../lib/disk/machine.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { until } from "../support/broker_process.ts";
import { fetchedValues, fetchOf, WireBroker } from "../support/wire_broker.ts";
import { loggedLines, type LogLine } from "../unit/broker/toy_broker.ts";
import { HookedDisk } from "../unit/storage/support.ts";

/** Time of the machine, which a test can put ahead. */
class ShiftedClock implements Clock {
  aheadMs = 0;

  wallMs(): number {
    return systemClock.wallMs() + this.aheadMs;
  }
  monotonicMs(): number {
    return systemClock.monotonicMs() + this.aheadMs;
  }
  schedule(delayMs: number, fire: () => void) {
    return systemClock.schedule(delayMs, fire);
  }
}

const locks: MachineLocks = { lockForLife: () => Promise.resolve(true), isLockFree: () => Promise.resolve(true) };

interface Flawed {
  readonly wire: WireBroker;
  readonly disk: HookedDisk;
  readonly clock: ShiftedClock;
  readonly logged: LogLine[];
}

async function withFlawedVolume(
  test: (flawed: Flawed) => Promise<void>,
  settings: Parameters<typeof WireBroker.start>[0] = {},
): Promise<void> {
  const { logged, logger } = loggedLines();
  // The broker's own timers keep no process alive.
  const alive = setInterval(() => {}, 1_000);
  const disk = new HookedDisk();
  const clock = new ShiftedClock();
  const wire = await WireBroker.start({ "node.id": 0, ...settings }, { disk, clock, locks, logger });
  try {
    await test({ wire, disk, clock, logged });
  } finally {
    disk.hook = () => {};
    await wire.stop().catch(async (error) => {
      if (!(error instanceof Deno.errors.NotFound || error instanceof DiskError)) throw error;
      await Deno.remove(wire.folder, { recursive: true }).catch(() => {});
    });
    clearInterval(alive);
  }
}

const batch = (value: string, producer = {}) =>
  buildBatch({ timestamp: Date.now(), records: [{ value }], ...producer });

/** Everything that can be read of a topic's partition 0; one reply may end where a segment does. */
async function valuesOf(wire: WireBroker, topic: string): Promise<(string | null)[]> {
  const values: (string | null)[] = [];
  for (;;) {
    const { errorCode, records, highWatermark } = await wire.fetch(topic, values.length);
    assert.equal(errorCode, ErrorCode.NONE);
    const more = fetchedValues(records);
    assert.ok(more.length > 0 || values.length >= highWatermark, "there is more to read, and it cannot be read");
    values.push(...more);
    if (values.length >= highWatermark) return values;
  }
}

/** Produces until that works, as a client does; resolves to the base offset. */
async function produceAtLast(wire: WireBroker, topic: string, records: () => Uint8Array): Promise<number> {
  let offset = -1;
  await until(async () => {
    const { errorCode, baseOffset } = await wire.produce(topic, records());
    offset = baseOffset;
    return errorCode === ErrorCode.NONE;
  }, `${topic} to take records again`);
  return offset;
}

Deno.test("A sync that hangs is answered with 7 in time, holds nobody else up, and a retry is recognised", async () => {
  await withFlawedVolume(async ({ wire, disk }) => {
    await wire.createTopic("hangs");
    await wire.createTopic("works");
    await wire.append("hangs", { records: [{ value: "before" }] });
    await wire.append("works", { records: [{ value: "before" }] });
    const { producerId } = await wire.client.call(initProducerIdRequest, initProducerIdResponse, 4, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
    });
    const once = () => batch("once", { producerId, producerEpoch: 0, baseSequence: 0 });

    const letGo = Promise.withResolvers<void>();
    disk.hook = (operation, path) => operation === "sync" && path.includes("/hangs/0/") ? letGo.promise : undefined;
    using patient = await wire.connect();
    const waiting = wire.produce("hangs", batch("waits"), { client: patient });
    const late = await wire.produce("hangs", once(), { timeoutMs: 50 });
    assert.deepEqual([late.errorCode, late.baseOffset], [ErrorCode.REQUEST_TIMED_OUT, -1]);
    await wire.append("works", { records: [{ value: "meanwhile" }] });
    assert.deepEqual(await valuesOf(wire, "works"), ["before", "meanwhile"]);
    assert.deepEqual(await valuesOf(wire, "hangs"), ["before"], "what is not durable is not read");

    letGo.resolve();
    assert.equal((await waiting).errorCode, ErrorCode.NONE);
    const again = await wire.produce("hangs", once());
    assert.deepEqual([again.errorCode, again.baseOffset], [ErrorCode.NONE, 2]);
    assert.deepEqual(await valuesOf(wire, "hangs"), ["before", "waits", "once"]);
  });
});

Deno.test("A failed sync is answered with 56, again and again, while reads and other partitions go on", async () => {
  await withFlawedVolume(async ({ wire, disk, logged }) => {
    await wire.createTopic("fails");
    await wire.createTopic("works");
    await wire.append("fails", { records: [{ value: "durable" }] });
    disk.hook = (operation, path) => {
      if (operation === "sync" && path.includes("/fails/0/")) throw new DiskError("io", operation, path);
    };
    for (let tries = 0; tries < 3; tries++) {
      const { errorCode } = await wire.produce("fails", batch(`try ${tries}`));
      assert.equal(errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
      assert.deepEqual(await valuesOf(wire, "fails"), ["durable"]);
      await wire.append("works", { records: [{ value: "v" }] });
    }
    assert.ok(logged.some(({ message, reason }) => message === "partition stalled" && /sync failed/.test(`${reason}`)));

    disk.hook = () => {};
    const offset = await produceAtLast(wire, "fails", () => batch("healed"));
    const values = await valuesOf(wire, "fails");
    assert.equal(values[0], "durable");
    assert.equal(values[offset], "healed");
  });
});

Deno.test("A partition that found no space takes records again when there is some", async () => {
  await withFlawedVolume(async ({ wire, disk }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "durable" }] });
    disk.hook = (operation, path) => {
      if (operation === "writeSync" && path.endsWith(".log")) throw new DiskError("no-space", operation, path);
    };
    for (let tries = 0; tries < 2; tries++) {
      assert.equal((await wire.produce("t", batch("refused"))).errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
      assert.deepEqual(await valuesOf(wire, "t"), ["durable"]);
    }
    disk.hook = () => {};
    assert.equal(await produceAtLast(wire, "t", () => batch("healed")), 1, "nothing of what was refused is there");
    assert.deepEqual(await valuesOf(wire, "t"), ["durable", "healed"]);
  });
});

Deno.test("Past its session nothing is acknowledged; a new one begins, with all that was acknowledged", async () => {
  await withFlawedVolume(async ({ wire, clock, logged }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "before" }] });
    clock.aheadMs += 60_000;
    const late = await wire.produce("t", batch("late"));
    assert.deepEqual([late.errorCode, late.baseOffset], [ErrorCode.NOT_LEADER_OR_FOLLOWER, -1]);
    await produceAtLast(wire, "t", () => batch("after"));
    const values = await valuesOf(wire, "t");
    assert.deepEqual([values[0], values.at(-1)], ["before", "after"]);
    assert.ok(logged.some(({ message }) => /the session ran out/.test(`${message}`)));
    assert.ok(logged.some(({ message }) => message === "a new session has begun"));
  }, { "broker.session.timeout.ms": 2_000 });
});

Deno.test("A sync that ends after the session is not acknowledged", async () => {
  await withFlawedVolume(async ({ wire, disk, clock }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "before" }] });
    const letGo = Promise.withResolvers<void>();
    let syncing = false;
    disk.hook = (operation, path) => {
      if (operation !== "sync" || !path.includes("/t/0/")) return;
      syncing = true;
      return letGo.promise;
    };
    const waiting = wire.produce("t", batch("late"));
    await until(() => syncing, "the sync to begin");
    clock.aheadMs += 60_000;
    letGo.resolve();
    assert.equal((await waiting).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  });
});

Deno.test("A volume that refuses renewals for longer than the session ends it, and has it back when it heals", async () => {
  await withFlawedVolume(async ({ wire, disk, logged }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "before" }] });
    disk.hook = (_, path) => {
      if (path.includes("/__cluster/brokers/")) throw new DiskError("io", "use", path);
    };
    await until(
      async () => (await wire.produce("t", batch("meanwhile"))).errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER,
      "the session to run out",
    );
    await until(() => logged.some(({ message }) => /no new session/.test(`${message}`)), "a word about it");
    disk.hook = () => {};
    await produceAtLast(wire, "t", () => batch("after"));
    assert.equal((await valuesOf(wire, "t"))[0], "before");
  }, { "broker.session.timeout.ms": 2_000 });
});

Deno.test("A broker whose session file is gone ends for good and makes no other one", async () => {
  await withFlawedVolume(async ({ wire }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "before" }] });
    const aside = `${wire.folder}-aside`;
    await Deno.rename(wire.folder, aside);
    try {
      assert.match(await wire.broker.superseded, /the data folder is gone/);
      assert.equal((await wire.produce("t", batch("late"))).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
      await assert.rejects(wire.createTopic("another"));
      await assert.rejects(Deno.stat(wire.folder), Deno.errors.NotFound);
    } finally {
      await Deno.rename(aside, wire.folder);
    }
  }, { "broker.session.timeout.ms": 2_000 });
});

Deno.test("A folder that went away while the session had run out is not taken for a new volume", async () => {
  await withFlawedVolume(async ({ wire, disk, logged }) => {
    await wire.createTopic("t");
    disk.hook = (_, path) => {
      if (path.includes("/__cluster/brokers/")) throw new DiskError("stale", "use", path);
    };
    await until(() => logged.some(({ message }) => /no new session/.test(`${message}`)), "the session to run out");
    const aside = `${wire.folder}-aside`;
    await Deno.rename(wire.folder, aside);
    await Deno.mkdir(`${wire.folder}/__cluster/brokers`, { recursive: true });
    disk.hook = () => {};
    assert.match(await wire.broker.superseded, /the data folder is gone/);
    assert.equal((await wire.produce("t", batch("late"))).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.deepEqual([...Deno.readDirSync(`${wire.folder}/__cluster/brokers`)], []);
    await Deno.remove(aside, { recursive: true });
  }, { "broker.session.timeout.ms": 2_000 });
});

Deno.test("A long poll on a partition whose session ends is answered", async () => {
  await withFlawedVolume(async ({ wire, clock }) => {
    await wire.createTopic("t");
    await wire.append("t", { records: [{ value: "before" }] });
    using client = await wire.connect();
    await client.send(fetchRequest, 12, fetchOf("t", 1, 12, { maxWaitMs: 600_000, minBytes: 1 }));
    clock.aheadMs += 60_000;
    const { body } = await client.receive(fetchResponse, 12);
    assert.equal(body.responses[0].partitions[0].errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  }, { "broker.session.timeout.ms": 2_000 });
});

Deno.test("A partition that takes long to open is answered with a retriable code; everything else is served meanwhile", async () => {
  await withFlawedVolume(async ({ wire, disk }) => {
    await wire.createTopic("slow");
    await wire.createTopic("works");
    const letGo = Promise.withResolvers<void>();
    disk.hook = (_, path) => path.includes("/slow/0") ? letGo.promise : undefined;
    using patient = await wire.connect();
    const waiting = wire.produce("slow", batch("v"), { client: patient });
    await wire.append("works", { records: [{ value: "v" }] });
    assert.deepEqual(await valuesOf(wire, "works"), ["v"]);
    assert.equal((await wire.listOffset("works", -1)).offset, 1);
    assert.equal((await waiting).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    letGo.resolve();
    await produceAtLast(wire, "slow", () => batch("v"));
  });
});

Deno.test("Deleting a topic under load: its producers are told that there is none, nobody else notices", async () => {
  await withFlawedVolume(async ({ wire, logged }) => {
    await wire.createTopic("stays");
    for (let round = 0; round < 3; round++) {
      await wire.createTopic("goes", { "segment.bytes": "1048576" });
      const codes = new Set<number>();
      const others = new Set<number>();
      let deleted = false;
      const load = async (topic: string, seen: Set<number>) => {
        using client = await wire.connect();
        for (let after = 0; after < 3; after += deleted ? 1 : 0) {
          seen.add((await wire.produce(topic, batch("v".repeat(200_000)), { client })).errorCode);
        }
      };
      const producers = [load("goes", codes), load("goes", codes), load("goes", codes), load("stays", others)];
      await until(() => codes.has(ErrorCode.NONE), "the load");
      await wire.deleteTopic("goes");
      deleted = true;
      await Promise.all(producers);
      assert.deepEqual([...others], [ErrorCode.NONE]);
      assert.deepEqual([...codes].sort(), [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
    }
    assert.deepEqual(logged.filter(({ level }) => level === "error"), []);
  });
});
