/**
 * The one list of what this broker serves. Dispatch, ApiVersions and the README's table of APIs come from it.
 */

import type { Broker } from "../broker.ts";
import type { AnyHandler } from "../handler.ts";
import { addOffsetsToTxnHandler } from "./add_offsets_to_txn.ts";
import { addPartitionsToTxnHandler } from "./add_partitions_to_txn.ts";
import { alterConfigsHandler } from "./alter_configs.ts";
import { alterPartitionReassignmentsHandler } from "./alter_partition_reassignments.ts";
import { apiVersionsHandler, type FinalizedFeature } from "./api_versions.ts";
import { consumerGroupDescribeHandler } from "./consumer_group_describe.ts";
import { consumerGroupHeartbeatHandler } from "./consumer_group_heartbeat.ts";
import { createPartitionsHandler } from "./create_partitions.ts";
import { createTopicsHandler } from "./create_topics.ts";
import { deleteGroupsHandler } from "./delete_groups.ts";
import { deleteRecordsHandler } from "./delete_records.ts";
import { deleteTopicsHandler } from "./delete_topics.ts";
import { describeClusterHandler } from "./describe_cluster.ts";
import { describeConfigsHandler } from "./describe_configs.ts";
import { describeGroupsHandler } from "./describe_groups.ts";
import { describeLogDirsHandler } from "./describe_log_dirs.ts";
import { describeProducersHandler } from "./describe_producers.ts";
import { describeTopicPartitionsHandler } from "./describe_topic_partitions.ts";
import { describeTransactionsHandler } from "./describe_transactions.ts";
import { endTxnHandler } from "./end_txn.ts";
import { electLeadersHandler } from "./elect_leaders.ts";
import { fetchHandler } from "./fetch.ts";
import { findCoordinatorHandler } from "./find_coordinator.ts";
import { heartbeatHandler } from "./heartbeat.ts";
import { incrementalAlterConfigsHandler } from "./incremental_alter_configs.ts";
import { initProducerIdHandler } from "./init_producer_id.ts";
import { joinGroupHandler } from "./join_group.ts";
import { leaveGroupHandler } from "./leave_group.ts";
import { listConfigResourcesHandler } from "./list_config_resources.ts";
import { listGroupsHandler } from "./list_groups.ts";
import { listOffsetsHandler } from "./list_offsets.ts";
import { listTransactionsHandler } from "./list_transactions.ts";
import { listPartitionReassignmentsHandler } from "./list_partition_reassignments.ts";
import { metadataHandler } from "./metadata.ts";
import { offsetCommitHandler } from "./offset_commit.ts";
import { offsetDeleteHandler } from "./offset_delete.ts";
import { offsetFetchHandler } from "./offset_fetch.ts";
import { offsetForLeaderEpochHandler } from "./offset_for_leader_epoch.ts";
import { produceHandler } from "./produce.ts";
import { syncGroupHandler } from "./sync_group.ts";
import { txnOffsetCommitHandler } from "./txn_offset_commit.ts";
import { writeTxnMarkersHandler } from "./write_txn_markers.ts";

/** Features whose levels the brokers of a cluster have agreed on. */
const features: readonly FinalizedFeature[] = [
  // 2: every end of a transaction raises the producer's epoch, and partitions join by being written to (KIP-890).
  { name: "transaction.version", minVersion: 0, maxVersion: 2 },
  // 1: groups of the consumer protocol (KIP-848).
  { name: "group.version", minVersion: 0, maxVersion: 1 },
];

/** Handlers of all APIs, ApiVersions included. */
export function handlersOf(broker: Broker): AnyHandler[] {
  const handlers: AnyHandler[] = [
    produceHandler(broker),
    fetchHandler(broker),
    listOffsetsHandler(broker),
    metadataHandler(broker),
    offsetCommitHandler(broker),
    offsetFetchHandler(broker),
    findCoordinatorHandler(broker),
    joinGroupHandler(broker),
    heartbeatHandler(broker),
    leaveGroupHandler(broker),
    syncGroupHandler(broker),
    describeGroupsHandler(broker),
    listGroupsHandler(broker),
    createTopicsHandler(broker),
    deleteTopicsHandler(broker),
    deleteRecordsHandler(broker),
    initProducerIdHandler(broker),
    offsetForLeaderEpochHandler(broker),
    addPartitionsToTxnHandler(broker),
    addOffsetsToTxnHandler(broker),
    endTxnHandler(broker),
    writeTxnMarkersHandler(broker),
    txnOffsetCommitHandler(broker),
    describeConfigsHandler(broker),
    alterConfigsHandler(broker),
    describeLogDirsHandler(broker),
    createPartitionsHandler(broker),
    deleteGroupsHandler(broker),
    incrementalAlterConfigsHandler(broker),
    electLeadersHandler(broker),
    alterPartitionReassignmentsHandler(broker),
    listPartitionReassignmentsHandler(broker),
    offsetDeleteHandler(broker),
    describeClusterHandler(broker),
    consumerGroupHeartbeatHandler(broker),
    consumerGroupDescribeHandler(broker),
    describeProducersHandler(broker),
    describeTransactionsHandler(broker),
    listTransactionsHandler(broker),
    listConfigResourcesHandler(broker),
    describeTopicPartitionsHandler(broker),
  ];
  return [...handlers, apiVersionsHandler(handlers, features)];
}
