/**
 * DescribeGroups (0–6): state, protocol and members. A group that is not there is "Dead", and from version 6 on an error
 * as well (KIP-1043). So is a group of the consumer protocol, which ConsumerGroupDescribe is for.
 */

import { ErrorCode } from "../../errors.ts";
import { describeGroupsRequest, describeGroupsResponse } from "../../protocol/messages/describe_groups.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ALL_GROUP_OPERATIONS, NOT_ASKED } from "../authorized_operations.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** From here on a group that is not there is an error. */
const NOT_FOUND_SINCE = 6;

/** Serves DescribeGroups. */
export function describeGroupsHandler(
  { groups }: Pick<Broker, "groups">,
): Handler<ValueOf<typeof describeGroupsRequest>, InputOf<typeof describeGroupsResponse>> {
  return {
    request: describeGroupsRequest,
    response: describeGroupsResponse,
    handle(request, { apiVersion }) {
      const authorizedOperations = request.includeAuthorizedOperations ? ALL_GROUP_OPERATIONS : NOT_ASKED;
      const described = request.groups.map((groupId) => {
        const group = groups.availabilityOf(groupId) === ErrorCode.NONE ? groups.describe(groupId) : undefined;
        if (group === undefined) {
          const isOther = groups.availabilityOf(groupId) === ErrorCode.NONE && groups.offsetsOf(groupId) !== undefined;
          const problem = isOther ? `Group ${groupId} is not a classic group.` : `Group ${groupId} not found.`;
          return { ...absent(groupId, groups.availabilityOf(groupId), problem, apiVersion), authorizedOperations };
        }
        return {
          errorCode: ErrorCode.NONE,
          errorMessage: null,
          groupId,
          groupState: group.state,
          protocolType: group.protocolType,
          protocolData: group.protocolName,
          members: [...group.members],
          authorizedOperations,
        };
      });
      return { throttleTimeMs: 0, groups: described };
    },
  };
}

function absent(groupId: string, availability: ErrorCode, problem: string, apiVersion: number) {
  const isServed = availability === ErrorCode.NONE;
  const isError = isServed && apiVersion >= NOT_FOUND_SINCE;
  return {
    errorCode: isError ? ErrorCode.GROUP_ID_NOT_FOUND : availability,
    errorMessage: isError ? problem : null,
    groupId,
    groupState: isServed ? "Dead" : "",
    protocolType: "",
    protocolData: "",
    members: [],
  };
}
