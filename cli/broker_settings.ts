/**
 * What a broker is started with, put together from flags, environment, file and defaults, in this order of precedence.
 *
 * Invariants: nothing given is ignored silently: a name that nobody knows, a value that does not fit, and a setting given
 * twice in one place are problems; all problems are reported together, each with its place. A setting in a stronger place
 * hides the same setting in a weaker one whatever names they go by, but the hidden value must be right too.
 */

import { BrokerConfig } from "../lib/broker/broker_config.ts";
import { isBrokerSettingName } from "../lib/broker/config_definitions.ts";
import { planListeners } from "../lib/broker/listener_plan.ts";
import type { LogFormat, LogLevel } from "../lib/observability/logger.ts";
import type { GivenSetting, GivenSettings } from "./config_file.ts";
import {
  environmentName,
  explainUnknown,
  isOtherName,
  meaningOf,
  nameOfEnvironment,
  type OwnName,
  ownNames,
  type Target,
} from "./setting_names.ts";

/** A broker's settings, and those of the process around it. */
export interface StartSettings {
  readonly config: BrokerConfig;
  readonly dataFolder: string;
  readonly logLevel: LogLevel;
  /** `null`: as the output suggests. */
  readonly logFormat: LogFormat | null;
}

/** The places that settings come from. */
export interface SettingPlaces {
  /** Values of kaas's own flags, by their name without dashes. */
  readonly flags: Readonly<Record<string, readonly string[] | undefined>>;
  /** Values of `--set`, each `NAME=VALUE`. */
  readonly set: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** What `readConfigFile` found in the configuration file; null where there is none. */
  readonly file: GivenSettings | null;
}

/** Resolves to the settings, or to every problem found, each a sentence with its place. */
export function resolveSettings(places: SettingPlaces): StartSettings | { problems: string[] } {
  const problems: string[] = [];
  const given = new Map<Target, Resolved>();
  const inOrder = [flagSettings(places), environmentSettings(places.environment), fileSettings(places.file)];
  for (const place of inOrder) {
    problems.push(...place.problems);
    for (const [target, resolved] of resolvePlace(place.settings, problems)) {
      if (!given.has(target)) given.set(target, resolved);
    }
  }
  const logLevel = given.get("log.level")?.texts[0] as LogLevel | undefined;
  const logFormat = given.get("log.format")?.texts[0] as LogFormat | undefined;
  given.delete("log.level");
  given.delete("log.format");
  if (problems.length > 0) return { problems };
  const config = BrokerConfig.parse([...given].map(([name, { texts }]) => [name, texts.join(",")]));
  if ("problems" in config) return config;
  problems.push(...crossProblems(config, given));
  if (problems.length > 0) return { problems };
  return { config, dataFolder: dataFoldersOf(config)[0], logLevel: logLevel ?? "info", logFormat: logFormat ?? null };
}

/** The environment variables, by name, that settings are read from. */
export function isSettingVariable(variable: string): boolean {
  return variable.startsWith("KAAS_") && !variable.startsWith("KAAS_TEST_") && variable !== "KAAS_BOOTSTRAP" &&
    !serviceLink.test(variable);
}

/**
 * What Kubernetes puts into every container's environment for a Service of a name like `kaas` or `kaas-broker`:
 * addresses of that service, not settings.
 */
const serviceLink =
  /^KAAS(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

interface Resolved {
  readonly texts: readonly string[];
  readonly where: string;
}

function flagSettings({ flags, set }: SettingPlaces): GivenSettings {
  const settings: GivenSetting[] = [];
  const problems: string[] = [];
  for (const { name } of ownNames) {
    const values = flags[name];
    if (values !== undefined && values.length > 0) settings.push({ name, values, where: `--${name}` });
  }
  for (const entry of set) {
    const equals = entry.indexOf("=");
    const name = entry.slice(0, equals).trim();
    if (equals < 0 || name === "") {
      problems.push(`--set ${entry}: expected NAME=VALUE, such as --set log.retention.ms=60000`);
    } else settings.push({ name, values: [entry.slice(equals + 1)], where: `--set ${name}` });
  }
  return { settings, problems };
}

function environmentSettings(environment: Readonly<Record<string, string>>): GivenSettings {
  const settings: GivenSetting[] = [];
  const problems: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!isSettingVariable(variable) || variable === "KAAS_CONFIG" || value === "") continue;
    const name = nameOfEnvironment(variable);
    if (name === undefined) problems.push(`${variable}: ${explainUnknown(variable.slice(5), environmentName)}`);
    else {
      const list = meaningOf(name)?.own?.repeatable === true;
      settings.push({ name, values: list ? value.split(",") : [value], where: variable });
    }
  }
  return { settings, problems };
}

