import assert from "node:assert/strict";
import type { Broker } from "../../../../lib/broker/broker.ts";
import { handlersOf } from "../../../../lib/broker/handlers/table.ts";

// Handlers look at their broker when they handle a request, not before.
const handlers = handlersOf({} as Broker);

Deno.test("Each API is in the table once", () => {
  const keys = handlers.map(({ request }) => request.apiKey);
  assert.deepEqual(keys.length, new Set(keys).size);
});

Deno.test("A handler's request and response belong together", () => {
  for (const { request, response } of handlers) {
    assert.deepEqual([request.type, response.type], ["request", "response"]);
    const facts = [request, response].map(({ apiKey, minVersion, maxVersion }) => ({ apiKey, minVersion, maxVersion }));
    assert.deepEqual(facts[0], facts[1], request.name);
  }
});
