/**
 * Bodies of messages with their bytes, worked out by hand from the published layouts: chiefly of the old versions that
 * no list of Kafka 4 knows any more, and of the layouts that are easy to get wrong.
 *
 * Bytes are hexadecimal; blanks separate fields; `'text'` stands for the bytes of ASCII text.
 */

import { describeConfigsResponse } from "../../lib/protocol/messages/describe_configs.ts";
import { describeLogDirsResponse } from "../../lib/protocol/messages/describe_log_dirs.ts";
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from "../../lib/protocol/messages/describe_topic_partitions.ts";
import { consumerGroupHeartbeatResponse } from "../../lib/protocol/messages/consumer_group_heartbeat.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../lib/protocol/messages/delete_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../lib/protocol/messages/list_offsets.ts";
import { metadataRequest } from "../../lib/protocol/messages/metadata.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../lib/protocol/messages/offset_commit.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../lib/protocol/messages/offset_fetch.ts";
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from "../../lib/protocol/messages/offset_for_leader_epoch.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { writeTxnMarkersRequest } from "../../lib/protocol/messages/write_txn_markers.ts";
import type { AnyMessage, InputOf, Message } from "../../lib/protocol/schema.ts";

/** A message, one value of it, and the bytes that say it in one version. */
export interface GoldenBody {
  readonly message: AnyMessage;
  readonly version: number;
  readonly value: unknown;
  readonly bytes: Uint8Array;
}

/** The bytes that a line of hexadecimal digits and quoted text means. */
export function golden(text: string): Uint8Array {
  const parts = text.match(/'[^']*'|[0-9a-f]{2}|\S/g) ?? [];
  return Uint8Array.from(parts.flatMap((part) => {
    if (part.startsWith("'")) return [...new TextEncoder().encode(part.slice(1, -1))];
    if (part.length !== 2) throw new TypeError(`"${part}" in golden bytes`);
    return [parseInt(part, 16)];
  }));
}

function body<M extends Message<unknown, unknown>>(
  message: M,
  version: number,
  value: InputOf<M>,
  text: string,
): GoldenBody {
  return { message, version, value, bytes: golden(text) };
}

const ID = "00112233-4455-6677-8899-aabbccddeeff";

