import assert from "node:assert/strict";
import { deleteRecordsHandler } from "../../../../lib/broker/handlers/delete_records.ts";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import { deleteRecordsRequest, deleteRecordsResponse } from "../../../../lib/protocol/messages/delete_records.ts";
import { type AdminBroker, appendRecords, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: deleteRecordsRequest, response: deleteRecordsResponse };

async function trim(broker: AdminBroker, name: string, offset: number, { version = 2, partitionIndex = 0 } = {}) {
  const topics = [{ name, partitions: [{ partitionIndex, offset }] }];
  const reply = await ask(deleteRecordsHandler(broker), messages, version, { topics, timeoutMs: 30000 });
  const [{ lowWatermark, errorCode }] = reply.topics[0].partitions;
  return [errorCode, lowWatermark];
}

/** A topic `t` of one partition with ten records. */
async function withRecords(
  test: (broker: AdminBroker, restart: () => Promise<AdminBroker>) => Promise<void>,
  configs: { name: string; value: string }[] = [],
) {
  await withAdminBroker(async (broker, restart) => {
    await createTopic(broker, { name: "t", numPartitions: 1, replicationFactor: 1, assignments: [], configs });
    await appendRecords(broker, "t", 10);
    await test(broker, restart);
  });
}

Deno.test("DeleteRecords raises the log start, in every version, and it stays raised after a restart", async () => {
  await withRecords(async (broker, restart) => {
    for (let version = deleteRecordsRequest.minVersion; version <= deleteRecordsRequest.maxVersion; version++) {
      assert.deepEqual(await trim(broker, "t", 2 + version, { version }), [ErrorCode.NONE, 2 + version]);
    }
    const log = await (await restart()).partitions.get("t", 0)?.log();
    assert.ok(typeof log === "object");
    assert.equal(log.logStartOffset, 4);
    assert.equal(log.highWatermark, 10);
  });
});

Deno.test("DeleteRecords to -1 deletes up to the high watermark", async () => {
  await withRecords(async (broker) => {
    assert.deepEqual(await trim(broker, "t", -1), [ErrorCode.NONE, 10]);
    assert.deepEqual(await trim(broker, "t", -1), [ErrorCode.NONE, 10]);
  });
});

Deno.test("DeleteRecords at or below the log start changes nothing", async () => {
  await withRecords(async (broker) => {
    await trim(broker, "t", 5);
    assert.deepEqual(await trim(broker, "t", 5), [ErrorCode.NONE, 5]);
    assert.deepEqual(await trim(broker, "t", 0), [ErrorCode.NONE, 5]);
  });
});

Deno.test("DeleteRecords outside of the log is refused", async () => {
  await withRecords(async (broker) => {
    assert.deepEqual(await trim(broker, "t", 11), [ErrorCode.OFFSET_OUT_OF_RANGE, -1]);
    assert.deepEqual(await trim(broker, "t", -2), [ErrorCode.OFFSET_OUT_OF_RANGE, -1]);
    assert.deepEqual(await trim(broker, "t", 0, { partitionIndex: 1 }), [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1]);
    assert.deepEqual(await trim(broker, "nothere", 0), [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1]);
    assert.deepEqual(await trim(broker, "__consumer_offsets", 0), [ErrorCode.INVALID_TOPIC_EXCEPTION, -1]);
  });
});

Deno.test("DeleteRecords of a topic that is only compacted is refused", async () => {
  await withRecords(async (broker) => {
    assert.deepEqual(await trim(broker, "t", 5), [ErrorCode.POLICY_VIOLATION, -1]);
  }, [{ name: "cleanup.policy", value: "compact" }]);
});
