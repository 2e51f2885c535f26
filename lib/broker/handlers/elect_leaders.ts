/**
 * ElectLeaders: brings partitions back to the brokers that somebody chose for them by hand. Where nobody did, and where
 * the chosen one leads already, no election is needed. An unclean election has no meaning here: there is one copy, and
 * whichever broker takes over a partition has all of it.
 */

import { ErrorCode } from "../../errors.ts";
import { electLeadersRequest, electLeadersResponse } from "../../protocol/messages/elect_leaders.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { type Refusal, refuse } from "../refusal.ts";

type Request = ValueOf<typeof electLeadersRequest>;
type Response = InputOf<typeof electLeadersResponse>;
type ElectingBroker = Pick<Broker, "cluster" | "topics">;

const ElectionType = { preferred: 0, unclean: 1 } as const;

export function electLeadersHandler(broker: ElectingBroker): Handler<Request, Response> {
  return {
    request: electLeadersRequest,
    response: electLeadersResponse,
    async handle({ electionType, topicPartitions, timeoutMs }) {
      if (electionType !== ElectionType.preferred && electionType !== ElectionType.unclean) {
        return { throttleTimeMs: 0, errorCode: ErrorCode.INVALID_REQUEST, replicaElectionResults: [] };
      }
      const asked = topicPartitions ?? Array.from(broker.topics.all(), ({ name, partitionCount }) => ({
        topic: name,
        partitions: Array.from({ length: partitionCount }, (_, index) => index),
      }));
      const replicaElectionResults = await Promise.all(asked.map(async ({ topic, partitions }) => ({
        topic,
        partitionResult: (await Promise.all(partitions.map(async (partitionId) => {
          const refusal = await elect(broker, topic, partitionId, { electionType, timeoutMs });
          const errorCode = refusal?.errorCode ?? ErrorCode.NONE;
          return { partitionId, errorCode, errorMessage: refusal?.message ?? null };
        }))).filter(({ errorCode }) => topicPartitions !== null || errorCode !== ErrorCode.ELECTION_NOT_NEEDED),
      })));
      return {
        throttleTimeMs: 0,
        errorCode: ErrorCode.NONE,
        replicaElectionResults: replicaElectionResults.filter(({ partitionResult }) => partitionResult.length > 0),
      };
    },
  };
}

async function elect(
  { cluster, topics }: ElectingBroker,
  topic: string,
  partition: number,
  { electionType, timeoutMs }: { readonly electionType: number; readonly timeoutMs: number },
): Promise<Refusal | null> {
  const place = cluster.placeOf(topic, partition);
  if (place === null || partition >= (topics.get(topic)?.partitionCount ?? 0)) {
    return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `there is no partition ${partition} of topic ${topic}`);
  }
  const isLed = cluster.isAlive(place.nodeId);
  if (electionType === ElectionType.unclean) {
    return isLed
      ? refuse(ErrorCode.ELECTION_NOT_NEEDED, "the partition has a leader")
      : refuse(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "the controller is about to name another broker");
  }
  const { chosen } = place;
  if (chosen === null || (chosen === place.nodeId && isLed)) {
    return refuse(ErrorCode.ELECTION_NOT_NEEDED, "the partition is where it should be");
  }
  if (!cluster.isAlive(chosen)) {
    return refuse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, `broker ${chosen} is not alive`);
  }
  await cluster.chooseLeaders([{ topic, partition, nodeId: chosen }]);
  const isThere = () => cluster.placeOf(topic, partition)?.nodeId === chosen;
  return await cluster.eventually(isThere, timeoutMs)
    ? null
    : refuse(ErrorCode.REQUEST_TIMED_OUT, `broker ${chosen} does not lead the partition yet`);
}
