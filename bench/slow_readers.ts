/**
 * Whether readers can hold producers up: acknowledgement latency at a fixed rate alone, beside consumers that ask for much
 * and take nothing off their sockets, and beside one that reads a topic from the start after its pages were dropped from
 * the page cache, again and again.
 *
 *     deno run -A bench/slow_readers.ts [--seconds N] [--rounds N]
 *
 * The cold reader shares the disk with the producer's syncs: what it costs beyond that is what Kafka's figures beside it
 * are there to tell.
 */

import { parseArgs } from "node:util";
import { fetchRequest } from "../lib/protocol/messages/fetch.ts";
import { ZERO_UUID } from "../lib/protocol/schema.ts";
import { RawClient } from "../tests/support/raw_client.ts";
import { Brokers, type MeasuredBroker } from "./brokers.ts";
import { findTools, median, MissingTools, output, type Tools } from "./tools.ts";

const RATE = 1000;
/** Records of 1,000 bytes in the topic that is read. */
const OLD_RECORDS = 500_000;
const STUCK_CONSUMERS = 16;
const PARTITIONS = 6;
const OLD_TOPIC = "old";

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

/** Something that goes on beside the producer until it is stopped. */
type Company = (tools: Tools, broker: MeasuredBroker) => Promise<{ stop(): Promise<void> }>;

const companies: readonly (readonly [string, Company])[] = [
  ["alone", () => Promise.resolve({ stop: () => Promise.resolve() })],
  [`beside ${STUCK_CONSUMERS} consumers that take nothing`, stuckConsumers],
  ["beside a cold read", coldReader],
];

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: { seconds: { type: "string", default: "5" }, rounds: { type: "string", default: "3" } },
  });
  const tools = await findTools();
  const brokers = await Brokers.open(tools);
  try {
    const all = [await brokers.kafka("kafka-fsync", "fsync"), await brokers.kaas("kaas")];
    for (const broker of all) await fill(tools, broker);
    const figures = new Map<string, Latency[]>();
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (const [name, company] of companies) {
        for (const broker of all) {
          const beside = await company(tools, broker);
          const latency = await measure(tools, broker, values.seconds).finally(() => beside.stop());
          // Round 0 warms up.
          if (round === 0) continue;
          const key = `${name} | ${broker.name}`;
          figures.set(key, [...figures.get(key) ?? [], latency]);
        }
      }
    }
    console.log(`Medians of ${values.rounds} rounds, ${RATE} records/s, acks=all, ms.\n`);
    console.log("| producer | broker | p50 | p99 | p999 |\n|---|---|---|---|---|");
    for (const [key, latencies] of figures) {
      const cells = (["p50", "p99", "p999"] as const).map((p) => median(latencies.map((l) => l[p])).toPrecision(3));
      console.log(`| ${key} | ${cells.join(" | ")} |`);
    }
  } finally {
    await brokers.stop();
  }
}

async function fill({ kload }: Tools, { port }: MeasuredBroker): Promise<void> {
  const load = ["--topic", OLD_TOPIC, "--keep", "--records", String(OLD_RECORDS), "--size", "1000"];
  await output(kload, ["produce", "--brokers", `127.0.0.1:${port}`, ...load]);
}

async function measure({ kload }: Tools, { port }: MeasuredBroker, seconds: string): Promise<Latency> {
  const load = ["--rate", String(RATE), "--duration", `${seconds}s`];
  const result = await output(kload, ["latency", "--brokers", `127.0.0.1:${port}`, ...load]);
  return JSON.parse(result).ack_ms;
}

/** Consumers that ask for all of a topic and leave the answer in the socket. */
async function stuckConsumers(_tools: Tools, { port }: MeasuredBroker) {
  const clients = await Promise.all(Array.from({ length: STUCK_CONSUMERS }, () => RawClient.connect(port)));
  for (const client of clients) await client.send(fetchRequest, 11, fetchAll());
  return {
    stop: () => {
      for (const { connection } of clients) connection.close();
      return Promise.resolve();
    },
  };
}

function fetchAll() {
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    fetchOffset: 0,
    partitionMaxBytes: 50 << 20,
  }));
  return {
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: 50 << 20,
    topics: [{ topic: OLD_TOPIC, topicId: ZERO_UUID, partitions }],
    forgottenTopicsData: [],
  };
}

/** Drops the topic's pages from the page cache and reads it, over and over. */
function coldReader({ kload }: Tools, { port, dataFolder }: MeasuredBroker) {
  let stopped = false;
  const read = async () => {
    while (!stopped) {
      await output("python3", ["-c", DROP_PAGES, dataFolder, OLD_TOPIC]);
      await output(kload, ["consume", "--brokers", `127.0.0.1:${port}`, "--topic", OLD_TOPIC]);
    }
  };
  const reading = read();
  return Promise.resolve({
    stop: async () => {
      stopped = true;
      await reading;
    },
  });
}

/** Both brokers keep a topic's files in folders whose paths hold its name. */
const DROP_PAGES = `
import os, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.log"):
    if any(part == sys.argv[2] or part.startswith(sys.argv[2] + "-") for part in path.parts):
        file = os.open(path, os.O_RDONLY)
        os.fdatasync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
`;

try {
  await main();
} catch (error) {
  if (!(error instanceof MissingTools)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
