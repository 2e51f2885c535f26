/**
 * IncrementalAlterConfigs (KIP-339): changes single settings. Operations: 0 set, 1 delete, 2 append, 3 subtract.
 *
 * v1 flexible.
 */

import { array, bool, int16, int32, int8, message, string, struct } from "../schema.ts";

export const incrementalAlterConfigsRequest = message(
  { name: "IncrementalAlterConfigsRequest", apiKey: 44, type: "request", versions: "0-1", flexible: "1+" },
  {
    resources: array(struct({
      resourceType: int8(),
      resourceName: string(),
      configs: array(struct({ name: string(), configOperation: int8(), value: string().nullable() })),
    })),
    validateOnly: bool(),
  },
);

export const incrementalAlterConfigsResponse = message(
  { name: "IncrementalAlterConfigsResponse", apiKey: 44, type: "response", versions: "0-1", flexible: "1+" },
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
