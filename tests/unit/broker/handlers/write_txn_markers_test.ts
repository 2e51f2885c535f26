import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../../lib/protocol/messages/api_versions.ts";
import {
  writeTxnMarkersRequest,
  writeTxnMarkersResponse,
} from "../../../../lib/protocol/messages/write_txn_markers.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

async function write(
  broker: SimulatedBroker,
  version: number,
  producer: { producerId: number; producerEpoch: number },
  { transactionResult = false, coordinatorEpoch = 1, partitionIndexes = [0] } = {},
): Promise<number[]> {
  const reply = await broker.call(writeTxnMarkersRequest, writeTxnMarkersResponse, version, {
    markers: [{ ...producer, transactionResult, coordinatorEpoch, topics: [{ name: "t", partitionIndexes }] }],
  });
  assert.equal(reply.markers[0].producerId, producer.producerId);
  return reply.markers[0].topics[0].partitions.map(({ errorCode }) => errorCode);
}

Deno.test("WriteTxnMarkers ends a transaction in the partitions named, and in no other", async () => {
  await withSimulatedBroker(async (broker) => {
    for (const version of [0, 1, 2]) {
      const client = new TransactionalClient(broker, `x${version}`, 2);
      await client.init();
      await client.produce("t", 0, ["a"]);
      await client.produce("t", 1, ["b"]);
      assert.deepEqual(await write(broker, version, client.identity, { partitionIndexes: [0, 9] }), [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ]);
      const open = async (index: number) => {
        const log = await broker.broker.partitions.get("t", index)!.log();
        return typeof log === "object" && log.producer(client.identity.producerId)?.transactionFirstOffset !== -1;
      };
      assert.deepEqual([await open(0), await open(1)], [false, true]);
    }
  });
});

Deno.test("WriteTxnMarkers refuses older epochs of the producer and of the coordinator", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 2);
    await client.init();
    await client.produce("t", 0, ["a"]);
    await client.end(true);
    await client.produce("t", 0, ["b"]);
    const { producerId } = client.identity;
    assert.deepEqual(await write(broker, 1, { producerId, producerEpoch: 0 }), [ErrorCode.INVALID_PRODUCER_EPOCH]);
    assert.deepEqual(await write(broker, 1, client.identity, { coordinatorEpoch: 0 }), [
      ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ]);
  });
});

Deno.test("ApiVersions tells that transaction version 2 is finalized, from version 4 on", async () => {
  await withSimulatedBroker(async (broker) => {
    const ask = (version: number) =>
      broker.call(apiVersionsRequest, apiVersionsResponse, version, {
        clientSoftwareName: "test",
        clientSoftwareVersion: "1",
      });
    const told = await ask(4);
    assert.deepEqual(told.finalizedFeatures.find(({ name }) => name === "transaction.version"), {
      name: "transaction.version",
      maxVersionLevel: 2,
      minVersionLevel: 2,
    });
    assert.deepEqual(told.supportedFeatures.find(({ name }) => name === "transaction.version"), {
      name: "transaction.version",
      minVersion: 0,
      maxVersion: 2,
    });
    assert.equal((await ask(3)).supportedFeatures.find(({ name }) => name === "transaction.version"), undefined);
  });
});
