/**
 * DeleteRecords: moves the log start of partitions up to an offset; -1 stands for the high watermark. Answered when the
 * new log start is durable. An offset at or below the present log start changes nothing.
 */

import { ErrorCode } from "../../errors.ts";
import { deleteRecordsRequest, deleteRecordsResponse } from "../../protocol/messages/delete_records.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { absence } from "../leader_hint.ts";
import type { Handler } from "../handler.ts";
import { within } from "../topic_creation.ts";
import { isInternalTopic } from "../topic_name.ts";

type DeleteRecordsRequest = ValueOf<typeof deleteRecordsRequest>;
type DeleteRecordsResponse = InputOf<typeof deleteRecordsResponse>;
type PartitionResult = DeleteRecordsResponse["topics"][number]["partitions"][number];
type TrimmingBroker = Pick<Broker, "clock" | "partitions" | "topics">;

export function deleteRecordsHandler(
  broker: TrimmingBroker,
): Handler<DeleteRecordsRequest, DeleteRecordsResponse> {
  return {
    request: deleteRecordsRequest,
    response: deleteRecordsResponse,
    async handle(request) {
      const topics = await Promise.all(request.topics.map(async ({ name, partitions }) => ({
        name,
        partitions: await Promise.all(partitions.map(({ partitionIndex, offset }) => {
          const late = refused(partitionIndex, ErrorCode.REQUEST_TIMED_OUT);
          return within(broker.clock, request.timeoutMs, trim(broker, name, { partitionIndex, offset }), late);
        })),
      })));
      return { throttleTimeMs: 0, topics };
    },
  };
}

async function trim(
  broker: TrimmingBroker,
  name: string,
  { partitionIndex, offset }: { readonly partitionIndex: number; readonly offset: number },
): Promise<PartitionResult> {
  if (isInternalTopic(name)) return refused(partitionIndex, ErrorCode.INVALID_TOPIC_EXCEPTION);
  const topic = broker.topics.get(name);
  const partition = broker.partitions.get(name, partitionIndex);
  if (topic === undefined || partition === undefined) {
    return refused(partitionIndex, absence(broker, name, partitionIndex));
  }
  if (!topic.settings["cleanup.policy"].includes("delete")) {
    return refused(partitionIndex, ErrorCode.POLICY_VIOLATION);
  }
  const log = await partition.log();
  if (typeof log === "number") return refused(partitionIndex, log);
  return { partitionIndex, ...await log.deleteRecords(offset) };
}

function refused(partitionIndex: number, errorCode: ErrorCode): PartitionResult {
  return { partitionIndex, lowWatermark: -1, errorCode };
}
