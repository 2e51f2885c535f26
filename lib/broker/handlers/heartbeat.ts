/** Heartbeat (0–4): a member of a classic group is alive, and learns of a rebalance. */

import { heartbeatRequest, heartbeatResponse } from "../../protocol/messages/heartbeat.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** Serves Heartbeat. */
export function heartbeatHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof heartbeatRequest>, InputOf<typeof heartbeatResponse>> {
  return {
    request: heartbeatRequest,
    response: heartbeatResponse,
    handle({ groupId, memberId, groupInstanceId, generationId }) {
      return { throttleTimeMs: 0, errorCode: groups.heartbeat(groupId, memberId, groupInstanceId, generationId) };
    },
  };
}
