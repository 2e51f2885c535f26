/** DeleteGroups (0–2): removes groups without members, with their offsets. */

import { deleteGroupsRequest, deleteGroupsResponse } from "../../protocol/messages/delete_groups.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** Serves DeleteGroups. */
export function deleteGroupsHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof deleteGroupsRequest>, InputOf<typeof deleteGroupsResponse>> {
  return {
    request: deleteGroupsRequest,
    response: deleteGroupsResponse,
    async handle({ groupsNames }) {
      const results = await Promise.all(
        groupsNames.map(async (groupId) => ({ groupId, errorCode: await groups.deleteGroup(groupId) })),
      );
      return { throttleTimeMs: 0, results };
    },
  };
}
