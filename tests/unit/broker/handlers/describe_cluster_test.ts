import assert from "node:assert/strict";
import { describeClusterHandler } from "../../../../lib/broker/handlers/describe_cluster.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { describeClusterRequest, describeClusterResponse } from "../../../../lib/protocol/messages/describe_cluster.ts";
import { ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: describeClusterRequest, response: describeClusterResponse };

Deno.test("DescribeCluster names this broker by the address of the listener that was asked, in every version", async () => {
  await withAdminBroker(async (broker) => {
    for (let version = describeClusterRequest.minVersion; version <= describeClusterRequest.maxVersion; version++) {
      const reply = await ask(describeClusterHandler(broker), messages, version, {
        includeClusterAuthorizedOperations: version > 0,
        includeFencedBrokers: false,
      });
      assert.equal(reply.errorCode, ErrorCode.NONE);
      assert.deepEqual([reply.clusterId, reply.controllerId], ["test-cluster", 0]);
      assert.deepEqual(reply.brokers, [
        { brokerId: 0, host: "advertised", port: 19092, rack: "cellar", isFenced: false },
      ]);
      assert.equal(reply.clusterAuthorizedOperations === -2147483648, version === 0);
    }
  }, { settings: { "broker.rack": "cellar" } });
});

Deno.test("DescribeCluster refuses to be taken for a controller", async () => {
  await withAdminBroker(async (broker) => {
    const codeOf = async (endpointType: number) =>
      (await ask(describeClusterHandler(broker), messages, 1, {
        includeClusterAuthorizedOperations: false,
        includeFencedBrokers: false,
        endpointType,
      })).errorCode;
    assert.equal(await codeOf(2), ErrorCode.MISMATCHED_ENDPOINT_TYPE);
    assert.equal(await codeOf(3), ErrorCode.UNSUPPORTED_ENDPOINT_TYPE);
  });
});
