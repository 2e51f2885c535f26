/**
 * Settings as DescribeConfigs and CreateTopics show them: value, where it comes from, the places it could come from
 * (KIP-226 synonyms), type and documentation.
 */

import type { BrokerConfig } from "./broker_config.ts";
import { type BrokerSettingName, brokerSettings } from "./config_definitions.ts";
import { formatSetting, type Setting, type SettingType, type SettingValue } from "./config_definitions_setting.ts";
import { topicSetting, type TopicSettingName, topicSettings } from "./config_definitions_topic.ts";
import { layersOfTopicSetting, type TopicLayer } from "./topic_config.ts";
import type { Topic } from "./topics.ts";

/** Kafka's numbers for where a value comes from. */
export const ConfigSource = {
  TOPIC: 1,
  DYNAMIC_BROKER: 2,
  DYNAMIC_DEFAULT_BROKER: 3,
  STATIC_BROKER: 4,
  DEFAULT: 5,
} as const;

const sourceOfLayer: { readonly [L in TopicLayer]: number } = {
  "topic": ConfigSource.TOPIC,
  "dynamic-broker": ConfigSource.DYNAMIC_BROKER,
  "dynamic-default": ConfigSource.DYNAMIC_DEFAULT_BROKER,
  "static": ConfigSource.STATIC_BROKER,
  "default": ConfigSource.DEFAULT,
};

const numberOfType: { readonly [T in SettingType]: number } = {
  boolean: 1,
  string: 2,
  int: 3,
  short: 4,
  long: 5,
  double: 6,
  list: 7,
  class: 8,
  password: 9,
};

/** One setting as the wire shows it. */
export interface DescribedConfig {
  name: string;
  value: string | null;
  readOnly: boolean;
  isDefault: boolean;
  configSource: number;
  isSensitive: boolean;
  synonyms: { name: string; value: string | null; source: number }[];
  configType: number;
  documentation: string | null;
}

/** What the client asked for; `keys` `null` asks for all settings. */
export interface DescribeWish {
  readonly keys: readonly string[] | null;
  readonly includeSynonyms: boolean;
  readonly includeDocumentation: boolean;
}

/** Every setting with its value and source only. */
export const describeValues: DescribeWish = { keys: null, includeSynonyms: false, includeDocumentation: false };

/** The settings of a topic, sorted by name. Names that are no topic settings are left out. */
export function describeTopicConfig(topic: Topic, broker: BrokerConfig, wish: DescribeWish): DescribedConfig[] {
  return wanted(Object.keys(topicSettings), wish).map((name) => {
    const setting = topicSettings[name as TopicSettingName];
    const layers = layersOfTopicSetting(setting.name as TopicSettingName, topic.overrides, broker).map((layer) => ({
      name: layer.name,
      value: shown(topicSetting(layer.name) ?? brokerSettings[layer.name as BrokerSettingName], layer.value),
      source: sourceOfLayer[layer.layer],
    }));
    const value = shown(setting, topic.settings[setting.name as TopicSettingName]);
    return described(setting, value, { readOnly: false, layers, wish });
  });
}

/** All settings of this broker, sorted by name. */
export function describeBrokerConfig(broker: BrokerConfig, wish: DescribeWish): DescribedConfig[] {
  return wanted(Object.keys(brokerSettings), wish).map((key) => {
    const name = key as BrokerSettingName;
    const setting: Setting = brokerSettings[name];
    const layers = broker.layersOf(name).map(({ layer, value }) => ({
      name,
      value: shown(setting, value),
      source: sourceOfLayer[layer],
    }));
    return described(setting, shown(setting, broker.get(name)), {
      readOnly: setting.update === "read-only",
      layers,
      wish,
    });
  });
}

/** The settings that were altered for all brokers at once, sorted by name. */
export function describeBrokerDefaults(broker: BrokerConfig, wish: DescribeWish): DescribedConfig[] {
  const altered = broker.altered("dynamic-default");
  return wanted([...altered.keys()], wish).map((key) => {
    const setting: Setting = brokerSettings[key as BrokerSettingName];
    const value = shown(setting, altered.get(key as BrokerSettingName) ?? null);
    const layers = [{ name: setting.name, value, source: ConfigSource.DYNAMIC_DEFAULT_BROKER }];
    return described(setting, value, { readOnly: false, layers, wish });
  });
}

function wanted(names: readonly string[], { keys }: DescribeWish): string[] {
  return (keys === null ? [...names] : names.filter((name) => keys.includes(name))).sort();
}

function shown(setting: Setting, value: SettingValue): string | null {
  return setting.type === "password" ? null : formatSetting(setting, value);
}

function described(
  setting: Setting,
  value: string | null,
  { readOnly, layers, wish }: { readOnly: boolean; layers: DescribedConfig["synonyms"]; wish: DescribeWish },
): DescribedConfig {
  const configSource = layers.length === 0 ? ConfigSource.DEFAULT : layers[0].source;
  return {
    name: setting.name,
    value,
    readOnly,
    isDefault: configSource === ConfigSource.DEFAULT,
    configSource,
    isSensitive: setting.type === "password",
    synonyms: wish.includeSynonyms ? layers : [],
    configType: numberOfType[setting.type],
    documentation: wish.includeDocumentation ? setting.doc : null,
  };
}
