import assert from "node:assert/strict";
import { listConfigResourcesHandler } from "../../../../lib/broker/handlers/list_config_resources.ts";
import { getOrCreateTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from "../../../../lib/protocol/messages/list_config_resources.ts";
import { ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: listConfigResourcesRequest, response: listConfigResourcesResponse };

Deno.test("ListConfigResources lists topics and this broker, all of them or those of a type", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const handler = listConfigResourcesHandler(broker);
    const list = async (...resourceTypes: number[]) =>
      (await ask(handler, messages, 1, { resourceTypes })).configResources.map((r) => [r.resourceType, r.resourceName]);
    assert.deepEqual(await list(), [[2, "t"], [4, "0"]]);
    assert.deepEqual(await list(2), [[2, "t"]]);
    assert.deepEqual(await list(16, 32), []);
  });
});

Deno.test("ListConfigResources refuses types it does not know; version 0 asks for client metrics, of which there are none", async () => {
  await withAdminBroker(async (broker) => {
    const handler = listConfigResourcesHandler(broker);
    assert.equal((await ask(handler, messages, 1, { resourceTypes: [3] })).errorCode, ErrorCode.UNSUPPORTED_VERSION);
    const old = await ask(handler, messages, 0, { resourceTypes: [] });
    assert.deepEqual([old.errorCode, old.configResources], [ErrorCode.NONE, []]);
  });
});
