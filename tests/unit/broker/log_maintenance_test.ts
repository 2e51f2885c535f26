import assert from "node:assert/strict";
import type { BrokerSettingName } from "../../../lib/broker/config_definitions.ts";
import { LogMaintenance } from "../../../lib/broker/log_maintenance.ts";
import { createTopic } from "../../../lib/broker/topic_creation.ts";
import { logConfigOf } from "../../../lib/broker/topic_log_config.ts";
import type { LogFields, Logger } from "../../../lib/observability/logger.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { type AdminBroker, withAdminBroker } from "../../support/admin_broker.ts";
import { failing, HookedDisk, ManualClock } from "../storage/support.ts";

const DAY = 86_400_000;

interface Given {
  readonly broker: AdminBroker;
  readonly maintenance: LogMaintenance;
  readonly clock: ManualClock;
  readonly disk: HookedDisk;
  readonly lines: { level: string; message: string; fields: LogFields }[];
  readonly restart: () => Promise<Given>;
}

async function withMaintenance(
  run: (given: Given) => Promise<void>,
  settings: { readonly [K in BrokerSettingName]?: string | number | boolean } = {},
  tenure = { isValid: () => true },
): Promise<void> {
  const clock = new ManualClock();
  clock.nowMs = Date.now();
  const disk = new HookedDisk();
  const lines: Given["lines"] = [];
  await withAdminBroker(
    async (broker, restart) => {
      const given = (broker: AdminBroker): Given => ({
        ...{ broker, clock, disk, lines },
        maintenance: new LogMaintenance({
          ...broker,
          logger: loggerInto(lines),
          tenure,
          logConfigOf: (name) => logConfigOf(broker.topics.get(name)!.settings, broker.config),
        }),
        restart: async () => given(await restart()),
      });
      await run(given(broker));
    },
    { clock, disk, settings },
  );
}

function loggerInto(lines: Given["lines"]): Logger {
  const write = (level: string) => (message: string, fields: LogFields = {}) =>
    void lines.push({ level, message, fields });
  const logger: Logger = {
    debug: () => {},
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    writes: () => true,
    with: () => logger,
  };
  return logger;
}

async function topic({ broker }: Given, name: string, configs: Record<string, string>): Promise<void> {
  const list = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await createTopic(broker, { name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: list });
}

async function put({ broker }: Given, name: string, keys: readonly string[], timestamp: number): Promise<void> {
  const log = await logOf(broker, name);
  for (const key of keys) {
    const outcome = log.append(buildBatch({ timestamp, records: [{ key, value: "v".repeat(200) }] }), timestamp);
    assert.ok(outcome.kind === "appended");
    assert.equal(await log.durable(outcome.ticket), 0);
  }
}

async function logOf(broker: AdminBroker, name: string) {
  const log = await broker.partitions.get(name, 0)!.log();
  assert.ok(typeof log === "object");
  return log;
}

Deno.test("a look at all partitions removes what is due and opens no other partition", async () => {
  await withMaintenance(async (first) => {
    const old = first.clock.nowMs - 2 * DAY;
    for (const name of ["aged", "young", "kept", "large", "empty"]) {
      const config = name === "kept" ? { "retention.ms": "-1" } : { "retention.ms": `${DAY}` };
      const bytes: Record<string, string> = name === "large" ? { "retention.bytes": "600" } : {};
      await topic(first, name, { ...config, ...bytes, "segment.bytes": "600" });
      if (name === "empty") continue;
      await put(first, name, ["a", "b", "c", "d", "e"], name === "aged" ? old : first.clock.nowMs);
    }
    const given = await first.restart();
    const { broker, maintenance, lines } = given;
    await maintenance.enforceRetention();
    const states = Object.fromEntries([...broker.partitions.all()].map((it) => [it.topic, it.state]));
    assert.deepEqual(states, {
      aged: "leading",
      young: "unopened",
      kept: "unopened",
      large: "leading",
      empty: "unopened",
    });
    assert.equal((await logOf(broker, "aged")).logStartOffset, 5);
    assert.equal((await logOf(broker, "large")).logStartOffset, 2);
    assert.deepEqual(lines.map(({ message }) => message), ["records left by retention", "records left by retention"]);
    given.clock.advance(2 * DAY);
    await maintenance.enforceRetention();
    assert.deepEqual((await logOf(broker, "young")).logStartOffset, 5);
    assert.equal((await logOf(broker, "kept")).logStartOffset, 0);
  });
});

Deno.test("a changed setting is obeyed by the next look", async () => {
  await withMaintenance(async (given) => {
    const { broker, maintenance, clock } = given;
    await topic(given, "t", { "retention.ms": "-1" });
    await put(given, "t", ["a", "b"], clock.nowMs - DAY);
    await maintenance.enforceRetention();
    const log = await logOf(broker, "t");
    assert.equal(log.logStartOffset, 0);
    await broker.topics.configure(broker.topics.get("t")!, () => new Map([["retention.ms", 1_000]]));
    await maintenance.enforceRetention();
    assert.equal(log.logStartOffset, 2);
  });
});

