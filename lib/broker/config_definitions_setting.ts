/**
 * What one setting is: name, type, default, the values it takes, how it may be changed, and whether it does anything
 * here. The tables are in `config_definitions_*.ts`; this file knows none of them.
 *
 * Values live in two forms. Text is what people, files and the wire write; a value is what code computes with. Longs
 * are numbers that saturate: text at or beyond ±(2^53 − 1) becomes `Number.MAX_SAFE_INTEGER` and is shown as Kafka's
 * largest long again, so "no limit" survives the round trip. Parsing never throws: text comes from clients.
 */

/** Kafka's type of a setting. Sensitive values are passwords and are never shown. */
export type SettingType = "boolean" | "string" | "int" | "short" | "long" | "double" | "list" | "password" | "class";
/** A parsed value; `null` is "not set". */
export type SettingValue = boolean | number | string | readonly string[] | null;
/** `"applied"`: changes what kaas does. `"accepted"`: checked, kept, shown, no effect. `"refused"`: only its default. */
export type Effect = "applied" | "accepted" | "refused";
/** Who may change a running broker's setting: nobody, each broker for itself, or also all at once. */
export type UpdateMode = "read-only" | "per-broker" | "cluster-wide";
export type Importance = "high" | "medium" | "low";

/** Which values of its type a setting takes; `wanted` completes the sentence "expected …". */
export interface Check {
  readonly wanted: string;
  accepts(value: NonNullable<SettingValue>): boolean;
}

/** A setting before it has its name. */
export interface SettingSpec<T extends SettingValue = SettingValue> {
  readonly type: SettingType;
  readonly defaultValue: T;
  readonly check: Check | null;
  readonly importance: Importance;
  readonly doc: string;
  readonly effect: Effect;
  readonly update: UpdateMode;
}

/** One setting by Kafka's name. `doc` says what it does here, in sentences of our own. */
export interface Setting<T extends SettingValue = SettingValue> extends SettingSpec<T> {
  readonly name: string;
}

/** The value type of a table's setting. */
export type ValueOfSetting<S> = S extends SettingSpec<infer T> ? T : never;

/** Outcome of parsing text; `message` names the setting, the value met and the value wanted. */
export type Parsed<T = SettingValue> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string };

const LARGEST_LONG_TEXT = "9223372036854775807";
const SMALLEST_LONG_TEXT = "-9223372036854775808";
const INT_MAX = 2147483647;

/** Largest int; Kafka's "no limit" for settings of type int. */
export const NO_LIMIT_INT = INT_MAX;
/** Kafka's largest long as this code base holds it. */
export const NO_LIMIT_LONG = Number.MAX_SAFE_INTEGER;

interface Extra {
  readonly effect?: Effect;
  readonly update?: UpdateMode;
  readonly importance?: Importance;
}

function spec<T extends SettingValue>(
  type: SettingType,
  defaultValue: T,
  check: Check | null,
  doc: string,
  extra: Extra,
): SettingSpec<T> {
  return {
    type,
    defaultValue,
    check,
    doc,
    importance: extra.importance ?? "medium",
    effect: extra.effect ?? "applied",
    update: extra.update ?? "read-only",
  };
}

