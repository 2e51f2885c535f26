/** OffsetDelete (0): drops committed offsets of topics that the group does not consume. */

import { ErrorCode } from "../../errors.ts";
import { offsetDeleteRequest, offsetDeleteResponse } from "../../protocol/messages/offset_delete.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";

/** Serves OffsetDelete. */
export function offsetDeleteHandler(
  { groups, topics }: Pick<Broker, "groups" | "topics">,
): Handler<ValueOf<typeof offsetDeleteRequest>, InputOf<typeof offsetDeleteResponse>> {
  return {
    request: offsetDeleteRequest,
    response: offsetDeleteResponse,
    async handle(request) {
      const isThere = (name: string, index: number) => index >= 0 && index < (topics.get(name)?.partitionCount ?? 0);
      const wanted = request.topics.flatMap(({ name, partitions }) =>
        partitions.map(({ partitionIndex }) => ({ topic: name, partition: partitionIndex }))
      );
      const outcome = await groups.deleteOffsets(request.groupId, wanted);
      if (!Array.isArray(outcome)) return { errorCode: outcome, throttleTimeMs: 0, topics: [] };
      let at = 0;
      const answered = request.topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map(({ partitionIndex }) => {
          const code = outcome[at++];
          const errorCode = isThere(name, partitionIndex) ? code : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
          return { partitionIndex, errorCode };
        }),
      }));
      return { errorCode: ErrorCode.NONE, throttleTimeMs: 0, topics: answered };
    },
  };
}
