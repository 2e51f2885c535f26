/**
 * ConsumerGroupDescribe (0–1): state and members of groups of the consumer protocol, with what each has and shall have
 * (KIP-848). Version 1 tells which protocol a member speaks.
 */

import { ErrorCode } from "../../errors.ts";
import type { Partitions } from "../../groups/topic_partitions.ts";
import {
  consumerGroupDescribeRequest,
  consumerGroupDescribeResponse,
} from "../../protocol/messages/consumer_group_describe.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ALL_GROUP_OPERATIONS, NOT_ASKED } from "../authorized_operations.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

const MemberType = { CLASSIC: 0, CONSUMER: 1 } as const;

/** Serves ConsumerGroupDescribe. */
export function consumerGroupDescribeHandler(
  { groups, topics }: Pick<Broker, "groups" | "topics">,
): Handler<ValueOf<typeof consumerGroupDescribeRequest>, InputOf<typeof consumerGroupDescribeResponse>> {
  /** Topics that are no more have no name that could be told. */
  const named = (partitions: Partitions) => ({
    topicPartitions: Array.from(partitions).flatMap(([topicId, indexes]) => {
      const topicName = topics.getById(topicId)?.name;
      return topicName === undefined ? [] : { topicId, topicName, partitions: [...indexes].sort((a, b) => a - b) };
    }),
  });
  return {
    request: consumerGroupDescribeRequest,
    response: consumerGroupDescribeResponse,
    handle(request) {
      const authorizedOperations = request.includeAuthorizedOperations ? ALL_GROUP_OPERATIONS : NOT_ASKED;
      const described = request.groupIds.map((groupId) => {
        const group = groups.describeConsumer(groupId);
        if ("errorCode" in group) return { ...ABSENT, ...group, groupId, authorizedOperations };
        return {
          errorCode: ErrorCode.NONE,
          errorMessage: null,
          groupId,
          groupState: group.phase,
          groupEpoch: group.epoch,
          assignmentEpoch: group.targetEpoch,
          assignorName: group.assignor,
          members: group.members.map(({ assigned, target, topicNames, regex, isClassic, ...member }) => ({
            ...member,
            subscribedTopicNames: [...topicNames],
            subscribedTopicRegex: regex,
            assignment: named(assigned),
            targetAssignment: named(target),
            memberType: isClassic ? MemberType.CLASSIC : MemberType.CONSUMER,
          })),
          authorizedOperations,
        };
      });
      return { throttleTimeMs: 0, groups: described };
    },
  };
}

const ABSENT = { groupState: "", groupEpoch: 0, assignmentEpoch: 0, assignorName: "", members: [] };
