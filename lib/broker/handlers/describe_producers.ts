/** DescribeProducers (KIP-664): the producers that a partition's leader remembers, with their open transactions. */

import { ErrorCode } from "../../errors.ts";
import { describeProducersRequest, describeProducersResponse } from "../../protocol/messages/describe_producers.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { absence } from "../leader_hint.ts";
import type { Handler } from "../handler.ts";
import { topicNameProblem } from "../topic_name.ts";

type DescribeProducersRequest = ValueOf<typeof describeProducersRequest>;
type DescribeProducersResponse = InputOf<typeof describeProducersResponse>;
type PartitionProducers = DescribeProducersResponse["topics"][number]["partitions"][number];

export function describeProducersHandler(
  broker: Pick<Broker, "partitions" | "topics">,
): Handler<DescribeProducersRequest, DescribeProducersResponse> {
  return {
    request: describeProducersRequest,
    response: describeProducersResponse,
    async handle(request) {
      const topics = await Promise.all(request.topics.map(async ({ name, partitionIndexes }) => ({
        name,
        partitions: await Promise.all(partitionIndexes.map((index) => describe(broker, name, index))),
      })));
      return { throttleTimeMs: 0, topics };
    },
  };
}

async function describe(
  broker: Pick<Broker, "partitions" | "topics">,
  topic: string,
  partitionIndex: number,
): Promise<PartitionProducers> {
  const nameProblem = topicNameProblem(topic);
  if (nameProblem !== null) return refused(partitionIndex, ErrorCode.INVALID_TOPIC_EXCEPTION, nameProblem);
  const partition = broker.partitions.get(topic, partitionIndex);
  if (partition === undefined) {
    const message = `there is no partition ${partitionIndex} of topic ${topic} here`;
    return refused(partitionIndex, absence(broker, topic, partitionIndex), message);
  }
  const log = await partition.log();
  if (typeof log === "number") return refused(partitionIndex, log, "the partition cannot be opened now");
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    activeProducers: log.activeProducers().map((producer) => ({
      producerId: producer.producerId,
      producerEpoch: producer.producerEpoch,
      lastSequence: producer.window.at(-1)?.lastSequence ?? -1,
      lastTimestamp: producer.lastTimestampMs,
      coordinatorEpoch: producer.coordinatorEpoch,
      currentTxnStartOffset: producer.transactionFirstOffset,
    })),
  };
}

function refused(partitionIndex: number, errorCode: ErrorCode, errorMessage: string): PartitionProducers {
  return { partitionIndex, errorCode, errorMessage, activeProducers: [] };
}
