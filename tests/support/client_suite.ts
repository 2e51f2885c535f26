/**
 * What every Kafka client must be able to do with the broker, as tests over any client: tests/clients/<client>_test.ts
 * names its client and what that one cannot do by its own design, and adds what is particular to it.
 *
 * All tests of a suite share one broker and one client process; each has topics of its own.
 */

import assert from "node:assert/strict";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker, until } from "./broker_process.ts";
import { ClientError, ClientProcess, type Codec, codecs } from "./client_process.ts";
import { assertSameRecords, base64, canonicalRecords, firstTimestamp, type RecordLimits } from "./client_records.ts";
import { clientCommand, type Part } from "./toolchain.ts";

/** What a client cannot do by its own design, or what only some can; what is left out is as with most. */
export interface ClientTraits {
  readonly part: Part;
  readonly codecs?: readonly Codec[];
  readonly limits?: RecordLimits;
  /** Whether it creates, describes and deletes topics. */
  readonly admin?: boolean;
  readonly describesTopicId?: boolean;
  readonly looksUpTimestamps?: boolean;
  readonly looksUpMaxTimestamp?: boolean;
  readonly idempotent?: boolean;
  /** Whether its program reads many partitions with one consumer. */
  readonly readsTopics?: boolean;
  /** Whether it gets a record that is larger than what it asked for at most. */
  readonly readsAboveFetchSize?: boolean;
}

export interface ClientContext {
  readonly broker: BrokerProcess;
  readonly client: ClientProcess;
  /** A topic name that nobody else uses. */
  topic(name: string): string;
}

/** Registers `body` as a test of this client; a client that is not installed has it ignored. */
export type ClientTest = (sentence: string, body: (context: ClientContext) => Promise<void>) => void;

/**
 * Registers the tests of a client, and returns what registers more of them on the same broker and process.
 *
 * @param settings of the broker
 */
export function clientSuite(traits: ClientTraits, settings: Record<string, string> = {}): ClientTest {
  const installed = clientCommand(traits.part) !== null;
  let context: Promise<ClientContext> | null = null;
  const run = Math.random().toString(36).slice(2, 8);
  const open = async (): Promise<ClientContext> => {
    const broker = await startBroker({ settings });
    const client = ClientProcess.start(traits.part, broker.bootstrap)!;
    let topics = 0;
    return { broker, client, topic: (name) => `${traits.part}-${name}-${run}-${topics++}` };
  };
  Deno.test.afterAll(async () => {
    // A broker that did not start has failed every test already.
    const opened = await context?.catch(() => null);
    await opened?.client.close();
    await opened?.broker.stop();
  });
  const test: ClientTest = (sentence, body) =>
    Deno.test({
      name: `${traits.part} ${sentence}`,
      ignore: !installed,
      // The broker and the client live longer than one test.
      sanitizeOps: false,
      sanitizeResources: false,
      fn: async () => {
        const opened = await (context ??= open());
        try {
          await body(opened);
        } catch (error) {
          const log = opened.broker.logs().split("\n").slice(-30).join("\n");
          if (log.trim() !== "") console.error(`The broker's last lines:\n${log}`);
          throw error;
        }
      },
    });
  recordTests(traits, test);
  if (traits.limits?.timestamps !== false && traits.admin !== false) timestampTests(test);
  positionTests(traits, test);
  sizeTests(traits, test);
  deliveryTests(traits, test);
  if (traits.readsTopics) manyPartitionsTest(test);
  if (traits.admin !== false) adminTests(traits, test);
  if (traits.idempotent !== false && brokersAreOwned) idempotenceTest(test);
  return test;
}

function recordTests({ codecs: supported = codecs, limits }: ClientTraits, test: ClientTest): void {
  for (const compression of supported) {
    test(`writes with compression ${compression} and reads byte for byte the same`, async ({ client, topic }) => {
      const written = canonicalRecords(limits);
      const name = topic(compression);
      const { acked } = await client.produce({ topic: name, records: written, compression, lingerMs: 50 });
      assert.equal(acked.length, written.length);
      const { records } = await client.consume({ topic: name, from: "earliest", count: written.length });
      assertSameRecords(records, written, { readLimits: limits });
    });
  }
  test("appends batch after batch and reads on over their borders", async ({ client, topic }) => {
    const written = canonicalRecords(limits);
    const name = topic("batches");
    for (const record of written) await client.produce({ topic: name, records: [record] });
    const { records, position } = await client.consume({ topic: name, from: 0, count: written.length });
    assertSameRecords(records, written, { readLimits: limits });
    assert.equal(position, written.length);
  });
}

