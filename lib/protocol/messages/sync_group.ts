/**
 * SyncGroup: the leader hands in the assignment, everybody receives its own.
 *
 * v1 throttle time · v3 static members (KIP-345) · v4 flexible · v5 protocol type and name (KIP-559).
 */

import { array, bytes, int16, int32, message, string, struct } from "../schema.ts";

export const syncGroupRequest = message(
  { name: "SyncGroupRequest", apiKey: 14, type: "request", versions: "0-5", flexible: "4+" },
  {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string().since(3).nullable(3).default(null),
    protocolType: string().since(5).nullable(5).default(null),
    protocolName: string().since(5).nullable(5).default(null),
    assignments: array(struct({ memberId: string(), assignment: bytes() })),
  },
);

export const syncGroupResponse = message(
  { name: "SyncGroupResponse", apiKey: 14, type: "response", versions: "0-5", flexible: "4+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16(),
    protocolType: string().since(5).nullable(5).default(null),
    protocolName: string().since(5).nullable(5).default(null),
    assignment: bytes(),
  },
);
