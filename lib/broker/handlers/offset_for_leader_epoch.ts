/**
 * OffsetForLeaderEpoch (0–4): where an epoch's records end, so that a client can tell whether its position is still on
 * this log (KIP-101, KIP-320).
 *
 * Versions: 1 names the epoch in the reply; 2 has the client's current leader epoch; 3 the replica id; 4 is flexible.
 */
import { ErrorCode } from "../../errors.ts";
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from "../../protocol/messages/offset_for_leader_epoch.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { absence, checkLeaderEpoch } from "../leader_hint.ts";

type Request = ValueOf<typeof offsetForLeaderEpochRequest>;
type Response = InputOf<typeof offsetForLeaderEpochResponse>;
type Asked = Request["topics"][number]["partitions"][number];
type Answer = Response["topics"][number]["partitions"][number];

/** Serves OffsetForLeaderEpoch. */
export function offsetForLeaderEpochHandler(broker: Pick<Broker, "partitions" | "topics">): Handler<Request, Response> {
  return {
    request: offsetForLeaderEpochRequest,
    response: offsetForLeaderEpochResponse,
    async handle(request) {
      const topics = [];
      for (const { topic, partitions } of request.topics) {
        const answers: Answer[] = [];
        for (const asked of partitions) answers.push(await answer(broker, topic, asked));
        topics.push({ topic, partitions: answers });
      }
      return { throttleTimeMs: 0, topics };
    },
  };
}

async function answer(broker: Pick<Broker, "partitions" | "topics">, topic: string, asked: Asked): Promise<Answer> {
  const partition = broker.partitions.get(topic, asked.partition);
  if (partition === undefined) return answerOf(asked, absence(broker, topic, asked.partition));
  const refused = checkLeaderEpoch(partition, asked.currentLeaderEpoch);
  if (refused !== ErrorCode.NONE) return answerOf(asked, refused);
  const log = await partition.log();
  if (typeof log === "number") return answerOf(asked, log);
  const { epoch, endOffset } = log.endOffsetForEpoch(asked.leaderEpoch);
  return answerOf(asked, ErrorCode.NONE, epoch, endOffset);
}

function answerOf({ partition }: Asked, errorCode: ErrorCode, leaderEpoch = -1, endOffset = -1): Answer {
  return { errorCode, partition, leaderEpoch, endOffset };
}
