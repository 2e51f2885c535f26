import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../../../lib/protocol/messages/init_producer_id.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

function ask(broker: SimulatedBroker, version: number, fields: Partial<InputOf<typeof initProducerIdRequest>>) {
  return broker.call(initProducerIdRequest, initProducerIdResponse, version, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
    ...fields,
  });
}

Deno.test("InitProducerId without a transactional id gives a new id each time, whatever the producer says it was", async () => {
  await withSimulatedBroker(async (broker) => {
    const seen = new Set<number>();
    for (let version = 0; version <= 6; version++) {
      const own = version >= 3 ? { producerId: [...seen][0], producerEpoch: 0 } : {};
      const { errorCode, producerId, producerEpoch } = await ask(broker, version, own);
      assert.deepEqual([errorCode, producerEpoch], [ErrorCode.NONE, 0]);
      assert.ok(!seen.has(producerId));
      seen.add(producerId);
    }
  });
});

Deno.test("InitProducerId of one transactional id gives the same producer id with a raised epoch", async () => {
  await withSimulatedBroker(async (broker) => {
    const first = await ask(broker, 5, { transactionalId: "x" });
    const second = await ask(broker, 0, { transactionalId: "x" });
    assert.deepEqual([first.producerEpoch, second.producerEpoch], [0, 1]);
    assert.equal(second.producerId, first.producerId);
  });
});

Deno.test("InitProducerId refuses what cannot be meant, and what is not served", async () => {
  await withSimulatedBroker(async (broker) => {
    const code = async (version: number, fields: Parameters<typeof ask>[2]) =>
      (await ask(broker, version, fields)).errorCode;
    assert.equal(await code(4, { transactionalId: "" }), ErrorCode.INVALID_REQUEST);
    assert.equal(await code(4, { transactionalId: "x", producerId: 5 }), ErrorCode.INVALID_REQUEST);
    assert.equal(await code(4, { transactionalId: "x", producerEpoch: 5 }), ErrorCode.INVALID_REQUEST);
    assert.equal(
      await code(4, { transactionalId: "x", transactionTimeoutMs: 900_001 }),
      ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    );
    assert.equal(
      await code(6, { transactionalId: "x", enable2Pc: true }),
      ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    );
    assert.equal(await code(6, { transactionalId: "x", keepPreparedTxn: true }), ErrorCode.UNSUPPORTED_VERSION);
  });
});

Deno.test("a fenced producer is told so since version 4, and that its epoch is invalid before", async () => {
  await withSimulatedBroker(async (broker) => {
    const zombie = new TransactionalClient(broker, "x", 2);
    await zombie.init();
    await new TransactionalClient(broker, "x", 2).init();
    for (const [version, code] of [[3, ErrorCode.INVALID_PRODUCER_EPOCH], [4, ErrorCode.PRODUCER_FENCED]] as const) {
      assert.equal(await zombie.init({ again: true, version }), code);
    }
  });
});

Deno.test("an epoch that is lost is returned again, a present one is raised", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 2);
    await client.init();
    const own = client.identity;
    assert.equal(await client.init({ again: true }), ErrorCode.NONE);
    assert.equal(client.identity.producerEpoch, 1);
    client.identity = own;
    assert.equal(await client.init({ again: true }), ErrorCode.NONE);
    assert.equal(client.identity.producerEpoch, 1);
  });
});