function timestampTests(test: ClientTest): void {
  test("reads the broker's time where the topic wants it", async ({ client, topic }) => {
    const name = topic("append-time");
    await createTopic(client, name, 1, { "message.timestamp.type": "LogAppendTime" });
    const before = Date.now();
    const records = [1, 2].map((i) => ({ key: base64(`k${i}`), value: base64("v"), timestamp: firstTimestamp + i }));
    await client.produce({ topic: name, records, lingerMs: 50, compression: "gzip" });
    const read = await client.consume({ topic: name, from: 0, count: 2 });
    for (const { timestamp } of read.records) assert.ok(timestamp! >= before && timestamp! <= Date.now());
  });
  test("is told that a timestamp too far in the future is invalid", async ({ client, topic }) => {
    const name = topic("future");
    await createTopic(client, name, 1, { "message.timestamp.after.max.ms": "3600000" });
    const timestamp = Date.now() + 2 * 3_600_000;
    await assert.rejects(
      client.produce({ topic: name, records: [{ key: null, value: base64("v"), timestamp }], timeoutMs: 20_000 }),
      (error) => error instanceof ClientError && error.code === 32,
    );
  });
}

/** Ten records in two batches, a second apart. */
async function tenRecords({ client, topic }: ClientContext, timestamps: boolean): Promise<string> {
  const name = topic("ten");
  const all = Array.from({ length: 10 }, (_, i) => ({
    key: base64(`k${i}`),
    value: base64(`v${i}`),
    ...(timestamps ? { timestamp: firstTimestamp + i * 1_000 } : {}),
  }));
  for (const half of [all.slice(0, 5), all.slice(5)]) {
    await client.produce({ topic: name, records: half, lingerMs: 50, compression: "gzip" });
  }
  return name;
}

function positionTests(traits: ClientTraits, test: ClientTest): void {
  const { limits = {} } = traits;
  const timestamps = limits.timestamps !== false;
  test("reads from an offset inside a batch on", async (context) => {
    const topic = await tenRecords(context, timestamps);
    const keys = await context.client.consumeKeys({ topic, from: 7, count: 3 });
    assert.deepEqual(keys, [7, 8, 9].map((offset) => ({ offset, key: `k${offset}` })));
  });
  test("finds the earliest and the latest offset", async (context) => {
    const topic = await tenRecords(context, timestamps);
    assert.equal((await context.client.offset({ topic, at: "earliest" })).offset, 0);
    assert.equal((await context.client.offset({ topic, at: "latest" })).offset, 10);
  });
  if (traits.looksUpTimestamps !== false) {
    test("finds by timestamp the first record that is at least as young, also inside a batch", async (context) => {
      const topic = await tenRecords(context, timestamps);
      const at = async (milliseconds: number) =>
        (await context.client.offset({ topic, at: firstTimestamp + milliseconds })).offset;
      assert.equal(await at(-1), 0);
      assert.equal(await at(0), 0);
      assert.equal(await at(2_500), 3);
      assert.equal(await at(7_000), 7);
      assert.equal(await at(9_000), 9);
      assert.equal(await at(9_001), null);
      const from = { timestamp: firstTimestamp + 7_001 };
      const keys = await context.client.consumeKeys({ topic, from, count: 2 });
      assert.deepEqual(keys.map(({ offset }) => offset), [8, 9]);
    });
  }
  if (traits.looksUpMaxTimestamp) {
    test("finds the youngest record wherever it is in the log", async ({ client, topic }) => {
      const name = topic("max");
      const records = [3, 9, 4, 9, 1].map((second) => ({
        key: base64(`second ${second}`),
        value: base64("v"),
        timestamp: firstTimestamp + second * 1_000,
      }));
      await client.produce({ topic: name, records: [{ key: null, value: base64("old"), timestamp: firstTimestamp }] });
      await client.produce({ topic: name, records, lingerMs: 50 });
      await client.produce({ topic: name, records: [{ key: null, value: base64("old"), timestamp: firstTimestamp }] });
      const found = await client.offset({ topic: name, at: "maxTimestamp" });
      assert.deepEqual(found, { offset: 2, timestamp: firstTimestamp + 9_000 });
    });
  }
  test("is told when it reads beyond the end of the log", async (context) => {
    const topic = await tenRecords(context, timestamps);
    await assert.rejects(
      context.client.consume({ topic, from: 11, count: 1, timeoutMs: 10_000 }),
      (error) => error instanceof ClientError && error.code === 1,
    );
  });
  test("gets each record as soon as it is written, though its fetches may wait for a minute", async (context) => {
    const { client } = context;
    const topic = await tenRecords(context, timestamps);
    const count = 8;
    const reading = client.start<{ records: { offset: number }[] }>("consume", {
      ...{ topic, from: "latest", count, maxWaitMs: 60_000, timeoutMs: 25_000, stream: true },
    });
    await reading.until(({ event }) => event === "positioned");
    for (let offset = 10; offset < 10 + count; offset++) {
      await client.produce({ topic, records: [{ key: base64("late"), value: base64(`${offset}`) }] });
      await reading.until((event) => event.event === "record" && event.offset === offset);
    }
    const { records } = await reading.result;
    assert.deepEqual(records.map(({ offset }) => offset), Array.from({ length: count }, (_, i) => 10 + i));
  });
  test("gets the records that are there when a fetch for more has waited long enough", async (context) => {
    const topic = await tenRecords(context, timestamps);
    const fetch = { topic, from: 0, count: 10, minBytes: 10_000_000, maxWaitMs: 300 };
    assert.equal((await context.client.consumeKeys(fetch)).length, 10);
  });
}

