/**
 * `deno task bench`: kaas beside Apache Kafka, in the same run, on the same disk. See bench/README.md.
 *
 *     deno task bench [--rounds N] [--warmup N] [--only REGEX] [--relaxed | --transactions] [--write]
 *
 * Prints Markdown; `--write` puts it into bench/README.md as well, with the machine that it was measured on. Every
 * broker, and every folder, is gone when it ends, also after Ctrl-C.
 */

import { parseArgs } from "node:util";
import { Brokers, type MeasuredBroker } from "./brokers.ts";
import { putResults } from "./results.ts";
import { findTools, MissingTools, output, type Tools } from "./tools.ts";

/** Label and load of each comparison; the loads are kload's. */
const scenarios: readonly string[] = [
  "produce 1K: produce --records 500000 --size 1000",
  "produce 1K, 16 KiB batches: produce --records 150000 --size 1000 --batch-bytes 16384",
  "produce 100B: produce --records 2000000 --size 100",
  "produce 1K lz4: produce --records 500000 --size 1000 --compression lz4 --linger 5ms",
  "produce 1K zstd: produce --records 300000 --size 1000 --compression zstd --linger 5ms",
  "produce 1K acks=1: produce --records 500000 --size 1000 --acks 1",
  "produce 4 clients: produce --records 500000 --size 1000 --producers 4 --partitions 12",
  "produce small reqs: produce --records 30000 --size 1000 --batch-bytes 2048 --buffer 40000 --producers 2",
  "latency 200/s: latency --rate 200 --duration 5s",
  "latency 2000/s: latency --rate 2000 --duration 5s",
  "consume direct: consume --records 1000000 --size 1000",
  "many partitions: manyparts --topics 50 --partitions 6 --rate 500 --duration 5s",
];

/** Transactions of 1, 10 and 100 records, by 1 and 16 producers. */
const transactionScenarios: readonly string[] = [1, 16].flatMap((producers) =>
  [1, 10, 100].map((records) =>
    `txn ${records} records, ${producers} producer${producers === 1 ? "" : "s"}: ` +
    `txn --records-per-txn ${records} --producers ${producers} --duration 5s`
  )
);

/** What is compared where nobody waits for a sync. */
const relaxedScenarios: readonly string[] = [
  "produce 1K: produce --records 500000 --size 1000",
  "latency 2000/s: latency --rate 2000 --duration 5s",
];

interface Options {
  readonly rounds: string;
  readonly warmup: string;
  readonly only?: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      rounds: { type: "string", default: "3" },
      warmup: { type: "string", default: "1" },
      only: { type: "string" },
      relaxed: { type: "boolean", default: false },
      transactions: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
  });
  const tools = await findTools();
  const kind = values.relaxed ? "relaxed" : values.transactions ? "transactions" : "durable";
  const table = kind === "relaxed"
    ? await measureRelaxed(tools, values)
    : await measureDurable(tools, values, kind === "durable" ? scenarios : transactionScenarios);
  console.log(table);
  if (values.write) await putResults(kind, table);
}

/** An acknowledgement means: on the disk. */
function measureDurable(tools: Tools, options: Options, all: readonly string[]): Promise<string> {
  return withBrokers(tools, async (brokers) => {
    const kafka = await brokers.kafka("kafka-fsync", "fsync");
    const kaas = await brokers.kaas("kaas");
    return await compare(tools, options, all, [kafka, kaas], brokers.folder("figures"));
  });
}

/** An acknowledgement means: in the page cache. */
function measureRelaxed(tools: Tools, options: Options): Promise<string> {
  return withBrokers(tools, async (brokers) => {
    const kafka = await brokers.kafka("kafka-default", "default");
    const kaas = await brokers.kaas("kaas-relaxed", undefined, ["log.flush.interval.messages=1000000000"]);
    return await compare(tools, options, relaxedScenarios, [kafka, kaas], brokers.folder("figures"));
  });
}

async function withBrokers<Result>(tools: Tools, measure: (brokers: Brokers) => Promise<Result>): Promise<Result> {
  const brokers = await Brokers.open(tools);
  const interrupted = async () => {
    await brokers.stop();
    Deno.exit(130);
  };
  Deno.addSignalListener("SIGINT", interrupted);
  try {
    return await measure(brokers);
  } finally {
    Deno.removeSignalListener("SIGINT", interrupted);
    await brokers.stop();
  }
}

async function compare(
  { compare, kload }: Tools,
  { rounds, warmup, only }: Options,
  all: readonly string[],
  brokers: readonly MeasuredBroker[],
  folder: string,
): Promise<string> {
  const chosen = only === undefined ? all : all.filter((scenario) => new RegExp(only).test(scenario.split(":")[0]));
  if (chosen.length === 0) throw new Error(`no scenario matches ${only}`);
  const args = ["--kload", kload, "--rounds", rounds, "--warmup", warmup, "--out", `${folder}/figures.jsonl`];
  const targets = brokers.map(({ name, port, pid }) => `${name}=127.0.0.1:${port},${pid}`);
  // It ends with a failure where a run failed, which its table then names.
  return await output(compare, [...args, ...chosen.flatMap((s) => ["--scenario", s]), ...targets], { mayFail: true });
}

try {
  await main();
} catch (error) {
  if (!(error instanceof MissingTools)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
