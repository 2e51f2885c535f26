/**
 * The tools that the benchmarks stand on but that are no part of this repository: `compare` and its load generator
 * `kload`, and a launcher of Apache Kafka. They lie in a folder named by `KAAS_SHARED`, or in `../shared` beside the
 * checkout. What is missing is said all at once, with what brings it.
 */

const repository = new URL("../", import.meta.url).pathname;

/** Commands and paths, all absolute. */
export interface Tools {
  /** Runs scenarios against several brokers in turn. */
  readonly compare: string;
  /** Starts and stops Apache Kafka. */
  readonly kafka: string;
  /** The built load generator. */
  readonly kload: string;
}

/** Thrown where the benchmarks cannot run on this machine; the message says what to do about it. */
export class MissingTools extends Error {
  override readonly name = "MissingTools";
}

/** Finds everything, and builds the load generator. @throws {MissingTools} */
export async function findTools(): Promise<Tools> {
  const shared = (Deno.env.get("KAAS_SHARED") ?? `${repository}../shared`).replace(/\/$/, "");
  const bench = `${shared}/bench`;
  const missing: string[] = [];
  for (const path of ["compare", "peers/kafka", "kload/main.go"]) {
    if (!isFile(`${bench}/${path}`)) missing.push(`${bench}/${path} (KAAS_SHARED names the folder that holds bench/)`);
  }
  for (const [command, probe, why] of COMMANDS) {
    if (!await works(command, probe)) missing.push(`${command}, ${why}`);
  }
  if (missing.length > 0) throw new MissingTools(`bench: missing:\n  ${missing.join("\n  ")}`);
  const cache = Deno.env.get("XDG_CACHE_HOME") || `${Deno.env.get("HOME")}/.cache`;
  await Deno.mkdir(`${cache}/kaas-bench`, { recursive: true });
  const kload = `${cache}/kaas-bench/kload`;
  await output("go", ["build", "-o", kload, "."], { cwd: `${bench}/kload` });
  return { compare: `${bench}/compare`, kafka: `${bench}/peers/kafka`, kload };
}

const COMMANDS = [
  ["go", ["version"], "1.26 or newer, which builds the load generator"],
  ["python3", ["--version"], "3.10 or newer, which runs the comparison"],
  ["java", ["-version"], "17 or newer, which runs Apache Kafka"],
  ["mvn", ["--version"], "which fetches Apache Kafka"],
] as const;

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

async function works(command: string, args: readonly string[]): Promise<boolean> {
  try {
    const silent = { stdin: "null", stdout: "null", stderr: "null" } as const;
    return (await new Deno.Command(command, { args: [...args], ...silent }).output()).success;
  } catch {
    return false;
  }
}

/** What a command writes to stdout; its stderr is passed on. @throws where it fails, unless `mayFail` */
export async function output(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly mayFail?: boolean } = {},
): Promise<string> {
  const { success, code, stdout } = await new Deno.Command(command, {
    args: [...args],
    cwd: options.cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).output();
  if (!success && !options.mayFail) throw new Error(`${command} ${args.join(" ")} ended with ${code}`);
  return new TextDecoder().decode(stdout);
}

/** Middle of some numbers; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
