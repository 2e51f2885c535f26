/**
 * Brokers as processes on data folders that are taken, removed or no good: each says what is wrong, and none acknowledges
 * what it cannot keep.
 */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../lib/protocol/messages/list_offsets.ts";
import { metadataRequest, metadataResponse } from "../../lib/protocol/messages/metadata.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { RawClient } from "../support/raw_client.ts";
import { readSource, repositoryFolder } from "../support/source_files.ts";
import { fetchedValues, fetchOf } from "../support/wire_broker.ts";

const ignore = !brokersAreOwned || !brokerIsKaas || Deno.env.has("KAAS_TEST_COMMAND");

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a broker that is not expected to serve, until it ends. */
async function runBroker(...args: string[]): Promise<Ended> {
  const task: string = JSON.parse(readSource("deno.json")).tasks.broker.command;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...task.split(" ").slice(1), "--listen", "127.0.0.1:0", ...args],
    cwd: repositoryFolder,
    env: { NO_COLOR: "1" },
    stdin: "null",
    signal: AbortSignal.timeout(60_000),
  }).output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** Whether a process ended as one should that cannot start: one line on stderr that says why. */
function assertRefused({ code, stderr }: Ended, why: RegExp): void {
  assert.equal(code, 1, stderr);
  assert.match(stderr, why);
  assert.equal(stderr.trimEnd().split("\n").length, 1, `more than one line: ${stderr}`);
  assert.doesNotMatch(stderr, /^ {4}at /m, "no stack");
}

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "kaas-volume-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function withBroker(
  test: (broker: BrokerProcess) => Promise<void>,
  settings: Record<string, string> = {},
): Promise<void> {
  await withFolder(async (folder) => {
    const dataFolder = `${folder}/data`;
    const broker = await startBroker({ dataFolder, settings });
    try {
      await test(broker);
    } finally {
      await broker.stop();
    }
  });
}

async function createTopic(client: RawClient, name: string, numPartitions = 1): Promise<string> {
  const { topics } = await client.call(createTopicsRequest, createTopicsResponse, 7, {
    topics: [{ name, numPartitions, replicationFactor: 1, assignments: [], configs: [] }],
  });
  assert.equal(topics[0].errorCode, ErrorCode.NONE, topics[0].errorMessage ?? "");
  return topics[0].topicId;
}

/** Produces one record; resolves to the code and the offset. */
async function produce(client: RawClient, name: string, index: number, value: string) {
  const { responses } = await client.call(produceRequest, produceResponse, 12, {
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{
      name,
      topicId: ZERO_UUID,
      partitionData: [{ index, records: buildBatch({ timestamp: Date.now(), records: [{ value }] }) }],
    }],
  });
  const { errorCode, baseOffset } = responses[0].partitionResponses[0];
  return { errorCode, baseOffset };
}

/** What the first answer to ListOffsets that carries no error says. */
async function latestOffset(client: RawClient, name: string): Promise<number> {
  for (;;) {
    const { topics } = await client.call(listOffsetsRequest, listOffsetsResponse, 7, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name, partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp: -1 }] }],
      timeoutMs: 10_000,
    });
    const { errorCode, offset } = topics[0].partitions[0];
    if (errorCode === ErrorCode.NONE) return offset;
    assert.equal(errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  }
}

async function newProducerId(client: RawClient): Promise<number> {
  const reply = await client.call(initProducerIdRequest, initProducerIdResponse, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
  });
  assert.equal(reply.errorCode, ErrorCode.NONE);
  return reply.producerId;
}

Deno.test({
  name: "A second broker with the node id of one that runs is refused, and the first one goes on",
  ignore,
  fn: () =>
    withBroker(async (broker) => {
      const second = await runBroker("--data", broker.dataFolder, "--node-id", "4");
      assertRefused(second, /^kaas broker: cannot start: .* is served by another broker with node id 4, kaas-4 on /);
      assert.match(second.stderr, /stop it first, or give this one another --node-id/);
      using client = await RawClient.connect(broker.port);
      await createTopic(client, "t");
      assert.equal((await produce(client, "t", 0, "v")).errorCode, ErrorCode.NONE);
    }, { "node.id": "4", "broker.session.timeout.ms": "2000" }),
});

