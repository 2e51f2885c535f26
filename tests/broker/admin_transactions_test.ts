/** `kaas admin transactions` against a running broker with a transaction that goes on. */

import assert from "node:assert/strict";
import {
  addPartitionsToTxnRequest,
  addPartitionsToTxnResponse,
} from "../../lib/protocol/messages/add_partitions_to_txn.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { type WireBroker, withWireBroker } from "../support/wire_broker.ts";
import { run } from "../unit/cli/support.ts";

const ID = "payments-1";

/** Begins a transaction with one record in partition 0 of a topic. */
async function begin(wire: WireBroker, topic: string): Promise<{ producerId: number; producerEpoch: number }> {
  const producer = await wire.client.call(initProducerIdRequest, initProducerIdResponse, 4, {
    transactionalId: ID,
    transactionTimeoutMs: 60_000,
  });
  const { producerId, producerEpoch } = producer;
  const added = await wire.client.call(addPartitionsToTxnRequest, addPartitionsToTxnResponse, 3, {
    v3AndBelowTransactionalId: ID,
    v3AndBelowProducerId: producerId,
    v3AndBelowProducerEpoch: producerEpoch,
    v3AndBelowTopics: [{ name: topic, partitions: [0] }],
    transactions: [],
  });
  assert.equal(added.resultsByTopicV3AndBelow[0].resultsByPartition[0].partitionErrorCode, 0);
  const records = buildBatch({
    ...{ timestamp: Date.now(), producerId, producerEpoch, baseSequence: 0, isTransactional: true },
    records: [{ value: "pending" }],
  });
  const { responses } = await wire.client.call(produceRequest, produceResponse, 11, {
    transactionalId: ID,
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{ name: topic, topicId: ZERO_UUID, partitionData: [{ index: 0, records }] }],
  });
  assert.equal(responses[0].partitionResponses[0].errorCode, 0);
  return producer;
}

Deno.test("Transactions are listed and described, found not to hang, and aborted by id or by place", async () => {
  await withWireBroker(async (wire) => {
    const call = (...args: string[]) =>
      run(["admin", "transactions", ...args, "--bootstrap", `127.0.0.1:${wire.port}`]);
    const says = async (...args: string[]) => {
      const { code, out, err } = await call(...args);
      assert.equal(code, 0, err);
      return out;
    };
    const json = async (...args: string[]) => JSON.parse(await says(...args, "--json"));
    await wire.createTopic("payments");
    const { producerId } = await begin(wire, "payments");

    assert.match(await says("list"), /TRANSACTIONAL ID +STATE +PRODUCER +COORDINATOR\npayments-1 +Ongoing +\d+ +0\n/);
    assert.equal((await json("list", "--state", "Ongoing", "--producer-id", String(producerId))).length, 1);
    assert.deepEqual(await json("list", "--state", "CompleteCommit"), []);
    assert.deepEqual(await json("list", "--longer-than", "3600"), []);
    assert.equal((await json("list", "--id-pattern", "pay.*")).length, 1);
    const [described] = await json("describe", ID);
    assert.deepEqual([described.state, described.timeoutMs, described.partitions], ["Ongoing", 60_000, [
      { topic: "payments", partition: 0 },
    ]]);
    assert.match(
      await says("describe", ID),
      /^payments-1: Ongoing since .*Z, producer \d+ in epoch \d+, timeout 60 s\n/,
    );

    assert.equal(await says("find-hanging", "--older-than", "0"), "no transaction hangs\n", "its coordinator knows it");
    assert.equal((await call("abort", ID)).code, 1, "nobody was asked");
    assert.equal(await says("abort", ID, "--yes"), "payments-1 aborted\n");
    assert.equal((await json("describe", ID))[0].startedAtMs, null);
    assert.equal(
      (await wire.listOffset("payments", -1, { isolationLevel: 1 })).offset,
      2,
      "nothing holds readers back",
    );

    await begin(wire, "payments");
    assert.equal((await wire.listOffset("payments", -1, { isolationLevel: 1 })).offset, 2);
    await says("abort", "--topic", "payments:0", "--start-offset", "2", "--yes");
    assert.equal((await wire.listOffset("payments", -1, { isolationLevel: 1 })).offset, 4);

    const complains = async (code: number, ...args: string[]) => {
      const outcome = await call(...args);
      assert.equal(outcome.code, code, outcome.out);
      return outcome.err;
    };
    assert.match(await complains(1, "describe", "nobody"), /there is no such transactional id/);
    assert.match(await complains(1, "list", "--state", "Sleeping"), /there is no state Sleeping/);
    assert.match(await complains(2, "abort"), /expected a transactional id, or --topic TOPIC:P/);
    const nothing = await complains(1, "abort", "--topic", "payments:0", "--start-offset", "99", "--yes");
    assert.match(nothing, /no transaction that goes on begins at 99/);
  });
});
