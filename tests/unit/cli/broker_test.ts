/**
 * `kaas broker` as a process of its own, with the rights of its task.
 */

import assert from "node:assert/strict";
import manifest from "../../../deno.json" with { type: "json" };
import { readSource, repositoryFolder } from "../../support/source_files.ts";

interface Started {
  readonly child: Deno.ChildProcess;
  /** What it wrote to stdout until its start line, that one included. */
  readonly output: string;
  /** Reads on until the process ends. */
  ended(): Promise<{ code: number; output: string }>;
}

/** The command line of the `broker` task. */
function brokerCommand(...args: string[]): string[] {
  const task: string = JSON.parse(readSource("deno.json")).tasks.broker.command;
  return [Deno.execPath(), ...task.split(" ").slice(1), ...args];
}

async function start(command: string[], env: Record<string, string> = {}): Promise<Started> {
  const child = new Deno.Command(command[0], {
    args: command.slice(1),
    cwd: repositoryFolder,
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let output = "";
  while (!/kaas broker serves[^\n]*\n/.test(output)) {
    const part = await reader.read();
    if (part.done) break;
    output += part.value;
  }
  const ended = async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) output += part.value;
    const stderr = await new Response(child.stderr).text();
    return { code: (await child.status).code, output: output + stderr };
  };
  if (!/kaas broker serves/.test(output)) throw new Error(`the broker did not start: ${(await ended()).output}`);
  return { child, output, ended };
}

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "kaas-broker-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("The start line says in JSON where the broker listens and what it serves, and SIGTERM ends it with 0", async () => {
  await withFolder(async (folder) => {
    const data = `${folder}/new/data`;
    const { child, output, ended } = await start(brokerCommand("--data", data, "--listen", "127.0.0.1:0"));
    const line = JSON.parse(output.trimEnd().split("\n").at(-1)!);
    assert.equal(line.version, manifest.version);
    assert.equal(line.data, data);
    assert.deepEqual([line.topics, line.partitions], [0, 0]);
    assert.ok(line.startMs > 0);
    const [, port] = /^PLAINTEXT:\/\/127\.0\.0\.1:(\d+)$/.exec(line.listeners)!;
    (await Deno.connect({ hostname: "127.0.0.1", port: Number(port) })).close();
    child.kill("SIGTERM");
    const end = await ended();
    assert.equal(end.code, 0);
    assert.deepEqual(end.output.trimEnd().split("\n").slice(-2).map((text) => JSON.parse(text).message), [
      "stopping",
      "stopped",
    ]);
  });
});

Deno.test("SIGINT ends a broker cleanly, too, and settings come from file and environment", async () => {
  await withFolder(async (folder) => {
    const file = `${folder}/kaas.yaml`;
    await Deno.writeTextFile(
      file,
      `data: ${folder}/from-file\nlisten: [IN=127.0.0.1:0, OUT=127.0.0.1:0]\nlog-format: text\n`,
    );
    const environment = { KAAS_CONFIG: file, KAAS_DATA: `${folder}/from-environment`, KAAS_NUM_PARTITIONS: "3" };
    const { child, output, ended } = await start(brokerCommand(), environment);
    assert.match(output, / INFO {2}kaas broker serves {2}/);
    assert.match(output, new RegExp(` data=${folder}/from-environment `));
    assert.match(output, /IN:\/\/127\.0\.0\.1:\d+,OUT:\/\/127\.0\.0\.1:\d+/);
    child.kill("SIGINT");
    assert.equal((await ended()).code, 0);
  });
});

Deno.test("On a terminal the log is text, and Ctrl-C ends the broker cleanly", { ignore: !hasScript() }, async () => {
  await withFolder(async (folder) => {
    const command = brokerCommand("--data", folder, "--listen", "127.0.0.1:0").map((word) => `'${word}'`).join(" ");
    const { child, output, ended } = await start(["script", "-qec", `exec ${command}`, "/dev/null"]);
    assert.match(output, /^\d\d:\d\d:\d\d\.\d{3} INFO .*kaas broker serves {2}version=/m);
    const keyboard = child.stdin.getWriter();
    await keyboard.write(Uint8Array.of(3)); // Ctrl-C
    await keyboard.close();
    const end = await ended();
    assert.match(end.output, /stopping {2}signal=SIGINT/);
    assert.equal(end.code, 0);
  });
});

Deno.test("A broker that cannot have its data folder says why and exits with 1", async () => {
  await withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    const [program, ...args] = brokerCommand("--data", `${folder}/file/data`, "--listen", "127.0.0.1:0");
    const { code, stderr } = await new Deno.Command(program, { args, cwd: repositoryFolder }).output();
    assert.equal(code, 1);
    assert.match(new TextDecoder().decode(stderr), /^kaas broker: cannot start: /m);
  });
});

/** Whether there is a program that gives a command a terminal. */
function hasScript(): boolean {
  return new Deno.Command("bash", { args: ["-c", "script --version"], stdout: "null", stderr: "null" }).outputSync()
    .success;
}

Deno.test("a failure that no code expected is reported, and the process goes on", () => {
  const script = `
    import { startProcess } from ${JSON.stringify(new URL("../../../cli/process.ts", import.meta.url).href)};
    setTimeout(() => Promise.reject(new Error("nobody waits for this")), 500);
    setTimeout(() => Deno.kill(Deno.pid, "SIGTERM"), 1000);
    await startProcess();
  `;
  const folder = Deno.makeTempDirSync();
  try {
    Deno.writeTextFileSync(`${folder}/main.ts`, script);
    const config = new URL("../../../deno.json", import.meta.url).pathname;
    const { code, stdout, stderr } = new Deno.Command(Deno.execPath(), {
      args: ["run", "--allow-all", "--no-check", "--config", config, `${folder}/main.ts`, "broker"].concat(
        ["--data", `${folder}/data`, "--listen", "127.0.0.1:0"],
      ),
    }).outputSync();
    const log = new TextDecoder().decode(stdout);
    assert.match(log, /unexpected failure.*nobody waits for this/);
    assert.match(log, /"message":"stopped"/);
    assert.equal(code, 0, new TextDecoder().decode(stderr));
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});
