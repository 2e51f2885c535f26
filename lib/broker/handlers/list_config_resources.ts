/**
 * ListConfigResources (KIP-1142): which resources have settings. Version 0 is the older call for client metrics
 * subscriptions, of which there are none here.
 */

import { ErrorCode } from "../../errors.ts";
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from "../../protocol/messages/list_config_resources.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { ResourceType } from "../config_resources.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof listConfigResourcesRequest>;
type Response = InputOf<typeof listConfigResourcesResponse>;

const allTypes: readonly number[] = Object.values(ResourceType);

export function listConfigResourcesHandler(broker: Pick<Broker, "nodeId" | "topics">): Handler<Request, Response> {
  return {
    request: listConfigResourcesRequest,
    response: listConfigResourcesResponse,
    handle({ resourceTypes }, { apiVersion }) {
      if (apiVersion === 0) return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, configResources: [] };
      if (resourceTypes.some((type) => !allTypes.includes(type))) {
        return { throttleTimeMs: 0, errorCode: ErrorCode.UNSUPPORTED_VERSION, configResources: [] };
      }
      const types = new Set(resourceTypes.length === 0 ? allTypes : resourceTypes);
      const configResources = [...types].flatMap((resourceType) =>
        namesOf(broker, resourceType).map((resourceName) => ({ resourceName, resourceType }))
      );
      return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, configResources };
    },
  };
}

function namesOf(broker: Pick<Broker, "nodeId" | "topics">, resourceType: number): string[] {
  switch (resourceType) {
    case ResourceType.TOPIC:
      return Array.from(broker.topics.all(), ({ name }) => name).sort();
    case ResourceType.BROKER:
      return [String(broker.nodeId)];
    default:
      return [];
  }
}
