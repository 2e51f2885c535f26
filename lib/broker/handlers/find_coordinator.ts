/**
 * FindCoordinator: which broker keeps a group or a transactional id. Versions 0 to 3 ask for one key (0: groups only),
 * version 4 on for many (KIP-699); 6 knows share groups, which are not served.
 */

import { ErrorCode } from "../../errors.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../../protocol/messages/find_coordinator.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { GROUP_SHARDS, groupShardOf, TRANSACTION_SHARDS, transactionShardOf } from "../coordinator_shards.ts";
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
  broker: Pick<Broker, "cluster">,
): Handler<FindCoordinatorRequest, FindCoordinatorResponse> {
  return {
    request: findCoordinatorRequest,
    response: findCoordinatorResponse,
    handle(request, context) {
      const { keyType } = request;
      if (context.apiVersion < 4) {
        return { throttleTimeMs: 0, ...find(broker, keyType, request.key, context), coordinators: [] };
      }
      const coordinators = request.coordinatorKeys.map((key) => ({ key, ...find(broker, keyType, key, context) }));
      return { throttleTimeMs: 0, coordinators };
    },
  };
}

function find(broker: Pick<Broker, "cluster">, keyType: number, key: string, context: RequestContext): Coordinator {
  if (keyType !== KeyType.GROUP && keyType !== KeyType.TRANSACTION) {
    return refused(ErrorCode.INVALID_REQUEST, `there are no coordinators for keys of type ${keyType}`);
  }
  const nodeId = keyType === KeyType.GROUP
    ? broker.cluster.coordinatorOf(GROUP_SHARDS, groupShardOf(key))
    : broker.cluster.coordinatorOf(TRANSACTION_SHARDS, transactionShardOf(key));
  const address = brokerAddresses(broker, context).find((one) => one.nodeId === nodeId);
  if (address === undefined) return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator is being moved");
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    nodeId: address.nodeId,
    host: address.host,
    port: address.port,
  };
}

function refused(errorCode: ErrorCode, errorMessage: string): Coordinator {
  return { errorCode, errorMessage, nodeId: -1, host: "", port: -1 };
}
