/**
 * DescribeGroups.
 *
 * v1 throttle time · v3 authorized operations (KIP-430) · v4 static members (KIP-345) · v5 flexible · v6 error
 * messages; an unknown group is an error (KIP-1043).
 */

import { array, bool, bytes, int16, int32, message, string, struct } from "../schema.ts";

/** What "authorized operations" say when they were not asked for. */
const OPERATIONS_NOT_ASKED = -2147483648;

export const describeGroupsRequest = message(
  { name: "DescribeGroupsRequest", apiKey: 15, type: "request", versions: "0-6", flexible: "5+" },
  {
    groups: array(string()),
    includeAuthorizedOperations: bool().since(3),
  },
);

export const describeGroupsResponse = message(
  { name: "DescribeGroupsResponse", apiKey: 15, type: "response", versions: "0-6", flexible: "5+" },
  {
    throttleTimeMs: int32().since(1),
    groups: array(struct({
      errorCode: int16(),
      errorMessage: string().since(6).nullable(6).default(null),
      groupId: string(),
      groupState: string(),
      protocolType: string(),
      protocolData: string(),
      members: array(struct({
        memberId: string(),
        groupInstanceId: string().since(4).nullable(4).default(null),
        clientId: string(),
        clientHost: string(),
        memberMetadata: bytes(),
        memberAssignment: bytes(),
      })),
      authorizedOperations: int32().since(3).default(OPERATIONS_NOT_ASKED),
    })),
  },
);
