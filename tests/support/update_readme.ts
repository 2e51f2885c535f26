/**
 * Writes the generated tables of README.md: `deno run --allow-read --allow-write --allow-env tests/support/update_readme.ts`.
 */

import { readSource, repositoryFolder } from "./source_files.ts";
import { withGeneratedParts } from "./readme_tables.ts";

if (import.meta.main) {
  Deno.writeTextFileSync(`${repositoryFolder}README.md`, withGeneratedParts(readSource("README.md")));
}
