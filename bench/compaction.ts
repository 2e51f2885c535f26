/**
 * `deno run -A bench/compaction.ts [--records N] [--keys N] [--rounds N]`: how fast kaas and Apache Kafka compact the same
 * records, and what that costs producers meanwhile.
 *
 * Each topic is filled while it is not compacted yet; then its `cleanup.policy` changes, and the time runs until the
 * broker's own checkpoint says that every sealed segment is compacted. Both look every 100 ms for work.
 */

import { parseArgs } from "node:util";
import { createTopicsRequest, createTopicsResponse } from "../lib/protocol/messages/create_topics.ts";
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from "../lib/protocol/messages/incremental_alter_configs.ts";
import { produceRequest, produceResponse } from "../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../lib/protocol/schema.ts";
import { Compression } from "../lib/records/batch.ts";
import { buildBatch } from "../lib/records/record.ts";
import { RawClient } from "../tests/support/raw_client.ts";
import { Brokers, type MeasuredBroker } from "./brokers.ts";
import { findTools, median, MissingTools, output, type Tools } from "./tools.ts";

const SEGMENT_BYTES = 4 << 20;
const BATCH_RECORDS = 100;
const VALUE_BYTES = 200;
const CODECS = ["none", "lz4", "zstd"] as const;
const RATE = 1000;

interface Passed {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Bytes of the sealed segments before and after. */
  readonly before: number;
  readonly after: number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      records: { type: "string", default: "1000000" },
      keys: { type: "string", default: "100000" },
      rounds: { type: "string", default: "3" },
    },
  });
  const [records, keys, rounds] = [Number(values.records), Number(values.keys), Number(values.rounds)];
  const tools = await findTools();
  const brokers = await Brokers.open(tools);
  try {
    const settings = ["log.cleaner.backoff.ms=100"];
    const measured = [
      await brokers.kafka("kafka", "default", settings),
      await brokers.kaas("kaas", undefined, [...settings, "log.flush.interval.messages=1000000000"]),
    ];
    console.log(`${records} records of ${VALUE_BYTES} bytes over ${keys} keys; medians of ${rounds} rounds.\n`);
    console.log(
      "| codec | broker | dirty MB/s | seconds | CPU s | MB before | MB after |\n|---|---|---|---|---|---|---|",
    );
    for (const codec of CODECS) {
      const figures = new Map<string, Passed[]>(measured.map(({ name }) => [name, []]));
      for (let round = 0; round < rounds; round++) {
        for (const broker of measured) {
          const topic = `${codec}-${round}`;
          await fill(broker, topic, { records, keys, codec });
          figures.get(broker.name)!.push(await compact(broker, topic));
        }
      }
      for (const [name, passes] of figures) console.log(`| ${codec} | ${name} | ${cellsOf(passes)} |`);
    }
    console.log(
      `\nAcknowledgements at ${RATE} records/s, ms:\n\n| broker | meanwhile | p50 | p99 |\n|---|---|---|---|`,
    );
    for (const broker of measured) {
      await fill(broker, "meanwhile", { records: records * 2, keys, codec: "lz4" });
      const idle = await latency(tools, broker, 5);
      const compacting = compact(broker, "meanwhile");
      const busy = await latency(tools, broker, 5);
      await compacting;
      for (const [what, { p50, p99 }] of [["nothing", idle], ["compaction", busy]] as const) {
        console.log(`| ${broker.name} | ${what} | ${p50.toPrecision(3)} | ${p99.toPrecision(3)} |`);
      }
    }
  } finally {
    await brokers.stop();
  }
}

function cellsOf(passes: readonly Passed[]): string {
  const of = (figure: (passed: Passed) => number) => median(passes.map(figure)).toPrecision(3);
  return [
    of(({ before, seconds }) => before / 1e6 / seconds),
    of(({ seconds }) => seconds),
    of(({ cpuSeconds }) => cpuSeconds),
    of(({ before }) => before / 1e6),
    of(({ after }) => after / 1e6),
  ].join(" | ");
}

async function latency({ kload }: Tools, { port }: MeasuredBroker, seconds: number) {
  const load = ["--rate", String(RATE), "--duration", `${seconds}s`];
  const result = await output(kload, ["latency", "--brokers", `127.0.0.1:${port}`, ...load]);
  return JSON.parse(result).ack_ms as { p50: number; p99: number };
}