Deno.test({
  name: "After a kill the next process on this machine serves at once, with all that was acknowledged",
  ignore,
  // The session is so long that a broker which waited for its end would not be up in time.
  fn: () =>
    withBroker(async (broker) => {
      const producerIds = new Set<number>();
      let topicId = "";
      let clusterId: string | null = null;
      for (let start = 0; start < 3; start++) {
        if (start > 0) {
          await broker.kill();
          await broker.restart();
        }
        using client = await RawClient.connect(broker.port);
        if (start === 0) topicId = await createTopic(client, "t");
        const metadata = await client.call(metadataRequest, metadataResponse, 12, {
          topics: null,
          allowAutoTopicCreation: false,
          includeTopicAuthorizedOperations: false,
        });
        clusterId ??= metadata.clusterId;
        assert.equal(metadata.clusterId, clusterId);
        assert.deepEqual(metadata.topics.map((topic) => [topic.name, topic.topicId]), [["t", topicId]]);
        assert.deepEqual(metadata.brokers.map(({ nodeId, port }) => [nodeId, port]), [[0, broker.port]]);
        for (let i = 0; i < 3; i++) producerIds.add(await newProducerId(client));
        assert.equal(await latestOffset(client, "t"), start, "by the first answer without an error");
        assert.deepEqual(await produce(client, "t", 0, `value ${start}`), { errorCode: 0, baseOffset: start });
      }
      assert.equal(producerIds.size, 9, "no producer id is given twice");
    }, { "node.id": "0", "broker.session.timeout.ms": "300000" }),
});

Deno.test({
  name: "A broker whose data folder is removed acknowledges nothing more, says so, and ends",
  ignore,
  fn: () =>
    withBroker(async (broker) => {
      const sessionMs = 2_000;
      using client = await RawClient.connect(broker.port);
      await createTopic(client, "t");
      assert.equal((await produce(client, "t", 0, "before")).errorCode, ErrorCode.NONE);
      // What the broker writes meanwhile may be in the way.
      await until(
        () => Deno.remove(broker.dataFolder, { recursive: true }).then(() => true, () => false),
        "its removal",
      );
      const goneAt = performance.now();
      let lastAcknowledgedMs = 0;
      try {
        for (;;) {
          const askedMs = performance.now() - goneAt;
          const { errorCode } = await produce(client, "t", 0, "lost");
          if (errorCode === ErrorCode.NONE) lastAcknowledgedMs = askedMs;
        }
      } catch {
        // The process has ended.
      }
      assert.ok(lastAcknowledgedMs < sessionMs, `acknowledged ${lastAcknowledgedMs} ms after the folder was gone`);
      assert.equal(await broker.terminate(), 1);
      assert.match(broker.logs(), /may not acknowledge anything any more.*the data folder is gone/);
      await assert.rejects(Deno.stat(broker.dataFolder), Deno.errors.NotFound);
    }, { "broker.session.timeout.ms": "2000" }),
});

Deno.test({
  name: "A partition whose folder is removed is refused soon and stays so; the others go on",
  ignore,
  fn: () =>
    withBroker(async (broker) => {
      using client = await RawClient.connect(broker.port);
      await createTopic(client, "t", 3);
      for (const index of [0, 1, 2]) {
        assert.equal((await produce(client, "t", index, "before")).errorCode, ErrorCode.NONE);
      }
      const folder = `${broker.dataFolder}/t/1`;
      await Deno.remove(folder, { recursive: true });
      await until(
        async () => (await produce(client, "t", 1, "lost")).errorCode === ErrorCode.KAFKA_STORAGE_ERROR,
        "the partition to be refused",
      );
      assert.match(broker.logs(), /partition stalled.*the partition's files are gone/);
      // Also after the controller has given it a new epoch, and it has been tried to open it.
      await until(async () => {
        const { errorCode } = await produce(client, "t", 1, "lost");
        assert.notEqual(errorCode, ErrorCode.NONE, "acknowledged into nowhere");
        return /cannot open partition/.test(broker.logs());
      }, "the partition to be tried again");
      for (const index of [0, 2]) {
        assert.deepEqual(await produce(client, "t", index, "after"), { errorCode: 0, baseOffset: 1 });
        const fetch = fetchOf("t", 0, 12);
        fetch.topics[0].partitions[0].partition = index;
        const { responses } = await client.call(fetchRequest, fetchResponse, 12, fetch);
        assert.deepEqual(fetchedValues(responses[0].partitions[0].records), ["before", "after"]);
      }
      await assert.rejects(Deno.stat(folder), Deno.errors.NotFound, "no empty one takes its place");
    }),
});

Deno.test({
  name: "A data path that is a file, or where nothing can be made, is refused with the path in one line",
  ignore,
  fn: () =>
    withFolder(async (folder) => {
      await Deno.writeTextFile(`${folder}/file`, "content");
      assertRefused(await runBroker("--data", `${folder}/file`), /cannot start: .*\/file/);
      assertRefused(await runBroker("--data", `${folder}/file/below`), /cannot start: .*\/file/);
      assert.equal(await Deno.readTextFile(`${folder}/file`), "content");
      // A file system that takes no new names from anybody, root included.
      assertRefused(await runBroker("--data", "/proc/kaas-data"), /cannot start: .*\/proc\/kaas-data/);
    }),
});
