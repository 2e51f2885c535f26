import assert from "node:assert/strict";
import { withGeneratedParts } from "../support/readme_tables.ts";
import { readSource } from "../support/source_files.ts";
import { run } from "./cli/support.ts";

const readme = readSource("README.md");

Deno.test("The tables of APIs and settings in README.md are current", () => {
  const hint = "run: deno run --allow-read --allow-write --allow-env tests/support/update_readme.ts";
  assert.ok(withGeneratedParts(readme) === readme, `README.md is out of date; ${hint}`);
});

Deno.test("README.md gives a reason for each package of deno.json, with its version", () => {
  const imports: Record<string, string> = JSON.parse(readSource("deno.json")).imports;
  for (const specifier of Object.values(imports)) {
    const [, name, version] = /^npm:(.+)@([^@]+)$/.exec(specifier)!;
    assert.match(
      readme,
      new RegExp(`^\\| ${name.replaceAll("/", "\\/")} ${version.replaceAll(".", "\\.")} \\| .+ \\|$`, "m"),
    );
  }
});

Deno.test("Every task that README.md names is in deno.json, and every task of deno.json is in README.md", () => {
  const tasks = Object.keys(JSON.parse(readSource("deno.json")).tasks);
  const named = [...readme.matchAll(/(?<!\w)task ([a-z]+)/g)].map(([, task]) => task);
  assert.deepEqual(named.filter((task) => !tasks.includes(task)), []);
  assert.deepEqual(tasks.filter((task) => !named.includes(task)), []);
});

Deno.test("The same pinned version of Deno stands in README.md, the Dockerfile and CI's script", () => {
  const versions = ["README.md", "Dockerfile", ".ci/run"].flatMap((path) =>
    [...readSource(path).matchAll(/deno(?:@|_version=)(\d+\.\d+\.\d+)/g)].map(([, version]) => version)
  );
  assert.equal(new Set(versions).size, 1);
  assert.ok(versions.length >= 3);
});

Deno.test("Every flag that README.md shows for a command is one that the command knows", async () => {
  for (const [, line] of readme.matchAll(/(?:kaas|task) ((?:broker|controller|admin)[^\n`|#]*)/g)) {
    const flags = line.match(/--[a-z-]+/g) ?? [];
    if (flags.length === 0) continue;
    // The words up to the first flag or argument that no command's name looks like.
    const words = /^[a-z-]+(?: [a-z]+(?:-[a-z]+)*)*/.exec(line)?.[0].split(" ") ?? [];
    const depth = words[0] === "admin"
      ? (["topics", "groups", "transactions", "configs"].includes(words[1]) ? 3 : 2)
      : 1;
    const { out } = await run([...words.slice(0, depth), "--help"]);
    assert.deepEqual(flags.filter((flag) => !out.includes(flag)), [], line);
  }
});
