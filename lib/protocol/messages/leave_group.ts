/**
 * LeaveGroup.
 *
 * v1 throttle time · v3 several members at once, static ones too (KIP-345) · v4 flexible · v5 reason (KIP-800).
 */

import { array, int16, int32, message, string, struct } from "../schema.ts";

export const leaveGroupRequest = message(
  { name: "LeaveGroupRequest", apiKey: 13, type: "request", versions: "0-5", flexible: "4+" },
  {
    groupId: string(),
    memberId: string().until(2),
    members: array(struct({
      memberId: string(),
      groupInstanceId: string().nullable(3).default(null),
      reason: string().since(5).nullable(5).default(null),
    })).since(3),
  },
);

export const leaveGroupResponse = message(
  { name: "LeaveGroupResponse", apiKey: 13, type: "response", versions: "0-5", flexible: "4+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16(),
    members: array(struct({
      memberId: string(),
      groupInstanceId: string().nullable(3),
      errorCode: int16(),
    })).since(3),
  },
);
