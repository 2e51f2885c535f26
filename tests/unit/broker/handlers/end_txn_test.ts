import assert from "node:assert/strict";
import { ErrorCode } from "../../../../lib/errors.ts";
import {
  describeProducersRequest,
  describeProducersResponse,
} from "../../../../lib/protocol/messages/describe_producers.ts";
import { fetchRequest, fetchResponse } from "../../../../lib/protocol/messages/fetch.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../../../lib/protocol/messages/list_offsets.ts";
import { RecordsFault } from "../../../../lib/records/fault.ts";
import { isControl, sizeInBytes } from "../../../../lib/records/batch.ts";
import { recordsOf } from "../../../../lib/records/record.ts";
import { type SimulatedBroker, withSimulatedBroker } from "../../../support/simulated_broker.ts";
import { TransactionalClient } from "../../../support/transactional_client.ts";

const READ_COMMITTED = 1;

/** What a read_committed reader is sent of partition 0: batches in text, and the aborted transactions. */
async function fetch(broker: SimulatedBroker, fetchOffset = 0) {
  const { topicId } = broker.broker.topics.get("t")!;
  const reply = await broker.call(fetchRequest, fetchResponse, 12, {
    ...{ replicaId: -1, maxWaitMs: 0, minBytes: 0, maxBytes: 1e6, isolationLevel: READ_COMMITTED },
    ...{ sessionId: 0, sessionEpoch: -1, forgottenTopicsData: [], rackId: "" },
    topics: [{
      topic: "t",
      topicId,
      partitions: [{ partition: 0, fetchOffset, currentLeaderEpoch: -1, logStartOffset: -1, partitionMaxBytes: 1e6 }],
    }],
  });
  const [part] = reply.responses[0].partitions;
  const bytes = part.records!;
  const texts: string[] = [];
  for (let at = 0; at < bytes.length; at += sizeInBytes(bytes, at)) {
    const batch = bytes.slice(at, at + sizeInBytes(bytes, at));
    const records = recordsOf(batch);
    assert.ok(!(records instanceof RecordsFault));
    texts.push(isControl(batch) ? "marker" : records.map(({ value }) => new TextDecoder().decode(value!)).join());
  }
  return { ...part, texts };
}

async function latest(broker: SimulatedBroker, isolationLevel: number): Promise<number> {
  const reply = await broker.call(listOffsetsRequest, listOffsetsResponse, 7, {
    replicaId: -1,
    isolationLevel,
    timeoutMs: 0,
    topics: [{ name: "t", partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp: -1 }] }],
  });
  return reply.topics[0].partitions[0].offset;
}

for (const protocol of [1, 2] as const) {
  Deno.test(`protocol ${protocol}: what is open is not read, what is committed is, what is aborted is told`, async () => {
    await withSimulatedBroker(async (broker) => {
      const [first, second] = ["x", "y"].map((id) => new TransactionalClient(broker, id, protocol));
      for (const client of [first, second]) {
        assert.equal(await client.init(), ErrorCode.NONE);
        if (protocol === 1) assert.deepEqual(await client.add("t", [0, 1]), [0, 0]);
      }
      assert.equal(await first.produce("t", 0, ["a", "b"]), ErrorCode.NONE);
      assert.equal(await second.produce("t", 0, ["c"]), ErrorCode.NONE);
      assert.deepEqual((await fetch(broker)).texts, []);
      assert.equal(await latest(broker, READ_COMMITTED), 0);
      assert.equal(await latest(broker, 0), 3);
      const { producerId } = second.identity;
      assert.equal(await second.end(false), ErrorCode.NONE);
      assert.equal(await latest(broker, READ_COMMITTED), 0);
      assert.equal(await first.end(true), ErrorCode.NONE);
      assert.equal(await latest(broker, READ_COMMITTED), 5);
      const read = await fetch(broker);
      assert.deepEqual(read.texts, ["a,b", "c", "marker", "marker"]);
      assert.deepEqual(read.abortedTransactions, [{ producerId, firstOffset: 2 }]);
      assert.deepEqual((await fetch(broker, 4)).abortedTransactions, []);
    });
  });

  Deno.test(`protocol ${protocol}: the same end again is done, the other one is an invalid state`, async () => {
    await withSimulatedBroker(async (broker) => {
      const client = new TransactionalClient(broker, "x", protocol);
      await client.init();
      for (const commits of [true, false]) {
        if (protocol === 1) await client.add("t", [0]);
        assert.equal(await client.produce("t", 0, ["a"]), ErrorCode.NONE);
        const before = client.identity;
        assert.equal(await client.end(commits), ErrorCode.NONE);
        const after = client.identity;
        assert.equal(after.producerEpoch, before.producerEpoch + (protocol === 2 ? 1 : 0));
        client.identity = before;
        assert.equal(await client.end(commits), ErrorCode.NONE);
        assert.deepEqual(client.identity, after, "the repeated request gets the same epoch");
        client.identity = before;
        assert.equal(await client.end(!commits), ErrorCode.INVALID_TXN_STATE);
        client.identity = after;
      }
    });
  });
}

