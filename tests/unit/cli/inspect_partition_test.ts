/**
 * `kaas admin inspect-partition` as a process of its own, with the rights of its task.
 *
 * That it opens no segment and no index is proved twice: by what /proc shows of its descriptors while it runs, and, where
 * strace is there, by every open that it asks the kernel for. In both proofs `--verify` is the counter-check: it opens the
 * very same files, and must be caught at it.
 */

import assert from "node:assert/strict";
import { segmentStem } from "../../../lib/partition_state.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { readSource, repositoryFolder } from "../../support/source_files.ts";
import { run } from "./support.ts";

/** Long enough that whoever reads it is seen doing so. The file is sparse: it takes no room. */
const LONG_BYTES = 192 * 1024 * 1024;

const batch = (offset: number) => buildBatch({ baseOffset: offset, records: [{ value: "a" }, { value: "b" }] });
const stem = segmentStem(2, 0);
const names = [".log", ".index", ".timeindex"].map((suffix) => `${stem}${suffix}`);

async function withPartition(fill: (folder: string) => Promise<void>, test: (data: string) => Promise<void>) {
  const data = await Deno.makeTempDir({ prefix: "kaas-inspect-" });
  try {
    await Deno.mkdir(`${data}/orders/3`, { recursive: true });
    await fill(`${data}/orders/3`);
    await test(data);
  } finally {
    await Deno.remove(data, { recursive: true });
  }
}

async function fillLong(folder: string): Promise<void> {
  await Deno.writeFile(`${folder}/${stem}.log`, new Uint8Array([...batch(0), ...batch(2)]));
  await Deno.truncate(`${folder}/${stem}.log`, LONG_BYTES);
  await Deno.writeFile(`${folder}/${stem}.index`, new Uint8Array(8));
  await Deno.writeFile(`${folder}/${stem}.timeindex`, new Uint8Array(12));
  await Deno.writeFile(`${folder}/${segmentStem(2, 4)}.log`, batch(4));
  await Deno.writeTextFile(
    `${folder}/manifest.json`,
    JSON.stringify({ epoch: 2, highWatermark: 4, logStartOffset: 0 }),
  );
}

/** The command line of the `admin` task. */
function adminCommand(data: string, ...flags: string[]): string[] {
  const task: string = JSON.parse(readSource("deno.json")).tasks.admin.command;
  const [, ...words] = task.split(" ");
  return [Deno.execPath(), ...words, "inspect-partition", "orders/3", "--data", data, "--json", ...flags];
}

async function output(program: string, args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program, { args, cwd: repositoryFolder, stdin: "null", stderr: "inherit" })
    .output();
  return new TextDecoder().decode(stdout);
}

/** Files that the command had open whenever /proc was looked at, from its start to its end. */
function opensSeenInProc(data: string, ...flags: string[]): Promise<string> {
  const look = "while kill -0 $! 2>/dev/null; do readlink /proc/$!/fd/* 2>/dev/null; done | sort -u";
  return output("bash", ["-c", `"$@" >/dev/null & ${look}; wait`, "bash", ...adminCommand(data, ...flags)]);
}

/** Paths that the command asked the kernel to open, threads included. */
async function opensAskedFor(data: string, ...flags: string[]): Promise<string> {
  const trace = `${data}/trace`;
  await output("strace", [
    "-f",
    "-qq",
    "-e",
    "trace=open,openat,openat2",
    "-o",
    trace,
    ...adminCommand(data, ...flags),
  ]);
  const text = await Deno.readTextFile(trace);
  await Deno.remove(trace);
  return text;
}

function hasStrace(): boolean {
  const found =
    new Deno.Command("bash", { args: ["-c", "strace -qq -o /dev/null true"], stderr: "null" }).outputSync().success;
  if (!found && Deno.env.get("KAAS_TEST_CLIENTS") === "required") throw new Error("strace is missing or may not trace");
  if (!found) console.error("tests: IGNORED: strace is missing, so one proof about inspect-partition cannot run");
  return found;
}

