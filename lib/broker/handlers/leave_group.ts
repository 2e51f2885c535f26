/** LeaveGroup (0–5): members of a classic group go, one (up to version 2) or several, static ones by their instance. */

import { leaveGroupRequest, leaveGroupResponse } from "../../protocol/messages/leave_group.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ErrorCode } from "../../errors.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** From here on several members can leave at once. */
const SEVERAL_SINCE = 3;

/** Serves LeaveGroup. */
export function leaveGroupHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof leaveGroupRequest>, InputOf<typeof leaveGroupResponse>> {
  return {
    request: leaveGroupRequest,
    response: leaveGroupResponse,
    handle({ groupId, memberId, members }, { apiVersion }) {
      const leaving = apiVersion < SEVERAL_SINCE ? [{ memberId, groupInstanceId: null }] : members;
      const outcome = groups.leave(groupId, leaving);
      if (!Array.isArray(outcome)) return { throttleTimeMs: 0, errorCode: outcome, members: [] };
      if (apiVersion < SEVERAL_SINCE) return { throttleTimeMs: 0, errorCode: outcome[0], members: [] };
      const left = leaving.map((one, at) => ({
        memberId: one.memberId,
        groupInstanceId: one.groupInstanceId,
        errorCode: outcome[at],
      }));
      return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, members: left };
    },
  };
}
