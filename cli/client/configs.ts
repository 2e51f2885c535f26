/** Settings of topics and brokers, asked for and changed. */

import { ErrorCode } from "../../lib/errors.ts";
import { describeConfigsRequest, describeConfigsResponse } from "../../lib/protocol/messages/describe_configs.ts";
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from "../../lib/protocol/messages/incremental_alter_configs.ts";
import { type ClusterClient, Refused } from "./cluster_client.ts";

/** Kafka's numbers for what has settings. */
export const ResourceType = { topic: 2, broker: 4 } as const;

export interface Resource {
  readonly type: (typeof ResourceType)[keyof typeof ResourceType];
  /** A topic's name or a node id; "" for all brokers. */
  readonly name: string;
}

export interface DescribedConfig {
  readonly name: string;
  readonly value: string | null;
  readonly source: string;
  readonly readOnly: boolean;
  readonly documentation: string | null;
  /** All places that have a value, the one in effect first. */
  readonly synonyms: readonly { readonly name: string; readonly value: string | null; readonly source: string }[];
}

/** Kafka's places of settings, by their numbers. */
const sources: Readonly<Record<number, string>> = {
  1: "topic",
  2: "broker",
  3: "all brokers",
  4: "static",
  5: "default",
};

/** The settings of each resource. @throws {Refused} */
export async function describeConfigs(
  client: ClusterClient,
  resources: readonly Resource[],
): Promise<{ readonly resource: Resource; readonly configs: readonly DescribedConfig[] }[]> {
  const described = [];
  for (const resource of resources) {
    const request = {
      resources: [{ resourceType: resource.type, resourceName: resource.name, configurationKeys: null }],
      includeSynonyms: true,
      includeDocumentation: true,
    };
    const { results } = resource.type === ResourceType.broker && resource.name !== ""
      ? await client.node(Number(resource.name), describeConfigsRequest, describeConfigsResponse, request)
      : await client.any(describeConfigsRequest, describeConfigsResponse, request);
    const [{ errorCode, errorMessage, configs }] = results;
    if (errorCode !== ErrorCode.NONE) throw new Refused(resourceText(resource), errorCode, errorMessage);
    described.push({
      resource,
      configs: configs.map((config) => ({
        name: config.name,
        value: config.value,
        source: sources[config.configSource] ?? String(config.configSource),
        readOnly: config.readOnly,
        documentation: config.documentation,
        synonyms: config.synonyms.map(({ name, value, source }) => ({ name, value, source: sources[source] ?? "" })),
      })).sort((a, b) => a.name < b.name ? -1 : 1),
    });
  }
  return described;
}

/** Changes settings of a resource: a value sets one, null puts it back to what it is without. @throws {Refused} */
export async function alterConfigs(
  client: ClusterClient,
  resource: Resource,
  changes: ReadonlyMap<string, string | null>,
  validateOnly: boolean,
): Promise<void> {
  const request = {
    resources: [{
      resourceType: resource.type,
      resourceName: resource.name,
      configs: Array.from(changes, ([name, value]) => ({ name, configOperation: value === null ? 1 : 0, value })),
    }],
    validateOnly,
  };
  const { responses } = resource.type === ResourceType.broker && resource.name !== ""
    ? await client.node(Number(resource.name), incrementalAlterConfigsRequest, incrementalAlterConfigsResponse, request)
    : await client.controller(incrementalAlterConfigsRequest, incrementalAlterConfigsResponse, request);
  const [{ errorCode, errorMessage }] = responses;
  if (errorCode !== ErrorCode.NONE) throw new Refused(resourceText(resource), errorCode, errorMessage);
}

/** `topic orders`, `broker 0`, `all brokers`. */
export function resourceText({ type, name }: Resource): string {
  if (type === ResourceType.topic) return `topic ${name}`;
  return name === "" ? "all brokers" : `broker ${name}`;
}
