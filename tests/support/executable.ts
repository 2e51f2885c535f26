/**
 * The compiled executable, made once for a test run by the very command of the `compile` task, but into a folder of its own.
 *
 * `deno compile` takes the runtime that it puts into the executable from the network. Where that cannot be had, a
 * toolchain can bring one: a program that prints `export DENO=… DENORT_BIN=…` for a shell, found beside the checkout or
 * named by `KAAS_TEST_COMPILE_TOOLCHAIN`. Without either, the tests of the executable are ignored, and said to be; with
 * `KAAS_TEST_CLIENTS=required` that is an error.
 */

import { repositoryFolder } from "./source_files.ts";

export interface Executable {
  /** The file, alone in a folder that only root may write to. */
  readonly path: string;
  readonly folder: string;
  /** What the compiler said, which names everything that was put in. */
  readonly compilerOutput: string;
  remove(): Promise<void>;
}

/** Compiles; null, with a word on stderr, where that cannot be done here. */
export async function compileExecutable(): Promise<Executable | null> {
  const folder = await Deno.makeTempDir({ prefix: "kaas-binary-" });
  const path = `${folder}/kaas`;
  const task: string = JSON.parse(Deno.readTextFileSync(`${repositoryFolder}deno.json`)).tasks.compile.command;
  const command = task.replace(" --output kaas ", ` --output ${path} `).replaceAll("deno ", '"$DENO" ');
  const toolchain = findToolchain();
  const setUp = toolchain === null ? `DENO=${Deno.execPath()}` : `eval "$("${toolchain}")"`;
  const { success, stdout, stderr } = await new Deno.Command("bash", {
    args: ["-c", `${setUp}; ${command}`],
    cwd: repositoryFolder,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  const compilerOutput = text.decode(stdout) + text.decode(stderr);
  if (success) {
    await Deno.chmod(folder, 0o555);
    const remove = async () => {
      await Deno.chmod(folder, 0o755);
      await Deno.remove(folder, { recursive: true });
    };
    return { path, folder, compilerOutput, remove };
  }
  await Deno.remove(folder, { recursive: true });
  const message = `the executable cannot be compiled, so its tests cannot run: ${command}\n${compilerOutput}`;
  if (toolchain !== null || Deno.env.get("KAAS_TEST_CLIENTS") === "required") throw new Error(message);
  console.error(`tests: IGNORED: ${message}`);
  return null;
}

function findToolchain(): string | null {
  const named = Deno.env.get("KAAS_TEST_COMPILE_TOOLCHAIN");
  if (named) return named;
  const beside = `${repositoryFolder}../shared/tools/compile-toolchain`;
  try {
    return Deno.statSync(beside).isFile ? beside : null;
  } catch {
    return null;
  }
}
