/**
 * Every name under which a broker setting can be given, in all places: Kafka's names, kaas's own short ones, the form of
 * either in a YAML file and in the environment. One table, so that all places know the same names.
 *
 * A *target* is what a name stands for: the name of a Kafka setting, or `log.level` or `log.format`, which are about this
 * process only. Two names of one target are the same setting given twice, whatever they look like.
 */

import {
  type BrokerSettingName,
  brokerSettings,
  isBrokerSettingName,
  nearestName,
} from "../lib/broker/config_definitions.ts";
import { missingFeatureOf } from "../lib/broker/config_definitions_unused.ts";
import { logFormats, logLevels } from "../lib/observability/logger.ts";

/** What a name stands for. */
export type Target = BrokerSettingName | "log.level" | "log.format";

/** A short name of kaas's own. */
export interface OwnName {
  /** As a flag without its dashes and as a key in a file. */
  readonly name: string;
  readonly target: Target;
  /** How the flag's value looks in the help. */
  readonly form: string;
  readonly repeatable: boolean;
  readonly doc: string;
  /** What is used when it is given nowhere, as the help says it. */
  readonly absent: string;
  /** The setting's text for one given text; or what would have been right. */
  convert(text: string): { readonly text: string } | { readonly wanted: string };
}

const listenerName = /^[A-Za-z0-9_.-]+$/;
const hostAndPort = /^(\[[0-9A-Fa-f:.%]+\]|[^[\]:/\s=]*):(\d{1,5})$/;

/** kaas's own names, in the order of the help. */
export const ownNames: readonly OwnName[] = [
  {
    name: "data",
    target: "log.dirs",
    form: "DIR",
    repeatable: false,
    doc: "folder that holds everything; made if it is missing",
    absent: "./data",
    convert: (text) => text.includes(",") ? { wanted: "the path of one folder, without a comma" } : { text },
  },
  {
    name: "listen",
    target: "listeners",
    form: "[NAME=]HOST:PORT",
    repeatable: true,
    doc: "where to listen; NAME is needed with more than one; port 0 takes any free port",
    absent: "127.0.0.1:9092",
    convert: (text) => endpoint(text, "[NAME=]HOST:PORT, such as 127.0.0.1:9092 or INTERNAL=0.0.0.0:9093"),
  },
  {
    name: "advertise",
    target: "advertised.listeners",
    form: "[NAME=]HOST:PORT",
    repeatable: true,
    doc: "address that clients of listener NAME are told",
    absent: "where it listens",
    convert: (text) => endpoint(text, "[NAME=]HOST:PORT, such as INTERNAL=broker-0.example.org:9093"),
  },
  {
    name: "node-id",
    target: "node.id",
    form: "N",
    repeatable: false,
    doc: "number of this broker, unique in its cluster",
    absent: "the number at the end of the host's name, or 0",
    convert: (text) => /^\d{1,10}$/.test(text) ? { text } : { wanted: "a whole number of at least 0" },
  },
  {
    name: "log-level",
    target: "log.level",
    form: "LEVEL",
    repeatable: false,
    doc: `least level that is logged: ${logLevels.join(", ")}`,
    absent: "info",
    convert: (text) => oneOf(logLevels, text),
  },
  {
    name: "log-format",
    target: "log.format",
    form: "FORMAT",
    repeatable: false,
    doc: `how lines are logged: ${logFormats.join(" or ")}`,
    absent: "text on a terminal, json elsewhere",
    convert: (text) => oneOf(logFormats, text),
  },
];

function endpoint(text: string, wanted: string): { text: string } | { wanted: string } {
  const equals = text.indexOf("=");
  const name = equals < 0 ? "PLAINTEXT" : text.slice(0, equals);
  const address = text.slice(equals + 1);
  const match = hostAndPort.exec(address);
  if (!listenerName.test(name) || match === null || Number(match[2]) > 65535) return { wanted };
  return { text: `${name}://${address}` };
}

function oneOf(words: readonly string[], text: string): { text: string } | { wanted: string } {
  const word = text.trim().toLowerCase();
  return words.includes(word) ? { text: word } : { wanted: `one of ${words.join(", ")}` };
}

/** Kafka's older or weaker names of a target: they count as that target, and lose against it in one place. */
const otherNames = new Map<string, Target>([["log.dir", "log.dirs"], ["broker.id", "node.id"]]);

const ownByName = new Map(ownNames.map((own) => [own.name.replaceAll("-", "."), own]));
const byEnvironmentName = new Map(
  [...Object.keys(brokerSettings), ...ownNames.map((own) => own.name)].map((name) => [environmentName(name), name]),
);

/** The environment variable of a setting: `log.retention.ms` is `KAAS_LOG_RETENTION_MS`. */
export function environmentName(name: string): string {
  return `KAAS_${name.toUpperCase().replaceAll(/[.-]/g, "_")}`;
}

/** The setting of an environment variable; `undefined` for an unknown one. */
export function nameOfEnvironment(variable: string): string | undefined {
  return byEnvironmentName.get(variable);
}

/** What a name stands for. */
export interface Meaning {
  readonly target: Target;
  /** The name in dots, as it was written: that of the target, or an older one. */
  readonly written: string;
  /** Set for kaas's own names, whose texts are converted into the target's. */
  readonly own: OwnName | null;
}

/** What a name means, in whatever form it is written; `undefined` for an unknown name. */
export function meaningOf(name: string): Meaning | undefined {
  const plain = name.replaceAll("-", ".");
  const own = ownByName.get(plain);
  if (own !== undefined) return { target: own.target, written: own.target, own };
  const target = otherNames.get(plain) ?? (isBrokerSettingName(plain) ? plain : undefined);
  return target === undefined ? undefined : { target, written: plain, own: null };
}

/** Whether a name in dots is an older or weaker one of its target. */
export function isOtherName(written: string): boolean {
  return otherNames.has(written);
}

/** What is wrong with an unknown name: kaas lacks the thing, or another name was meant. `show` writes a known name. */
export function explainUnknown(name: string, show: (known: string) => string = (known) => known): string {
  const plain = name.toLowerCase().replaceAll(/[-_]/g, ".");
  const missing = missingFeatureOf(plain);
  if (missing !== null) return `unknown setting: kaas does not have ${missing}`;
  const known = nearestName(plain, [...ownByName.keys(), ...Object.keys(brokerSettings)]);
  if (known === null) return "unknown setting";
  return `unknown setting, did you mean ${show(ownByName.get(known)?.name ?? known)}?`;
}
