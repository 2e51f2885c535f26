/** JoinGroup (0–9): a member of a classic group enters the round that makes the next generation. */

import { joinGroupRequest, joinGroupResponse } from "../../protocol/messages/join_group.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";

/** From here on a new member must come again with the id it was given (KIP-394). */
const KNOWN_ID_SINCE = 4;
/** From here on protocol type and name may be null. */
const NULLABLE_SINCE = 7;
/** From here on a leader can be told to leave the assignment alone (KIP-814). */
const SKIP_ASSIGNMENT_SINCE = 9;

/** Serves JoinGroup. */
export function joinGroupHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof joinGroupRequest>, InputOf<typeof joinGroupResponse>> {
  return {
    request: joinGroupRequest,
    response: joinGroupResponse,
    handle(request, { apiVersion, clientId, clientHost }) {
      const { groupId, memberId, groupInstanceId, protocolType, protocols, sessionTimeoutMs } = request;
      const rebalanceTimeoutMs = apiVersion === 0 ? sessionTimeoutMs : Math.max(0, request.rebalanceTimeoutMs);
      const joining = groups.join(groupId, {
        memberId,
        protocolType,
        needsKnownId: apiVersion >= KNOWN_ID_SINCE,
        knowsSkipAssignment: apiVersion >= SKIP_ASSIGNMENT_SINCE,
        facts: {
          instanceId: groupInstanceId,
          clientId: clientId ?? "",
          clientHost: `/${clientHost}`,
          sessionTimeoutMs,
          rebalanceTimeoutMs,
          protocols,
        },
      });
      return later(joining.then((reply) => ({
        throttleTimeMs: 0,
        ...reply,
        members: [...reply.members],
        protocolName: reply.protocolName ?? (apiVersion < NULLABLE_SINCE ? "" : null),
      })));
    },
  };
}
