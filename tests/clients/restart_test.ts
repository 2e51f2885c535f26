/**
 * What clients may rely on when the broker is killed or stopped and started again: whatever it acknowledged is there, at
 * the offset it told, and topics are what they were.
 */

import assert from "node:assert/strict";
import { brokersAreOwned, startBroker } from "../support/broker_process.ts";
import { ClientProcess } from "../support/client_process.ts";
import { assertSameRecords, base64, canonicalRecords } from "../support/client_records.ts";
import { createTopic } from "../support/client_suite.ts";
import { clientCommand } from "../support/toolchain.ts";

const ignore = !brokersAreOwned || clientCommand("franz-go") === null;

Deno.test({
  name: "every acknowledged record is at its offset after the broker was killed three times",
  ignore,
  fn: async () => {
    const broker = await startBroker();
    const client = ClientProcess.start("franz-go", broker.bootstrap)!;
    try {
      const topic = "killed";
      const partitions = 3;
      const count = 12_000;
      await createTopic(client, topic, partitions);
      const writing = client.start<{ acked: [number, number][] }>("produce", {
        ...{ topic, acks: 1, lingerMs: 2, batchBytes: 4_000, timeoutMs: 120_000 },
        generate: { count, prefix: "key", valueBytes: 1_000, partitions },
      });
      for (const acknowledged of [1_000, 4_000, 7_000]) {
        await writing.until((event) => event.event === "progress" && event.acked >= acknowledged);
        await broker.kill();
        await broker.restart();
      }
      const { acked } = await writing.result;
      await assertAllRead(client, topic, partitions, acked);
    } finally {
      await client.close();
      await broker.stop();
    }
  },
});

/** Without idempotence a record may be there twice, but none may be missing where its offset was told. */
async function assertAllRead(
  client: ClientProcess,
  topic: string,
  partitions: number,
  acked: readonly (readonly [number, number])[],
): Promise<void> {
  for (let partition = 0; partition < partitions; partition++) {
    const { offset: end } = await client.offset({ topic, partition, at: "latest" });
    const read = await client.consumeKeys({ topic, partition, from: 0, count: end! });
    assert.deepEqual(
      read.map(({ offset }) => offset),
      Array.from({ length: end! }, (_, i) => i),
      "offsets have no gap",
    );
    for (const [i, [where, offset]] of acked.entries()) {
      if (where === partition) assert.equal(read[offset].key, `key-${i}`, `record ${i} at offset ${offset}`);
    }
  }
}

Deno.test({
  name: "topics, their ids, settings and records are the same after a stop and after a kill",
  ignore,
  fn: async () => {
    const broker = await startBroker();
    const client = ClientProcess.start("franz-go", broker.bootstrap)!;
    try {
      await createTopic(client, "kept", 2, { "retention.ms": "7200000" });
      await createTopic(client, "removed");
      await client.deleteTopic("removed");
      const before = await client.describeTopic("kept");
      const records = canonicalRecords();
      await client.produce({ topic: "kept", records, compression: "zstd" });
      for (const end of [broker.terminate, broker.kill]) {
        await end();
        await broker.restart();
        assert.deepEqual(await client.describeTopic("kept"), before);
        assert.equal(await client.topicConfig("kept", "retention.ms"), "7200000");
        assert.ok(!(await client.listTopics()).includes("removed"));
        const read = await client.consume({ topic: "kept", from: 0, count: records.length });
        assertSameRecords(read.records, records);
        assert.equal((await client.offset({ topic: "kept", at: "latest" })).offset, records.length);
      }
      await client.produce({ topic: "kept", records: [{ key: base64("later"), value: null }] });
      const later = await client.consumeKeys({ topic: "kept", from: records.length, count: 1 });
      assert.deepEqual(later, [{ offset: records.length, key: "later" }]);
    } finally {
      await client.close();
      await broker.stop();
    }
  },
});

Deno.test({
  name: "a broker that is told to stop while it is written to ends with 0, and its writer goes on with the next",
  ignore,
  fn: async () => {
    const broker = await startBroker();
    const client = ClientProcess.start("franz-go", broker.bootstrap)!;
    try {
      const count = 6_000;
      await createTopic(client, "stopped", 1);
      const writing = client.start<{ acked: [number, number][] }>("produce", {
        ...{ topic: "stopped", acks: -1, idempotent: true, lingerMs: 2, batchBytes: 4_000, timeoutMs: 90_000 },
        generate: { count, prefix: "key", valueBytes: 1_000 },
      });
      await writing.until((event) => event.event === "progress" && event.acked >= 1_000);
      assert.equal(await broker.terminate(), 0);
      await broker.restart();
      const { acked } = await writing.result;
      const read = await client.consumeKeys({ topic: "stopped", from: 0, count });
      assert.deepEqual(read.map(({ key }) => key), Array.from({ length: count }, (_, i) => `key-${i}`));
      assert.deepEqual(acked.map(([, offset]) => offset), read.map(({ offset }) => offset));
      assert.equal((await client.offset({ topic: "stopped", at: "latest" })).offset, count);
    } finally {
      await client.close();
      await broker.stop();
    }
  },
});
