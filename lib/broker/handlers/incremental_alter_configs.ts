/**
 * IncrementalAlterConfigs (KIP-339): changes only the settings that are named. All changes of one resource are made, or
 * none; resources do not depend on each other.
 */

import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from "../../protocol/messages/incremental_alter_configs.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { alterEach, type ConfiguredBroker } from "../config_resources.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof incrementalAlterConfigsRequest>;
type Response = InputOf<typeof incrementalAlterConfigsResponse>;

export function incrementalAlterConfigsHandler(broker: ConfiguredBroker): Handler<Request, Response> {
  return {
    request: incrementalAlterConfigsRequest,
    response: incrementalAlterConfigsResponse,
    async handle({ resources, validateOnly }) {
      const wishes = resources.map(({ resourceType, resourceName, configs }) => {
        const changes = configs.map(({ name, configOperation, value }) => ({
          name,
          operation: configOperation,
          value,
        }));
        return { resourceType, resourceName, alteration: { kind: "incremental" as const, changes } };
      });
      return { throttleTimeMs: 0, responses: await alterEach(broker, wishes, validateOnly) };
    },
  };
}
