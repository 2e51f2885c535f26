import assert from "node:assert/strict";
import type { Broker } from "../../../lib/broker/broker.ts";
import { type FetchReading, type FetchTerms, readPartitions } from "../../../lib/broker/fetch_reading.ts";
import type { FetchPartition } from "../../../lib/broker/fetch_session.ts";
import { createTopic } from "../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../lib/errors.ts";
import { ZERO_UUID } from "../../../lib/protocol/schema.ts";
import { Compression } from "../../../lib/records/batch.ts";
import { type AdminBroker, appendRecords, withAdminBroker } from "../../support/admin_broker.ts";
import { failing, HookedDisk } from "../storage/support.ts";

const terms: FetchTerms = { apiVersion: 12, maxBytes: 1 << 20, isolation: "readUncommitted" };

function wanted(topic: string, overrides: Partial<FetchPartition> = {}): FetchPartition {
  return {
    ...{ topic, topicId: ZERO_UUID, partition: 0, fetchOffset: 0, maxBytes: 1 << 20 },
    ...{ currentLeaderEpoch: -1, lastFetchedEpoch: -1, logStartOffset: -1, sentHighWatermark: -1 },
    sentLogStartOffset: -1,
    ...overrides,
  };
}

async function topicsWith(broker: AdminBroker, names: readonly string[], configs = {}): Promise<void> {
  for (const name of names) {
    const topic = await createTopic(broker, {
      ...{ name, numPartitions: 1, replicationFactor: 1, assignments: [] },
      configs: Object.entries(configs).map(([name, value]) => ({ name, value: String(value) })),
    });
    assert.ok("topicId" in topic);
  }
}

function read(
  broker: AdminBroker,
  parts: FetchPartition[],
  changes: Partial<FetchTerms> = {},
): FetchReading | Promise<FetchReading> {
  return readPartitions(broker as unknown as Broker, { ...terms, ...changes }, parts);
}

Deno.test("Open partitions with recent records are read on the spot, in the order asked", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["a", "b"]);
    await appendRecords(broker, "a", 2);
    await appendRecords(broker, "b", 3);
    const reading = read(broker, [wanted("b"), wanted("a"), wanted("a", { fetchOffset: 2 })]);
    assert.ok(!(reading instanceof Promise));
    assert.deepEqual(reading.parts.map(({ highWatermark }) => highWatermark), [3, 2, 2]);
    assert.deepEqual(reading.parts.map(({ records }) => records.length > 0), [true, true, false]);
    assert.equal(reading.bytes, reading.parts.reduce((sum, { records }) => sum + records.length, 0));
    assert.equal(reading.urgent, false);
    reading.release();
  });
});

Deno.test("The first batch of the first partition that has one is whole; the others keep to what is left", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["empty", "a", "b"]);
    for (const name of ["a", "b"]) for (let i = 0; i < 3; i++) await appendRecords(broker, name, 1);
    const sizes = async (maxBytes: number, ownMaxBytes = 1 << 20) => {
      const parts = ["empty", "a", "b"].map((name) => wanted(name, { maxBytes: ownMaxBytes }));
      const reading = await read(broker, parts, { maxBytes });
      reading.release();
      return reading.parts.map(({ records }) => records.length);
    };
    const [, three] = await sizes(1 << 20);
    const one = three / 3;
    assert.deepEqual(await sizes(1), [0, one, 0]);
    assert.deepEqual(await sizes(two(one)), [0, two(one), 0]);
    assert.deepEqual(await sizes(three + one), [0, three, one]);
    assert.deepEqual(
      await sizes(1 << 20, 1),
      [0, one, 0],
      "only the first batch of all may be above its partition's limit",
    );
    assert.deepEqual(await sizes(1 << 20, two(one)), [0, two(one), two(one)]);
  });

  function two(one: number): number {
    return 2 * one;
  }
});

Deno.test("Each refusal names its partition alone, and makes the reading urgent", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["t"]);
    await appendRecords(broker, "t", 2);
    const epoch = broker.partitions.get("t", 0)!.leaderEpoch;
    const codes = async (...parts: FetchPartition[]) => {
      const reading = await read(broker, [...parts, wanted("t")]);
      assert.equal(reading.parts.at(-1)!.errorCode, ErrorCode.NONE);
      assert.equal(reading.urgent, true);
      reading.release();
      return reading.parts.slice(0, -1).map(({ errorCode }) => errorCode);
    };
    assert.deepEqual(await codes(wanted("none"), wanted("t", { partition: 1 }), wanted("t", { partition: -1 })), [
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    assert.deepEqual(await codes(wanted("t", { fetchOffset: 3 }), wanted("t", { fetchOffset: -1 })), [
      ErrorCode.OFFSET_OUT_OF_RANGE,
      ErrorCode.OFFSET_OUT_OF_RANGE,
    ]);
    const [behind, ahead] = [epoch - 1, epoch + 1];
    assert.deepEqual(await codes(wanted("t", { currentLeaderEpoch: ahead })), [ErrorCode.UNKNOWN_LEADER_EPOCH]);
    if (behind >= 0) {
      assert.deepEqual(await codes(wanted("t", { currentLeaderEpoch: behind })), [ErrorCode.FENCED_LEADER_EPOCH]);
    }
  });
});

