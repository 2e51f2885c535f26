import assert from "node:assert/strict";
import type { Broker } from "../../../lib/broker/broker.ts";
import { participate } from "../../../lib/broker/transaction_participation.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../support/simulated_broker.ts";
import { TransactionalClient } from "../../support/transactional_client.ts";

const places = [{ topic: "t", partition: 0 }, { topic: "t", partition: 1 }];

/** The broker as another one sees it, whose coordinators are all on `coordinator`; `during` runs while it is asked. */
function elsewhere(
  coordinator: SimulatedBroker,
  during: (broker: Broker) => unknown = () => {},
  isGone = false,
): Broker {
  const { broker } = coordinator;
  const other: Broker = {
    ...broker,
    nodeId: 9,
    links: {
      async call(_nodeId, request, response, version, input) {
        const reply = isGone ? null : await coordinator.call(request, response, version, input);
        await during(other);
        return reply as never;
      },
    },
  };
  return other;
}

Deno.test("a coordinator elsewhere takes places in, or is asked whether they are in", async () => {
  await withSimulatedBroker(async (coordinator) => {
    const client = new TransactionalClient(coordinator, "x", 2);
    await client.init();
    const other = elsewhere(coordinator);
    const asked = await participate(other, "x", client.identity, places, false);
    assert.deepEqual(places.map((place) => asked.refusalOf(place)), [
      ErrorCode.TRANSACTION_ABORTABLE,
      ErrorCode.TRANSACTION_ABORTABLE,
    ]);
    const joined = await participate(other, "x", client.identity, [places[0]], true);
    assert.equal(joined.refusalOf(places[0]), ErrorCode.NONE);
    const again = await participate(other, "x", client.identity, places, false);
    assert.deepEqual(places.map((place) => again.refusalOf(place)), [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]);
    const stranger = { ...client.identity, producerEpoch: 5 };
    assert.equal(
      (await participate(other, "x", stranger, places, true)).refusalOf(places[0]),
      ErrorCode.PRODUCER_FENCED,
    );
  });
});

Deno.test("an answer is worth nothing when the transaction ends in the place before it is used", async () => {
  await withSimulatedBroker(async (coordinator) => {
    const client = new TransactionalClient(coordinator, "x", 2);
    await client.init();
    const { producerId } = client.identity;
    const other = elsewhere(coordinator, ({ guards }) => guards.trip(places[0], producerId));
    const admission = await participate(other, "x", client.identity, places, true);
    assert.deepEqual(places.map((place) => admission.refusalOf(place)), [
      ErrorCode.CONCURRENT_TRANSACTIONS,
      ErrorCode.NONE,
    ]);
    other.guards.trip(places[1], producerId);
    assert.equal(admission.refusalOf(places[1]), ErrorCode.CONCURRENT_TRANSACTIONS);
    admission.release();
  });
});

Deno.test("a coordinator that does not answer is not available", async () => {
  await withSimulatedBroker(async (coordinator) => {
    const other = elsewhere(coordinator, () => {}, true);
    const admission = await participate(other, "x", { producerId: 1, producerEpoch: 0 }, places, true);
    assert.equal(admission.refusalOf(places[0]), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  });
});

Deno.test("nobody is asked about a place where the transaction has begun, until it ends there", async () => {
  await withSimulatedBroker(async (coordinator) => {
    const client = new TransactionalClient(coordinator, "x", 2);
    await client.init();
    await client.produce("t", 0, ["a"]);
    const other = elsewhere(coordinator, () => assert.fail("the coordinator is asked"));
    const admission = participate(other, "x", client.identity, [places[0]], false);
    assert.ok(!(admission instanceof Promise));
    assert.equal(admission.refusalOf(places[0]), ErrorCode.NONE);
    await client.end(true);
    assert.equal(admission.refusalOf(places[0]), ErrorCode.CONCURRENT_TRANSACTIONS);
  });
});
