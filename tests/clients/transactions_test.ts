/**
 * Transactions of real producers: what is committed is seen once, what is not is never seen, whoever dies.
 */

import assert from "node:assert/strict";
import { type BrokerProcess, brokersAreOwned, startBroker } from "../support/broker_process.ts";
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
