/**
 * FindCoordinator: which broker keeps a group or a transactional id. Versions 0 to 3 ask for one key (0: groups only),
 * version 4 on for many (KIP-699); 6 knows share groups, which are not served.
 */

import { ErrorCode } from "../../errors.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../../protocol/messages/find_coordinator.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler, RequestContext } from "../handler.ts";
import { brokerAddresses } from "../topic_metadata.ts";

type FindCoordinatorRequest = ValueOf<typeof findCoordinatorRequest>;
type FindCoordinatorResponse = InputOf<typeof findCoordinatorResponse>;

const KeyType = { GROUP: 0, TRANSACTION: 1 } as const;

interface Coordinator {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
}

export function findCoordinatorHandler(
  broker: Pick<Broker, "nodeId" | "config">,
): Handler<FindCoordinatorRequest, FindCoordinatorResponse> {
  return {
    request: findCoordinatorRequest,
    response: findCoordinatorResponse,
    handle(request, context) {
      const coordinator = find(broker, request.keyType, context);
      return context.apiVersion < 4
        ? { throttleTimeMs: 0, ...coordinator, coordinators: [] }
        : { throttleTimeMs: 0, coordinators: request.coordinatorKeys.map((key) => ({ key, ...coordinator })) };
    },
  };
}

function find(broker: Pick<Broker, "nodeId" | "config">, keyType: number, context: RequestContext): Coordinator {
  if (keyType !== KeyType.GROUP && keyType !== KeyType.TRANSACTION) {
    const errorMessage = `there are no coordinators for keys of type ${keyType}`;
    return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage, nodeId: -1, host: "", port: -1 };
  }
  const { nodeId, host, port } = brokerAddresses(broker, context)[0];
  return { errorCode: ErrorCode.NONE, errorMessage: null, nodeId, host, port };
}
