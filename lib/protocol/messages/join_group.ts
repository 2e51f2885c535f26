/**
 * JoinGroup: a member enters the round that makes the next generation.
 *
 * v1 rebalance time-out (KIP-62) · v2 throttle time · v4 the first answer may demand a member id (KIP-394) · v5 static
 * members (KIP-345) · v6 flexible · v7 protocol type and name in the answer (KIP-559) · v8 reason (KIP-800) · v9 the
 * leader may be told to leave the assignment alone (KIP-814).
 */

import { array, bool, bytes, int16, int32, message, string, struct } from "../schema.ts";

export const joinGroupRequest = message(
  { name: "JoinGroupRequest", apiKey: 11, type: "request", versions: "0-9", flexible: "6+" },
  {
    groupId: string(),
    sessionTimeoutMs: int32(),
    rebalanceTimeoutMs: int32().since(1).default(-1),
    memberId: string(),
    groupInstanceId: string().since(5).nullable(5).default(null),
    protocolType: string(),
    protocols: array(struct({ name: string(), metadata: bytes() })),
    reason: string().since(8).nullable(8).default(null),
  },
);

export const joinGroupResponse = message(
  { name: "JoinGroupResponse", apiKey: 11, type: "response", versions: "0-9", flexible: "6+" },
  {
    throttleTimeMs: int32().since(2),
    errorCode: int16(),
    generationId: int32().default(-1),
    protocolType: string().since(7).nullable(7).default(null),
    protocolName: string().nullable(7),
    leader: string(),
    skipAssignment: bool().since(9).default(false),
    memberId: string(),
    members: array(struct({
      memberId: string(),
      groupInstanceId: string().since(5).nullable(5).default(null),
      metadata: bytes(),
    })),
  },
);