function sizeTests(traits: ClientTraits, test: ClientTest): void {
  const limitBytes = 3_000_000;
  const large = (bytes: number) => [{ key: base64("large"), value: base64("x".repeat(bytes)) }];
  const setUp = async ({ client, broker, topic }: ClientContext): Promise<string> => {
    const name = topic("large");
    const configs = { "max.message.bytes": String(limitBytes) };
    if (traits.admin !== false) await createTopic(client, name, 1, configs);
    else await createTopicByAnother(broker.bootstrap, name, 1, configs);
    return name;
  };
  const limits = { maxRequestBytes: 20_000_000, batchBytes: 20_000_000 };
  test("writes a record of nearly max.message.bytes and reads it back", async (context) => {
    const topic = await setUp(context);
    const records = large(limitBytes - 1_000);
    await context.client.produce({ topic, records, ...limits });
    const maxBytes = traits.readsAboveFetchSize === false ? 2 * limitBytes : 100_000;
    const read = await context.client.consume({ topic, from: 0, count: 1, maxBytes });
    assert.equal(read.records[0].value, records[0].value);
  });
  test("is told that a record above max.message.bytes is too large, and goes on", async (context) => {
    const topic = await setUp(context);
    await assert.rejects(
      context.client.produce({ topic, records: large(limitBytes + 1), ...limits, timeoutMs: 20_000 }),
      (error) => error instanceof ClientError && error.code === 10,
    );
    await context.client.produce({ topic, records: large(10) });
    assert.equal((await context.client.offset({ topic, at: "latest" })).offset, 1);
  });
}

/**
 * Creates a topic. In kaas it is there for everyone when that is answered; in Apache Kafka some time later.
 */
export async function createTopic(
  client: ClientProcess,
  topic: string,
  partitions = 1,
  configs: Record<string, string> = {},
): Promise<void> {
  await client.createTopic(topic, partitions, configs);
  if (brokerIsKaas) return;
  const created = async () => (await client.describeTopic(topic)).partitions === partitions;
  await until(() => created().catch(() => false), `topic ${topic} to be known`);
}

/** For clients that cannot create topics themselves. */
export async function createTopicByAnother(
  bootstrap: string,
  topic: string,
  partitions = 1,
  configs: Record<string, string> = {},
): Promise<void> {
  const client = ClientProcess.start("confluent", bootstrap) ?? ClientProcess.start("kafka-clients-4.3", bootstrap);
  if (!client) throw new Error(`no installed client can create the topic ${topic}`);
  await createTopic(client, topic, partitions, configs);
  await client.close();
}

function deliveryTests(traits: ClientTraits, test: ClientTest): void {
  for (const acks of [0, 1, -1] as const) {
    test(`writes with acks=${acks === -1 ? "all" : acks}`, async ({ client, topic }) => {
      const name = topic(`acks${acks}`);
      // The first record creates the topic, which acks=0 would not wait for.
      await client.produce({ topic: name, records: [{ key: base64("first"), value: base64("v") }] });
      const records = Array.from({ length: 20 }, (_, i) => ({ key: base64(`k${i}`), value: base64("v") }));
      const { acked } = await client.produce({ topic: name, records, acks });
      if (acks !== 0) {
        assert.deepEqual(acked, records.map((_, i) => [0, 1 + i]));
      }
      const keys = await client.consumeKeys({ topic: name, from: 1, count: 20 });
      assert.deepEqual(keys.map(({ key }) => key), records.map((_, i) => `k${i}`));
    });
  }
  test("writes many small records to three partitions with linger, each in order and once", async (context) => {
    const { client, broker, topic } = context;
    const name = topic("many");
    if (traits.admin !== false) await createTopic(client, name, 3);
    else await createTopicByAnother(broker.bootstrap, name, 3);
    const generate = { count: 9_000, prefix: "small", partitions: 3, valueBytes: 20 };
    await client.produce({ topic: name, generate, lingerMs: 20, compression: "lz4", batchBytes: 4_000 });
    for (let partition = 0; partition < 3; partition++) {
      const read = await client.consumeKeys({ topic: name, partition, from: "earliest", count: 3_000 });
      assert.deepEqual(
        read,
        Array.from({ length: 3_000 }, (_, i) => ({ offset: i, key: `small-${i * 3 + partition}` })),
      );
    }
  });
}

