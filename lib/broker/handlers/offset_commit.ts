/** OffsetCommit (0–10): answered when the offsets are durable. Each partition is judged by itself. */

import { ErrorCode } from "../../errors.ts";
import type { OffsetToCommit } from "../../groups/coordinator.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../protocol/messages/offset_commit.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";

type Request = ValueOf<typeof offsetCommitRequest>;
type Response = InputOf<typeof offsetCommitResponse>;

/** From here on members of the consumer protocol may commit (KIP-848). */
const EPOCHS_SINCE = 9;
/** From here on topics are named by their ids. */
const TOPIC_IDS_SINCE = 10;

/** Serves OffsetCommit. */
export function offsetCommitHandler(broker: Pick<Broker, "groups" | "topics">): Handler<Request, Response> {
  return {
    request: offsetCommitRequest,
    response: offsetCommitResponse,
    handle: (request, { apiVersion }) => later(commit(broker, request, apiVersion)),
  };
}

async function commit(
  { groups, topics }: Pick<Broker, "groups" | "topics">,
  request: Request,
  apiVersion: number,
): Promise<Response> {
  const offsets: OffsetToCommit[] = [];
  const places: { errorCode: number }[] = [];
  const answered = request.topics.map(({ name, topicId, partitions }) => {
    const hasId = apiVersion >= TOPIC_IDS_SINCE;
    const topic = hasId ? topics.getById(topicId) : topics.get(name);
    const unknown = hasId && topic === undefined ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    const results = partitions.map((partition) => {
      const { partitionIndex, committedOffset: offset, committedLeaderEpoch: leaderEpoch } = partition;
      if (topic === undefined || partitionIndex < 0 || partitionIndex >= topic.partitionCount) {
        return { partitionIndex, errorCode: unknown as number };
      }
      const place = { partitionIndex, errorCode: ErrorCode.NONE as number };
      places.push(place);
      const metadata = partition.committedMetadata ?? "";
      offsets.push({ topic: topic.name, partition: partitionIndex, offset, leaderEpoch, metadata });
      return place;
    });
    return { name, topicId, partitions: results };
  });
  const outcome = await groups.commit({
    groupId: request.groupId,
    memberId: request.memberId,
    instanceId: request.groupInstanceId,
    generationId: request.generationIdOrMemberEpoch,
    knowsEpochs: apiVersion >= EPOCHS_SINCE,
    retentionMs: request.retentionTimeMs,
    offsets,
  });
  places.forEach((place, at) => place.errorCode = Array.isArray(outcome) ? outcome[at] : outcome);
  return { throttleTimeMs: 0, topics: answered };
}
