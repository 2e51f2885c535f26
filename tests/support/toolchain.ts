/**
 * Which client toolchains this machine has: a client suite asks here before it registers its tests. What is missing is
 * said once, by name and with the remedy, and its tests are ignored; with `KAAS_TEST_CLIENTS=required` (as CI runs) it
 * is an error instead, so that a green run cannot hide a suite that never ran.
 *
 * `tests/clients/install PART` builds each part into a cache folder outside the repository. `install --path PART`
 * prints where it belongs: the name holds a hash of everything that goes into it, so a stale build is never used.
 */

export type Part =
  | "kafka-clients-4.3"
  | "kafka-clients-2.0"
  | "kafka-clients-0.10"
  | "kafka-clients-0.9"
  | "kafka-tools"
  | "kafka-streams"
  | "confluent"
  | "franz-go"
  | "sarama"
  | "kafkajs"
  | "platformatic"
  | "kcat";

const clientsFolder = new URL("../clients/", import.meta.url).pathname;
const installer = `${clientsFolder}install`;

/** The command line that starts the client program of a part, less its own arguments; null where it is missing. */
export function clientCommand(part: Part): string[] | null {
  const folder = installedFolder(part);
  if (folder === null) return null;
  switch (part) {
    case "kafka-clients-4.3":
    case "kafka-clients-2.0":
    case "kafka-clients-0.10":
    case "kafka-clients-0.9":
      return [...javaCommand(256), "-cp", `${folder}/classes:${folder}/libs/*`, "kaas.tests.Main"];
    case "kafka-streams":
      return [...javaCommand(512), "-cp", `${folder}/classes:${folder}/libs/*`, "kaas.tests.Streams"];
    case "kafka-tools":
      return [...javaCommand(256), "-cp", `${folder}/libs/*`];
    case "confluent":
      return [`${folder}/bin/python`, "-u", `${clientsFolder}confluent/client.py`];
    case "franz-go":
    case "sarama":
      return [`${folder}/client`];
    case "kafkajs":
    case "platformatic":
      return [`${folder}/node`, `${clientsFolder}${part}/client.mjs`, folder];
    case "kcat":
      return [`${folder}/kcat`];
    default:
      return part satisfies never;
  }
}

/** Short-lived JVMs start and warm up faster with the first compiler only. */
function javaCommand(heapMb: number): string[] {
  return ["java", `-Xmx${heapMb}m`, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"];
}

const folders = new Map<Part, string | null>();

function installedFolder(part: Part): string | null {
  if (!folders.has(part)) folders.set(part, findOrInstall(part));
  return folders.get(part)!;
}

function findOrInstall(part: Part): string | null {
  const folder = run(["--path", part]).stdout.trim();
  if (folder !== "" && exists(folder)) return folder;
  console.error(`tests: ${part} is not installed yet; running tests/clients/install ${part}`);
  const { success, stderr } = run([part]);
  if (success && exists(folder)) return folder;
  const message = `${part} is missing, so its tests cannot run: ${stderr.trim().split("\n").at(-1)}`;
  if (Deno.env.get("KAAS_TEST_CLIENTS") === "required") throw new Error(message);
  console.error(`%ctests: IGNORED: ${message}`, "color: red; font-weight: bold");
  return null;
}

function run(args: string[]): { success: boolean; stdout: string; stderr: string } {
  const output = new Deno.Command("bash", { args: [installer, ...args], stdin: "null" }).outputSync();
  const text = new TextDecoder();
  return { success: output.success, stdout: text.decode(output.stdout), stderr: text.decode(output.stderr) };
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
