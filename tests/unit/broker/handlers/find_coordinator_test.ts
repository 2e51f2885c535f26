import assert from "node:assert/strict";
import { findCoordinatorHandler } from "../../../../lib/broker/handlers/find_coordinator.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../../../../lib/protocol/messages/find_coordinator.ts";
import { ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: findCoordinatorRequest, response: findCoordinatorResponse };

Deno.test("FindCoordinator names this broker for a group or a transactional id, in every version", async () => {
  await withAdminBroker(async (broker) => {
    const handler = findCoordinatorHandler(broker);
    for (let version = findCoordinatorRequest.minVersion; version <= findCoordinatorRequest.maxVersion; version++) {
      for (const keyType of version === 0 ? [0] : [0, 1]) {
        const request = { key: "k", keyType, coordinatorKeys: ["k", "l"] };
        const reply = await ask(handler, messages, version, request);
        const places = version < 4 ? [reply] : reply.coordinators;
        assert.deepEqual(reply.coordinators.map(({ key }) => key), version < 4 ? [] : ["k", "l"]);
        for (const { errorCode, nodeId, host, port } of places) {
          assert.deepEqual({ errorCode, nodeId, host, port }, {
            errorCode: ErrorCode.NONE,
            nodeId: 0,
            host: "advertised",
            port: 19092,
          });
        }
      }
    }
  });
});

Deno.test("FindCoordinator refuses kinds of keys that have no coordinator", async () => {
  await withAdminBroker(async (broker) => {
    const handler = findCoordinatorHandler(broker);
    for (const keyType of [2, 9, -1]) {
      const reply = await ask(handler, messages, 6, { keyType, coordinatorKeys: ["k"] });
      assert.deepEqual(reply.coordinators.map(({ errorCode, nodeId }) => [errorCode, nodeId]), [
        [ErrorCode.INVALID_REQUEST, -1],
      ]);
    }
  });
});
