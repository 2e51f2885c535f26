/**
 * The repository's own source text, for tests that hold rules over it.
 */

export const repositoryFolder = new URL("../../", import.meta.url).pathname;

/** Paths of the TypeScript files under a folder, relative to the repository, sorted. */
export function sourceFiles(folder: string): string[] {
  const files: string[] = [];
  for (const entry of Deno.readDirSync(`${repositoryFolder}${folder}`)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory && entry.name !== "node_modules") files.push(...sourceFiles(path));
    else if (entry.isFile && entry.name.endsWith(".ts")) files.push(path);
  }
  return files.sort();
}

export function readSource(path: string): string {
  return Deno.readTextFileSync(`${repositoryFolder}${path}`);
}

/** One import of a file: what it names, as a path from the repository for files, and whether only types come from it. */
export interface Import {
  readonly target: string;
  readonly isFile: boolean;
  readonly typesOnly: boolean;
}

const importPattern =
  /^(?:import|export)\s+(type\s)?[^;"']*?\bfrom\s*["']([^"']+)["']|^import\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;

/** All imports of a file's text, static, re-exporting and dynamic. */
export function importsOf(path: string, text: string): Import[] {
  return [...text.matchAll(importPattern)].map(([, type, from, bare, dynamic]) => {
    const target = from ?? bare ?? dynamic;
    const isFile = target.startsWith(".");
    const url = isFile ? new URL(target, `file:///${path}`).pathname.slice(1) : target;
    return { target: url, isFile, typesOnly: type !== undefined };
  });
}

/**
 * A file's text with comments, and the contents of strings and templates, blanked out (lines kept), so that a search
 * finds code only. Code inside `${…}` stays.
 */
export function codeOnly(text: string): string {
  let out = "";
  let at = 0;
  const templates: number[] = [];
  let depth = 0;
  const blank = (end: number) => {
    out += text.slice(at, end).replace(/[^\n]/g, " ");
    at = end;
  };
  const endOf = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    return match === null ? text.length : match.index + match[0].length;
  };
  const template = () => {
    const end = endOf(/(?<!\\)(?:\\\\)*(`|\$\{)/g, at);
    const opens = text.slice(0, end).endsWith("${");
    blank(end);
    if (opens) templates.push(depth++);
  };
  while (at < text.length) {
    const two = text.slice(at, at + 2);
    const char = text[at];
    if (two === "//") blank(endOf(/(?=\n)/g, at));
    else if (two === "/*") blank(endOf(/\*\//g, at + 2));
    else if (char === '"' || char === "'") blank(endOf(new RegExp(`(?<!\\\\)(?:\\\\\\\\)*${char}`, "g"), at + 1));
    else if (char === "`") {
      blank(at + 1);
      template();
    } else if (char === "/" && /[(,=:[!&|?{};]\s*$/.test(out)) blank(endOf(/(?<!\\)(?:\\\\)*\/[a-z]*/g, at + 1));
    else {
      if (char === "{") depth++;
      if (char === "}") depth--;
      out += char;
      at++;
      if (char === "}" && templates.at(-1) === depth) {
        templates.pop();
        template();
      }
    }
  }
  return out;
}
