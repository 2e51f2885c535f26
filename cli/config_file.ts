/**
 * A YAML file of settings: a tree whose paths, joined by dots, are names of settings. So `log.retention.ms: 1000`,
 * `log: { retention: { ms: 1000 } }` and `log-retention-ms: 1000` say the same. A value is a scalar or a list of scalars;
 * scalars are taken as written in the file, so that no number loses digits on its way.
 */

import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";

/** One setting as it stands in some place; `where` names the place for people. */
export interface GivenSetting {
  readonly name: string;
  readonly values: readonly string[];
  readonly where: string;
}

/** Settings of one place, and everything about it that cannot be right. */
export interface GivenSettings {
  readonly settings: readonly GivenSetting[];
  readonly problems: readonly string[];
}

/** Reads the text of the file at `path` (used in messages only). Never throws. */
export function readConfigFile(path: string, text: string): GivenSettings {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true });
  const at = (offset: number | undefined) => offset === undefined ? path : `${path}:${lines.linePos(offset).line}`;
  if (document.errors.length > 0) {
    return { settings: [], problems: document.errors.map((error) => `${at(error.pos[0])}: ${error.message}`) };
  }
  const settings: GivenSetting[] = [];
  const problems: string[] = [];

  function visit(name: string, keyOffset: number | undefined, node: unknown): void {
    const value = isAlias(node) ? node.resolve(document) : node;
    const where = at((node as Node | null)?.range?.[0] ?? keyOffset);
    if (isMap(value)) return visitMap(name, value.items);
    const items = isSeq(value) ? value.items : [value];
    const values: string[] = [];
    for (const item of items) {
      const text = scalarText(isAlias(item) ? item.resolve(document) : item);
      if (text !== null) values.push(text);
      else problems.push(`${where}: ${name} has no value here; leave the line out for the default`);
    }
    if (values.length === items.length) settings.push({ name, values, where });
  }

  function visitMap(prefix: string, pairs: readonly { key: unknown; value: unknown }[]): void {
    for (const { key, value } of pairs) {
      const keyText = scalarText(key);
      const offset = (key as Node | null)?.range?.[0];
      if (keyText === null || keyText === "") problems.push(`${at(offset)}: expected the name of a setting`);
      else visit(prefix === "" ? keyText : `${prefix}.${keyText}`, offset, value);
    }
  }

  const root = document.contents;
  if (isMap(root)) visitMap("", root.items);
  else if (root !== null && !(isScalar(root) && root.value === null)) {
    problems.push(`${at(root.range?.[0])}: expected settings as NAME: VALUE, one a line`);
  }
  return { settings, problems };
}

/** A scalar as it is written; `null` for anything else, and for a value that is left out. */
function scalarText(node: unknown): string | null {
  if (!isScalar(node) || node.value === null) return null;
  if (typeof node.value === "string") return node.value;
  return node.source ?? String(node.value);
}