/** Makes a topic and fills it with records whose keys come by chance, the same for each broker. */
async function fill(
  { port }: MeasuredBroker,
  name: string,
  { records, keys, codec }: { records: number; keys: number; codec: typeof CODECS[number] },
): Promise<void> {
  const client = await RawClient.connect(port);
  try {
    const configs = [
      { name: "cleanup.policy", value: "delete" },
      { name: "segment.bytes", value: String(SEGMENT_BYTES) },
      { name: "min.cleanable.dirty.ratio", value: "0.01" },
    ];
    const topic = { name, numPartitions: 1, replicationFactor: 1, assignments: [], configs };
    const made = await client.call(createTopicsRequest, createTopicsResponse, 4, {
      topics: [topic],
      timeoutMs: 30_000,
    });
    if (made.topics[0].errorCode !== 0) throw new Error(`${name}: error ${made.topics[0].errorCode}`);
    const random = randomNumbers(7);
    const words = Array.from({ length: 64 }, () => random().toString(36).slice(2, 12).padEnd(10, "-"));
    for (let sent = 0; sent < records; sent += BATCH_RECORDS) {
      const batch = buildBatch({
        compression: Compression[codec],
        timestamp: Date.now(),
        records: Array.from({ length: BATCH_RECORDS }, () => {
          let value = "";
          while (value.length < VALUE_BYTES) value += words[Math.floor(random() * words.length)];
          return { key: `key-${Math.floor(random() * keys)}`, value: value.slice(0, VALUE_BYTES) };
        }),
      });
      await produce(client, name, batch);
    }
  } finally {
    client.connection.close();
  }
}

/** A topic that was just made may not be known everywhere in Kafka: that is asked again. */
async function produce(client: RawClient, name: string, records: Uint8Array): Promise<void> {
  for (let tries = 0;; tries++) {
    const topicData = [{ name, topicId: ZERO_UUID, partitionData: [{ index: 0, records }] }];
    const reply = await client.call(produceRequest, produceResponse, 8, { acks: 1, timeoutMs: 30_000, topicData });
    const { errorCode } = reply.responses[0].partitionResponses[0];
    if (errorCode === 0) return;
    if (tries === 100) throw new Error(`produce to ${name}: error ${errorCode}`);
    await pause(50);
  }
}

/** Has the topic compacted and waits for it. */
async function compact(broker: MeasuredBroker, topic: string): Promise<Passed> {
  const { bases, bytes: before } = segmentsOf(broker, topic);
  const end = bases.at(-1)!;
  const cpuBefore = cpuSeconds(broker.pid);
  const began = performance.now();
  const client = await RawClient.connect(broker.port);
  try {
    const configs = [{ name: "cleanup.policy", configOperation: 0, value: "compact" }];
    const resource = { resourceType: 2, resourceName: topic, configs };
    const reply = await client.call(incrementalAlterConfigsRequest, incrementalAlterConfigsResponse, 0, {
      resources: [resource],
      validateOnly: false,
    });
    if (reply.responses[0].errorCode !== 0) throw new Error(`alter ${topic}: error ${reply.responses[0].errorCode}`);
  } finally {
    client.connection.close();
  }
  while (cleanedUpTo(broker, topic) < end) await pause(10);
  const seconds = (performance.now() - began) / 1000;
  const cpu = cpuSeconds(broker.pid) - cpuBefore;
  await pause(1500); // Kafka removes the old files later
  return { seconds, cpuSeconds: cpu, before, after: segmentsOf(broker, topic).bytes };
}

/** Base offsets of all segments, and the bytes of all but the last one. */
function segmentsOf({ dataFolder, name }: MeasuredBroker, topic: string): { bases: number[]; bytes: number } {
  const folder = name === "kaas" ? `${dataFolder}/${topic}/0` : `${dataFolder}/${topic}-0`;
  const found = [...Deno.readDirSync(folder)].flatMap((entry) => {
    const match = /^(?:[0-9a-f]{8}-)?([0-9]{20})\.log$/.exec(entry.name);
    return match === null ? [] : [{ base: Number(match[1]), size: Deno.statSync(`${folder}/${entry.name}`).size }];
  }).sort((a, b) => a.base - b.base);
  return { bases: found.map(({ base }) => base), bytes: found.slice(0, -1).reduce((sum, { size }) => sum + size, 0) };
}

/** How far a broker's checkpoint says that it has compacted. */
function cleanedUpTo({ dataFolder, name }: MeasuredBroker, topic: string): number {
  try {
    if (name === "kaas") {
      return JSON.parse(Deno.readTextFileSync(`${dataFolder}/${topic}/0/cleaner-checkpoint.json`)).cleanedUpTo;
    }
    const lines = Deno.readTextFileSync(`${dataFolder}/cleaner-offset-checkpoint`).split("\n");
    return Number(lines.find((line) => line.startsWith(`${topic} 0 `))?.split(" ")[2] ?? -1);
  } catch {
    return -1; // not written yet
  }
}

/** CPU time that a process has used. */
function cpuSeconds(pid: number): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof MissingTools)) throw error;
    console.error(error.message);
    Deno.exit(1);
  }
}