Deno.test("protocol 2: a commit of nothing is refused, an abort of nothing raises the epoch", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 2);
    await client.init();
    assert.equal(await client.end(true), ErrorCode.INVALID_TXN_STATE);
    assert.equal(await client.end(false), ErrorCode.NONE);
    assert.equal(client.identity.producerEpoch, 1);
  });
});

Deno.test("a fenced producer is told so since version 2, and that its epoch is invalid before", async () => {
  await withSimulatedBroker(async (broker) => {
    const zombie = new TransactionalClient(broker, "x", 1);
    await zombie.init();
    await new TransactionalClient(broker, "x", 1).init();
    assert.equal(await zombie.end(true, 1), ErrorCode.INVALID_PRODUCER_EPOCH);
    for (const version of [2, 5]) assert.equal(await zombie.end(true, version), ErrorCode.PRODUCER_FENCED);
    assert.deepEqual(await zombie.add("t", [0], 1), [ErrorCode.INVALID_PRODUCER_EPOCH]);
    assert.deepEqual(await zombie.add("t", [0], 2), [ErrorCode.PRODUCER_FENCED]);
    assert.equal(await zombie.addOffsets("g", 1), ErrorCode.INVALID_PRODUCER_EPOCH);
    assert.equal(await zombie.addOffsets("g", 2), ErrorCode.PRODUCER_FENCED);
    assert.equal(await zombie.produce("t", 0, ["a"]), ErrorCode.INVALID_PRODUCER_EPOCH);
  });
});

Deno.test("producers of both protocols work side by side, also one after the other under one id", async () => {
  await withSimulatedBroker(async (broker) => {
    for (const protocol of [1, 2, 1, 2] as const) {
      const client = new TransactionalClient(broker, "x", protocol);
      await client.init();
      for (let i = 0; i < 2; i++) {
        if (protocol === 1) await client.add("t", [0]);
        assert.equal(await client.produce("t", 0, ["a"]), ErrorCode.NONE);
        assert.equal(await client.end(true), ErrorCode.NONE);
      }
    }
    assert.equal(await latest(broker, READ_COMMITTED), 16);
  });
});

Deno.test("a timed-out transaction ends with one marker in each partition, and its producer is refused everywhere", async () => {
  for (const protocol of [1, 2] as const) {
    await withSimulatedBroker(async (broker, { pass }) => {
      const client = new TransactionalClient(broker, "x", protocol);
      await client.init({ timeoutMs: 3_000 });
      if (protocol === 1) await client.add("t", [0, 1]);
      await client.produce("t", 0, ["a"]);
      await client.produce("t", 1, ["b"]);
      await pass(3_200);
      assert.deepEqual((await fetch(broker)).texts, ["a", "marker"]);
      assert.equal(await client.end(true), ErrorCode.PRODUCER_FENCED);
      assert.equal(await client.produce("t", 0, ["late"]), ErrorCode.INVALID_PRODUCER_EPOCH);
      assert.equal(await latest(broker, READ_COMMITTED), 2);
    });
  }
});

Deno.test("DescribeProducers tells where a transaction began, until it ends", async () => {
  await withSimulatedBroker(async (broker) => {
    const client = new TransactionalClient(broker, "x", 2);
    await client.init();
    await client.produce("t", 0, ["a"]);
    await client.end(true);
    await client.produce("t", 0, ["b", "c"]);
    const describe = async () => {
      const reply = await broker.call(describeProducersRequest, describeProducersResponse, 0, {
        topics: [{ name: "t", partitionIndexes: [0] }],
      });
      return reply.topics[0].partitions[0].activeProducers;
    };
    const [open] = await describe();
    assert.deepEqual([open.producerEpoch, open.lastSequence, open.currentTxnStartOffset, open.coordinatorEpoch], [
      1,
      1,
      2,
      1,
    ]);
    await client.end(false);
    assert.equal((await describe())[0].currentTxnStartOffset, -1);
  });
});
