/**
 * ListGroups.
 *
 * v1 throttle time · v3 flexible · v4 states (KIP-518) · v5 types (KIP-848).
 */

import { array, int16, int32, message, string, struct } from "../schema.ts";

export const listGroupsRequest = message(
  { name: "ListGroupsRequest", apiKey: 16, type: "request", versions: "0-5", flexible: "3+" },
  {
    statesFilter: array(string()).since(4),
    typesFilter: array(string()).since(5),
  },
);

export const listGroupsResponse = message(
  { name: "ListGroupsResponse", apiKey: 16, type: "response", versions: "0-5", flexible: "3+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16(),
    groups: array(struct({
      groupId: string(),
      protocolType: string(),
      groupState: string().since(4),
      groupType: string().since(5),
    })),
  },
);
