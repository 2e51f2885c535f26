/**
 * AlterPartitionReassignments: chooses by hand which broker leads a partition. Its one replica moves there, and comes back
 * whenever it can; null takes a choice back that is not carried out yet.
 */

import { ErrorCode } from "../../errors.ts";
import {
  alterPartitionReassignmentsRequest,
  alterPartitionReassignmentsResponse,
} from "../../protocol/messages/alter_partition_reassignments.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { ChosenLeader } from "../cluster.ts";
import type { Handler } from "../handler.ts";
import { isRefusal, type Refusal, refuse } from "../refusal.ts";

type Request = ValueOf<typeof alterPartitionReassignmentsRequest>;
type Response = InputOf<typeof alterPartitionReassignmentsResponse>;
type ReassigningBroker = Pick<Broker, "cluster" | "topics">;

export function alterPartitionReassignmentsHandler(broker: ReassigningBroker): Handler<Request, Response> {
  return {
    request: alterPartitionReassignmentsRequest,
    response: alterPartitionReassignmentsResponse,
    async handle(request) {
      const chosen: ChosenLeader[] = [];
      const responses = request.topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map(({ partitionIndex, replicas }) => {
          const choice = choose(broker, name, partitionIndex, replicas);
          if (isRefusal(choice)) return { partitionIndex, errorCode: choice.errorCode, errorMessage: choice.message };
          chosen.push(choice);
          return { partitionIndex, errorCode: ErrorCode.NONE, errorMessage: null };
        }),
      }));
      if (chosen.length > 0) await broker.cluster.chooseLeaders(chosen);
      const { allowReplicationFactorChange } = request;
      return {
        throttleTimeMs: 0,
        allowReplicationFactorChange,
        errorCode: ErrorCode.NONE,
        errorMessage: null,
        responses,
      };
    },
  };
}

function choose(
  { cluster, topics }: ReassigningBroker,
  topic: string,
  partition: number,
  replicas: readonly number[] | null,
): ChosenLeader | Refusal {
  const partitionCount = topics.get(topic)?.partitionCount ?? 0;
  const place = cluster.placeOf(topic, partition);
  if (partition < 0 || partition >= partitionCount || place === null) {
    return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `there is no partition ${partition} of topic ${topic}`);
  }
  if (replicas === null) {
    if (place.movesTo !== null) return { topic, partition, nodeId: place.nodeId };
    return refuse(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, `partition ${partition} of topic ${topic} does not move`);
  }
  if (replicas.length !== 1) {
    const problem = `a partition has one replica, its leader: expected one broker, not ${replicas.length}`;
    return refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem);
  }
  const [nodeId] = replicas;
  return cluster.isAlive(nodeId)
    ? { topic, partition, nodeId }
    : refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, `there is no live broker ${nodeId}`);
}
