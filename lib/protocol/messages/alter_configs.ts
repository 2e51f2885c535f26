/**
 * AlterConfigs (KIP-133): replaces all settings of a resource.
 *
 * v2 flexible.
 */

import { array, bool, int16, int32, int8, message, string, struct } from "../schema.ts";

export const alterConfigsRequest = message(
  { name: "AlterConfigsRequest", apiKey: 33, type: "request", versions: "0-2", flexible: "2+" },
  {
    resources: array(struct({
      resourceType: int8(),
      resourceName: string(),
      configs: array(struct({ name: string(), value: string().nullable() })),
    })),
    validateOnly: bool(),
  },
);

export const alterConfigsResponse = message(
  { name: "AlterConfigsResponse", apiKey: 33, type: "response", versions: "0-2", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    responses: array(struct({
      errorCode: int16(),
      errorMessage: string().nullable(),
      resourceType: int8(),
      resourceName: string(),
    })),
  },
);