/** Old layouts. */
const oldVersions: GoldenBody[] = [
  body(
    produceRequest,
    0,
    {
      acks: -1,
      timeoutMs: 1500,
      topicData: [{ topicId: ID, name: "t", partitionData: [{ index: 3, records: golden("aabb") }] }],
    },
    "ffff 000005dc  00000001 0001 't'  00000001 00000003 00000002 aabb",
  ),
  body(
    produceResponse,
    0,
    {
      responses: [{
        name: "t",
        topicId: ID,
        partitionResponses: [{ index: 3, errorCode: 2, baseOffset: 7, recordErrors: [] }],
      }],
    },
    "00000001 0001 't'  00000001 00000003 0002 0000000000000007",
  ),
  body(
    produceResponse,
    2,
    {
      responses: [{
        name: "t",
        topicId: ID,
        partitionResponses: [{ index: 3, errorCode: 0, baseOffset: 7, recordErrors: [] }],
      }],
      throttleTimeMs: 9,
    },
    "00000001 0001 't'  00000001 00000003 0000 0000000000000007 ffffffffffffffff  00000009",
  ),
  body(
    fetchRequest,
    0,
    {
      maxWaitMs: 100,
      minBytes: 1,
      topics: [{ topic: "t", topicId: ID, partitions: [{ partition: 0, fetchOffset: 5, partitionMaxBytes: 4096 }] }],
      forgottenTopicsData: [],
    },
    "ffffffff 00000064 00000001  00000001 0001 't'  00000001 00000000 0000000000000005 00001000",
  ),
  body(
    fetchRequest,
    3,
    {
      maxWaitMs: 100,
      minBytes: 1,
      maxBytes: 65536,
      topics: [{ topic: "t", topicId: ID, partitions: [{ partition: 0, fetchOffset: 5, partitionMaxBytes: 4096 }] }],
      forgottenTopicsData: [],
    },
    "ffffffff 00000064 00000001 00010000  00000001 0001 't'  00000001 00000000 0000000000000005 00001000",
  ),
  body(
    fetchResponse,
    0,
    {
      throttleTimeMs: 4,
      errorCode: 0,
      responses: [{
        topic: "t",
        topicId: ID,
        partitions: [{
          partitionIndex: 0,
          errorCode: 1,
          highWatermark: 6,
          abortedTransactions: null,
          records: golden(""),
        }],
      }],
    },
    "00000001 0001 't'  00000001 00000000 0001 0000000000000006 00000000",
  ),
  body(
    listOffsetsRequest,
    0,
    {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: "t", partitions: [{ partitionIndex: 2, timestamp: -1, maxNumOffsets: 10 }] }],
      timeoutMs: 0,
    },
    "ffffffff  00000001 0001 't'  00000001 00000002 ffffffffffffffff 0000000a",
  ),
  body(
    listOffsetsResponse,
    0,
    {
      throttleTimeMs: 0,
      topics: [{ name: "t", partitions: [{ partitionIndex: 2, errorCode: 0, oldStyleOffsets: [258, 0] }] }],
    },
    "00000001 0001 't'  00000001 00000002 0000 00000002 0000000000000102 0000000000000000",
  ),
  body(
    offsetForLeaderEpochRequest,
    0,
    { topics: [{ topic: "t", partitions: [{ partition: 1, leaderEpoch: 4 }] }] },
    "00000001 0001 't'  00000001 00000001 00000004",
  ),
  body(
    offsetForLeaderEpochResponse,
    0,
    {
      throttleTimeMs: 0,
      topics: [{ topic: "t", partitions: [{ errorCode: 0, partition: 1, leaderEpoch: 3, endOffset: 8 }] }],
    },
    "00000001 0001 't'  00000001 0000 00000001 0000000000000008",
  ),
  body(
    offsetForLeaderEpochResponse,
    1,
    {
      throttleTimeMs: 0,
      topics: [{ topic: "t", partitions: [{ errorCode: 0, partition: 1, leaderEpoch: 3, endOffset: 8 }] }],
    },
    "00000001 0001 't'  00000001 0000 00000001 00000003 0000000000000008",
  ),
  body(
    createTopicsRequest,
    0,
    {
      topics: [{
        name: "t",
        numPartitions: -1,
        replicationFactor: -1,
        assignments: [{ partitionIndex: 0, brokerIds: [1, 2] }],
        configs: [{ name: "k", value: null }],
      }],
      timeoutMs: 1000,
      validateOnly: true,
    },
    "00000001 0001 't' ffffffff ffff  00000001 00000000 00000002 00000001 00000002  00000001 0001 'k' ffff  000003e8",
  ),
  body(
    createTopicsResponse,
    0,
    {
      throttleTimeMs: 0,
      topics: [{ name: "t", topicId: ID, errorCode: 36, errorMessage: "exists", configs: null }],
    },
    "00000001 0001 't' 0024",
  ),
  body(
    createTopicsResponse,
    1,
    { throttleTimeMs: 0, topics: [{ name: "t", topicId: ID, errorCode: 36, errorMessage: null, configs: null }] },
    "00000001 0001 't' 0024 ffff",
  ),
  body(deleteTopicsRequest, 0, { topics: [], topicNames: ["t"], timeoutMs: 1 }, "00000001 0001 't' 00000001"),
  body(
    deleteTopicsResponse,
    0,
    { throttleTimeMs: 5, responses: [{ name: "t", topicId: ID, errorCode: 3 }] },
    "00000001 0001 't' 0003",
  ),
  body(
    offsetCommitRequest,
    0,
    {
      groupId: "g",
      memberId: "",
      topics: [{
        name: "t",
        topicId: ID,
        partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: null }],
      }],
    },
    "0001 'g'  00000001 0001 't'  00000001 00000000 0000000000000005 ffff",
  ),
  body(
    offsetCommitRequest,
    1,
    {
      groupId: "g",
      generationIdOrMemberEpoch: 2,
      memberId: "m",
      topics: [{
        name: "t",
        topicId: ID,
        partitions: [{ partitionIndex: 0, committedOffset: 5, commitTimestamp: 1, committedMetadata: "x" }],
      }],
    },
    "0001 'g' 00000002 0001 'm'  00000001 0001 't'  00000001 00000000 0000000000000005 0000000000000001 0001 'x'",
  ),
  body(
    offsetCommitResponse,
    0,
    {
      throttleTimeMs: 0,
      topics: [{ name: "t", topicId: ID, partitions: [{ partitionIndex: 0, errorCode: 12 }] }],
    },
    "00000001 0001 't'  00000001 00000000 000c",
  ),
  body(
    offsetFetchRequest,
    0,
    { groupId: "g", topics: [{ name: "t", partitionIndexes: [0, 1] }], groups: [] },
    "0001 'g'  00000001 0001 't'  00000002 00000000 00000001",
  ),
  body(
    offsetFetchResponse,
    0,
    {
      throttleTimeMs: 0,
      topics: [{
        name: "t",
        partitions: [{ partitionIndex: 0, committedOffset: -1, metadata: "", errorCode: 0 }],
      }],
      groups: [],
    },
    "00000001 0001 't'  00000001 00000000 ffffffffffffffff 0000 0000",
  ),
  body(
    describeConfigsResponse,
    0,
    {
      throttleTimeMs: 0,
      results: [{
        errorCode: 0,
        errorMessage: null,
        resourceType: 2,
        resourceName: "t",
        configs: [{
          name: "k",
          value: "v",
          readOnly: false,
          isDefault: true,
          configSource: 5,
          isSensitive: false,
          synonyms: [],
          documentation: null,
        }],
      }],
    },
    "00000000  00000001 0000 ffff 02 0001 't'  00000001 0001 'k' 0001 'v' 00 01 00",
  ),
  body(
    describeLogDirsResponse,
    0,
    {
      throttleTimeMs: 0,
      errorCode: 0,
      results: [{
        errorCode: 0,
        logDir: "/d",
        topics: [{
          name: "t",
          partitions: [{ partitionIndex: 0, partitionSize: 9, offsetLag: 0, isFutureKey: false }],
        }],
      }],
    },
    "00000000  00000001 0000 0002 '/d'  00000001 0001 't'  00000001 00000000 0000000000000009 0000000000000000 00",
  ),
  body(
    writeTxnMarkersRequest,
    0,
    {
      markers: [{
        producerId: 1,
        producerEpoch: 2,
        transactionResult: true,
        topics: [{ name: "t", partitionIndexes: [0] }],
        coordinatorEpoch: 3,
      }],
    },
    "00000001 0000000000000001 0002 01  00000001 0001 't' 00000001 00000000  00000003",
  ),
];

