/**
 * AlterConfigs: replaces everything that a resource sets itself; what is not named falls back to the default. Kept for
 * older tools, which ought to use IncrementalAlterConfigs.
 */

import { alterConfigsRequest, alterConfigsResponse } from "../../protocol/messages/alter_configs.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { alterEach, type ConfiguredBroker } from "../config_resources.ts";
import type { Handler } from "../handler.ts";

type AlterConfigsRequest = ValueOf<typeof alterConfigsRequest>;
type AlterConfigsResponse = InputOf<typeof alterConfigsResponse>;

export function alterConfigsHandler(broker: ConfiguredBroker): Handler<AlterConfigsRequest, AlterConfigsResponse> {
  return {
    request: alterConfigsRequest,
    response: alterConfigsResponse,
    async handle({ resources, validateOnly }) {
      const wishes = resources.map(({ resourceType, resourceName, configs }) => ({
        resourceType,
        resourceName,
        alteration: { kind: "replace" as const, entries: configs },
      }));
      return { throttleTimeMs: 0, responses: await alterEach(broker, wishes, validateOnly) };
    },
  };
}
