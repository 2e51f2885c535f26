/**
 * A broker as a process of its own, for tests that need the real thing: started on a free loopback port with a
 * temporary data folder, killed, restarted on the same port and data, and removed.
 *
 * Three brokers can stand behind it, chosen by the environment:
 * - kaas itself (default): the command of the `broker` task in deno.json, so with the permissions users run it with; or
 *   the command `KAAS_TEST_COMMAND`, such as `/path/of/the/executable/kaas broker`.
 * - `KAAS_TEST_BOOTSTRAP=host:port`: a broker that runs already. It cannot be killed; tests that kill are ignored.
 * - `KAAS_TEST_BROKER=kafka`: Apache Kafka by the launcher named in `KAAS_TEST_KAFKA` (its commands are
 *   `start PORT DIR [key=value…]`, printing the process id, and `stop PID`): to prove the tests themselves right.
 *
 * Invariant: whatever `startBroker` started is gone, folder included, when `stop()` has returned.
 */

export interface BrokerOptions {
  /** Broker settings by Kafka's names, such as {"message.max.bytes": "2000000"}. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Served as it is and kept; without it a temporary folder is made, and removed by `stop`. */
  readonly dataFolder?: string;
}

export interface BrokerProcess {
  readonly bootstrap: string;
  readonly port: number;
  readonly dataFolder: string;
  /** False when the broker belongs to someone else, so that it can be neither killed nor restarted. */
  readonly owned: boolean;
  /** The process id of the running broker; 0 where it is not ours. */
  pid(): number;
  /** Everything the broker wrote to stdout and stderr so far, over all its starts. */
  logs(): string;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code when the process is gone. */
  terminate(): Promise<number>;
  /** Starts again on the same port and data after `kill` or `terminate`; resolves when it answers. */
  restart(): Promise<void>;
  /** Ends the broker if it still runs and removes what was made for it. */
  stop(): Promise<void>;
}

const readyTimeoutMs = 60_000;
const exitTimeoutMs = 30_000;
const repository = new URL("../../", import.meta.url).pathname;

/** Whether brokers of these tests can be killed and restarted. */
export const brokersAreOwned = !Deno.env.get("KAAS_TEST_BOOTSTRAP");
/** Whether the broker under test is kaas: what only kaas promises is not asked of others. */
export const brokerIsKaas = Deno.env.get("KAAS_TEST_BROKER") !== "kafka";

/** Starts a broker and resolves when it answers ApiVersions. Throws with its logs if it does not within a minute. */
export async function startBroker(options: BrokerOptions = {}): Promise<BrokerProcess> {
  const bootstrap = Deno.env.get("KAAS_TEST_BOOTSTRAP");
  if (bootstrap) return foreignBroker(bootstrap);
  const madeFolder = options.dataFolder === undefined;
  const dataFolder = options.dataFolder ?? await Deno.makeTempDir({ prefix: "kaas-test-" });
  const port = freePort();
  const start = brokerIsKaas ? startKaas : startKafka;
  const chunks: string[] = [];
  const launch = () => start({ port, dataFolder, settings: options.settings ?? {}, chunks });
  const removeFolder = () => madeFolder ? Deno.remove(dataFolder, { recursive: true }) : Promise.resolve();
  let running: Running | null;
  try {
    running = await launch();
  } catch (error) {
    await removeFolder();
    throw error;
  }
  const end = async (signal: Deno.Signal): Promise<number> => {
    if (!running) throw new Error("the broker is not running");
    const ended = running;
    running = null;
    return await ended.end(signal);
  };
  return {
    bootstrap: `127.0.0.1:${port}`,
    port,
    dataFolder,
    owned: true,
    pid: () => running?.pid ?? 0,
    logs: () => chunks.join(""),
    kill: async () => void await end("SIGKILL"),
    terminate: () => end("SIGTERM"),
    restart: async () => {
      if (running) throw new Error("the broker is still running");
      running = await launch();
    },
    stop: async () => {
      if (running) await end("SIGKILL");
      await removeFolder();
    },
  };
}

interface Launch {
  readonly port: number;
  readonly dataFolder: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly chunks: string[];
}

interface Running {
  readonly pid: number;
  end(signal: Deno.Signal): Promise<number>;
}