Deno.test("times in the future are told once, with the topic's name", async () => {
  await withMaintenance(async (given) => {
    await topic(given, "t", { "message.timestamp.after.max.ms": "9000000000000" });
    await put(given, "t", ["a"], given.clock.nowMs + 365 * DAY);
    await given.maintenance.enforceRetention();
    await given.maintenance.enforceRetention();
    assert.equal(given.lines.length, 1);
    assert.equal(given.lines[0].level, "warn");
    assert.equal(given.lines[0].fields.topic, "t");
  });
});

Deno.test("what goes wrong with one partition is told once and holds up no other", async () => {
  await withMaintenance(async (given) => {
    const { broker, maintenance, disk, clock, lines } = given;
    for (const name of ["bad", "good"]) {
      await topic(given, name, { "retention.ms": "1000" });
      await put(given, name, ["a"], clock.nowMs - DAY);
    }
    disk.hook = failing("rename", /bad\/0\/manifest/, "no-space");
    for (let i = 0; i < 3; i++) await maintenance.enforceRetention();
    assert.equal((await logOf(broker, "good")).logStartOffset, 1);
    assert.equal((await logOf(broker, "bad")).logStartOffset, 0);
    const failures = lines.filter(({ level }) => level === "error");
    assert.deepEqual(failures.map(({ message, fields }) => [message, fields.topic]), [["retention failed", "bad"]]);
    disk.hook = () => {};
    await maintenance.enforceRetention();
    assert.equal((await logOf(broker, "bad")).logStartOffset, 1);
  });
});

Deno.test("compacted topics are compacted when they are dirty enough, others and clean ones stay closed", async () => {
  await withMaintenance(async (first) => {
    const compacted = { "cleanup.policy": "compact", "segment.bytes": "600" };
    await topic(first, "dirty", compacted);
    await topic(first, "clean", { ...compacted, "min.cleanable.dirty.ratio": "1" });
    await topic(first, "plain", { "segment.bytes": "600" });
    for (const name of ["dirty", "clean", "plain"]) {
      await put(first, name, ["a", "b", "a", "b", "a"], first.clock.nowMs);
    }
    const given = await first.restart();
    const { broker, lines } = given;
    await compact(given);
    const states = Object.fromEntries([...broker.partitions.all()].map((it) => [it.topic, it.state]));
    assert.deepEqual(states, { dirty: "leading", clean: "unopened", plain: "unopened" });
    assert.deepEqual(lines.map(({ message, fields }) => [message, fields.topic]), [["compacted", "dirty"]]);
    assert.equal((await (await logOf(broker, "dirty")).cleanable()).isDue, false);
    await compact(given);
    assert.equal(lines.length, 1);
  }, { "log.cleaner.min.cleanable.ratio": 0.3 });
});

Deno.test("a broker that lost the volume touches nothing", async () => {
  await withMaintenance(
    async (given) => {
      await topic(given, "t", { "retention.ms": "1000", "cleanup.policy": "compact,delete", "segment.bytes": "600" });
      await put(given, "t", ["a", "a", "a", "a"], given.clock.nowMs - DAY);
      const before = given.disk.operations.length;
      await given.maintenance.enforceRetention();
      await given.maintenance.compact();
      assert.equal(given.disk.operations.length, before);
    },
    {},
    { isValid: () => false },
  );
});

Deno.test("looks come one interval after another, and end when the broker stops", async () => {
  await withMaintenance(async (given) => {
    const { broker, maintenance, clock } = given;
    await topic(given, "t", { "retention.ms": "1000" });
    await put(given, "t", ["a"], clock.nowMs - DAY);
    const log = await logOf(broker, "t");
    maintenance.start();
    clock.advance(999);
    await settled();
    assert.equal(log.logStartOffset, 0);
    clock.advance(1);
    while (log.logStartOffset === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await maintenance.stop();
    await put(given, "t", ["b"], clock.nowMs - DAY);
    clock.advance(10_000);
    await settled();
    assert.equal(log.logStartOffset, 1);
  }, { "log.retention.check.interval.ms": 1_000 });
});

/** Compacts what is due; a rest takes a turn of the event loop. */
async function compact({ maintenance, clock }: Given): Promise<void> {
  let isOver = false;
  const compacting = maintenance.compact().finally(() => isOver = true);
  while (!isOver) {
    clock.advance(1);
    await new Promise((resolve) => setTimeout(resolve));
  }
  await compacting;
}

/** Lets what was begun go on for some turns of the event loop. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve));
}
