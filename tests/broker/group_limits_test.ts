/**
 * What clients can do to consumer groups over the wire that they should not: the answers are clear codes, memory has a
 * bound, and the broker goes on serving.
 */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { subscribedTopics } from "../../lib/groups/consumer_protocol.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { describeGroupsRequest, describeGroupsResponse } from "../../lib/protocol/messages/describe_groups.ts";
import { heartbeatRequest, heartbeatResponse } from "../../lib/protocol/messages/heartbeat.ts";
import { joinGroupRequest, joinGroupResponse } from "../../lib/protocol/messages/join_group.ts";
import { leaveGroupRequest, leaveGroupResponse } from "../../lib/protocol/messages/leave_group.ts";
import { listGroupsRequest, listGroupsResponse } from "../../lib/protocol/messages/list_groups.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../lib/protocol/messages/offset_commit.ts";
import { offsetDeleteRequest, offsetDeleteResponse } from "../../lib/protocol/messages/offset_delete.ts";
import { syncGroupRequest, syncGroupResponse } from "../../lib/protocol/messages/sync_group.ts";
import type { ValueOf } from "../../lib/protocol/schema.ts";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { commitOf, joinOf, leaveOf } from "../support/group_requests.ts";
import { RawClient } from "../support/raw_client.ts";
import { SeededRandom } from "../simulation/seeded_random.ts";

const TOPIC = "t";
const MIB = 1 << 20;
const ignore = !brokersAreOwned || !brokerIsKaas;

let broker: BrokerProcess;

