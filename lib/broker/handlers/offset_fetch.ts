/**
 * OffsetFetch (0–10): the offsets a group has committed, of the partitions asked for or of all. A partition without one
 * has offset −1 and no error, and so has one that does not exist. Who wants stable offsets only (KIP-447) is told to come
 * back while a transaction that has committed one is not over. A member of the consumer protocol reads in its own epoch
 * only (KIP-848).
 */

import { ErrorCode } from "../../errors.ts";
import type { CommittedOffset } from "../../groups/offsets.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../protocol/messages/offset_fetch.ts";
import { type InputOf, type ValueOf, ZERO_UUID } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

type Request = ValueOf<typeof offsetFetchRequest>;
type Response = InputOf<typeof offsetFetchResponse>;
/** Null for everything the group has committed. */
type Wanted =
  | readonly { readonly name: string; readonly topicId: string; readonly partitionIndexes: number[] }[]
  | null;

/** From here on several groups can be asked for. */
const SEVERAL_SINCE = 8;
/** From here on topics are named by their ids. */
const TOPIC_IDS_SINCE = 10;
/** Before this there is no error but those of partitions. */
const GROUP_ERROR_SINCE = 2;

/** Versions before 9 name no member. */
const NO_MEMBER = { memberId: null, memberEpoch: -1 };

/** Serves OffsetFetch. */
export function offsetFetchHandler(broker: Pick<Broker, "groups" | "topics">): Handler<Request, Response> {
  return {
    request: offsetFetchRequest,
    response: offsetFetchResponse,
    handle(request, { apiVersion }) {
      if (apiVersion >= SEVERAL_SINCE) {
        const groups = request.groups.map(({ groupId, memberId, memberEpoch, topics }) => ({
          groupId,
          ...fetchOffsets(broker, groupId, topics, request.requireStable, apiVersion, { memberId, memberEpoch }),
        }));
        return { throttleTimeMs: 0, topics: [], errorCode: ErrorCode.NONE, groups };
      }
      const wanted = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
      const fetched = fetchOffsets(broker, request.groupId, wanted, request.requireStable, apiVersion);
      return { throttleTimeMs: 0, ...fetched, groups: [] };
    },
  };
}

function fetchOffsets(
  { groups, topics }: Pick<Broker, "groups" | "topics">,
  groupId: string,
  wanted: Wanted,
  requireStable: boolean,
  apiVersion: number,
  { memberId, memberEpoch }: { readonly memberId: string | null; readonly memberEpoch: number } = NO_MEMBER,
) {
  const errorCode = groups.availabilityOf(groupId) || groups.fetchProblem(groupId, memberId, memberEpoch);
  if (errorCode !== ErrorCode.NONE) {
    const refused = apiVersion >= GROUP_ERROR_SINCE
      ? []
      : (wanted ?? []).map(({ name, topicId, partitionIndexes }) => ({
        name,
        topicId,
        partitions: partitionIndexes.map((index) => resultOf(index, undefined, errorCode)),
      }));
    return { topics: refused, errorCode };
  }
  const offsets = groups.offsetsOf(groupId);
  const resultIn = (topic: string, index: number) =>
    requireStable && groups.isUnstable(groupId, topic, index)
      ? resultOf(index, undefined, ErrorCode.UNSTABLE_OFFSET_COMMIT)
      : resultOf(index, offsets?.get(topic, index), ErrorCode.NONE);
  const hasIds = apiVersion >= TOPIC_IDS_SINCE;
  if (wanted === null) {
    const all = Array.from(offsets?.topics() ?? [], ([name, partitions]) => ({
      name,
      topicId: topics.get(name)?.topicId ?? ZERO_UUID,
      partitions: Array.from(partitions.keys(), (index) => resultIn(name, index)),
    }));
    return { topics: hasIds ? all.filter(({ topicId }) => topicId !== ZERO_UUID) : all, errorCode };
  }
  const found = wanted.map(({ name, topicId, partitionIndexes }) => {
    const topic = hasIds ? topics.getById(topicId)?.name : name;
    return {
      name,
      topicId,
      partitions: partitionIndexes.map((index) =>
        topic === undefined ? resultOf(index, undefined, ErrorCode.UNKNOWN_TOPIC_ID) : resultIn(topic, index)
      ),
    };
  });
  return { topics: found, errorCode };
}

function resultOf(partitionIndex: number, committed: CommittedOffset | undefined, errorCode: ErrorCode) {
  return {
    partitionIndex,
    committedOffset: committed?.offset ?? -1,
    committedLeaderEpoch: committed?.leaderEpoch ?? -1,
    metadata: committed?.metadata ?? "",
    errorCode,
  };
}
