/** ListGroups (0–5): the groups that this broker coordinates, of the states and types wanted. */

import { ErrorCode } from "../../errors.ts";
import { listGroupsRequest, listGroupsResponse } from "../../protocol/messages/list_groups.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** Serves ListGroups. */
export function listGroupsHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof listGroupsRequest>, InputOf<typeof listGroupsResponse>> {
  return {
    request: listGroupsRequest,
    response: listGroupsResponse,
    handle({ statesFilter, typesFilter }) {
      const errorCode = groups.availability;
      if (errorCode !== ErrorCode.NONE) return { throttleTimeMs: 0, errorCode, groups: [] };
      const isWanted = (filter: readonly string[], value: string) =>
        filter.length === 0 || filter.some((one) => one.toLowerCase() === value.toLowerCase());
      const listed = groups.list().map(({ groupId, protocolType, type, state }) => ({
        groupId,
        protocolType,
        groupState: state,
        groupType: type,
      })).filter(({ groupState, groupType }) => isWanted(statesFilter, groupState) && isWanted(typesFilter, groupType));
      return { throttleTimeMs: 0, errorCode, groups: listed };
    },
  };
}