/** A 32-bit whole number. */
export function int(defaultValue: number, check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number> {
  return spec("int", defaultValue, check, doc, extra);
}
/** A 32-bit whole number that is not set by default. */
export function optionalInt(check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number | null> {
  return spec<number | null>("int", null, check, doc, extra);
}
/** A 16-bit whole number. */
export function short(defaultValue: number, check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number> {
  return spec("short", defaultValue, check, doc, extra);
}
/** A 64-bit whole number that saturates at 2^53 − 1. */
export function long(defaultValue: number, check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number> {
  return spec("long", defaultValue, check, doc, extra);
}
/** A 64-bit whole number that is not set by default. */
export function optionalLong(check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number | null> {
  return spec<number | null>("long", null, check, doc, extra);
}
/** A floating-point number. */
export function double(defaultValue: number, check: Check | null, doc: string, extra: Extra = {}): SettingSpec<number> {
  return spec("double", defaultValue, check, doc, extra);
}
/** `true` or `false`. */
export function boolean(defaultValue: boolean, doc: string, extra: Extra = {}): SettingSpec<boolean> {
  return spec("boolean", defaultValue, null, doc, extra);
}
/** Text. */
export function string(defaultValue: string, check: Check | null, doc: string, extra: Extra = {}): SettingSpec<string> {
  return spec("string", defaultValue, check, doc, extra);
}
/** Text that is not set by default. */
export function optionalString(check: Check | null, doc: string, extra: Extra = {}): SettingSpec<string | null> {
  return spec<string | null>("string", null, check, doc, extra);
}
/** Comma-separated text. */
export function list(
  defaultValue: readonly string[],
  check: Check | null,
  doc: string,
  extra: Extra = {},
): SettingSpec<readonly string[]> {
  return spec("list", defaultValue, check, doc, extra);
}
/** Comma-separated text that is not set by default. */
export function optionalList(
  check: Check | null,
  doc: string,
  extra: Extra = {},
): SettingSpec<readonly string[] | null> {
  return spec<readonly string[] | null>("list", null, check, doc, extra);
}

/** Numbers of at least `least`. */
export function atLeast(least: number): Check {
  return { wanted: `at least ${least}`, accepts: (value) => typeof value === "number" && value >= least };
}
/** Numbers from `least` to `most`, both included. */
export function between(least: number, most: number): Check {
  return {
    wanted: `from ${least} to ${most}`,
    accepts: (value) => typeof value === "number" && value >= least && value <= most,
  };
}
/** One of the given words, as written. */
export function oneOf(...words: string[]): Check {
  return { wanted: `one of ${words.join(", ")}`, accepts: (value) => words.includes(String(value)) };
}
/** A list of some of the given words; one that is there twice counts once. */
export function someOf(...words: string[]): Check {
  return {
    wanted: `a list of words out of ${words.join(", ")}`,
    accepts: (value) => Array.isArray(value) && value.every((word) => words.includes(word)),
  };
}
/** A number in the first check's values or equal to `special`. */
export function orExactly(special: number, check: Check): Check {
  return { wanted: `${special} or ${check.wanted}`, accepts: (value) => value === special || check.accepts(value) };
}
/** Each entry of the list (or the text) matches. */
export function matching(pattern: RegExp, wanted: string): Check {
  return {
    wanted,
    accepts: (value) =>
      Array.isArray(value) ? value.every((entry) => pattern.test(entry)) : pattern.test(String(value)),
  };
}

/** Gives every setting of a table its name. */
export function named<T extends Record<string, SettingSpec>>(
  specs: T,
): { readonly [K in keyof T]: Setting<ValueOfSetting<T[K]>> } {
  const table: Record<string, Setting> = {};
  for (const [name, spec] of Object.entries(specs)) table[name] = { name, ...spec };
  return table as { readonly [K in keyof T]: Setting<ValueOfSetting<T[K]>> };
}

/** Parses `text` as `setting`'s type and checks its range. Surrounding blanks do not count. */
export function parseSetting<T extends SettingValue>(setting: Setting<T>, text: string): Parsed<T> {
  const value = parseType(setting.type, text.trim());
  if (value === undefined) return refuse(setting, text, `a value of type ${setting.type}`);
  if (setting.check !== null && !setting.check.accepts(value)) return refuse(setting, text, setting.check.wanted);
  if (setting.effect === "refused" && formatValue(setting.type, value) !== formatSetting(setting)) {
    return { ok: false, message: `${setting.name} cannot be set: ${setting.doc}` };
  }
  return { ok: true, value: value as T };
}

function refuse(setting: Setting, text: string, wanted: string): Parsed<never> {
  const shown = setting.type === "password" ? "the value" : JSON.stringify(text);
  return { ok: false, message: `${setting.name}: ${shown} is not accepted, expected ${wanted}` };
}

function parseType(type: SettingType, text: string): NonNullable<SettingValue> | undefined {
  switch (type) {
    case "boolean": {
      const word = text.toLowerCase();
      return word === "true" ? true : word === "false" ? false : undefined;
    }
    case "int":
      return parseWhole(text, -INT_MAX - 1, INT_MAX);
    case "short":
      return parseWhole(text, -32768, 32767);
    case "long":
      return parseLong(text);
    case "double":
      return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
    case "list":
      return text === "" ? [] : text.split(",").map((entry) => entry.trim());
    case "string":
    case "password":
    case "class":
      return text;
  }
}

function parseWhole(text: string, least: number, most: number): number | undefined {
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= least && value <= most ? value + 0 : undefined;
}

function parseLong(text: string): number | undefined {
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const exact = BigInt(text.startsWith("+") ? text.slice(1) : text);
  if (exact > BigInt(LARGEST_LONG_TEXT) || exact < BigInt(SMALLEST_LONG_TEXT)) return undefined;
  return Math.max(-NO_LIMIT_LONG, Math.min(NO_LIMIT_LONG, Number(exact))) + 0;
}

/** The setting's value (its default if none is given) as Kafka writes it; `null` for a value that is not set. */
export function formatSetting(setting: Setting, value: SettingValue = setting.defaultValue): string | null {
  return value === null ? null : formatValue(setting.type, value);
}

function formatValue(type: SettingType, value: NonNullable<SettingValue>): string {
  if (Array.isArray(value)) return value.join(",");
  if (type === "long" && value === NO_LIMIT_LONG) return LARGEST_LONG_TEXT;
  if (type === "double" && value === Number.MAX_VALUE) return "1.7976931348623157E308";
  if (type === "double" && Number.isInteger(value)) return `${value}.0`;
  return String(value);
}

/**
 * The value in a parsed JSON or YAML file if it fits the setting's type: numbers, booleans and lists may stand there
 * as themselves, and everything may stand as text.
 */
export function parseSettingValue(setting: Setting, raw: unknown): Parsed {
  if (typeof raw === "string") return parseSetting(setting, raw);
  if (typeof raw === "number" || typeof raw === "boolean") {
    const text = typeof raw === "number" && raw >= NO_LIMIT_LONG && setting.type === "long"
      ? LARGEST_LONG_TEXT
      : String(raw);
    return parseSetting(setting, text);
  }
  if (Array.isArray(raw) && setting.type === "list" && raw.every((entry) => typeof entry === "string")) {
    return parseSetting(setting, raw.join(","));
  }
  return refuse(setting, JSON.stringify(raw) ?? String(raw), `a value of type ${setting.type}`);
}
