/**
 * ListConfigResources (KIP-1142): names of the resources that have settings.
 *
 * v0 was ListClientMetricsResources (KIP-714) and lists only those (type 16) · v1 asks for types; none means all.
 */

import { array, int16, int32, int8, message, string, struct } from "../schema.ts";

export const listConfigResourcesRequest = message(
  { name: "ListConfigResourcesRequest", apiKey: 74, type: "request", versions: "0-1", flexible: "0+" },
  {
    resourceTypes: array(int8()).since(1),
  },
);

export const listConfigResourcesResponse = message(
  { name: "ListConfigResourcesResponse", apiKey: 74, type: "response", versions: "0-1", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16(),
    configResources: array(struct({ resourceName: string(), resourceType: int8().since(1).default(16) })),
  },
);
