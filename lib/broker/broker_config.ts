/**
 * The settings of one running broker: what it was started with, and above that what was altered while brokers run.
 *
 * Layers, strongest first: altered for this broker, altered for all brokers, given at start (flag, environment, file),
 * default. The effective value of a setting is that of the strongest layer that has it. Altered layers hold only
 * settings whose `update` mode allows it; values in every layer have passed the setting's check.
 */

import { assert } from "../errors.ts";
import {
  type BrokerSettingName,
  brokerSettings,
  type BrokerSettingValue,
  explainUnknownBrokerSetting,
  isBrokerSettingName,
} from "./config_definitions.ts";
import { formatSetting, parseSettingValue, type SettingValue } from "./config_definitions_setting.ts";

/** Values of settings as the wire writes them; `null` stands for "not set". */
export type SettingTexts = ReadonlyMap<string, string>;
/** Which broker layer a value stands in. */
export type BrokerLayer = "dynamic-broker" | "dynamic-default" | "static" | "default";

/** One layer's value of a setting. */
export interface LayeredValue {
  readonly name: string;
  readonly layer: BrokerLayer;
  readonly value: SettingValue;
}

/** Called after an alteration with the names of the settings whose effective value may have changed. */
export type ConfigListener = (changed: ReadonlySet<string>) => void;

type Values = ReadonlyMap<BrokerSettingName, SettingValue>;

/** See the file's head. */
export class BrokerConfig {
  readonly #static: Values;
  #dynamicDefault: Values = new Map();
  #dynamicBroker: Values = new Map();
  readonly #listeners: ConfigListener[] = [];

  private constructor(values: Values) {
    this.#static = values;
  }

  /**
   * A configuration from the settings given at start, as text or as parsed YAML. All problems are returned together,
   * each a sentence that names the setting and the value wanted.
   */
  static parse(given: Iterable<readonly [name: string, value: unknown]>): BrokerConfig | { problems: string[] } {
    const values = new Map<BrokerSettingName, SettingValue>();
    const problems: string[] = [];
    for (const [name, raw] of given) {
      if (!isBrokerSettingName(name)) {
        problems.push(explainUnknownBrokerSetting(name));
        continue;
      }
      const parsed = parseSettingValue(brokerSettings[name], raw);
      if (parsed.ok) values.set(name, parsed.value);
      else problems.push(parsed.message);
    }
    return problems.length > 0 ? { problems } : new BrokerConfig(values);
  }

  /** A configuration of known good settings. @throws {AssertionError} for any other */
  static of(given: { readonly [K in BrokerSettingName]?: string | number | boolean | readonly string[] } = {}) {
    const config = BrokerConfig.parse(Object.entries(given));
    assert(config instanceof BrokerConfig, "problems" in config ? config.problems.join("; ") : "");
    return config;
  }

  /** The effective value. */
  get<K extends BrokerSettingName>(name: K): BrokerSettingValue<K> {
    const value = this.#dynamicBroker.get(name) ?? this.#dynamicDefault.get(name) ?? this.#static.get(name) ??
      brokerSettings[name].defaultValue;
    return value as BrokerSettingValue<K>;
  }

  /** The effective value as the wire writes it; `null` if it is not set. */
  text(name: BrokerSettingName): string | null {
    return formatSetting(brokerSettings[name], this.get(name));
  }

  /** Every layer that has the setting, strongest first; the default is last and left out if it is "not set". */
  layersOf(name: BrokerSettingName): LayeredValue[] {
    const layers: [BrokerLayer, SettingValue | undefined][] = [
      ["dynamic-broker", this.#dynamicBroker.get(name)],
      ["dynamic-default", this.#dynamicDefault.get(name)],
      ["static", this.#static.get(name)],
      ["default", brokerSettings[name].defaultValue],
    ];
    return layers.flatMap(([layer, value]) => value === undefined || value === null ? [] : [{ name, layer, value }]);
  }

  /** The settings of one altered layer. */
  altered(layer: "dynamic-broker" | "dynamic-default"): Values {
    return layer === "dynamic-broker" ? this.#dynamicBroker : this.#dynamicDefault;
  }

  /** Replaces one altered layer, then tells the listeners. The values must have passed their settings' checks. */
  replaceAltered(layer: "dynamic-broker" | "dynamic-default", values: Values): void {
    const before = this.altered(layer);
    const changed = new Set<string>();
    for (const name of [...before.keys(), ...values.keys()]) {
      if (String(before.get(name)) !== String(values.get(name))) changed.add(name);
    }
    if (layer === "dynamic-broker") this.#dynamicBroker = new Map(values);
    else this.#dynamicDefault = new Map(values);
    if (changed.size > 0) { for (const listener of this.#listeners) listener(changed); }
  }

  /** Calls `listener` after each alteration from now on. */
  onChange(listener: ConfigListener): void {
    this.#listeners.push(listener);
  }
}
