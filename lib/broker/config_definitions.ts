/**
 * All settings by name: look-ups over the tables of `config_definitions_*.ts`, for the command line, the
 * configuration APIs and the README's table. Every name that is in no table is unknown, and that is an error
 * wherever it is met: nothing is ignored silently.
 */

import { servedBrokerSettings } from "./config_definitions_broker.ts";
import { logBrokerSettings } from "./config_definitions_log.ts";
import type { Setting, ValueOfSetting } from "./config_definitions_setting.ts";
import { topicSettings } from "./config_definitions_topic.ts";
import { missingFeatureOf, unusedBrokerSettings } from "./config_definitions_unused.ts";

/** All broker settings by name. */
export const brokerSettings = { ...servedBrokerSettings, ...logBrokerSettings, ...unusedBrokerSettings } as const;

/** Name of a broker setting. */
export type BrokerSettingName = keyof typeof brokerSettings;
/** Value type of the broker setting of this name. */
export type BrokerSettingValue<K extends BrokerSettingName> = ValueOfSetting<(typeof brokerSettings)[K]>;
/** Parsed values of all broker settings. */
export type BrokerSettingValues = { readonly [K in BrokerSettingName]: BrokerSettingValue<K> };

/** Whether this is the name of a broker setting. */
export function isBrokerSettingName(name: string): name is BrokerSettingName {
  return Object.hasOwn(brokerSettings, name);
}

/** The broker setting of this name, or `undefined`. */
export function brokerSetting(name: string): Setting | undefined {
  return isBrokerSettingName(name) ? brokerSettings[name] : undefined;
}

/** One sentence for a broker setting that is in no table: what kaas lacks, or the nearest name that it knows. */
export function explainUnknownBrokerSetting(name: string): string {
  const missing = missingFeatureOf(name);
  if (missing !== null) return `unknown setting ${name}: kaas does not have ${missing}`;
  const near = nearestName(name, Object.keys(brokerSettings));
  return `unknown setting ${name}` + (near === null ? "" : `, did you mean ${near}?`);
}

/** One sentence for a topic setting that is in no table. */
export function explainUnknownTopicSetting(name: string): string {
  const near = nearestName(name, Object.keys(topicSettings));
  return `unknown topic setting ${name}` + (near === null ? "" : `, did you mean ${near}?`);
}

/** The known name with the fewest edits from `name`; `null` if none is near enough to be meant. */
export function nearestName(name: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(name.slice(0, 100), candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[j] + 1, current[j - 1] + 1));
    }
    previous = current;
  }
  return previous[b.length];
}
