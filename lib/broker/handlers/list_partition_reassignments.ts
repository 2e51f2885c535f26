/** ListPartitionReassignments: the partitions that are on their way from one broker to another. */

import { ErrorCode } from "../../errors.ts";
import {
  listPartitionReassignmentsRequest,
  listPartitionReassignmentsResponse,
} from "../../protocol/messages/list_partition_reassignments.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof listPartitionReassignmentsRequest>;
type Response = InputOf<typeof listPartitionReassignmentsResponse>;

export function listPartitionReassignmentsHandler(
  { cluster, topics }: Pick<Broker, "cluster" | "topics">,
): Handler<Request, Response> {
  return {
    request: listPartitionReassignmentsRequest,
    response: listPartitionReassignmentsResponse,
    handle(request) {
      const asked = request.topics ?? Array.from(topics.all(), ({ name, partitionCount }) => ({
        name,
        partitionIndexes: Array.from({ length: partitionCount }, (_, index) => index),
      }));
      const moving = asked.map(({ name, partitionIndexes }) => ({
        name,
        partitions: partitionIndexes.flatMap((partitionIndex) => {
          const place = cluster.placeOf(name, partitionIndex);
          if (place === null || place.movesTo === null) return [];
          const { nodeId, movesTo } = place;
          return [{
            partitionIndex,
            replicas: [nodeId, movesTo],
            addingReplicas: [movesTo],
            removingReplicas: [nodeId],
          }];
        }),
      }));
      return {
        throttleTimeMs: 0,
        errorCode: ErrorCode.NONE,
        errorMessage: null,
        topics: moving.filter(({ partitions }) => partitions.length > 0),
      };
    },
  };
}
