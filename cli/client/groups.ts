/** Questions about groups of both protocols, answered in one shape. */

import { ErrorCode } from "../../lib/errors.ts";
import { readAssignment } from "../../lib/groups/consumer_protocol.ts";
import {
  consumerGroupDescribeRequest,
  consumerGroupDescribeResponse,
} from "../../lib/protocol/messages/consumer_group_describe.ts";
import { describeGroupsRequest, describeGroupsResponse } from "../../lib/protocol/messages/describe_groups.ts";
import { listGroupsRequest, listGroupsResponse } from "../../lib/protocol/messages/list_groups.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../lib/protocol/messages/offset_fetch.ts";
import { type ClusterClient, Refused } from "./cluster_client.ts";
import type { PartitionKey } from "./partitions.ts";

/** A group in a list. `coordinator` is a node id. */
export interface ListedGroup {
  readonly groupId: string;
  readonly type: string;
  readonly protocolType: string;
  readonly state: string;
  readonly coordinator: number;
}

export interface DescribedMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly host: string;
  readonly partitions: readonly PartitionKey[];
}

export interface DescribedGroup {
  readonly groupId: string;
  readonly type: "classic" | "consumer";
  readonly state: string;
  readonly assignor: string;
  readonly members: readonly DescribedMember[];
}

/** A committed offset. */
export interface Committed extends PartitionKey {
  readonly offset: number;
  readonly metadata: string;
}

/** All groups of all brokers, by id. */
export async function listGroups(client: ClusterClient): Promise<ListedGroup[]> {
  const groups: ListedGroup[] = [];
  for (const coordinator of await client.nodeIds()) {
    const reply = await client.node(coordinator, listGroupsRequest, listGroupsResponse, {
      statesFilter: [],
      typesFilter: [],
    });
    if (reply.errorCode !== ErrorCode.NONE) throw new Refused(`groups of broker ${coordinator}`, reply.errorCode);
    for (const { groupId, groupType, protocolType, groupState } of reply.groups) {
      groups.push({ groupId, type: groupType.toLowerCase(), protocolType, state: groupState, coordinator });
    }
  }
  return groups.sort((a, b) => a.groupId < b.groupId ? -1 : 1);
}

/** A group of whichever protocol. @throws {Refused} when there is none */
export async function describeGroup(client: ClusterClient, groupId: string): Promise<DescribedGroup> {
  const classic = await client.coordinator(
    groupId,
    describeGroupsRequest,
    describeGroupsResponse,
    { groups: [groupId], includeAuthorizedOperations: false },
    ({ groups }) => groups[0].errorCode,
  );
  const [{ errorCode, errorMessage, groupState, protocolData, members }] = classic.groups;
  if (errorCode === ErrorCode.NONE && groupState !== "Dead") {
    return {
      groupId,
      type: "classic",
      state: groupState,
      assignor: protocolData,
      members: members.map(({ memberId, groupInstanceId, clientId, clientHost, memberAssignment }) => ({
        memberId,
        instanceId: groupInstanceId,
        clientId,
        host: clientHost.replace(/^\//, ""),
        partitions: sorted(
          (readAssignment(memberAssignment) ?? []).flatMap(({ topic, partitions }) =>
            partitions.map((partition) => ({ topic, partition }))
          ),
        ),
      })),
    };
  }
  const consumer = await client.coordinator(
    groupId,
    consumerGroupDescribeRequest,
    consumerGroupDescribeResponse,
    { groupIds: [groupId], includeAuthorizedOperations: false },
    ({ groups }) => groups[0].errorCode,
  );
  const [group] = consumer.groups;
  if (group.errorCode !== ErrorCode.NONE) {
    throw new Refused(`group ${groupId}`, errorCode || ErrorCode.GROUP_ID_NOT_FOUND, errorMessage && null);
  }
  return {
    groupId,
    type: "consumer",
    state: group.groupState,
    assignor: group.assignorName,
    members: group.members.map(({ memberId, instanceId, clientId, clientHost, assignment }) => ({
      memberId,
      instanceId,
      clientId,
      host: clientHost.replace(/^\//, ""),
      partitions: sorted(
        assignment.topicPartitions.flatMap(({ topicName, partitions }) =>
          partitions.map((partition) => ({ topic: topicName, partition }))
        ),
      ),
    })),
  };
}

/** What a group has committed, in order. */
export async function committedOffsets(client: ClusterClient, groupId: string): Promise<Committed[]> {
  const reply = await client.coordinator(
    groupId,
    offsetFetchRequest,
    offsetFetchResponse,
    { groupId, topics: null, groups: [{ groupId, topics: null }], requireStable: false },
    ({ errorCode, groups }) => groups[0]?.errorCode ?? errorCode,
  );
  const code = reply.groups[0]?.errorCode ?? reply.errorCode;
  if (code !== ErrorCode.NONE) throw new Refused(`group ${groupId}`, code);
  const topics = reply.groups[0]?.topics ?? reply.topics;
  return sorted(
    topics.flatMap(({ name, partitions }) =>
      partitions.filter(({ committedOffset }) => committedOffset >= 0).map((one) => ({
        topic: name,
        partition: one.partitionIndex,
        offset: one.committedOffset,
        metadata: one.metadata ?? "",
      }))
    ),
  );
}

function sorted<Key extends PartitionKey>(keys: readonly Key[]): Key[] {
  return [...keys].sort((a, b) => a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1);
}
