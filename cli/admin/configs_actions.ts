/** What the commands of `kaas admin configs` do. */

import { alterConfigs, describeConfigs, type Resource, resourceText, ResourceType } from "../client/configs.ts";
import type { CommandContext } from "../command_context.ts";
import { UsageError } from "../exit.ts";
import { type ConnectedOptions, say, table, withCluster } from "./connected.ts";

interface ResourceOptions extends ConnectedOptions {
  readonly topic?: string[] | undefined;
  readonly broker?: string[] | undefined;
  readonly allBrokers?: true | undefined;
}

export async function describe(
  context: CommandContext,
  options: ResourceOptions & { readonly all?: true | undefined },
): Promise<void> {
  const resources = resourcesOf(options);
  await withCluster(context, options, async (client) => {
    const described = (await describeConfigs(client, resources)).map(({ resource, configs }) => ({
      resource: resourceText(resource),
      configs: options.all === true ? configs : configs.filter(({ source }) => source !== "default"),
    }));
    say(context, options, described, (described) =>
      described.map(({ resource, configs }) => {
        if (configs.length === 0) return `${resource}: everything is as the defaults have it\n`;
        const rows = configs.map(({ name, value, source, synonyms }) => [
          name,
          value,
          source,
          synonyms.slice(1).map((other) => `${other.source}: ${other.value ?? "-"}`).join(", "),
        ]);
        return `${resource}\n\n${table(["NAME", "VALUE", "FROM", "WITHOUT THAT"], rows)}`;
      }).join("\n"));
  });
}

export async function alter(
  context: CommandContext,
  options: ResourceOptions & {
    readonly set?: string[] | undefined;
    readonly delete?: string[] | undefined;
    readonly dryRun?: true | undefined;
  },
): Promise<void> {
  const resources = resourcesOf(options);
  const changes = new Map<string, string | null>();
  const note = (name: string, value: string | null, flag: string) => {
    if (changes.has(name)) throw new UsageError([`${flag} ${name}: ${name} is named more than once`]);
    changes.set(name, value);
  };
  for (const text of options.set ?? []) {
    const equals = text.indexOf("=");
    if (equals <= 0) throw new UsageError([`--set ${text}: expected NAME=VALUE, such as retention.ms=86400000`]);
    note(text.slice(0, equals), text.slice(equals + 1), "--set");
  }
  for (const name of options.delete ?? []) note(name, null, "--delete");
  if (changes.size === 0) throw new UsageError(["what is to be changed? Give --set NAME=VALUE or --delete NAME"]);
  await withCluster(context, options, async (client) => {
    for (const resource of resources) await alterConfigs(client, resource, changes, options.dryRun === true);
    const outcome = resources.map((resource) => ({
      resource: resourceText(resource),
      changes: Object.fromEntries(changes),
    }));
    const done = options.dryRun === true ? "would be changed" : "changed";
    say(
      context,
      options,
      outcome,
      (outcome) => outcome.map(({ resource }) => `settings of ${resource} ${done}\n`).join(""),
    );
  });
}

function resourcesOf({ topic, broker, allBrokers }: ResourceOptions): Resource[] {
  const resources: Resource[] = (topic ?? []).map((name) => ({ type: ResourceType.topic, name }));
  for (const id of broker ?? []) {
    if (!/^\d{1,9}$/.test(id)) {
      throw new UsageError([`--broker: ${JSON.stringify(id)} is not accepted, expected a node id`]);
    }
    resources.push({ type: ResourceType.broker, name: id });
  }
  if (allBrokers === true) resources.push({ type: ResourceType.broker, name: "" });
  if (resources.length === 0) throw new UsageError(["of what? Give --topic TOPIC, --broker ID or --all-brokers"]);
  return resources;
}
