/**
 * Transactions of real producers: what is committed is seen once, what is not is never seen, whoever dies.
 */

import assert from "node:assert/strict";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { ClientError, ClientProcess } from "../support/client_process.ts";
import { createTopic } from "../support/client_suite.ts";
import { tool } from "../support/kafka_tools.ts";
import { clientCommand, type Part } from "../support/toolchain.ts";

const sanitized = { sanitizeOps: false, sanitizeResources: false };

/** Runs `body` with a broker of its own and clients that are closed at the end. */
async function withBroker(
  body: (broker: BrokerProcess, start: (part: Part) => ClientProcess) => Promise<void>,
  settings: Record<string, string> = {},
): Promise<void> {
  const broker = await startBroker({ settings });
  const clients: ClientProcess[] = [];
  try {
    await body(broker, (part) => {
      const client = ClientProcess.start(part, broker.bootstrap)!;
      clients.push(client);
      return client;
    });
  } catch (error) {
    console.error(`The broker's last lines:\n${broker.logs().split("\n").slice(-30).join("\n")}`);
    throw error;
  } finally {
    for (const client of clients) await client.close();
    await broker.stop();
  }
}

function isMissing(...parts: Part[]): boolean {
  return parts.some((part) => clientCommand(part) === null);
}

const committed = { "isolation.level": "read_committed" };

/** Keys of a partition, in order, as a read_committed reader of the Java client sees them. */
async function committedKeys(reader: ClientProcess, topic: string, partition = 0): Promise<string[]> {
  const { offset: end } = await reader.start<{ offset: number }>("offset", {
    ...{ topic, partition, at: "latest", config: committed },
  }).result;
  const read = await reader.start<{ records: [number, string][]; position: number }>("consume", {
    ...{ topic, partition, from: 0, keysOnly: true, config: committed, untilPosition: end },
  }).result;
  assert.equal(read.position, end, "the reader gets to the end");
  return read.records.map(([, key]) => key);
}

function keys(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
}

for (const part of ["kafka-clients-4.3", "kafka-clients-2.0"] as const) {
  Deno.test({
    name: `${part}: committed transactions are read, aborted ones are not, and their offsets are skipped`,
    ignore: isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: () =>
      withBroker(async (_, start) => {
        const [writer, reader] = [start(part), start("kafka-clients-4.3")];
        await createTopic(writer, "t", 2);
        const of = (prefix: string, count: number) => ({ topic: "t", generate: { prefix, count, partitions: 2 } });
        await writer.transact({
          transactionalId: "writer",
          transactions: [of("a", 4), { ...of("b", 6), end: "abort" }, of("c", 2), { ...of("d", 2), end: "abort" }],
        }).result;
        assert.deepEqual(await committedKeys(reader, "t", 0), ["a-0", "a-2", "c-0"]);
        assert.deepEqual(await committedKeys(reader, "t", 1), ["a-1", "a-3", "c-1"]);
        const { offset } = await reader.offset({ topic: "t", at: "latest" });
        assert.equal(offset, 2 + 1 + 3 + 1 + 1 + 1 + 1 + 1, "records and one marker for each transaction");
      }),
  });
}

for (const part of ["confluent", "franz-go", "kafkajs"] as const) {
  Deno.test({
    name: `${part}: committed transactions are read, aborted ones are not`,
    ignore: isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: () =>
      withBroker(async (_, start) => {
        const [writer, reader] = [start(part), start("kafka-clients-4.3")];
        await createTopic(writer, "t");
        const of = (prefix: string, count: number) => ({ topic: "t", generate: { prefix, count } });
        await writer.transact({
          transactionalId: "writer",
          transactions: [of("a", 2), { ...of("b", 3), end: "abort" }, of("c", 1), { ...of("d", 2), end: "abort" }],
        }).result;
        assert.deepEqual(await committedKeys(reader, "t"), ["a-0", "a-1", "c-0"]);
      }),
  });
}

const copiers = [
  ["kafka-clients-4.3", "classic"],
  ["kafka-clients-4.3", "consumer"],
  ["kafka-clients-2.0", "classic"],
  ["confluent", "classic"],
  ["franz-go", "classic"],
  ["kafkajs", "classic"],
] as const;

