/**
 * What one client writes every other reads byte for byte: each writes with each codec it has, and each reads all of it.
 */

import assert from "node:assert/strict";
import { brokerIsKaas, type BrokerProcess, startBroker } from "../support/broker_process.ts";
import { ClientProcess, type Codec, codecs, type SentRecord } from "../support/client_process.ts";
import { assertSameRecords, canonicalRecords, type RecordLimits } from "../support/client_records.ts";
import { readWithKcat } from "../support/kcat.ts";
import { clientCommand, type Part } from "../support/toolchain.ts";

interface Client {
  readonly part: Part;
  readonly codecs?: readonly Codec[];
  readonly limits?: RecordLimits;
}

const withoutZstd: readonly Codec[] = ["none", "gzip", "snappy", "lz4"];
const clients: Client[] = [
  { part: "kafka-clients-4.3" },
  { part: "kafka-clients-2.0", codecs: withoutZstd },
  { part: "kafka-clients-0.10", codecs: withoutZstd, limits: { headers: false } },
  { part: "kafka-clients-0.9", codecs: withoutZstd, limits: { headers: false, timestamps: false } },
  { part: "confluent" },
  { part: "franz-go" },
  { part: "sarama" },
  { part: "kafkajs", limits: { headerOrder: false, nullHeaderValues: false } },
  { part: "platformatic" },
];
/** Apache Kafka of today no longer speaks with clients older than 2.1. */
const present = clients.filter(({ part }) =>
  clientCommand(part) !== null && (brokerIsKaas || Deno.env.get("KAAS_TEST_OLD_CLIENTS") !== "no" || !isOld(part))
);

function isOld(part: Part): boolean {
  return part === "kafka-clients-2.0" || part === "kafka-clients-0.10" || part === "kafka-clients-0.9";
}

let broker: BrokerProcess;
const processes = new Map<Part, ClientProcess>();
const written = new Map<string, { client: Client; records: readonly SentRecord[] }>();
const run = Math.random().toString(36).slice(2, 8);

Deno.test.beforeAll(async () => {
  broker = await startBroker();
  for (const { part } of present) processes.set(part, ClientProcess.start(part, broker.bootstrap)!);
});

Deno.test.afterAll(async () => {
  for (const process of processes.values()) await process.close();
  await broker.stop();
});

const outliving = { sanitizeOps: false, sanitizeResources: false };

for (const client of present) {
  Deno.test({
    ...outliving,
    name: `${client.part} writes for the others`,
    fn: async () => {
      const records = canonicalRecords(client.limits);
      const writes = (client.codecs ?? codecs).map(async (compression) => {
        const topic = `from-${client.part}-${compression}-${run}`;
        const { acked } = await processes.get(client.part)!.produce({ topic, records, compression, lingerMs: 50 });
        assert.equal(acked.length, records.length);
        written.set(topic, { client, records });
      });
      await Promise.all(writes);
    },
  });
}

for (const reader of present) {
  Deno.test({
    ...outliving,
    name: `${reader.part} reads what all others wrote, byte for byte`,
    fn: async () => {
      for (const [topic, { client, records }] of written) {
        if (!canRead(reader, topic)) continue;
        const read = await processes.get(reader.part)!.consume({ topic, from: 0, count: records.length });
        assertSame(read.records, records, client, reader);
      }
    },
  });
}

Deno.test({
  ...outliving,
  name: "kcat reads what all others wrote, byte for byte",
  ignore: clientCommand("kcat") === null,
  fn: async () => {
    for (const [topic, { client, records }] of written) {
      const read = await readWithKcat(broker.bootstrap, topic, records.length);
      assertSame(read, records, client, { part: "kcat", limits: { headers: false } });
    }
  },
});

/** An old client cannot read a codec that it does not know. */
function canRead(reader: Client, topic: string): boolean {
  return (reader.codecs ?? codecs).some((codec) => topic.endsWith(`-${codec}-${run}`));
}

function assertSame(
  read: Parameters<typeof assertSameRecords>[0],
  records: readonly SentRecord[],
  writer: Client,
  reader: Client,
) {
  try {
    assertSameRecords(read, records, { readLimits: reader.limits });
  } catch (error) {
    throw new Error(`${reader.part} reads from ${writer.part}`, { cause: error });
  }
}
