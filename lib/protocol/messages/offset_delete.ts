/**
 * OffsetDelete (KIP-496). Its answer has the error in front of the throttle time, unlike any other.
 */

import { array, int16, int32, message, string, struct } from "../schema.ts";

export const offsetDeleteRequest = message(
  { name: "OffsetDeleteRequest", apiKey: 47, type: "request", versions: "0", flexible: "none" },
  {
    groupId: string(),
    topics: array(struct({ name: string(), partitions: array(struct({ partitionIndex: int32() })) })),
  },
);

export const offsetDeleteResponse = message(
  { name: "OffsetDeleteResponse", apiKey: 47, type: "response", versions: "0", flexible: "none" },
  {
    errorCode: int16(),
    throttleTimeMs: int32(),
    topics: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), errorCode: int16() })),
    })),
  },
);