for (const [part, protocol] of copiers) {
  const inGroup = protocol === "classic" ? "" : `, in a group of the ${protocol} protocol`;
  Deno.test({
    name: `${part}${inGroup}: a copy is exact though the broker and the copying client are killed`,
    ignore: !brokersAreOwned || isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: () =>
      withBroker(
        async (broker, start) => {
          const reader = start("kafka-clients-4.3");
          const partitions = 3;
          const count = 3_000;
          await createTopic(reader, "in", partitions);
          await createTopic(reader, "out", partitions);
          await reader.produce({ topic: "in", generate: { count, prefix: "k", partitions } });
          const command = {
            ...{ topic: "in", output: "out", groupId: "copiers", transactionalId: "copier" },
            ...{ batch: 40, abortEvery: 5, sessionTimeoutMs: 6_000, protocol },
          };
          const first = start(part);
          const begun = first.copy(command);
          await begun.until((event) => event.event === "progress" && event.acked >= 500);
          await broker.kill();
          await broker.restart();
          const before = begun.events.length;
          await begun.until((event) => begun.events.indexOf(event) >= before && event.event === "progress");
          first.signal("SIGKILL");
          const second = start(part);
          const going = second.copy(command);
          await going.until((event) => event.event === "progress");
          await broker.kill();
          await broker.restart();
          for (let partition = 0; partition < partitions; partition++) {
            const written = keys("k", count).filter((_, i) => i % partitions === partition);
            await until(
              async () => {
                const { offset } = await reader.committed({ groupId: "copiers", topic: "in", partition });
                return offset === written.length;
              },
              `partition ${partition} to be copied`,
              120_000,
            );
            assert.deepEqual(await committedKeys(reader, "out", partition), written);
          }
          await second.stop(going);
        },
        protocol === "consumer"
          ? { "group.consumer.min.session.timeout.ms": "6000", "group.consumer.session.timeout.ms": "6000" }
          : {},
      ),
  });
}

/** A transaction that waits for its end, written by a client of its own. */
async function held(start: (part: Part) => ClientProcess, part: Part, transactionalId: string, settings: object = {}) {
  const client = start(part);
  const running = client.transact({
    transactionalId,
    ...settings,
    transactions: [{ topic: "t", generate: { prefix: transactionalId, count: 3 }, hold: true }],
  });
  await running.until(({ event }) => event === "held");
  return { client, running };
}

for (const part of ["kafka-clients-4.3", "kafka-clients-2.0", "confluent", "franz-go"] as const) {
  Deno.test({
    name: `${part}: a second producer of one transactional id fences the first, whose records are never seen`,
    ignore: isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: () =>
      withBroker(async (_, start) => {
        const reader = start("kafka-clients-4.3");
        await createTopic(reader, "t");
        const zombie = await held(start, part, "one");
        await start(part).transact({
          transactionalId: "one",
          transactions: [{ topic: "t", generate: { prefix: "second", count: 2 } }],
        }).result;
        await assert.rejects(
          zombie.client.stop(zombie.running),
          (error) => error instanceof ClientError && [47, 90, null].includes(error.code),
        );
        assert.deepEqual(await committedKeys(reader, "t"), ["second-0", "second-1"]);
      }),
  });

  Deno.test({
    name:
      `${part}: a transaction whose client died is aborted at its timeout, also when the broker was killed meanwhile`,
    ignore: !brokersAreOwned || isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: () =>
      withBroker(async (broker, start) => {
        const reader = start("kafka-clients-4.3");
        await createTopic(reader, "t");
        const dead = await held(start, part, "dead", { transactionTimeoutMs: 4_000 });
        const late = await held(start, part, "late", { transactionTimeoutMs: 4_000 });
        await reader.produce({ topic: "t", records: [{ key: btoa("plain"), value: btoa("v") }] });
        dead.client.signal("SIGKILL");
        const latest = async () =>
          (await reader.start<{ offset: number }>("offset", { topic: "t", at: "latest", config: committed }).result)
            .offset;
        assert.equal(await latest(), 0, "nothing behind an open transaction is stable");
        await broker.kill();
        await broker.restart();
        await until(async () => await latest() === 3 + 3 + 1 + 2, "both to be aborted", 20_000);
        assert.deepEqual(await committedKeys(reader, "t"), ["plain"]);
        await assert.rejects(late.client.stop(late.running));
      }),
  });
}

