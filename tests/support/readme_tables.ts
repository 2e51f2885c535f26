/**
 * The parts of README.md that say what the code says: its tables of APIs and of settings. `update_readme.ts` writes them,
 * a test holds the file against them.
 */

import type { Broker } from "../../lib/broker/broker.ts";
import { brokerSettings } from "../../lib/broker/config_definitions.ts";
import { formatSetting, type Setting } from "../../lib/broker/config_definitions_setting.ts";
import { unservedFeatureOf, unservedSettings } from "../../lib/broker/config_definitions_unserved.ts";
import { handlersOf } from "../../lib/broker/handlers/table.ts";

/** The generated parts by the name in their markers. */
export function generatedParts(): Record<string, string> {
  return {
    "apis": apiTable(),
    "settings": settingsTable(),
    "unserved settings": unservedList(),
    "accepted settings": acceptedSettings(),
  };
}

/** README text with each generated part put between its markers. @throws if a marker is missing */
export function withGeneratedParts(readme: string): string {
  for (const [name, text] of Object.entries(generatedParts())) {
    const begin = `<!-- generated: ${name} -->\n`;
    const end = `<!-- end: ${name} -->`;
    const from = readme.indexOf(begin);
    const to = readme.indexOf(end);
    if (from < 0 || to < from) throw new Error(`README.md has no markers for ${name}`);
    readme = `${readme.slice(0, from)}${begin}${text}${readme.slice(to)}`;
  }
  return readme;
}

function apiTable(): string {
  const handlers = handlersOf({} as Broker).map(({ request }) => request).sort((a, b) => a.apiKey - b.apiKey);
  const rows = handlers.map(({ name, apiKey, minVersion, maxVersion }) =>
    `| ${apiKey} | ${name.replace(/Request$/, "")} | ${
      minVersion === maxVersion ? minVersion : `${minVersion}–${maxVersion}`
    } |\n`
  );
  return `| key | API | versions |\n|---:|---|---|\n${rows.join("")}`;
}

function settingsTable(): string {
  const served = settings("applied").filter(({ name }) => unservedFeatureOf(name) === null);
  const rows = served.map((setting) => {
    const value = formatSetting(setting);
    return `| \`${setting.name}\` | ${value === null ? "not set" : value === "" ? "empty" : `\`${value}\``} | ` +
      `${setting.doc.replaceAll("|", "\\|")} |\n`;
  });
  return `| setting | default | what it does |\n|---|---|---|\n${rows.join("")}`;
}

function unservedList(): string {
  const lines = Object.entries(unservedSettings).map(([feature, names]) =>
    `- ${feature}: ${names.map((name) => `\`${name}\``).join(", ")}\n`
  );
  return lines.join("");
}

function acceptedSettings(): string {
  return `${settings("accepted").map(({ name }) => `\`${name}\``).join(", ")}.\n`;
}

function settings(effect: Setting["effect"]): Setting[] {
  const all: readonly Setting[] = Object.values(brokerSettings);
  return all.filter((setting) => setting.effect === effect).sort((a, b) => a.name < b.name ? -1 : 1);
}
