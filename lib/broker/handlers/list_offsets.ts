/**
 * ListOffsets (0–11): offsets at times and at the ends of partitions.
 *
 * Versions: 0 answers with a list of offsets; 1 with one offset and its time; 2 has isolation levels; 4 leader epochs; 7 the
 * newest time (KIP-734); 8 the earliest local offset (KIP-405); 9 the latest tiered offset (KIP-1005); 10 a timeout; 11 the
 * earliest offset not yet tiered. There is no tiered storage here: all of the log is local and nothing is tiered.
 */
import { ErrorCode } from "../../errors.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../protocol/messages/list_offsets.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { PartitionLog } from "../../storage/log.ts";
import type { Broker } from "../broker.ts";
import type { Handler, RequestContext } from "../handler.ts";
import { absence, checkLeaderEpoch } from "../leader_hint.ts";

type ListOffsetsRequest = ValueOf<typeof listOffsetsRequest>;
type ListOffsetsResponse = InputOf<typeof listOffsetsResponse>;
type Asked = ListOffsetsRequest["topics"][number]["partitions"][number];
type Answer = ListOffsetsResponse["topics"][number]["partitions"][number];

/** Times that stand for a place in the log instead. */
const Place = {
  latest: -1,
  earliest: -2,
  maxTimestamp: -3,
  earliestLocal: -4,
  latestTiered: -5,
  earliestPendingUpload: -6,
} as const;
const READ_COMMITTED = 1;

interface Found {
  readonly offset: number;
  readonly timestamp: number;
  readonly leaderEpoch: number;
}

/** Serves ListOffsets. */
export function listOffsetsHandler(broker: Broker): Handler<ListOffsetsRequest, ListOffsetsResponse> {
  return {
    request: listOffsetsRequest,
    response: listOffsetsResponse,
    async handle(request, context) {
      const repeated = repeatedPartitions(request);
      const topics: ListOffsetsResponse["topics"][number][] = [];
      for (const { name, partitions } of request.topics) {
        const answers: Answer[] = [];
        for (const asked of partitions) {
          if (repeated.has(`${name}/${asked.partitionIndex}`)) {
            answers.push(refusal(asked, ErrorCode.INVALID_REQUEST));
          } else {
            answers.push(await answer(broker, request, context, name, asked));
          }
        }
        topics.push({ name, partitions: answers });
      }
      return { throttleTimeMs: 0, topics };
    },
  };
}

async function answer(
  broker: Broker,
  { isolationLevel }: ListOffsetsRequest,
  { apiVersion }: RequestContext,
  topic: string,
  asked: Asked,
): Promise<Answer> {
  const partition = broker.partitions.get(topic, asked.partitionIndex);
  if (partition === undefined) return refusal(asked, absence(broker, topic, asked.partitionIndex));
  const refused = checkLeaderEpoch(partition, asked.currentLeaderEpoch);
  if (refused !== ErrorCode.NONE) return refusal(asked, refused);
  if (asked.timestamp < lowestPlace(apiVersion)) return refusal(asked, ErrorCode.UNSUPPORTED_VERSION);
  const log = await partition.log();
  if (typeof log === "number") return refusal(asked, log);
  const end = isolationLevel === READ_COMMITTED ? log.lastStableOffset : log.highWatermark;
  const found = await find(log, asked.timestamp, end);
  if (typeof found === "number") return refusal(asked, found);
  if (apiVersion === 0) return { ...refusal(asked, ErrorCode.NONE), oldStyleOffsets: oldStyle(log, asked, found) };
  return { ...refusal(asked, ErrorCode.NONE), ...found };
}

/** The lowest special time that a version knows; below it a client asks for what this version cannot mean. */
function lowestPlace(apiVersion: number): number {
  if (apiVersion >= 11) return Place.earliestPendingUpload;
  if (apiVersion >= 9) return Place.latestTiered;
  if (apiVersion >= 8) return Place.earliestLocal;
  if (apiVersion >= 7) return Place.maxTimestamp;
  return Place.earliest;
}

/** @param end where the log ends for this client */
async function find(log: PartitionLog, timestamp: number, end: number): Promise<Found | ErrorCode> {
  switch (timestamp) {
    case Place.latest:
      return at(log, end);
    case Place.earliest:
    case Place.earliestLocal:
    case Place.earliestPendingUpload:
      return at(log, log.logStartOffset);
    case Place.latestTiered:
      return nothing;
    case Place.maxTimestamp:
      return within(end, await log.maxTimestamp());
    default:
      return within(end, await log.offsetForTimestamp(timestamp));
  }
}

const nothing: Found = { offset: -1, timestamp: -1, leaderEpoch: -1 };

function at(log: PartitionLog, offset: number): Found {
  return { offset, timestamp: -1, leaderEpoch: log.epochAt(offset) };
}

function within(end: number, found: Found | ErrorCode | null): Found | ErrorCode {
  if (typeof found === "number") return found;
  return found === null || found.offset >= end ? nothing : found;
}

/** Version 0: the newest segment starts (and the log end) before the place that is asked for, at most as many as asked. */
function oldStyle(log: PartitionLog, { timestamp, maxNumOffsets }: Asked, found: Found): number[] {
  const starts = log.segmentBaseOffsets();
  const ends = [log.highWatermark, ...starts.toReversed()];
  if (timestamp === Place.latest) return ends.slice(0, maxNumOffsets);
  if (timestamp === Place.earliest) return [log.logStartOffset].slice(0, maxNumOffsets);
  return ends.filter((offset) => found.offset === -1 || offset <= found.offset).slice(0, maxNumOffsets);
}

function refusal({ partitionIndex }: Asked, errorCode: ErrorCode): Answer {
  return { partitionIndex, errorCode, oldStyleOffsets: [], timestamp: -1, offset: -1, leaderEpoch: -1 };
}

/** Partitions named twice; Kafka refuses them. */
function repeatedPartitions({ topics }: ListOffsetsRequest): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const { name, partitions } of topics) {
    for (const { partitionIndex } of partitions) {
      const key = `${name}/${partitionIndex}`;
      if (seen.has(key)) repeated.add(key);
      seen.add(key);
    }
  }
  return repeated;
}
