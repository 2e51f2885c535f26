/**
 * What clients are told about where partitions and brokers are. Metadata, DescribeTopicPartitions, DescribeCluster and
 * FindCoordinator all answer from here, so that they never disagree: every address is the advertised one of the listener
 * that the request came in on.
 */

import { ErrorCode } from "../errors.ts";
import type { Broker } from "./broker.ts";
import type { RequestContext } from "./handler.ts";
import type { Topic } from "./topics.ts";

/** One live broker as the asking client can reach it. */
export interface BrokerAddress {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly rack: string | null;
}

/** The live brokers, by the addresses of the listener that was asked. */
export function brokerAddresses(
  { cluster }: Pick<Broker, "cluster">,
  { listener }: Pick<RequestContext, "listener">,
): BrokerAddress[] {
  return cluster.addresses(listener.name);
}

/** A partition's place. `leaderId` is -1 only together with an error. */
export interface PartitionPlace {
  readonly errorCode: ErrorCode;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly replicaNodes: number[];
  readonly isrNodes: number[];
  readonly offlineReplicas: number[];
}

/** Where partition `index` of `topic` is. Its one replica is its leader. */
export function placeOf(
  { cluster, nodeId }: Pick<Broker, "cluster" | "nodeId">,
  topic: Pick<Topic, "name">,
  index: number,
): PartitionPlace {
  const place = cluster.placeOf(topic.name, index);
  if (place !== null && cluster.isAlive(place.nodeId)) {
    return {
      errorCode: ErrorCode.NONE,
      leaderId: place.nodeId,
      leaderEpoch: place.leaderEpoch,
      replicaNodes: [place.nodeId],
      isrNodes: [place.nodeId],
      offlineReplicas: [],
    };
  }
  const replica = place?.nodeId ?? nodeId;
  return {
    errorCode: ErrorCode.LEADER_NOT_AVAILABLE,
    leaderId: -1,
    leaderEpoch: -1,
    replicaNodes: [replica],
    isrNodes: [],
    offlineReplicas: [replica],
  };
}
