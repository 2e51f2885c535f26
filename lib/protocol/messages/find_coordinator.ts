/**
 * FindCoordinator: which broker coordinates a group (key type 0), a transactional id (1) or a share group (2).
 *
 * v1 key type, error messages (KIP-98) · v3 flexible · v4 several keys at once (KIP-699) · v5 abortable errors
 * (KIP-890) · v6 share groups (KIP-932).
 */

import { array, int16, int32, int8, message, string, struct } from "../schema.ts";

export const findCoordinatorRequest = message(
  { name: "FindCoordinatorRequest", apiKey: 10, type: "request", versions: "0-6", flexible: "3+" },
  {
    key: string().until(3),
    keyType: int8().since(1).default(0),
    coordinatorKeys: array(string()).since(4),
  },
);

export const findCoordinatorResponse = message(
  { name: "FindCoordinatorResponse", apiKey: 10, type: "response", versions: "0-6", flexible: "3+" },
  {
    throttleTimeMs: int32().since(1),
    errorCode: int16().until(3),
    errorMessage: string().since(1).until(3).nullable(1),
    nodeId: int32().until(3),
    host: string().until(3),
    port: int32().until(3),
    coordinators: array(struct({
      key: string(),
      nodeId: int32(),
      host: string(),
      port: int32(),
      errorCode: int16(),
      errorMessage: string().nullable(4),
    })).since(4),
  },
);