/** Flexible layouts: compact lengths, null structs, tagged fields. */
const flexibleVersions: GoldenBody[] = [
  body(
    writeTxnMarkersRequest,
    1,
    {
      markers: [{
        producerId: 1,
        producerEpoch: 2,
        transactionResult: true,
        topics: [{ name: "t", partitionIndexes: [0] }],
        coordinatorEpoch: 3,
      }],
    },
    "02 0000000000000001 0002 01  02 02't' 02 00000000 00  00000003 00  00",
  ),
  body(metadataRequest, 1, { topics: null, includeTopicAuthorizedOperations: false }, "ffffffff"),
  body(metadataRequest, 12, { topics: null, includeTopicAuthorizedOperations: false }, "00 01 00 00"),
  body(
    metadataRequest,
    12,
    { topics: [{ topicId: ID, name: null }], allowAutoTopicCreation: false, includeTopicAuthorizedOperations: true },
    "02 00112233445566778899aabbccddeeff 00 00  00 01 00",
  ),
  body(
    describeTopicPartitionsRequest,
    0,
    { topics: [{ name: "t" }] },
    "02 02't' 00  000007d0 ff 00",
  ),
  body(
    describeTopicPartitionsRequest,
    0,
    { topics: [], responsePartitionLimit: 1, cursor: { topicName: "t", partitionIndex: 4 } },
    "01  00000001 01 02't' 00000004 00  00",
  ),
  body(
    describeTopicPartitionsResponse,
    0,
    { throttleTimeMs: 0, topics: [], nextCursor: { topicName: "t", partitionIndex: 4 } },
    "00000000 01  01 02't' 00000004 00  00",
  ),
  body(
    consumerGroupHeartbeatResponse,
    0,
    { throttleTimeMs: 0, errorCode: 0, memberId: "m", memberEpoch: 1, heartbeatIntervalMs: 5000 },
    "00000000 0000 00 02'm' 00000001 00001388 ff 00",
  ),
  body(
    consumerGroupHeartbeatResponse,
    0,
    {
      throttleTimeMs: 0,
      errorCode: 0,
      memberId: "m",
      memberEpoch: 1,
      heartbeatIntervalMs: 5000,
      assignment: { topicPartitions: [{ topicId: ID, partitions: [7] }] },
    },
    "00000000 0000 00 02'm' 00000001 00001388  01 02 00112233445566778899aabbccddeeff 02 00000007 00  00  00",
  ),
  body(
    fetchResponse,
    12,
    {
      throttleTimeMs: 0,
      errorCode: 0,
      sessionId: 0,
      responses: [{
        topic: "t",
        topicId: ID,
        partitions: [{
          partitionIndex: 0,
          errorCode: 6,
          highWatermark: -1,
          currentLeader: { leaderId: 1, leaderEpoch: 9 },
          abortedTransactions: null,
          records: null,
        }],
      }],
    },
    "00000000 0000 00000000  02 02't'  02 00000000 0006 ffffffffffffffff ffffffffffffffff ffffffffffffffff " +
      "00 ffffffff 00  01 01 09 00000001 00000009 00  00  00",
  ),
  body(
    fetchResponse,
    16,
    {
      throttleTimeMs: 0,
      errorCode: 0,
      responses: [],
      nodeEndpoints: [{ nodeId: 1, host: "h", port: 9092 }],
    },
    // One tagged field: tag 0, 13 bytes, one endpoint whose rack is null and which has no tagged fields.
    "00000000 0000 00000000 01  01 00 0d  02 00000001 02'h' 00002384 00 00",
  ),
];

export const messageBodies: readonly GoldenBody[] = [...oldVersions, ...flexibleVersions];
