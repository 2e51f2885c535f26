/**
 * ConsumerGroupDescribe (KIP-848).
 *
 * v1 whether a member speaks the classic (0) or the consumer protocol (1) (KIP-1099).
 */

import { array, bool, int16, int32, int8, message, string, struct, uuid } from "../schema.ts";

/** What "authorized operations" say when they were not asked for. */
const OPERATIONS_NOT_ASKED = -2147483648;

const assignment = () =>
  struct({
    topicPartitions: array(struct({ topicId: uuid(), topicName: string(), partitions: array(int32()) })),
  });

export const consumerGroupDescribeRequest = message(
  { name: "ConsumerGroupDescribeRequest", apiKey: 69, type: "request", versions: "0-1", flexible: "0+" },
  {
    groupIds: array(string()),
    includeAuthorizedOperations: bool(),
  },
);

export const consumerGroupDescribeResponse = message(
  { name: "ConsumerGroupDescribeResponse", apiKey: 69, type: "response", versions: "0-1", flexible: "0+" },
  {
    throttleTimeMs: int32(),
    groups: array(struct({
      errorCode: int16(),
      errorMessage: string().nullable().default(null),
      groupId: string(),
      groupState: string(),
      groupEpoch: int32(),
      assignmentEpoch: int32(),
      assignorName: string(),
      members: array(struct({
        memberId: string(),
        instanceId: string().nullable().default(null),
        rackId: string().nullable().default(null),
        memberEpoch: int32(),
        clientId: string(),
        clientHost: string(),
        subscribedTopicNames: array(string()),
        subscribedTopicRegex: string().nullable().default(null),
        assignment: assignment(),
        targetAssignment: assignment(),
        memberType: int8().since(1).default(-1),
      })),
      authorizedOperations: int32().default(OPERATIONS_NOT_ASKED),
    })),
  },
);