Deno.test("While it runs, /proc shows no segment and no index among the files that inspect-partition has open", async () => {
  await withPartition(fillLong, async (data) => {
    const plain = await opensSeenInProc(data);
    assert.match(plain, /^pipe:/m);
    assert.doesNotMatch(plain, /\.(log|index|timeindex)$/m);
    assert.match(await opensSeenInProc(data, "--verify"), new RegExp(`${stem}\\.log$`, "m"));
  });
});

Deno.test("inspect-partition asks the kernel to open no segment and no index", { ignore: !hasStrace() }, async () => {
  await withPartition(fillLong, async (data) => {
    const plain = await opensAskedFor(data);
    assert.match(plain, /orders\/3\/manifest\.json/);
    for (const name of names) assert.equal(plain.includes(name), false, name);
    assert.equal((await opensAskedFor(data, "--verify")).includes(`${stem}.log`), true);
  });
});

Deno.test("inspect-partition changes nothing and names what it finds in a table", async () => {
  await withPartition(fillLong, async (data) => {
    const before = await output("find", [data, "-printf", "%p %s %T@ %C@\n"]);
    const { code, out, err } = await run(["admin", "inspect-partition", "orders/3", "--data", data]);
    assert.deepEqual([code, err], [0, ""]);
    assert.match(out, /^high watermark {2}4 \(manifest\)$/m);
    assert.match(out, new RegExp(`^${stem} +sealed +2 +0 +4 +${LONG_BYTES} +8 +12$`, "m"));
    assert.match(out, new RegExp(`^${segmentStem(2, 4)} +active +2 +4 +– +\\d+ +missing +missing$`, "m"));
    assert.match(out, /^a takeover would\n {2}check \d+ bytes/m);
    assert.equal(await output("find", [data, "-printf", "%p %s %T@ %C@\n"]), before);
  });
});

Deno.test("A partition is named by topic and number, or by its folder", async () => {
  await withPartition(fillLong, async (data) => {
    const environment = { KAAS_DATA: data };
    const commands = [["orders/3", "--data", data], [`${data}/orders/3`], [`${data}/orders/3/`]];
    const outs = [(await run(["admin", "inspect-partition", "orders/3", "--json"], { environment })).out];
    for (const command of commands) outs.push((await run(["admin", "inspect-partition", ...command, "--json"])).out);
    assert.deepEqual(outs.map((out) => JSON.parse(out).highWatermark), [4, 4, 4, 4]);
    const missing = await run(["admin", "inspect-partition", "orders/4", "--data", data]);
    assert.deepEqual([missing.code, missing.err], [
      1,
      `kaas admin inspect-partition: no partition at ${data}/orders/4\n`,
    ]);
  });
});

Deno.test("--verify names the exact place of corruption and exits with 1", async () => {
  const size = batch(0).length;
  const fill = async (folder: string) => {
    const bytes = new Uint8Array([...batch(0), ...batch(2), ...batch(4)]);
    bytes[size + 65] ^= 1;
    await Deno.writeFile(`${folder}/${stem}.log`, bytes);
  };
  await withPartition(fill, async (data) => {
    const text = await run(["admin", "inspect-partition", "orders/3", "--data", data, "--verify"]);
    assert.equal(text.code, 1);
    assert.match(
      text.out,
      new RegExp(`CORRUPT: ${stem}\\.log at byte ${size}, ${size} bytes, offset 2: checksum of the batch at offset 2`),
    );
    const json = await run(["admin", "inspect-partition", "orders/3", "--data", data, "--verify", "--json"]);
    assert.deepEqual([json.code, JSON.parse(json.out).verification.damages[0].position], [1, size]);
    assert.equal((await run(["admin", "inspect-partition", "orders/3", "--data", data])).code, 0);
  });
});
