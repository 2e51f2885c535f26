/**
 * Measured tables in bench/README.md: each stands between two comments of its name, and is replaced as a whole.
 */

import { cpus, totalmem } from "node:os";

const readme = new URL("README.md", import.meta.url).pathname;

/** Puts a table in place, with when and where it was measured. @throws where the README has no such place */
export async function putResults(name: string, table: string): Promise<void> {
  const text = await Deno.readTextFile(readme);
  const begin = `<!-- ${name} -->\n`;
  const end = `<!-- end of ${name} -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${readme} has no place for the results "${name}"`);
  const replaced = `${text.slice(0, from)}${begin}\n${machine()}\n\n${table.trim()}\n\n${text.slice(to)}`;
  await Deno.writeTextFile(readme, replaced);
}

function machine(): string {
  const processors = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, ${processors.length} × ${processors[0]?.model ?? "CPU"}, ${memory} GiB, Deno ${Deno.version.deno}, ` +
    `Linux ${Deno.osRelease()}.`;
}
