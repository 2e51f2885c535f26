/**
 * The flags that commands which run for long have in common: every setting can be given by each of them, as a flag, in
 * the environment or in a file.
 */

import { type Command, Option } from "@commander-js/extra-typings";
import { errorText } from "../lib/observability/logger.ts";
import { resolveSettings, type StartSettings } from "./broker_settings.ts";
import type { CommandContext } from "./command_context.ts";
import type { GivenSettings } from "./config_file.ts";
import { UsageError } from "./exit.ts";
import { environmentName, type OwnName, ownNames } from "./setting_names.ts";

/** The command with flags for these of kaas's own names, and for any setting. */
export function withSettingOptions<C extends Command>(command: C, names: readonly OwnName[]): C {
  for (const own of names) command.addOption(optionOf(own));
  command
    .addOption(
      new Option("--set <NAME=VALUE>", "any setting by Kafka's name, such as log.retention.ms=60000 (repeatable)")
        .argParser(collect),
    )
    .option("--config <FILE>", "YAML file of settings (environment: KAAS_CONFIG)");
  return command;
}

function optionOf(own: OwnName): Option {
  const words = [
    own.repeatable ? `${own.doc} (repeatable)` : own.doc,
    `(default: ${own.absent}; environment: ${environmentName(own.name)})`,
  ];
  return new Option(`--${own.name} <${own.form}>`, words.join(" ")).argParser(collect);
}

function collect(value: string, previous: unknown): string[] {
  return [...(Array.isArray(previous) ? previous : []), value];
}

/** All settings from all places, by the flags that {@link withSettingOptions} made. @throws {UsageError} with everything that is wrong with them */
export async function gatherSettings(
  flags: Readonly<Record<string, unknown>>,
  context: CommandContext,
): Promise<StartSettings> {
  const path = (flags.config as string | undefined) ?? (context.environment.KAAS_CONFIG || undefined);
  const settings = resolveSettings({
    flags: Object.fromEntries(ownNames.map(({ name }) => [name, flags[camelCase(name)] as string[] | undefined])),
    set: (flags.set as string[] | undefined) ?? [],
    environment: context.environment,
    file: path === undefined ? null : await readConfig(path, flags.config !== undefined, context),
  });
  if ("problems" in settings) throw new UsageError(settings.problems);
  return settings;
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

async function readConfig(path: string, byFlag: boolean, context: CommandContext): Promise<GivenSettings> {
  let text: string;
  try {
    text = await context.readTextFile(path);
  } catch (error) {
    throw new UsageError([`${byFlag ? "--config" : "KAAS_CONFIG"}: cannot read ${path}: ${errorText(error)}`]);
  }
  // Only those who have a file wait for the YAML parser.
  const { readConfigFile } = await import("./config_file.ts");
  return readConfigFile(path, text);
}
