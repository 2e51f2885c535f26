/**
 * DeleteGroups (KIP-229).
 *
 * v2 flexible.
 */

import { array, int16, int32, message, string, struct } from "../schema.ts";

export const deleteGroupsRequest = message(
  { name: "DeleteGroupsRequest", apiKey: 42, type: "request", versions: "0-2", flexible: "2+" },
  {
    groupsNames: array(string()),
  },
);

export const deleteGroupsResponse = message(
  { name: "DeleteGroupsResponse", apiKey: 42, type: "response", versions: "0-2", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    results: array(struct({ groupId: string(), errorCode: int16() })),
  },
);