if (!ignore) {
  Deno.test.beforeAll(async () => {
    broker = await startBroker({
      settings: { "group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "500" },
    });
    using client = await RawClient.connect(broker.port);
    const topics = [{ name: TOPIC, numPartitions: 4, replicationFactor: 1, assignments: [], configs: [] }];
    const created = await client.call(createTopicsRequest, createTopicsResponse, 5, { topics });
    assert.equal(created.topics[0].errorCode, ErrorCode.NONE);
  });

  Deno.test.afterAll(() => broker.stop());
}

function test(name: string, run: (client: RawClient) => Promise<void>): void {
  Deno.test({
    name,
    ignore,
    fn: async () => {
      using client = await RawClient.connect(broker.port);
      await run(client);
      const { errorCode } = await client.call(listGroupsRequest, listGroupsResponse, 0, {
        statesFilter: [],
        typesFilter: [],
      });
      assert.equal(errorCode, ErrorCode.NONE, "the broker goes on");
      assert.ok(!broker.logs().includes('"level":"error"'), broker.logs());
    },
  });
}

async function residentBytes({ pid }: BrokerProcess): Promise<number> {
  const { stdout } = await new Deno.Command("cat", { args: [`/proc/${pid()}/status`] }).output();
  return Number(/VmRSS:\s*(\d+) kB/.exec(new TextDecoder().decode(stdout))?.[1]) * 1024;
}

async function groupsOf(client: RawClient): Promise<string[]> {
  const listed = await client.call(listGroupsRequest, listGroupsResponse, 4, { statesFilter: [], typesFilter: [] });
  return listed.groups.map(({ groupId }) => groupId);
}

test("members that nobody knows are told so, in every version", async (client) => {
  const [groupId, memberId, generationId] = ["unknown", "nobody", 3];
  const sync = { groupId, memberId, generationId, protocolType: "consumer", protocolName: "range", assignments: [] };
  for (let version = 0; version <= 4; version++) {
    const beat = await client.call(heartbeatRequest, heartbeatResponse, version, { groupId, memberId, generationId });
    assert.equal(beat.errorCode, ErrorCode.UNKNOWN_MEMBER_ID, `Heartbeat ${version}`);
  }
  for (let version = 0; version <= 5; version++) {
    const synced = await client.call(syncGroupRequest, syncGroupResponse, version, sync);
    assert.equal(synced.errorCode, ErrorCode.UNKNOWN_MEMBER_ID, `SyncGroup ${version}`);
    const left = await client.call(leaveGroupRequest, leaveGroupResponse, version, leaveOf(groupId, memberId));
    const code = version < 3 ? left.errorCode : left.members[0].errorCode;
    assert.equal(code, ErrorCode.UNKNOWN_MEMBER_ID, `LeaveGroup ${version}`);
  }
  for (let version = 0; version <= 9; version++) {
    const joined = await client.call(joinGroupRequest, joinGroupResponse, version, joinOf(groupId, { memberId }));
    assert.equal(joined.errorCode, ErrorCode.UNKNOWN_MEMBER_ID, `JoinGroup ${version}`);
  }
  for (let version = 1; version <= 9; version++) {
    const commit = commitOf(groupId, TOPIC, { 0: { offset: 1 } }, { memberId, generationId });
    const committed = await client.call(offsetCommitRequest, offsetCommitResponse, version, commit);
    // From version 9 on a commit may come from a member of either protocol, and names what is missing.
    const missing = version < 9 ? ErrorCode.ILLEGAL_GENERATION : ErrorCode.GROUP_ID_NOT_FOUND;
    assert.equal(committed.topics[0].partitions[0].errorCode, missing, `OffsetCommit ${version}`);
  }
  assert.ok(!(await groupsOf(client)).includes(groupId), "nothing of this made a group");
});

test("commits to partitions that are not there, or with too much metadata, are refused one by one", async (client) => {
  const commit = commitOf("limits", TOPIC, {
    0: { offset: 1, metadata: "x".repeat(4096) },
    1: { offset: 1, metadata: "x".repeat(4097) },
    2: { offset: 1, metadata: "x".repeat(32_767) },
    9: { offset: 1 },
  });
  const { topics } = await client.call(offsetCommitRequest, offsetCommitResponse, 7, commit);
  assert.deepEqual(topics[0].partitions.map(({ errorCode }) => errorCode), [
    ErrorCode.NONE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ]);
});

test("members that say giant things of themselves fill the group, not the broker", async () => {
  const metadata = new Uint8Array(15 * MIB);
  const clients = await Promise.all(Array.from({ length: 6 }, () => RawClient.connect(broker.port)));
  try {
    const before = await residentBytes(broker);
    const codes = await Promise.all(clients.map(async (client) => {
      await client.send(joinGroupRequest, 3, joinOf("giants", { metadata, sessionTimeoutMs: 1_000 }));
      return (await client.receive(joinGroupResponse, 3)).body.errorCode;
    }));
    const refused = codes.filter((code) => code === ErrorCode.GROUP_MAX_SIZE_REACHED).length;
    assert.equal(refused, 2, `${codes}`);
    const grown = await residentBytes(broker) - before;
    assert.ok(grown < 500 * MIB, `${grown >> 20} MiB more`);
  } finally {
    for (const client of clients) client.close();
  }
  using client = await RawClient.connect(broker.port);
  // Their sessions end, and then there is room again.
  const joinsAgain = async () => {
    const joined = await client.call(joinGroupRequest, joinGroupResponse, 3, joinOf("giants", { metadata }));
    return joined.errorCode === ErrorCode.NONE;
  };
  await until(joinsAgain, "room in the group");
});

test("ten thousand members of one group are served with bounded memory", async (client) => {
  const groupId = "crowd";
  const before = await residentBytes(broker);
  const connections = await Promise.all(Array.from({ length: 100 }, () => RawClient.connect(broker.port)));
  try {
    const metadata = new Uint8Array(200);
    const join = (connection: RawClient) => connection.send(joinGroupRequest, 3, joinOf(groupId, { metadata }));
    await Promise.all(connections.map(async (connection) => {
      for (let index = 0; index < 100; index++) await join(connection);
    }));
    const joined = (await Promise.all(connections.map(async (connection) => {
      const replies = [];
      for (let index = 0; index < 100; index++) replies.push((await connection.receive(joinGroupResponse, 3)).body);
      return replies;
    }))).flat();
    assert.ok(joined.every(({ errorCode }) => errorCode === ErrorCode.NONE));
    assert.equal(new Set(joined.map(({ memberId }) => memberId)).size, 10_000);
    assert.equal(new Set(joined.map(({ generationId }) => generationId)).size, 1);
    const leader = joined.find(({ memberId, leader }) => memberId === leader)!;
    assert.equal(leader.members.length, 10_000);
    const assignments = joined.map(({ memberId }) => ({ memberId, assignment: new TextEncoder().encode(memberId) }));
    const { generationId } = leader;
    const sync = { groupId, generationId, memberId: leader.memberId, assignments };
    const synced = await client.call(syncGroupRequest, syncGroupResponse, 2, sync);
    assert.equal(synced.errorCode, ErrorCode.NONE);
    for (const { memberId } of joined.slice(0, 2_000)) {
      const own = await client.call(syncGroupRequest, syncGroupResponse, 2, { ...sync, memberId, assignments: [] });
      assert.equal(new TextDecoder().decode(own.assignment), memberId);
      const beat = await client.call(heartbeatRequest, heartbeatResponse, 2, { groupId, memberId, generationId });
      assert.equal(beat.errorCode, ErrorCode.NONE);
    }
    const described = await client.call(describeGroupsRequest, describeGroupsResponse, 3, {
      groups: [groupId],
      includeAuthorizedOperations: false,
    });
    assert.equal(described.groups[0].members.length, 10_000);
    const grown = await residentBytes(broker) - before;
    assert.ok(grown < 300 * MIB, `${grown >> 20} MiB more`);
  } finally {
    for (const connection of connections) connection.close();
  }
});

test("thousands of names of groups leave nothing behind", async (client) => {
  const before = await groupsOf(client);
  const count = 5_000;
  const ask = async (index: number) => {
    const groupId = `name-${index}`;
    await client.send(joinGroupRequest, 5, joinOf(groupId, { sessionTimeoutMs: 500 }));
    await client.send(heartbeatRequest, 0, { groupId, memberId: "nobody", generationId: 1 });
    assert.equal((await client.receive(joinGroupResponse, 5)).body.errorCode, ErrorCode.MEMBER_ID_REQUIRED);
    assert.equal((await client.receive(heartbeatResponse, 0)).body.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
  };
  for (let index = 0; index < count; index++) await ask(index);
  const isGone = async () => (await groupsOf(client)).every((groupId) => before.includes(groupId));
  await until(isGone, "the groups to be forgotten");
});

test("what is no subscription is passed on as it is, and taken for one of everything", async (client) => {
  const random = new SeededRandom(7);
  const groups = Array.from({ length: 40 }, (_, index) => ({
    groupId: `malformed-${index}`,
    metadata: Uint8Array.from({ length: random.below(50) }, () => random.chance(0.5) ? 255 : random.below(4)),
  }));
  const groupInstanceId = "i";
  for (const { groupId, metadata } of groups) {
    await client.send(joinGroupRequest, 5, joinOf(groupId, { metadata, groupInstanceId }));
  }
  const joins: ValueOf<typeof joinGroupResponse>[] = [];
  for (const _ of groups) joins.push((await client.receive(joinGroupResponse, 5)).body);
  for (const [index, { groupId, metadata }] of groups.entries()) {
    const { memberId, generationId, members } = joins[index];
    assert.deepEqual(members.map((member) => member.metadata), [metadata]);
    const assignments = [{ memberId, assignment: metadata }];
    const sync = { groupId, memberId, generationId, groupInstanceId, assignments };
    const synced = await client.call(syncGroupRequest, syncGroupResponse, 3, sync);
    assert.deepEqual(synced.assignment, metadata);
    const topics = [{ name: TOPIC, partitions: [{ partitionIndex: 0 }] }];
    const deleted = await client.call(offsetDeleteRequest, offsetDeleteResponse, 0, { groupId, topics });
    const code = deleted.topics[0].partitions[0].errorCode;
    assert.equal(code, subscribedTopics(metadata) === null ? ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC : ErrorCode.NONE);
  }
});

Deno.test({
  name: "a group is no larger than group.max.size, and who is refused is told why",
  ignore,
  fn: async () => {
    const small = await startBroker({
      settings: { "group.max.size": "20", "group.initial.rebalance.delay.ms": "300" },
    });
    try {
      using client = await RawClient.connect(small.port);
      const beat = () =>
        client.call(heartbeatRequest, heartbeatResponse, 0, { groupId: "g", memberId: "m", generationId: 1 });
      const isLoaded = async () => (await beat()).errorCode !== ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
      await until(isLoaded, "groups to be served");
      for (let index = 0; index < 50; index++) await client.send(joinGroupRequest, 3, joinOf("g"));
      const codes: number[] = [];
      for (let index = 0; index < 50; index++) codes.push((await client.receive(joinGroupResponse, 3)).body.errorCode);
      assert.equal(codes.filter((code) => code === ErrorCode.NONE).length, 20);
      assert.equal(codes.filter((code) => code === ErrorCode.GROUP_MAX_SIZE_REACHED).length, 30);
    } finally {
      await small.stop();
    }
  },
});
