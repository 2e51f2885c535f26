/**
 * DescribeConfigs: the settings of topics and brokers, their sources and synonyms (KIP-226), types and documentation
 * (KIP-569, version 3 on). Names that a resource does not have are left out of its answer.
 */

import { ErrorCode } from "../../errors.ts";
import { describeConfigsRequest, describeConfigsResponse } from "../../protocol/messages/describe_configs.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import {
  describeBrokerConfig,
  describeBrokerDefaults,
  type DescribedConfig,
  describeTopicConfig,
  type DescribeWish,
} from "../config_description.ts";
import { type ConfigResource, findConfigResource } from "../config_resources.ts";
import type { Handler } from "../handler.ts";
import { isRefusal } from "../refusal.ts";

type DescribeConfigsRequest = ValueOf<typeof describeConfigsRequest>;
type DescribeConfigsResponse = InputOf<typeof describeConfigsResponse>;
type DescribingBroker = Pick<Broker, "config" | "nodeId" | "topics">;

export function describeConfigsHandler(
  broker: DescribingBroker,
): Handler<DescribeConfigsRequest, DescribeConfigsResponse> {
  return {
    request: describeConfigsRequest,
    response: describeConfigsResponse,
    handle(request) {
      const { includeSynonyms, includeDocumentation } = request;
      const results = request.resources.map(({ resourceType, resourceName, configurationKeys }) => {
        const resource = findConfigResource(broker, resourceType, resourceName);
        const wish = { keys: configurationKeys, includeSynonyms, includeDocumentation };
        return isRefusal(resource)
          ? { errorCode: resource.errorCode, errorMessage: resource.message, resourceType, resourceName, configs: [] }
          : {
            errorCode: ErrorCode.NONE,
            errorMessage: null,
            resourceType,
            resourceName,
            configs: describe(broker, resource, wish),
          };
      });
      return { throttleTimeMs: 0, results };
    },
  };
}

function describe(broker: DescribingBroker, resource: ConfigResource, wish: DescribeWish): DescribedConfig[] {
  if (resource.kind === "topic") return describeTopicConfig(resource.topic, broker.config, wish);
  return resource.layer === "dynamic-broker"
    ? describeBrokerConfig(broker.config, wish)
    : describeBrokerDefaults(broker.config, wish);
}
