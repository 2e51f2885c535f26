/**
 * DescribeLogDirs (KIP-113): sizes of partitions by folder.
 *
 * v2 flexible · v3 top-level error (KIP-784) · v4 sizes of the volume (KIP-827) · v5 cordoned folders (KIP-1066).
 */

import { array, bool, int16, int32, int64, message, string, struct } from "../schema.ts";

export const describeLogDirsRequest = message(
  { name: "DescribeLogDirsRequest", apiKey: 35, type: "request", versions: "0-5", flexible: "2+" },
  {
    topics: array(struct({ topic: string(), partitions: array(int32()) })).nullable(),
  },
);

export const describeLogDirsResponse = message(
  { name: "DescribeLogDirsResponse", apiKey: 35, type: "response", versions: "0-5", flexible: "2+" },
  {
    throttleTimeMs: int32(),
    errorCode: int16().since(3),
    results: array(struct({
      errorCode: int16(),
      logDir: string(),
      topics: array(struct({
        name: string(),
        partitions: array(struct({
          partitionIndex: int32(),
          partitionSize: int64(),
          offsetLag: int64(),
          isFutureKey: bool(),
        })),
      })),
      totalBytes: int64().since(4).default(-1),
      usableBytes: int64().since(4).default(-1),
      isCordoned: bool().since(5).default(false),
    })),
  },
);
