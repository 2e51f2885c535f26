/**
 * What the two alter calls make of a resource's settings. Pure; the same for topics and brokers.
 *
 * AlterConfigs replaces everything the resource sets. IncrementalAlterConfigs (KIP-339) changes only what it names: SET,
 * DELETE, and for lists APPEND and SUBTRACT, which start from the value in effect.
 */

import { ErrorCode } from "../errors.ts";
import { formatSetting, parseSetting, type Setting, type SettingValue } from "./config_definitions_setting.ts";
import { type Refusal, refuse } from "./refusal.ts";

/** Longest value in bytes: what a string on the wire can hold. */
const MAX_VALUE_BYTES = 32767;

/** Operation numbers of IncrementalAlterConfigs. */
export const AlterOperation = { SET: 0, DELETE: 1, APPEND: 2, SUBTRACT: 3 } as const;

/** One named change. */
export interface ConfigChange {
  readonly name: string;
  readonly operation: number;
  readonly value: string | null;
}

/** The kind of resource whose settings are altered. */
export interface AlterationScope {
  /** The setting of this name, or why it cannot be altered on this resource. */
  find(name: string): Setting | Refusal;
  /** The value now in effect for the resource. */
  effective(name: string): SettingValue;
}

/** What a resource sets itself, by Kafka's name. */
export type OwnValues = ReadonlyMap<string, SettingValue>;

/** The resource's own values after the changes, all of which must be acceptable. */
export function alterIncrementally(
  own: OwnValues,
  changes: readonly ConfigChange[],
  scope: AlterationScope,
): OwnValues | Refusal {
  const next = new Map(own);
  const named = new Set<string>();
  for (const { name, operation, value } of changes) {
    if (named.has(name)) return refuse(ErrorCode.INVALID_REQUEST, `${name} is named more than once`);
    named.add(name);
    const setting = scope.find(name);
    if ("errorCode" in setting) return setting;
    if (operation === AlterOperation.DELETE) {
      next.delete(name);
      continue;
    }
    if (value === null) return refuse(ErrorCode.INVALID_REQUEST, `${name} has no value`);
    const text = textAfter(setting, operation, value, scope);
    if (typeof text !== "string") return text;
    if (new TextEncoder().encode(text).length > MAX_VALUE_BYTES) {
      return refuse(ErrorCode.INVALID_CONFIG, `${name} would be longer than ${MAX_VALUE_BYTES} bytes`);
    }
    const parsed = parseSetting(setting, text);
    if (!parsed.ok) return refuse(ErrorCode.INVALID_CONFIG, parsed.message);
    next.set(name, parsed.value);
  }
  return next;
}

function textAfter(setting: Setting, operation: number, value: string, scope: AlterationScope): string | Refusal {
  switch (operation) {
    case AlterOperation.SET:
      return value;
    case AlterOperation.APPEND:
    case AlterOperation.SUBTRACT: {
      if (setting.type !== "list") {
        const verb = operation === AlterOperation.APPEND ? "APPEND to" : "SUBTRACT from";
        return refuse(ErrorCode.INVALID_CONFIG, `cannot ${verb} ${setting.name}: it is of type ${setting.type}`);
      }
      const present = entriesOf(formatSetting(setting, scope.effective(setting.name)) ?? "");
      const given = entriesOf(value);
      const next = operation === AlterOperation.APPEND
        ? [...present, ...given.filter((entry) => !present.includes(entry))]
        : present.filter((entry) => !given.includes(entry));
      return next.join(",");
    }
    default:
      return refuse(ErrorCode.INVALID_REQUEST, `${setting.name}: operation ${operation} is not known`);
  }
}

function entriesOf(text: string): string[] {
  return text.trim() === "" ? [] : text.split(",").map((entry) => entry.trim());
}

/** The resource's own values if the given ones are to be all of them. */
export function replaceAllValues(
  entries: readonly { readonly name: string; readonly value: string | null }[],
  scope: AlterationScope,
): OwnValues | Refusal {
  const changes = entries.map(({ name, value }) => ({ name, value, operation: AlterOperation.SET }));
  return alterIncrementally(new Map(), changes, scope);
}
