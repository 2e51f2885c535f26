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
  broker: Pick<Broker, "nodeId" | "config">,
  { listener }: Pick<RequestContext, "listener">,
): BrokerAddress[] {
  const { advertisedHost: host, advertisedPort: port } = listener;
  return [{ nodeId: broker.nodeId, host, port, rack: broker.config.get("broker.rack") }];
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
  broker: Pick<Broker, "nodeId" | "partitions">,
  topic: Pick<Topic, "name">,
  index: number,
): PartitionPlace {
  const led = broker.partitions.get(topic.name, index);
  if (led === undefined) {
    return {
      errorCode: ErrorCode.LEADER_NOT_AVAILABLE,
      leaderId: -1,
      leaderEpoch: -1,
      replicaNodes: [broker.nodeId],
      isrNodes: [],
      offlineReplicas: [broker.nodeId],
    };
  }
  return {
    errorCode: ErrorCode.NONE,
    leaderId: broker.nodeId,
    leaderEpoch: led.leaderEpoch,
    replicaNodes: [broker.nodeId],
    isrNodes: [broker.nodeId],
    offlineReplicas: [],
  };
}