async function startKaas({ port, dataFolder, settings, chunks }: Launch): Promise<Running> {
  const [program, ...taskArguments] = kaasCommand();
  const configFile = await Deno.makeTempFile({ prefix: "kaas-test-", suffix: ".yaml" });
  const configLines = Object.entries(settings).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  await Deno.writeTextFile(configFile, configLines.join("") || "{}\n");
  const child = new Deno.Command(program, {
    args: [...taskArguments, "--data", dataFolder, "--listen", `127.0.0.1:${port}`, "--config", configFile],
    cwd: repository,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const pumped = Promise.all([collect(child.stdout, chunks), collect(child.stderr, chunks)]);
  let exited = false;
  const ended = child.status.then(async (status) => {
    exited = true;
    await pumped;
    await Deno.remove(configFile);
    return status.code;
  });
  const end = async (signal: Deno.Signal) => {
    if (!exited) child.kill(signal);
    const timer = setTimeout(() => exited || child.kill("SIGKILL"), exitTimeoutMs);
    const code = await ended;
    clearTimeout(timer);
    return code;
  };
  if (await answersSoon(port, () => exited)) return { pid: child.pid, end };
  const what = exited ? "ended before it answered" : `did not answer within ${readyTimeoutMs} ms`;
  await end("SIGKILL");
  throw new Error(`kaas ${what} on port ${port}. Its output:\n${chunks.join("")}`);
}

/** The `broker` task without `deno task` around it, which would not pass SIGKILL on. */
function kaasCommand(): string[] {
  const given = Deno.env.get("KAAS_TEST_COMMAND");
  if (given) return given.split(" ");
  const task = JSON.parse(Deno.readTextFileSync(`${repository}deno.json`)).tasks?.broker;
  const command = typeof task === "string" ? task : task?.command;
  if (typeof command !== "string") throw new Error("deno.json has no task named broker");
  const words = command.split(/\s+/).filter((word) => word !== "");
  if (words[0] !== "deno") throw new Error(`the broker task starts with ${words[0]}, not with deno`);
  return [Deno.execPath(), ...words.slice(1)];
}

async function startKafka({ port, dataFolder, settings, chunks }: Launch): Promise<Running> {
  const launcher = Deno.env.get("KAAS_TEST_KAFKA");
  if (!launcher) throw new Error("KAAS_TEST_BROKER=kafka needs KAAS_TEST_KAFKA, the path of a launcher");
  const overrides = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  const run = async (args: string[]) => {
    const output = await new Deno.Command(launcher, { args, env: { HEAP: "512m" }, stdin: "null" }).output();
    const text = new TextDecoder().decode(output.stderr);
    chunks.push(text);
    if (!output.success) throw new Error(`${launcher} ${args[0]} failed: ${text}`);
    return new TextDecoder().decode(output.stdout).trim();
  };
  const pid = Number(await run(["start", String(port), dataFolder, ...overrides]));
  return {
    pid,
    end: async (signal) => {
      if (signal === "SIGTERM") await run(["stop", String(pid)]);
      else Deno.kill(pid, signal);
      await until(() => !processRuns(pid), `process ${pid} to be gone`);
      return 0;
    },
  };
}

function foreignBroker(bootstrap: string): BrokerProcess {
  const refuse = () => Promise.reject(new Error(`the broker at ${bootstrap} is not ours to stop`));
  return {
    bootstrap,
    port: Number(bootstrap.split(":").at(-1)),
    dataFolder: "",
    owned: false,
    pid: () => 0,
    logs: () => "",
    kill: refuse,
    terminate: refuse,
    restart: refuse,
    stop: () => Promise.resolve(),
  };
}

/** A port nobody listens on, below the range from which the system takes ports of outgoing connections. */
export function freePort(): number {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 10_000);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** Waits until `condition` holds; throws naming `what` after `timeoutMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!await condition()) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answersSoon(port: number, exited: () => boolean): Promise<boolean> {
  const deadline = Date.now() + readyTimeoutMs;
  while (!exited() && Date.now() < deadline) {
    if (await answers(port)) return true;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return false;
}

/** Sends ApiVersions v0 and waits for the first bytes of its answer. */
async function answers(port: number): Promise<boolean> {
  let connection: Deno.TcpConn;
  try {
    connection = await Deno.connect({ hostname: "127.0.0.1", port });
  } catch {
    return false;
  }
  try {
    await connection.write(Uint8Array.of(0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff));
    return (await connection.read(new Uint8Array(8)) ?? 0) > 0;
  } catch {
    return false;
  } finally {
    connection.close();
  }
}

/** False for a process that is gone or a zombie. */
function processRuns(pid: number): boolean {
  // Deno itself reads /proc only with all rights, native code included.
  const status = new Deno.Command("cat", { args: [`/proc/${pid}/status`], stderr: "null" }).outputSync();
  return status.success && !/^State:\s*Z/m.test(new TextDecoder().decode(status.stdout));
}

async function collect(stream: ReadableStream<Uint8Array>, chunks: string[]): Promise<void> {
  for await (const text of stream.pipeThrough(new TextDecoderStream())) chunks.push(text);
}
