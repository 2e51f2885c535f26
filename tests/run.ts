/**
 * Runs the tests and ends with one line that says how many there were: `N passed, N failed` or
 * `N passed, N failed, N skipped`. Exits with 0 only if none failed and some passed.
 *
 *     deno task test                    everything
 *     deno task test tests/unit         what is under the given paths
 *     deno task test --filter WORD …    flags go to `deno test`
 *
 * Test files come in groups: those that need nothing but files and loopback sockets run together, so that types are
 * checked and modules loaded once; each suite that starts programs of its own runs alone, for the machine's sake.
 */

/** Folders of suites, in the order they run: what fails fast comes first. */
const groups = [
  ["tests/unit", "tests/conformance", "tests/golden", "tests/broker", "tests/simulation"],
  ["tests/binary"],
  ["tests/cluster"],
  ["tests/fuzz"],
  ["tests/clients"],
];

/** Tests start brokers, clients and compilers and talk to them: all rights but native libraries and remote code. */
const rights = ["read", "write", "net", "env", "run", "sys"].map((right) => `--allow-${right}`);

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

async function main(args: readonly string[]): Promise<number> {
  const paths = args.filter((arg) => arg.startsWith("tests/") || arg.startsWith("./tests/"));
  const flags = args.filter((arg) => !paths.includes(arg));
  const runs = paths.length > 0 ? [paths] : groups.map((group) => group.filter(hasTests));
  const total: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const run of runs) {
    if (run.length === 0) continue;
    const counts = await runTests([...run], flags);
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

/** Runs `deno test`, shows its output, and counts by its closing line. A run without one counts as failed. */
async function runTests(paths: readonly string[], flags: readonly string[]): Promise<Counts> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-prompt", ...rights, ...flags, ...paths],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let tail = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    await Deno.stdout.write(bytes);
    tail = (tail + decoder.decode(bytes, { stream: true })).slice(-4000);
  }
  const { success } = await child.status;
  const counts = countsOf(tail);
  if (counts === null) return { passed: 0, failed: success ? 0 : 1, skipped: 0 };
  return { ...counts, failed: success ? counts.failed : Math.max(1, counts.failed) };
}

/** The numbers of `ok | 5 passed (2 steps) | 0 failed | 1 ignored (3s)`. */
function countsOf(output: string): Counts | null {
  const line = output.split("\n").findLast((line) => /^(ok|FAILED) \| \d+ passed/.test(line));
  if (line === undefined) return null;
  const number = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(line)?.[1] ?? 0);
  return { passed: number("passed"), failed: number("failed"), skipped: number("ignored") };
}

function hasTests(folder: string): boolean {
  try {
    for (const entry of Deno.readDirSync(folder)) {
      if (entry.isFile && entry.name.endsWith("_test.ts")) return true;
      if (entry.isDirectory && hasTests(`${folder}/${entry.name}`)) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
