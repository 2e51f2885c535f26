/**
 * Resources whose settings can be asked for and altered: topics, this broker (by its id), all brokers (the empty name).
 * The describe and alter calls find them here, so that they refuse the same ones in the same words.
 */

import { ErrorCode } from "../errors.ts";
import type { Broker } from "./broker.ts";
import {
  type AlterationScope,
  alterIncrementally,
  type ConfigChange,
  type OwnValues,
  replaceAllValues,
} from "./config_alteration.ts";
import {
  brokerSetting,
  type BrokerSettingName,
  explainUnknownBrokerSetting,
  explainUnknownTopicSetting,
} from "./config_definitions.ts";
import type { Setting, SettingValue } from "./config_definitions_setting.ts";
import { topicSetting, type TopicSettingName } from "./config_definitions_topic.ts";
import type { AlteredLayer } from "./config_store.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";
import { overridesConflict, type TopicOverrides } from "./topic_config.ts";
import { topicNameProblem } from "./topic_name.ts";
import type { Topic } from "./topics.ts";

/** Kafka's numbers of resource types. */
export const ResourceType = { TOPIC: 2, BROKER: 4, BROKER_LOGGER: 8, CLIENT_METRICS: 16, GROUP: 32 } as const;

/** A resource that exists. */
export type ConfigResource =
  | { readonly kind: "topic"; readonly topic: Topic }
  | { readonly kind: "broker"; readonly layer: AlteredLayer };

/** What altering needs of the broker. */
export type ConfiguredBroker = Pick<Broker, "config" | "configStore" | "nodeId" | "topics">;

/** The resource of this type and name, or why there is none. */
export function findConfigResource(
  broker: Pick<Broker, "nodeId" | "topics">,
  type: number,
  name: string,
): ConfigResource | Refusal {
  switch (type) {
    case ResourceType.TOPIC: {
      const topic = broker.topics.get(name);
      if (topic !== undefined) return { kind: "topic", topic };
      const problem = topicNameProblem(name);
      return problem === null
        ? refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `topic ${name} does not exist`)
        : refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, problem);
    }
    case ResourceType.BROKER:
      return findBroker(broker.nodeId, name);
    case ResourceType.BROKER_LOGGER:
      return refuse(ErrorCode.INVALID_REQUEST, "the log level is set when kaas is started, see --log-level");
    case ResourceType.CLIENT_METRICS:
      return refuse(ErrorCode.INVALID_REQUEST, "kaas does not collect metrics of clients");
    case ResourceType.GROUP:
      return refuse(
        ErrorCode.INVALID_REQUEST,
        "groups have no settings of their own, the broker's group.* settings hold",
      );
    default:
      return refuse(ErrorCode.INVALID_REQUEST, `resources of type ${type} have no settings`);
  }
}

function findBroker(nodeId: number, name: string): ConfigResource | Refusal {
  if (name === "") return { kind: "broker", layer: "dynamic-default" };
  if (!/^\d{1,10}$/.test(name)) {
    return refuse(
      ErrorCode.INVALID_REQUEST,
      `a broker is named by its number or by "", not by ${JSON.stringify(name)}`,
    );
  }
  if (Number(name) === nodeId) return { kind: "broker", layer: "dynamic-broker" };
  return refuse(ErrorCode.INVALID_REQUEST, `this is broker ${nodeId}, ask broker ${name} itself about its settings`);
}

/** What a request wants to become of a resource's own settings. */
export type Alteration =
  | { readonly kind: "replace"; readonly entries: readonly { readonly name: string; readonly value: string | null }[] }
  | { readonly kind: "incremental"; readonly changes: readonly ConfigChange[] };

/** One resource's part of an alter request. */
export interface AlterationWish {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly alteration: Alteration;
}

/** One resource's part of the answer. */
export interface AlterationResult {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly resourceType: number;
  readonly resourceName: string;
}

