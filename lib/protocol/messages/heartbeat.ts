/**
 * Heartbeat of a classic group's member.
 *
 * v1 throttle time · v3 static members (KIP-345) · v4 flexible.
 */

import { int16, int32, message, string } from "../schema.ts";

export const heartbeatRequest = message(
  { name: "HeartbeatRequest", apiKey: 12, type: "request", versions: "0-4", flexible: "4+" },
  {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string().since(3).nullable(3).default(null),
  },
);

export const heartbeatResponse = message(
  { name: "HeartbeatResponse", apiKey: 12, type: "response", versions: "0-4", flexible: "4+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16(),
  },
);
