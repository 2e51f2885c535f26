/**
 * A topic's settings: its own overrides over the broker's defaults, and how both are altered and stored. Pure.
 *
 * Overrides are parsed values by Kafka's name. In the topic's `.config.json` they stand under the camel-case form of the
 * name (`retention.ms` is `retentionMs`) with JSON numbers, booleans and strings; lists are comma-separated strings.
 */

import { ErrorCode } from "../errors.ts";
import type { BrokerConfig, BrokerLayer, LayeredValue } from "./broker_config.ts";
import type { BrokerSettingName } from "./config_definitions.ts";
import { explainUnknownTopicSetting } from "./config_definitions.ts";
import { type Refusal, refuse } from "./refusal.ts";
import { formatSetting, parseSetting, parseSettingValue, type SettingValue } from "./config_definitions_setting.ts";
import {
  brokerSynonyms,
  conflictOf,
  topicSetting,
  type TopicSettingName,
  topicSettings,
  type TopicSettingValues,
} from "./config_definitions_topic.ts";

/** What a topic sets itself, by Kafka's name. */
export type TopicOverrides = ReadonlyMap<TopicSettingName, SettingValue>;
/** Which layer a topic's value stands in. */
export type TopicLayer = "topic" | BrokerLayer;

const names = Object.keys(topicSettings) as TopicSettingName[];
const nameOfJsonKey = new Map(names.map((name) => [camelCase(name), name]));

function camelCase(name: string): string {
  return name.replace(/\.([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The values that a topic with these overrides really has. */
export function effectiveSettings(overrides: TopicOverrides, broker: BrokerConfig): TopicSettingValues {
  const values: Record<string, SettingValue> = {};
  for (const name of names) values[name] = overrides.get(name) ?? brokerDefault(name, broker);
  return values as unknown as TopicSettingValues;
}

/** What a topic that does not set `name` gets. */
export function brokerDefault(name: TopicSettingName, broker: BrokerConfig): SettingValue {
  for (const { name: synonym, factor } of brokerSynonyms[name] ?? []) {
    const value = broker.get(synonym as BrokerSettingName);
    // Below 0 stands for "for ever", in every unit.
    if (value !== null) return typeof value === "number" && value > 0 ? value * factor : value;
  }
  return topicSettings[name].defaultValue;
}

/**
 * Every place that has a value for a topic's setting, strongest first: the topic, then the broker settings it falls
 * back to in their own units. The first one is where the effective value comes from.
 */
export function layersOfTopicSetting(
  name: TopicSettingName,
  overrides: TopicOverrides,
  broker: BrokerConfig,
): { readonly name: string; readonly layer: TopicLayer; readonly value: SettingValue }[] {
  const own = overrides.get(name);
  const layers: (LayeredValue | { name: string; layer: TopicLayer; value: SettingValue })[] = [];
  if (own !== undefined) layers.push({ name, layer: "topic", value: own });
  for (const synonym of brokerSynonyms[name] ?? []) {
    layers.push(...broker.layersOf(synonym.name as BrokerSettingName));
  }
  return layers;
}

/** Parses overrides that a client sent as texts. The first problem is returned. */
export function parseOverrides(texts: Iterable<readonly [name: string, text: string]>): TopicOverrides | Refusal {
  const overrides = new Map<TopicSettingName, SettingValue>();
  for (const [name, text] of texts) {
    const setting = topicSetting(name);
    if (setting === undefined) return invalid(explainUnknownTopicSetting(name));
    const parsed = parseSetting(setting, text);
    if (!parsed.ok) return invalid(parsed.message);
    overrides.set(name as TopicSettingName, parsed.value);
  }
  return overrides;
}

/** Why these overrides cannot stand together over the broker's defaults, or `null`. */
export function overridesConflict(overrides: TopicOverrides, broker: BrokerConfig): Refusal | null {
  const conflict = conflictOf(effectiveSettings(overrides, broker));
  return conflict === null ? null : invalid(conflict);
}

function invalid(message: string): Refusal {
  return refuse(ErrorCode.INVALID_CONFIG, message);
}

/** Overrides as `.config.json` holds them. */
export function overridesToJson(overrides: TopicOverrides): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, value] of overrides) {
    json[camelCase(name)] = Array.isArray(value) ? formatSetting(topicSettings[name], value) : value;
  }
  return json;
}

/**
 * Overrides out of a `.config.json`, and what else is in it: keys that are unknown or do not fit. Those have no effect,
 * and are kept in the file for whoever wrote them.
 */
export function overridesFromJson(json: Readonly<Record<string, unknown>>): {
  readonly overrides: TopicOverrides;
  readonly foreign: Readonly<Record<string, unknown>>;
} {
  const overrides = new Map<TopicSettingName, SettingValue>();
  const foreign: Record<string, unknown> = {};
  for (const [key, raw] of Object.entries(json)) {
    const name = nameOfJsonKey.get(key);
    const parsed = name === undefined ? null : parseSettingValue(topicSettings[name], raw);
    if (name !== undefined && parsed?.ok) overrides.set(name, parsed.value);
    else foreign[key] = raw;
  }
  return { overrides, foreign };
}