/** What keeps a fetch session of many partitions busy: some get records, others do not, in turns. */
function manyPartitionsTest(test: ClientTest): void {
  test("reads forty partitions with one consumer while they are written to, each in order and once", async (context) => {
    const { client, broker, topic } = context;
    const name = topic("wide");
    const partitions = 40;
    await createTopicByAnother(broker.bootstrap, name, partitions);
    const write = (prefix: string, count: number) =>
      client.produce({ topic: name, generate: { prefix, count, partitions }, lingerMs: 5 });
    await write("a", 400);
    const reading = client.consumeTopic({ topic: name, partitions, count: 1_255 });
    await reading.until((event) => event.event === "progress" && event.acked >= 400);
    await write("b", 800);
    await write("c", 13);
    await write("d", 42);
    const { records } = await reading.result;
    assert.equal(records.length, 1_255);
    const read = Array.from({ length: partitions }, () => [] as string[]);
    for (const [partition, offset, key] of records) {
      assert.equal(offset, read[partition].length, `next offset of partition ${partition}`);
      read[partition].push(key);
    }
    for (const [partition, keys] of read.entries()) assert.deepEqual(keys, keysOf(partition, partitions));
  });
}

function keysOf(partition: number, partitions: number): string[] {
  const dealt = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => i).filter((i) => i % partitions === partition).map((i) => `${prefix}-${i}`);
  return [...dealt("a", 400), ...dealt("b", 800), ...dealt("c", 13), ...dealt("d", 42)];
}

function adminTests(traits: ClientTraits, test: ClientTest): void {
  const isCode = (...codes: number[]) => (error: unknown) =>
    error instanceof ClientError && error.code !== null && codes.includes(error.code);
  test("creates, describes, lists and deletes a topic", async ({ client, topic }) => {
    const name = topic("admin");
    await createTopic(client, name, 3, { "retention.ms": "3600000" });
    const described = await client.describeTopic(name);
    assert.equal(described.partitions, 3);
    assert.ok((await client.listTopics()).includes(name));
    assert.equal(await client.topicConfig(name, "retention.ms"), "3600000");
    await client.deleteTopic(name);
    assert.ok(!(await client.listTopics()).includes(name));
  });
  if (traits.describesTopicId !== false) {
    test("gets a topic of the same name as a new one, empty and with another id", async ({ client, topic }) => {
      const name = topic("again");
      await createTopic(client, name, 1);
      const before = await client.describeTopic(name);
      await client.produce({ topic: name, records: [{ key: null, value: base64("old") }] });
      await client.deleteTopic(name);
      await createTopic(client, name, 2);
      const after = await client.describeTopic(name);
      assert.equal(after.partitions, 2);
      assert.notEqual(after.topicId, before.topicId);
      assert.equal((await client.offset({ topic: name, at: "latest" })).offset, 0);
    });
  }
  test("is told why a topic cannot be created or deleted", async ({ client, topic }) => {
    const name = topic("refused");
    await createTopic(client, name, 1);
    await assert.rejects(client.createTopic(name, 1), isCode(36), "topic exists");
    await assert.rejects(client.createTopic("no spaces allowed", 1), isCode(17), "invalid topic");
    await assert.rejects(client.createTopic(topic("bad"), 1, { "retention.ms": "soon" }), isCode(40), "invalid config");
    await assert.rejects(client.deleteTopic(topic("unknown")), isCode(3), "unknown topic");
  });
}

function idempotenceTest(test: ClientTest): void {
  test("loses and doubles nothing as an idempotent producer while the broker is killed", async (context) => {
    const { client, broker, topic } = context;
    const name = topic("idempotent");
    const count = 6_000;
    await createTopic(client, name, 1);
    const writing = client.start<{ acked: [number, number][] }>("produce", {
      topic: name,
      generate: { count, prefix: "once", valueBytes: 500 },
      ...{ idempotent: true, acks: -1, lingerMs: 5, batchBytes: 8_000, timeoutMs: 90_000 },
    });
    await writing.until((event) => event.event === "progress" && event.acked >= 600);
    await broker.kill();
    await broker.restart();
    const { acked } = await writing.result;
    assert.equal(acked.length, count);
    const read = await client.consumeKeys({ topic: name, from: "earliest", count });
    assert.deepEqual(read.map(({ key }) => key), Array.from({ length: count }, (_, i) => `once-${i}`));
    assert.equal((await client.offset({ topic: name, at: "latest" })).offset, count);
    for (const [i, { offset }] of read.entries()) assert.equal(acked[i][1], offset, `acknowledged offset of ${i}`);
  });
}
