import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import { offsetFetchRequest, offsetFetchResponse } from "../../../../lib/protocol/messages/offset_fetch.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

async function fetchOffset(broker: SimulatedBroker, requireStable: boolean) {
  const reply = await broker.call(offsetFetchRequest, offsetFetchResponse, 7, {
    groupId: "g",
    topics: [{ name: "t", partitionIndexes: [0] }],
    requireStable,
    groups: [],
  });
  const { errorCode, committedOffset } = reply.topics[0].partitions[0];
  return [errorCode, committedOffset];
}

async function begun(broker: SimulatedBroker, protocol: 1 | 2): Promise<TransactionalClient> {
  const client = new TransactionalClient(broker, "x", protocol);
  assert.equal(await client.init(), ErrorCode.NONE);
  if (protocol === 1) assert.equal(await client.addOffsets("g"), ErrorCode.NONE);
  return client;
}

for (const protocol of [1, 2] as const) {
  Deno.test(`protocol ${protocol}: offsets are seen when their transaction is committed, and unstable until it ends`, async () => {
    await withSimulatedBroker(async (broker) => {
      const client = await begun(broker, protocol);
      assert.equal(await client.commitOffset("g", "t", 0, 5), ErrorCode.NONE);
      assert.deepEqual(await fetchOffset(broker, false), [ErrorCode.NONE, -1]);
      assert.deepEqual(await fetchOffset(broker, true), [ErrorCode.UNSTABLE_OFFSET_COMMIT, -1]);
      assert.equal(await client.end(true), ErrorCode.NONE);
      assert.deepEqual(await fetchOffset(broker, true), [ErrorCode.NONE, 5]);
      if (protocol === 1) await client.addOffsets("g");
      assert.equal(await client.commitOffset("g", "t", 0, 9), ErrorCode.NONE);
      assert.deepEqual(await fetchOffset(broker, false), [ErrorCode.NONE, 5]);
      assert.equal(await client.end(false), ErrorCode.NONE);
      assert.deepEqual(await fetchOffset(broker, true), [ErrorCode.NONE, 5]);
    });
  });
}

Deno.test("a group that is not part of the transaction takes no offsets of it, before protocol 2", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 1);
    await client.init();
    assert.equal(await client.commitOffset("g", "t", 0, 5, { version: 3 }), ErrorCode.INVALID_TXN_STATE);
    assert.equal(await client.commitOffset("g", "t", 0, 5, { version: 4 }), ErrorCode.TRANSACTION_ABORTABLE);
    assert.equal(await client.commitOffset("", "t", 0, 5), ErrorCode.INVALID_GROUP_ID);
    await client.addOffsets("other");
    assert.equal(await client.commitOffset("g", "t", 0, 5), ErrorCode.TRANSACTION_ABORTABLE);
    assert.equal(await client.commitOffset("other", "t", 0, 5), ErrorCode.NONE);
    assert.equal(await client.commitOffset("other", "nowhere", 0, 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    assert.equal(await client.addOffsets(""), ErrorCode.INVALID_GROUP_ID);
  });
});

Deno.test("a zombie's offsets are refused, and what it had committed is dropped with its transaction", async () => {
  await withSimulatedBroker(async (broker, { pass }) => {
    const zombie = await begun(broker, 2);
    assert.equal(await zombie.commitOffset("g", "t", 0, 5), ErrorCode.NONE);
    const next = new TransactionalClient(broker, "x", 2);
    assert.equal(await next.init(), ErrorCode.CONCURRENT_TRANSACTIONS);
    await pass(100);
    assert.equal(await next.init(), ErrorCode.NONE);
    assert.equal(await zombie.commitOffset("g", "t", 0, 6), ErrorCode.INVALID_PRODUCER_EPOCH);
    assert.deepEqual(await fetchOffset(broker, true), [ErrorCode.NONE, -1]);
  });
});

Deno.test("a consumer that the group does not know, or of another generation, commits nothing (KIP-447)", async () => {
  await withSimulatedBroker(async (broker, { clock }) => {
    const client = await begun(broker, 2);
    const commit = (member: Parameters<typeof client.commitOffset>[4]) => client.commitOffset("g", "t", 0, 5, member);
    assert.equal(await commit({ generationId: 3, memberId: "m" }), ErrorCode.ILLEGAL_GENERATION);
    const { groups } = broker.broker;
    const joining = groups.join("g", {
      memberId: "",
      needsKnownId: false,
      knowsSkipAssignment: true,
      protocolType: "consumer",
      facts: {
        instanceId: "static",
        clientId: "c",
        clientHost: "h",
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 10_000,
        protocols: [{ name: "range", metadata: new Uint8Array(0) }],
      },
    });
    clock.advance(5_000);
    const { memberId, generationId } = await joining;
    assert.equal(await commit({ generationId, memberId, groupInstanceId: "static" }), ErrorCode.NONE);
    assert.equal(await commit({ generationId: generationId + 1, memberId }), ErrorCode.ILLEGAL_GENERATION);
    assert.equal(await commit({ generationId, memberId: "other" }), ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal(
      await commit({ generationId, memberId: "other", groupInstanceId: "static" }),
      ErrorCode.FENCED_INSTANCE_ID,
    );
    assert.equal(await commit({}), ErrorCode.NONE, "one that says nothing of its consumer is trusted");
  });
});
