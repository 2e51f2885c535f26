import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  addPartitionsToTxnRequest,
  addPartitionsToTxnResponse,
} from "../../../../lib/protocol/messages/add_partitions_to_txn.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

/** Asks as a broker does, for one transaction; gives the codes of its partitions. */
async function batched(
  broker: SimulatedBroker,
  version: number,
  client: TransactionalClient,
  verifyOnly: boolean,
  partitions: number[],
) {
  const reply = await broker.call(addPartitionsToTxnRequest, addPartitionsToTxnResponse, version, {
    transactions: [{
      transactionalId: client.transactionalId,
      ...client.identity,
      verifyOnly,
      topics: [{ name: "t", partitions }],
    }],
    v3AndBelowTransactionalId: "",
    v3AndBelowProducerId: 0,
    v3AndBelowProducerEpoch: 0,
    v3AndBelowTopics: [],
  });
  assert.equal(reply.errorCode, ErrorCode.NONE);
  const [{ transactionalId, topicResults }] = reply.resultsByTransaction;
  assert.equal(transactionalId, client.transactionalId);
  return topicResults[0].resultsByPartition.map(({ partitionErrorCode }) => partitionErrorCode);
}

Deno.test("AddPartitionsToTxn takes all partitions in or none", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 1);
    await client.init();
    assert.deepEqual(await client.add("t", [0, 7]), [
      ErrorCode.OPERATION_NOT_ATTEMPTED,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    assert.deepEqual(await client.add("nowhere", [0]), [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
    assert.equal(await client.produce("t", 0, ["a"]), ErrorCode.TRANSACTION_ABORTABLE);
    assert.deepEqual(await client.add("t", [0, 2]), [ErrorCode.NONE, ErrorCode.NONE]);
    assert.equal(await client.produce("t", 0, ["a"]), ErrorCode.NONE);
  });
});

Deno.test("AddPartitionsToTxn refuses unknown ids and producers", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 1);
    assert.deepEqual(await client.add("t", [0]), [ErrorCode.INVALID_PRODUCER_ID_MAPPING]);
    await client.init();
    client.identity = { ...client.identity, producerId: 5 };
    assert.deepEqual(await client.add("t", [0]), [ErrorCode.INVALID_PRODUCER_ID_MAPPING]);
    assert.deepEqual(await new TransactionalClient(broker, "", 1).add("t", [0]), [ErrorCode.INVALID_REQUEST]);
  });
});

Deno.test("brokers ask for several transactions, and verify without adding", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 1);
    await client.init();
    assert.deepEqual(await batched(broker, 5, client, true, [0]), [ErrorCode.TRANSACTION_ABORTABLE]);
    assert.deepEqual(await batched(broker, 4, client, false, [0, 1]), [ErrorCode.NONE, ErrorCode.NONE]);
    assert.deepEqual(await batched(broker, 5, client, true, [0, 2]), [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]);
    assert.deepEqual(await batched(broker, 4, client, true, [2, 1]), [ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE]);
  });
});
