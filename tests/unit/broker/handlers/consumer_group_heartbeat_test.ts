import assert from "node:assert/strict";
import { consumerGroupHeartbeatHandler } from "../../../../lib/broker/handlers/consumer_group_heartbeat.ts";
import { offsetCommitHandler } from "../../../../lib/broker/handlers/offset_commit.ts";
import { offsetFetchHandler } from "../../../../lib/broker/handlers/offset_fetch.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  consumerGroupHeartbeatRequest,
  consumerGroupHeartbeatResponse,
} from "../../../../lib/protocol/messages/consumer_group_heartbeat.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../../../lib/protocol/messages/offset_commit.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../../../lib/protocol/messages/offset_fetch.ts";
import { ask } from "../../../support/admin_broker.ts";
import { withGroupBroker } from "../../../support/group_broker.ts";

const messages = { request: consumerGroupHeartbeatRequest, response: consumerGroupHeartbeatResponse };
const joining = {
  groupId: "g",
  memberEpoch: 0,
  rebalanceTimeoutMs: 1000,
  subscribedTopicNames: ["t"],
  topicPartitions: [],
};

Deno.test("a member joins by ConsumerGroupHeartbeat and is told its partitions, by topic id, in every version", () =>
  withGroupBroker(async (broker) => {
    const handler = consumerGroupHeartbeatHandler(broker);
    const { topicId } = broker.topics.get("t")!;
    const reply = await ask(handler, messages, 0, { ...joining, memberId: "" });
    const { errorCode, errorMessage, memberEpoch, heartbeatIntervalMs, assignment } = reply;
    assert.deepEqual({ errorCode, errorMessage, memberEpoch, heartbeatIntervalMs }, {
      errorCode: ErrorCode.NONE,
      errorMessage: null,
      memberEpoch: 1,
      heartbeatIntervalMs: 5000,
    });
    assert.deepEqual(assignment, { topicPartitions: [{ topicId, partitions: [0, 1, 2, 3] }] });
    const memberId = reply.memberId!;
    const owned = [{ topicId, partitions: [0, 1, 2, 3] }];
    const next = { groupId: "g", memberId, memberEpoch: 1, topicPartitions: owned };
    const same = await ask(handler, messages, 1, next);
    assert.deepEqual([same.errorCode, same.memberEpoch, same.assignment], [ErrorCode.NONE, 1, null]);
    const byPattern = { ...joining, memberId: "other", subscribedTopicNames: null, subscribedTopicRegex: "t" };
    const other = await ask(handler, messages, 1, byPattern);
    assert.deepEqual([other.errorCode, other.memberEpoch], [ErrorCode.NONE, 2]);
    assert.deepEqual(other.assignment, { topicPartitions: [] });
  }));

Deno.test("ConsumerGroupHeartbeat says what was wrong, and where the protocol is switched off that it is", async () => {
  await withGroupBroker(async (broker) => {
    const reply = await ask(consumerGroupHeartbeatHandler(broker), messages, 1, { ...joining, memberId: "" });
    assert.deepEqual([reply.errorCode, reply.memberId, reply.assignment], [ErrorCode.INVALID_REQUEST, null, null]);
    assert.match(reply.errorMessage!, /MemberId/);
  });
  await withGroupBroker(async (broker) => {
    const reply = await ask(consumerGroupHeartbeatHandler(broker), messages, 1, { ...joining, memberId: "a" });
    assert.equal(reply.errorCode, ErrorCode.UNSUPPORTED_VERSION);
  }, { settings: { "group.coordinator.rebalance.protocols": "classic" } });
});

Deno.test("members commit and read offsets in their epoch only, also by topic ids", () =>
  withGroupBroker(async (broker) => {
    await ask(consumerGroupHeartbeatHandler(broker), messages, 1, { ...joining, memberId: "a" });
    const { topicId } = broker.topics.get("t")!;
    const committed = async (epoch: number, version: number) => {
      const partitions = [{ partitionIndex: 0, committedOffset: 5, committedMetadata: "" }];
      const topics = [{ name: "t", topicId, partitions }];
      const commit = { groupId: "g", memberId: "a", generationIdOrMemberEpoch: epoch, topics };
      const both = { request: offsetCommitRequest, response: offsetCommitResponse };
      return (await ask(offsetCommitHandler(broker), both, version, commit)).topics[0].partitions[0].errorCode;
    };
    assert.equal(await committed(1, 8), ErrorCode.UNSUPPORTED_VERSION);
    assert.equal(await committed(2, 9), ErrorCode.STALE_MEMBER_EPOCH);
    assert.equal(await committed(1, 9), ErrorCode.NONE);
    assert.equal(await committed(1, 10), ErrorCode.NONE);
    const fetched = async (memberEpoch: number, version: number) => {
      const topics = [{ name: "t", topicId, partitionIndexes: [0] }];
      const groups = [{ groupId: "g", memberId: version < 9 ? null : "a", memberEpoch, topics }];
      const both = { request: offsetFetchRequest, response: offsetFetchResponse };
      const reply = await ask(offsetFetchHandler(broker), both, version, { groups });
      return [reply.groups[0].errorCode, reply.groups[0].topics[0]?.partitions[0].committedOffset];
    };
    assert.deepEqual(await fetched(-1, 8), [ErrorCode.NONE, 5]);
    assert.deepEqual(await fetched(1, 9), [ErrorCode.NONE, 5]);
    assert.deepEqual(await fetched(1, 10), [ErrorCode.NONE, 5]);
    assert.deepEqual(await fetched(2, 9), [ErrorCode.STALE_MEMBER_EPOCH, undefined]);
  }));
