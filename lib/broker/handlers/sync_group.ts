/** SyncGroup (0–5): the leader of a classic group hands in the assignment, everybody receives its own. */

import { ErrorCode } from "../../errors.ts";
import { refusedSync } from "../../groups/replies.ts";
import { syncGroupRequest, syncGroupResponse } from "../../protocol/messages/sync_group.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";

/** From here on members must name protocol type and name (KIP-559). */
const PROTOCOL_SINCE = 5;

/** Serves SyncGroup. */
export function syncGroupHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof syncGroupRequest>, InputOf<typeof syncGroupResponse>> {
  return {
    request: syncGroupRequest,
    response: syncGroupResponse,
    handle(request, { apiVersion }) {
      const { groupId, groupInstanceId: instanceId, ...sync } = request;
      if (apiVersion >= PROTOCOL_SINCE && (sync.protocolType === null || sync.protocolName === null)) {
        return { throttleTimeMs: 0, ...refusedSync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) };
      }
      const syncing = groups.sync(groupId, { ...sync, instanceId });
      return later(syncing.then((reply) => ({ throttleTimeMs: 0, ...reply })));
    },
  };
}