Deno.test("From version 13 on a topic is meant by its id, whatever its name is", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["t"]);
    await appendRecords(broker, "t", 2);
    const { topicId } = broker.topics.get("t")!;
    const reading = await read(broker, [wanted("", { topicId }), wanted("t")], { apiVersion: 13 });
    assert.deepEqual(reading.parts.map(({ errorCode }) => errorCode), [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]);
    reading.release();
  });
});

Deno.test("A partition that is led elsewhere is refused with the leader that is known", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["t"]);
    await broker.partitions.drop("t", 0);
    const cluster = Object.assign(Object.create(broker.cluster), { placeOf: () => ({ nodeId: 7, leaderEpoch: 3 }) });
    const reading = await read({ ...broker, cluster }, [wanted("t")]);
    assert.equal(reading.parts[0].errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.deepEqual(reading.parts[0].currentLeader, { leaderId: 7, leaderEpoch: 3 });
  });
});

Deno.test("A client whose log leaves ours is told where, instead of records", async () => {
  await withAdminBroker(async (broker, restart) => {
    await topicsWith(broker, ["t"]);
    await appendRecords(broker, "t", 2);
    const { leaderEpoch } = broker.partitions.get("t", 0)!;
    const later = await restart();
    await appendRecords(later, "t", 3);
    const fetched = async (fetchOffset: number, lastFetchedEpoch: number) => {
      const reading = await read(later, [wanted("t", { fetchOffset, lastFetchedEpoch })]);
      reading.release();
      return reading;
    };
    const diverging = await fetched(4, leaderEpoch);
    assert.deepEqual(diverging.parts[0].divergingEpoch, { epoch: leaderEpoch, endOffset: 2 });
    assert.deepEqual([diverging.parts[0].records.length, diverging.parts[0].highWatermark], [0, 5]);
    assert.equal(diverging.urgent, true);
    const agreeing = await fetched(2, leaderEpoch);
    assert.equal(agreeing.parts[0].divergingEpoch.endOffset, -1);
    assert.ok(agreeing.parts[0].records.length > 0);
  });
});

Deno.test("Old versions get old formats, and no zstd", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["plain"]);
    await topicsWith(broker, ["zstd"], { "compression.type": "zstd" });
    await appendRecords(broker, "plain", 2, { compression: Compression.gzip });
    const MAGIC_AT = 16;
    for (const [apiVersion, magic] of [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [12, 2]]) {
      const reading = await read(broker, [wanted("plain")], { apiVersion });
      assert.equal(reading.parts[0].records[MAGIC_AT], magic, `version ${apiVersion}`);
      reading.release();
    }
    for (const [apiVersion, code] of [[9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE], [10, ErrorCode.NONE]] as const) {
      const reading = await read(broker, [wanted("zstd")], { apiVersion });
      assert.equal(reading.parts[0].errorCode, code);
      reading.release();
    }
  });
});

Deno.test("A volume that cannot be read refuses that partition, not the whole request", async () => {
  const disk = new HookedDisk();
  await withAdminBroker(async (first, restart) => {
    await topicsWith(first, ["bad", "good"]);
    for (const name of ["bad", "good"]) await appendRecords(first, name, 2);
    const broker = await restart();
    for (const name of ["bad", "good"]) await broker.partitions.get(name, 0)!.opened();
    disk.hook = (operation, path) => {
      if (path.includes("/bad/")) {
        failing("readSync", /\.log$/)(operation, path);
        failing("read", /\.log$/)(operation, path);
      }
    };
    const reading = await read(broker, [wanted("bad"), wanted("good")]);
    assert.deepEqual(reading.parts.map(({ errorCode }) => errorCode), [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]);
    assert.ok(reading.parts[1].records.length > 0);
    reading.release();
    disk.hook = () => {};
  }, { disk });
});

Deno.test("Transactions are told of only to who reads committed records", async () => {
  await withAdminBroker(async (broker) => {
    await topicsWith(broker, ["t"]);
    await appendRecords(broker, "t", 1);
    for (const [isolation, told] of [["readUncommitted", null], ["readCommitted", []]] as const) {
      const reading = await read(broker, [wanted("t")], { isolation });
      assert.deepEqual(reading.parts[0].abortedTransactions, told);
      reading.release();
    }
  });
});