Deno.test({
  name: "kafka-transactions lists, describes, finds and aborts",
  ignore: !brokersAreOwned || isMissing("kafka-clients-4.3", "kafka-tools"),
  ...sanitized,
  fn: () =>
    withBroker(async (broker, start) => {
      const reader = start("kafka-clients-4.3");
      await createTopic(reader, "t");
      await reader.transact({
        transactionalId: "done",
        transactions: [{ topic: "t", generate: { prefix: "done", count: 1 } }],
      }).result;
      const open = await held(start, "kafka-clients-2.0", "open");
      const run = async (...args: string[]) =>
        (await tool("kafka-transactions", ["--bootstrap-server", broker.bootstrap, ...args])).split("\n")
          .map((line) => line.trim().split(/\s+/)).filter((words) => words.length > 1);
      const listed = await run("list");
      assert.deepEqual(listed.slice(1).map(([id, , , state]) => [id, state]).sort(), [
        ["done", "CompleteCommit"],
        ["open", "Ongoing"],
      ]);
      assert.deepEqual((await run("list", "--duration-filter", "3600000")).length, 1);
      assert.deepEqual((await run("list", "--transactional-id-pattern", "o.*n")).slice(1).map(([id]) => id), ["open"]);
      const [, described] = await run("describe", "--transactional-id", "open");
      assert.ok(described.includes("Ongoing") && described.includes("t-0"), described.join(" "));
      const [, ...producers] = await run("describe-producers", "--topic", "t", "--partition", "0");
      const starts = producers.map((words) => words.at(-1));
      assert.deepEqual(starts.sort(), ["2", "None"]);
      await run("abort", "--topic", "t", "--partition", "0", "--start-offset", "2");
      assert.deepEqual(await committedKeys(reader, "t"), ["done-0"]);
      const hanging = await run("find-hanging", "--broker-id", "0", "--max-transaction-timeout", "0");
      assert.equal(hanging.length, 1, "nothing hangs");
      await run("forceTerminateTransaction", "--transactionalId", "open");
      await assert.rejects(open.client.stop(open.running));
      assert.deepEqual(await committedKeys(reader, "t"), ["done-0"]);
    }),
});

for (const part of ["kafka-clients-4.3", "kafka-clients-2.0", "franz-go"] as const) {
  Deno.test({
    name: `${part}: a copy over three brokers is exact though they are killed one after the other`,
    ignore: !brokersAreOwned || !brokerIsKaas || isMissing(part, "kafka-clients-4.3"),
    ...sanitized,
    fn: async () => {
      const dataFolder = await Deno.makeTempDir({ prefix: "kaas-test-" });
      const start = (id: number) =>
        startBroker({ dataFolder, settings: { "node.id": String(id), "broker.session.timeout.ms": "3000" } });
      const brokers: BrokerProcess[] = [await start(1), await start(2), await start(3)];
      const bootstrap = brokers.map((broker) => broker.bootstrap).join(",");
      const clients = [ClientProcess.start("kafka-clients-4.3", bootstrap)!, ClientProcess.start(part, bootstrap)!];
      const [reader, copier] = clients;
      try {
        const partitions = 6;
        const count = 6_000;
        await createTopic(reader, "in", partitions);
        await createTopic(reader, "out", partitions);
        await reader.produce({ topic: "in", generate: { count, prefix: "k", partitions } });
        const going = copier.copy({
          ...{ topic: "in", output: "out", groupId: "copiers", transactionalId: "copier" },
          ...{ batch: 40, abortEvery: 7, sessionTimeoutMs: 6_000 },
        });
        for (const broker of brokers) {
          const before = going.events.length;
          await going.until((event) => event.event === "progress" && going.events.indexOf(event) >= before);
          await broker.kill();
          await broker.restart();
        }
        for (let partition = 0; partition < partitions; partition++) {
          const written = keys("k", count).filter((_, i) => i % partitions === partition);
          await until(
            async () => {
              const { offset } = await reader.committed({ groupId: "copiers", topic: "in", partition });
              return offset === written.length;
            },
            `partition ${partition} to be copied`,
            120_000,
          );
          assert.deepEqual(await committedKeys(reader, "out", partition), written);
        }
        await copier.stop(going);
      } catch (error) {
        for (const broker of brokers) console.error(broker.logs().split("\n").slice(-15).join("\n"));
        throw error;
      } finally {
        for (const client of clients) await client.close();
        for (const broker of brokers) await broker.stop();
        await Deno.remove(dataFolder, { recursive: true });
      }
    },
  });
}