function fileSettings(file: GivenSettings | null): GivenSettings {
  if (file === null) return { settings: [], problems: [] };
  return {
    problems: file.problems,
    settings: file.settings.map((setting) => {
      const list = meaningOf(setting.name)?.own?.repeatable === true;
      return list ? { ...setting, values: setting.values.flatMap((value) => value.split(",")) } : setting;
    }),
  };
}

/** The settings of one place by target, checked one by one. */
function resolvePlace(settings: readonly GivenSetting[], problems: string[]): Map<Target, Resolved> {
  const resolved = new Map<Target, Resolved & { other: boolean }>();
  for (const { name, values, where } of settings) {
    const meaning = meaningOf(name);
    if (meaning === undefined) {
      problems.push(`${where}: ${where === `--set ${name}` ? "" : `${name}: `}${explainUnknown(name)}`);
      continue;
    }
    const { target, own, written } = meaning;
    const texts = own === null ? values : convert(own, values, where, problems);
    if (texts === null || !fits(written, texts, where, problems)) continue;
    if (written === "broker.id" && texts[0] === "-1") continue;
    const other = isOtherName(written);
    const present = resolved.get(target);
    if (present === undefined || present.other) resolved.set(target, { texts, where, other });
    else if (!other) problems.push(`${where}: ${target} is given already by ${present.where}`);
  }
  return resolved;
}

/** The texts of the setting that one of kaas's own names stands for. */
function convert(own: OwnName, values: readonly string[], where: string, problems: string[]): string[] | null {
  if (!own.repeatable && values.length > 1) {
    problems.push(`${where}: ${own.name} has ${values.length} values, expected one ${own.form}`);
    return null;
  }
  const texts: string[] = [];
  for (const value of values) {
    const converted = own.convert(value.trim());
    if ("text" in converted) texts.push(converted.text);
    else problems.push(`${where}: ${JSON.stringify(value)} is not accepted, expected ${converted.wanted}`);
  }
  return texts.length === values.length ? texts : null;
}

/** Whether the texts are a right value of a Kafka setting; what is about this process only was checked before. */
function fits(name: string, texts: readonly string[], where: string, problems: string[]): boolean {
  if (!isBrokerSettingName(name)) return true;
  const parsed = BrokerConfig.parse([[name, texts.join(",")]]);
  if (!("problems" in parsed)) return true;
  for (const problem of parsed.problems) {
    problems.push(where === `--set ${name}` ? `--set ${problem}` : `${where}: ${problem}`);
  }
  return false;
}

/** What no setting shows alone. */
function crossProblems(config: BrokerConfig, given: ReadonlyMap<Target, Resolved>): string[] {
  const problems: string[] = [];
  const plans = planListeners(config, "localhost");
  if ("problems" in plans) {
    for (const problem of plans.problems) {
      const setting = problem.slice(0, problem.indexOf(":")) as Target;
      const where = given.get(setting)?.where;
      problems.push(where === undefined ? problem : `${where}: ${problem}`);
    }
  }
  const folders = dataFoldersOf(config);
  if (folders.length !== 1 || folders[0].trim() === "") {
    const where = given.get("log.dirs")?.where ?? "log.dirs";
    problems.push(`${where}: ${folders.length} data folders are named, expected one: everything lives on one volume`);
  }
  return problems;
}

function dataFoldersOf(config: BrokerConfig): readonly string[] {
  return config.get("log.dirs") ?? config.get("log.dir");
}
