import assert from "node:assert/strict";
import { describeProducersHandler } from "../../../../lib/broker/handlers/describe_producers.ts";
import { getOrCreateTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  describeProducersRequest,
  describeProducersResponse,
} from "../../../../lib/protocol/messages/describe_producers.ts";
import { type AdminBroker, appendRecords, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: describeProducersRequest, response: describeProducersResponse };

async function describe(broker: AdminBroker, name: string, ...partitionIndexes: number[]) {
  const reply = await ask(describeProducersHandler(broker), messages, 0, { topics: [{ name, partitionIndexes }] });
  return reply.topics[0].partitions;
}

Deno.test("DescribeProducers tells id, epoch, last sequence and open transaction of each producer", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    await appendRecords(broker, "t", 4);
    await appendRecords(broker, "t", 3, { producerId: 7, producerEpoch: 2, baseSequence: 0 });
    await appendRecords(broker, "t", 2, { producerId: 8, producerEpoch: 0, baseSequence: 0, isTransactional: true });
    const [{ errorCode, activeProducers }] = await describe(broker, "t", 0);
    assert.equal(errorCode, ErrorCode.NONE);
    const told = activeProducers.map((p) => [p.producerId, p.producerEpoch, p.lastSequence, p.currentTxnStartOffset]);
    assert.deepEqual(told, [[7, 2, 2, -1], [8, 0, 1, 7]]);
    assert.ok(
      activeProducers.every(({ lastTimestamp, coordinatorEpoch }) => lastTimestamp > 0 && coordinatorEpoch === -1),
    );
  });
});

Deno.test("DescribeProducers refuses what is not here", async () => {
  await withAdminBroker(async (broker) => {
    await getOrCreateTopic(broker, "t");
    assert.deepEqual((await describe(broker, "t", 0, 5)).map(({ errorCode }) => errorCode), [
      ErrorCode.NONE,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    assert.equal((await describe(broker, "a b", 0))[0].errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
  });
});
