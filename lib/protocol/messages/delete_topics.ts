/**
 * DeleteTopics.
 *
 * v1 throttle time · v4 flexible · v5 error messages, quota errors (KIP-599) · v6 a topic is named by name or by id
 * (KIP-516).
 */

import { array, int16, int32, message, string, struct, uuid } from "../schema.ts";

export const deleteTopicsRequest = message(
  { name: "DeleteTopicsRequest", apiKey: 20, type: "request", versions: "0-6", flexible: "4+" },
  {
    topics: array(struct({ name: string().nullable(6).default(null), topicId: uuid() })).since(6),
    topicNames: array(string()).until(5),
    timeoutMs: int32(),
  },
);

export const deleteTopicsResponse = message(
  { name: "DeleteTopicsResponse", apiKey: 20, type: "response", versions: "0-6", flexible: "4+" },
  {
    throttleTimeMs: int32().since(1),
    responses: array(struct({
      name: string().nullable(6),
      topicId: uuid().since(6),
      errorCode: int16(),
      errorMessage: string().since(5).nullable(5).default(null),
    })),
  },
);