/** Alters each resource, or only checks; a resource that is named more than once is left as it is. */
export function alterEach(
  broker: ConfiguredBroker,
  wishes: readonly AlterationWish[],
  validateOnly: boolean,
): Promise<AlterationResult[]> {
  const distinct = new Map(wishes.map((wish) => [keyOf(wish), wish]));
  const repeated = new Set(wishes.filter((wish) => distinct.get(keyOf(wish)) !== wish).map(keyOf));
  return Promise.all([...distinct.values()].map(async (wish) => {
    const { resourceType, resourceName, alteration } = wish;
    const resource = !repeated.has(keyOf(wish))
      ? findConfigResource(broker, resourceType, resourceName)
      : refuse(ErrorCode.INVALID_REQUEST, "each resource must be named once only");
    const refusal = isRefusal(resource)
      ? resource
      : await alterResource(broker, resource, { alteration, validateOnly });
    return {
      errorCode: refusal === null ? ErrorCode.NONE : refusal.errorCode,
      errorMessage: refusal === null ? null : refusal.message,
      resourceType,
      resourceName,
    };
  }));
}

function keyOf({ resourceType, resourceName }: AlterationWish): string {
  return `${resourceType} ${resourceName}`;
}

/** Alters a resource durably, or only checks whether it could be done. Returns why not, or `null`. */
async function alterResource(
  broker: ConfiguredBroker,
  resource: ConfigResource,
  { alteration, validateOnly }: { readonly alteration: Alteration; readonly validateOnly: boolean },
): Promise<Refusal | null> {
  if (resource.kind === "broker") {
    const { layer } = resource;
    const scope = brokerScope(broker, layer);
    const alter = (own: OwnValues) =>
      apply(own, alteration, scope) as ReadonlyMap<BrokerSettingName, SettingValue> | Refusal;
    if (!validateOnly) return await broker.configStore.alter(layer, alter);
    const outcome = alter(broker.config.altered(layer));
    return isRefusal(outcome) ? outcome : null;
  }
  const alter = (topic: Topic) => alterTopic(broker, topic, alteration);
  const outcome = validateOnly ? alter(resource.topic) : await broker.topics.configure(resource.topic, alter);
  return isRefusal(outcome) ? outcome : null;
}

function alterTopic(broker: ConfiguredBroker, topic: Topic, alteration: Alteration): TopicOverrides | Refusal {
  const scope: AlterationScope = {
    find: (name) => topicSetting(name) ?? refuse(ErrorCode.INVALID_CONFIG, explainUnknownTopicSetting(name)),
    effective: (name) => topic.settings[name as TopicSettingName],
  };
  const overrides = apply(topic.overrides, alteration, scope);
  if (isRefusal(overrides)) return overrides;
  const altered = overrides as TopicOverrides;
  return overridesConflict(altered, broker.config) ?? altered;
}

function apply(own: OwnValues, alteration: Alteration, scope: AlterationScope): OwnValues | Refusal {
  return alteration.kind === "replace"
    ? replaceAllValues(alteration.entries, scope)
    : alterIncrementally(own, alteration.changes, scope);
}

function brokerScope(broker: ConfiguredBroker, layer: AlteredLayer): AlterationScope {
  return {
    find(name) {
      const setting = brokerSetting(name);
      if (setting === undefined) return refuse(ErrorCode.INVALID_CONFIG, explainUnknownBrokerSetting(name));
      return alterable(setting, layer);
    },
    effective: (name) => broker.config.get(name as BrokerSettingName),
  };
}

function alterable(setting: Setting, layer: AlteredLayer): Setting | Refusal {
  switch (setting.update) {
    case "cluster-wide":
      return setting;
    case "per-broker":
      if (layer === "dynamic-broker") return setting;
      return refuse(ErrorCode.INVALID_REQUEST, `${setting.name} can be altered for one broker only, not for all`);
    case "read-only":
      return refuse(ErrorCode.INVALID_REQUEST, `${setting.name} is set when a broker is started and cannot be altered`);
  }
}
