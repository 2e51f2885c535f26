import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  describeTransactionsRequest,
  describeTransactionsResponse,
} from "../../../../lib/protocol/messages/describe_transactions.ts";
import {
  listTransactionsRequest,
  listTransactionsResponse,
} from "../../../../lib/protocol/messages/list_transactions.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

async function list(broker: SimulatedBroker, filters: Partial<InputOf<typeof listTransactionsRequest>> = {}) {
  const reply = await broker.call(listTransactionsRequest, listTransactionsResponse, 2, {
    stateFilters: [],
    producerIdFilters: [],
    ...filters,
  });
  return { ...reply, ids: reply.transactionStates.map(({ transactionalId }) => transactionalId).sort() };
}

/** One id that is new, one that has an open transaction, one that has committed. */
async function withThree(
  body: (broker: SimulatedBroker, open: TransactionalClient, advance: (ms: number) => Promise<void>) => Promise<void>,
) {
  await withSimulatedBroker(async (broker, { pass }) => {
    const [fresh, open, done] = ["fresh", "open", "done"].map((id) => new TransactionalClient(broker, id, 2));
    for (const client of [fresh, open, done]) await client.init();
    for (const client of [open, done]) await client.produce("t", 1, ["a"]);
    await done.end(true);
    await body(broker, open, pass);
  });
}

Deno.test("ListTransactions lists all, or those of the states, producers and durations wanted", async () => {
  await withThree(async (broker, open, pass) => {
    assert.deepEqual((await list(broker)).ids, ["done", "fresh", "open"]);
    const filtered = await list(broker, { stateFilters: ["Ongoing", "Nonsense", "Dead"] });
    assert.deepEqual(filtered.ids, ["open"]);
    assert.deepEqual(filtered.unknownStateFilters, ["Nonsense"]);
    assert.deepEqual((await list(broker, { producerIdFilters: [open.identity.producerId] })).ids, ["open"]);
    await pass(1_000);
    assert.deepEqual((await list(broker, { durationFilter: 900, stateFilters: ["Ongoing"] })).ids, ["open"]);
    assert.deepEqual((await list(broker, { durationFilter: 60_000 })).ids, []);
  });
});

Deno.test("ListTransactions takes a pattern for whole ids, and says where it is none", async () => {
  await withThree(async (broker) => {
    assert.deepEqual((await list(broker, { transactionalIdPattern: "o.*" })).ids, ["open"]);
    assert.deepEqual((await list(broker, { transactionalIdPattern: "pen" })).ids, []);
    assert.deepEqual((await list(broker, { transactionalIdPattern: "fresh|done" })).ids, ["done", "fresh"]);
    assert.deepEqual((await list(broker, { transactionalIdPattern: "" })).ids.length, 3);
    const wrong = await list(broker, { transactionalIdPattern: "(" });
    assert.equal(wrong.errorCode, ErrorCode.INVALID_REGULAR_EXPRESSION);
  });
});

Deno.test("DescribeTransactions tells state, timeout, start, producer and partitions", async () => {
  await withThree(async (broker, open) => {
    const reply = await broker.call(describeTransactionsRequest, describeTransactionsResponse, 0, {
      transactionalIds: ["open", "done", "fresh", "nobody", ""],
    });
    const [first, done, fresh, nobody, empty] = reply.transactionStates;
    assert.deepEqual(first, {
      errorCode: ErrorCode.NONE,
      transactionalId: "open",
      transactionState: "Ongoing",
      transactionTimeoutMs: 60_000,
      transactionStartTimeMs: broker.broker.clock.wallMs(),
      ...open.identity,
      topics: [{ topic: "t", partitions: [1] }],
    });
    assert.deepEqual([done.transactionState, done.topics], ["CompleteCommit", []]);
    assert.deepEqual([fresh.transactionState, fresh.transactionStartTimeMs], ["Empty", -1]);
    assert.equal(nobody.errorCode, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND);
    assert.equal(empty.errorCode, ErrorCode.INVALID_REQUEST);
  });
});
