import assert from "node:assert/strict";
import { createPartitionsHandler } from "../../../../lib/broker/handlers/create_partitions.ts";
import { getOrCreateTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from "../../../../lib/protocol/messages/create_partitions.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import { type AdminBroker, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: createPartitionsRequest, response: createPartitionsResponse };
type Wish = InputOf<typeof createPartitionsRequest>["topics"][number];

function grow(broker: AdminBroker, version: number, topics: Wish[], validateOnly = false) {
  return ask(createPartitionsHandler(broker), messages, version, { topics, timeoutMs: 30000, validateOnly });
}

Deno.test("CreatePartitions adds partitions that can be used and last, in every version", async () => {
  await withAdminBroker(async (broker, restart) => {
    await getOrCreateTopic(broker, "t");
    let count = 1;
    for (let version = createPartitionsRequest.minVersion; version <= createPartitionsRequest.maxVersion; version++) {
      const { results } = await grow(broker, version, [{ name: "t", count: ++count, assignments: null }]);
      assert.deepEqual(results, [{ name: "t", errorCode: ErrorCode.NONE, errorMessage: null }]);
      assert.ok(broker.partitions.get("t", count - 1) !== undefined);
    }
    assert.equal((await restart()).topics.get("t")?.partitionCount, count);
  });
});

Deno.test("CreatePartitions refuses wrong wishes with Kafka's codes and changes nothing", async () => {
  await withAdminBroker(async (broker) => {
    for (const name of ["t", "u", "v", "w"]) await getOrCreateTopic(broker, name);
    const { results } = await grow(broker, 3, [
      { name: "t", count: 3, assignments: null },
      { name: "u", count: 2, assignments: null },
      { name: "v", count: 5, assignments: [{ brokerIds: [0] }] },
      { name: "w", count: 4, assignments: null },
      { name: "w", count: 5, assignments: null },
      { name: "nothere", count: 5, assignments: null },
    ]);
    assert.deepEqual(Object.fromEntries(results.map(({ name, errorCode }) => [name, errorCode])), {
      t: ErrorCode.INVALID_PARTITIONS,
      u: ErrorCode.INVALID_PARTITIONS,
      v: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      w: ErrorCode.INVALID_REQUEST,
      nothere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    });
    assert.ok(Array.from(broker.topics.all()).every(({ partitionCount }) => partitionCount === 3));
  }, { settings: { "num.partitions": 3 } });
});

Deno.test("CreatePartitions with validate_only changes nothing", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    const { results } = await grow(broker, 3, [{ name: "t", count: 2, assignments: null }], true);
    assert.equal(results[0].errorCode, ErrorCode.NONE);
    assert.equal(broker.topics.get("t")?.partitionCount, 1);
  });
});
