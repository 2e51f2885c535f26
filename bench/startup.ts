/**
 * How long a start takes: from starting the process to the answer to the first ApiVersions request.
 *
 *     deno run -A bench/startup.ts [--runs N] [--executable FILE]
 *
 * Measures the compiled executable (the given one, or one that it compiles and removes) and Apache Kafka, both over data
 * folders that they have seen before, with nothing in them. Kafka's launcher looks for an answer five times a second only,
 * and starts a shell first.
 */

import { parseArgs } from "node:util";
import { compileExecutable } from "../tests/support/executable.ts";
import { answers, Brokers, freePort, spawnKaas } from "./brokers.ts";
import { findTools, median, MissingTools, output } from "./tools.ts";

const KAFKA_RUNS = 3;

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: { runs: { type: "string", default: "20" }, executable: { type: "string" } },
  });
  const tools = await findTools();
  const compiled = values.executable === undefined ? await compileExecutable() : null;
  const executable = values.executable ?? compiled?.path;
  if (executable === undefined) throw new MissingTools("bench: deno compile does not work here; name an --executable");
  const brokers = await Brokers.open(tools);
  try {
    const kaasMs = await repeat(Number(values.runs), startKaas(executable, brokers.folder("kaas")));
    const kafkaMs = await repeat(KAFKA_RUNS, startKafka(tools.kafka, brokers.folder("kafka")));
    console.log("| start to first answer | runs | median ms | fastest | slowest |\n|---|---|---|---|---|");
    console.log(row("kaas, compiled", kaasMs));
    console.log(row("Apache Kafka", kafkaMs));
  } finally {
    await brokers.stop();
    await compiled?.remove();
  }
}

/** The times of `runs` starts, after one that does not count. */
async function repeat(runs: number, startOnce: () => Promise<number>): Promise<number[]> {
  await startOnce();
  const times: number[] = [];
  while (times.length < runs) times.push(await startOnce());
  return times;
}

function startKaas(executable: string, dataFolder: string): () => Promise<number> {
  return async () => {
    const port = freePort();
    const begin = performance.now();
    const { stop } = spawnKaas([executable, "broker"], { port, dataFolder, settings: [] });
    try {
      await answers(port, 1);
      return performance.now() - begin;
    } finally {
      await stop();
    }
  };
}

function startKafka(kafka: string, folder: string): () => Promise<number> {
  return async () => {
    const begin = performance.now();
    const pid = await output(kafka, ["start", String(freePort()), folder, "fsync"]);
    const took = performance.now() - begin;
    await output(kafka, ["stop", pid.trim()]);
    return took;
  };
}

function row(name: string, times: readonly number[]): string {
  const [middle, fastest, slowest] = [median(times), Math.min(...times), Math.max(...times)].map(Math.round);
  return `| ${name} | ${times.length} | ${middle} | ${fastest} | ${slowest} |`;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof MissingTools)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
