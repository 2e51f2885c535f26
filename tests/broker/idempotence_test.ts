/** Idempotent producers: sequences, duplicates, epochs. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { fetchedValues, type WireBroker, withWireBroker } from "../support/wire_broker.ts";

async function newProducer(wire: WireBroker, version = 4): Promise<{ producerId: number; producerEpoch: number }> {
  const reply = await wire.client.call(initProducerIdRequest, initProducerIdResponse, version, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
  });
  assert.equal(reply.errorCode, ErrorCode.NONE);
  return reply;
}

/** A batch of records whose values are their sequence numbers. */
function numbered(
  producer: { producerId: number; producerEpoch: number },
  baseSequence: number,
  count = 2,
): Uint8Array {
  const { producerId, producerEpoch } = producer;
  const records = Array.from({ length: count }, (_, i) => ({ value: String(baseSequence + i) }));
  return buildBatch({ timestamp: 1_700_000_000_000, producerId, producerEpoch, baseSequence, records });
}

Deno.test("Five batches in flight are stored in order, and each duplicate is answered with its first offset", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const producer = await newProducer(wire);
    const send = (batch: Uint8Array) =>
      wire.client.send(produceRequest, 9, {
        acks: -1,
        timeoutMs: 10_000,
        topicData: [{ name: "t", topicId: ZERO_UUID, partitionData: [{ index: 0, records: batch }] }],
      });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 5; i++) await send(numbered(producer, 2 * i));
      for (let i = 0; i < 5; i++) {
        const { body } = await wire.client.receive(produceResponse, 9);
        const [{ errorCode, baseOffset }] = body.responses[0].partitionResponses;
        assert.deepEqual([errorCode, baseOffset], [ErrorCode.NONE, 2 * i], `batch ${i} of round ${round}`);
      }
    }
    const { records } = await wire.fetch("t", 0);
    assert.deepEqual(fetchedValues(records), Array.from({ length: 10 }, (_, i) => String(i)));
  });
});

Deno.test("A gap in the sequence is refused, what follows in order is taken", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const producer = await newProducer(wire);
    assert.equal((await wire.produce("t", numbered(producer, 0))).errorCode, ErrorCode.NONE);
    assert.equal((await wire.produce("t", numbered(producer, 4))).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert.equal((await wire.produce("t", numbered(producer, 2))).baseOffset, 2);
  });
});

Deno.test("A higher epoch begins with sequence 0, and the lower one is over", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const producer = await newProducer(wire);
    const next = { ...producer, producerEpoch: producer.producerEpoch + 1 };
    assert.equal((await wire.produce("t", numbered(producer, 0))).errorCode, ErrorCode.NONE);
    assert.equal((await wire.produce("t", numbered(next, 2))).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert.equal((await wire.produce("t", numbered(next, 0))).errorCode, ErrorCode.NONE);
    assert.equal((await wire.produce("t", numbered(producer, 2))).errorCode, ErrorCode.INVALID_PRODUCER_EPOCH);
  });
});

Deno.test("Sequences wrap behind the largest int32", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const producer = await newProducer(wire);
    // A producer that the log does not know any more may begin anywhere.
    assert.equal((await wire.produce("t", numbered(producer, 0x7fffffff, 3))).errorCode, ErrorCode.NONE);
    assert.equal((await wire.produce("t", numbered(producer, 2, 1))).baseOffset, 3);
  });
});

Deno.test("No two producers ever get the same id, whatever the version", async () => {
  await withWireBroker(async (wire) => {
    const ids = new Set<number>();
    for (let version = 0; version <= 5; version++) {
      for (let i = 0; i < 3; i++) ids.add((await newProducer(wire, version)).producerId);
    }
    assert.equal(ids.size, 18);
  });
});
