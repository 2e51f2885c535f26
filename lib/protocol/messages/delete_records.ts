/**
 * DeleteRecords (KIP-107): raises the log start offset; -1 means the high watermark.
 *
 * v2 flexible.
 */

import { array, int16, int32, int64, message, string, struct } from "../schema.ts";

export const deleteRecordsRequest = message(
  { name: "DeleteRecordsRequest", apiKey: 21, type: "request", versions: "0-2", flexible: "2+" },
  {
    topics: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), offset: int64() })),
    })),
    timeoutMs: int32(),
  },
);

export const deleteRecordsResponse = message(
  { name: "DeleteRecordsResponse", apiKey: 21, type: "response", versions: "0-2", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    topics: array(struct({
      name: string(),
      partitions: array(struct({ partitionIndex: int32(), lowWatermark: int64(), errorCode: int16() })),
    })),
  },
);
