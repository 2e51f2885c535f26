/**
 * Brokers to measure: each a process of its own with its data in a temporary folder. All folders lie in one place
 * (`KAAS_BENCH_DIR`, else the system's folder for temporary files), so that all brokers use the same disk.
 *
 * Invariant: when {@link Brokers.stop} has returned, every process is gone, and so is every folder.
 */

import { output, type Tools } from "./tools.ts";

export interface MeasuredBroker {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly dataFolder: string;
}

/** What an acknowledgement of Apache Kafka means: in the page cache, or synced. */
export type KafkaMode = "default" | "fsync";

const ANSWER_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 20_000;
const repository = new URL("../", import.meta.url).pathname;

export class Brokers {
  readonly #folder: string;
  readonly #stops: (() => Promise<unknown>)[] = [];

  private constructor(private readonly tools: Pick<Tools, "kafka">, folder: string) {
    this.#folder = folder;
  }

  static async open(tools: Pick<Tools, "kafka">): Promise<Brokers> {
    const dir = Deno.env.get("KAAS_BENCH_DIR");
    return new Brokers(tools, await Deno.makeTempDir({ dir, prefix: "kaas-bench-" }));
  }

  /** A new folder that goes when the brokers do. */
  folder(name: string): string {
    const path = `${this.#folder}/${name}`;
    Deno.mkdirSync(path, { recursive: true });
    return path;
  }

  /** Starts Apache Kafka; resolves when it answers. */
  async kafka(name: string, mode: KafkaMode, settings: readonly string[] = []): Promise<MeasuredBroker> {
    const port = freePort();
    const folder = this.folder(name);
    const pid = Number(await output(this.tools.kafka, ["start", String(port), folder, mode, ...settings]));
    this.#stops.push(() => output(this.tools.kafka, ["stop", String(pid)], { mayFail: true }));
    return { name, port, pid, dataFolder: `${folder}/data` };
  }

  /** Starts kaas by `command`, see {@link kaasCommand}; resolves when it answers. */
  async kaas(
    name: string,
    command = kaasCommand(),
    settings: readonly string[] = [],
  ): Promise<MeasuredBroker> {
    const port = freePort();
    const dataFolder = this.folder(name);
    const { pid, stop } = spawnKaas(command, { port, dataFolder, settings });
    this.#stops.push(stop);
    await answers(port);
    return { name, port, pid, dataFolder };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#stops.splice(0).map((stop) => stop()));
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** How kaas is started here: the executable that `KAAS_BENCH_KAAS` names, or the command of the `broker` task. */
export function kaasCommand(): string[] {
  const executable = Deno.env.get("KAAS_BENCH_KAAS");
  if (executable) return [executable, "broker"];
  const task: string = JSON.parse(Deno.readTextFileSync(`${repository}deno.json`)).tasks.broker.command;
  return [Deno.execPath(), ...task.split(/\s+/).slice(1)];
}

export interface KaasOptions {
  readonly port: number;
  readonly dataFolder: string;
  /** `NAME=VALUE`, by Kafka's names. */
  readonly settings: readonly string[];
}

/** Starts kaas and does not wait for it. */
export function spawnKaas(command: readonly string[], { port, dataFolder, settings }: KaasOptions) {
  const flags = ["--data", dataFolder, "--listen", `127.0.0.1:${port}`, "--log-level", "warn"];
  const child = new Deno.Command(command[0], {
    args: [...command.slice(1), ...flags, ...settings.flatMap((setting) => ["--set", setting])],
    cwd: repository,
    // The variables of the benchmarks are no settings of the broker.
    clearEnv: true,
    env: Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("KAAS_"))),
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  let ended = false;
  const end = child.status.then(() => ended = true);
  const stop = async () => {
    if (!ended) child.kill("SIGTERM");
    const timer = setTimeout(() => ended || child.kill("SIGKILL"), STOP_WITHIN_MS);
    await end;
    clearTimeout(timer);
  };
  return { pid: child.pid, stop };
}

/** Resolves when a broker answers ApiVersions (version 0) on a port. @throws when it does not within a minute */
export async function answers(port: number, pauseMs = 2): Promise<void> {
  const deadline = performance.now() + ANSWER_WITHIN_MS;
  while (!await answersNow(port)) {
    if (performance.now() > deadline) throw new Error(`no broker answers on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function answersNow(port: number): Promise<boolean> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(Uint8Array.of(0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff));
    return (await connection.read(new Uint8Array(8)) ?? 0) > 0;
  } catch {
    return false;
  }
}

/** A port nobody listens on, as is the one 10,000 above it, which Kafka's controller takes. */
export function freePort(): number {
  for (;;) {
    const port = 13_000 + Math.floor(Math.random() * 9_000);
    try {
      for (const wanted of [port, port + 10_000]) Deno.listen({ hostname: "127.0.0.1", port: wanted }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
