import assert from "node:assert/strict";
import { ALL_GROUP_OPERATIONS, NOT_ASKED } from "../../../../lib/broker/authorized_operations.ts";
import { consumerGroupDescribeHandler } from "../../../../lib/broker/handlers/consumer_group_describe.ts";
import { consumerGroupHeartbeatHandler } from "../../../../lib/broker/handlers/consumer_group_heartbeat.ts";
import { describeGroupsHandler } from "../../../../lib/broker/handlers/describe_groups.ts";
import { listGroupsHandler } from "../../../../lib/broker/handlers/list_groups.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  consumerGroupDescribeRequest,
  consumerGroupDescribeResponse,
} from "../../../../lib/protocol/messages/consumer_group_describe.ts";
import {
  consumerGroupHeartbeatRequest,
  consumerGroupHeartbeatResponse,
} from "../../../../lib/protocol/messages/consumer_group_heartbeat.ts";
import { describeGroupsRequest, describeGroupsResponse } from "../../../../lib/protocol/messages/describe_groups.ts";
import { listGroupsRequest, listGroupsResponse } from "../../../../lib/protocol/messages/list_groups.ts";
import { ask } from "../../../support/admin_broker.ts";
import { type GroupBroker, withGroupBroker } from "../../../support/group_broker.ts";

const messages = { request: consumerGroupDescribeRequest, response: consumerGroupDescribeResponse };

/** Group "g" with one member; group "old" of the classic protocol, with an offset and nothing else. */
async function twoGroups(broker: GroupBroker): Promise<void> {
  const both = { request: consumerGroupHeartbeatRequest, response: consumerGroupHeartbeatResponse };
  await ask(consumerGroupHeartbeatHandler(broker), both, 1, {
    groupId: "g",
    memberId: "a",
    memberEpoch: 0,
    instanceId: "i",
    rackId: "r",
    rebalanceTimeoutMs: 1000,
    subscribedTopicNames: ["t", "u"],
    subscribedTopicRegex: "t.*",
    topicPartitions: [],
  });
  const offsets = [{ topic: "t", partition: 0, offset: 1, leaderEpoch: -1, metadata: "" }];
  const nobody = { memberId: "", instanceId: null, generationId: -1, retentionMs: -1 };
  await broker.groups.commit({ groupId: "old", ...nobody, offsets });
}

Deno.test("ConsumerGroupDescribe tells members, epochs and assignments, and who is no consumer group", () =>
  withGroupBroker(async (broker) => {
    await twoGroups(broker);
    const asked = { groupIds: ["g", "old", "none", ""], includeAuthorizedOperations: true };
    const { groups } = await ask(consumerGroupDescribeHandler(broker), messages, 1, asked);
    const assignment = {
      topicPartitions: [{ topicId: broker.topics.get("t")!.topicId, topicName: "t", partitions: [0, 1, 2, 3] }],
    };
    assert.deepEqual(groups[0], {
      errorCode: ErrorCode.NONE,
      errorMessage: null,
      groupId: "g",
      groupState: "Stable",
      groupEpoch: 1,
      assignmentEpoch: 1,
      assignorName: "uniform",
      members: [{
        memberId: "a",
        instanceId: "i",
        rackId: "r",
        memberEpoch: 1,
        clientId: "test",
        clientHost: "/127.0.0.1",
        subscribedTopicNames: ["t", "u"],
        subscribedTopicRegex: "t.*",
        assignment,
        targetAssignment: assignment,
        memberType: 1,
      }],
      authorizedOperations: ALL_GROUP_OPERATIONS,
    });
    const { GROUP_ID_NOT_FOUND, INVALID_REQUEST } = ErrorCode;
    assert.deepEqual(groups.map(({ errorCode }) => errorCode), [
      ...[ErrorCode.NONE, GROUP_ID_NOT_FOUND, GROUP_ID_NOT_FOUND, INVALID_REQUEST],
    ]);
    const before = await ask(consumerGroupDescribeHandler(broker), messages, 0, {
      groupIds: ["g"],
      includeAuthorizedOperations: false,
    });
    assert.equal(before.groups[0].members[0].memberType, -1);
    assert.equal(before.groups[0].authorizedOperations, NOT_ASKED);
  }));

Deno.test("ListGroups tells the types of groups and keeps to those asked for", () =>
  withGroupBroker(async (broker) => {
    await twoGroups(broker);
    const both = { request: listGroupsRequest, response: listGroupsResponse };
    const listed = async (version: number, filters: { statesFilter?: string[]; typesFilter?: string[] }) => {
      const { groups } = await ask(listGroupsHandler(broker), both, version, {
        statesFilter: [],
        typesFilter: [],
        ...filters,
      });
      return groups.map(({ groupId, protocolType, groupState, groupType }) => [
        ...[groupId, protocolType, groupState, groupType],
      ]).sort();
    };
    const all = [["g", "consumer", "Stable", "consumer"], ["old", "", "Empty", "classic"]];
    assert.deepEqual(await listed(5, {}), all);
    assert.deepEqual(await listed(5, { typesFilter: ["Consumer"] }), all.slice(0, 1));
    assert.deepEqual(await listed(5, { typesFilter: ["classic"], statesFilter: ["empty"] }), all.slice(1));
    assert.deepEqual(await listed(5, { typesFilter: ["share"] }), []);
    assert.deepEqual((await listed(4, { statesFilter: ["stable"] })).map(([groupId]) => groupId), ["g"]);
  }));

Deno.test("to DescribeGroups a group of the consumer protocol is none, which version 6 calls an error", () =>
  withGroupBroker(async (broker) => {
    await twoGroups(broker);
    const both = { request: describeGroupsRequest, response: describeGroupsResponse };
    const described = async (version: number) => {
      const { groups: [group] } = await ask(describeGroupsHandler(broker), both, version, {
        groups: ["g"],
        includeAuthorizedOperations: false,
      });
      return [group.errorCode, group.groupState, group.errorMessage];
    };
    assert.deepEqual(await described(5), [ErrorCode.NONE, "Dead", null]);
    const { GROUP_ID_NOT_FOUND } = ErrorCode;
    assert.deepEqual(await described(6), [GROUP_ID_NOT_FOUND, "Dead", "Group g is not a classic group."]);
  }));
