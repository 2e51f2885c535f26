/** DescribeCluster (KIP-700): brokers, controller and cluster id. Version 1 asks for brokers or controllers (KIP-919). */

import { ErrorCode } from "../../errors.ts";
import { describeClusterRequest, describeClusterResponse } from "../../protocol/messages/describe_cluster.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ALL_CLUSTER_OPERATIONS, NOT_ASKED } from "../authorized_operations.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { brokerAddresses } from "../topic_metadata.ts";

type DescribeClusterRequest = ValueOf<typeof describeClusterRequest>;
type DescribeClusterResponse = InputOf<typeof describeClusterResponse>;

const EndpointType = { BROKERS: 1, CONTROLLERS: 2 } as const;

export function describeClusterHandler(
  broker: Pick<Broker, "cluster" | "clusterId">,
): Handler<DescribeClusterRequest, DescribeClusterResponse> {
  return {
    request: describeClusterRequest,
    response: describeClusterResponse,
    handle(request, context) {
      const { endpointType } = request;
      if (endpointType === EndpointType.CONTROLLERS) {
        return refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "brokers listen here, not controllers", endpointType);
      }
      if (endpointType !== EndpointType.BROKERS) {
        return refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, `endpoint type ${endpointType} is not known`, endpointType);
      }
      const clusterAuthorizedOperations = request.includeClusterAuthorizedOperations
        ? ALL_CLUSTER_OPERATIONS
        : NOT_ASKED;
      return {
        throttleTimeMs: 0,
        errorCode: ErrorCode.NONE,
        errorMessage: null,
        endpointType,
        clusterId: broker.clusterId,
        controllerId: broker.cluster.controllerId,
        brokers: brokerAddresses(broker, context).map(({ nodeId, host, port, rack }) => ({
          brokerId: nodeId,
          host,
          port,
          rack,
          isFenced: false,
        })),
        clusterAuthorizedOperations,
      };
    },
  };
}

function refused(errorCode: ErrorCode, errorMessage: string, endpointType: number): DescribeClusterResponse {
  return {
    throttleTimeMs: 0,
    errorCode,
    errorMessage,
    endpointType,
    clusterId: "",
    controllerId: -1,
    brokers: [],
    clusterAuthorizedOperations: NOT_ASKED,
  };
}
