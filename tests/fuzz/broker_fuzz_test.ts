/**
 * Throws what {@link FuzzFrames} makes at a live broker for a while. The broker must stay up, keep its memory bounded,
 * serve an ordinary client meanwhile and afterwards, and log no failure of its own: whatever a client sends, it is the
 * client's fault.
 *
 *     KAAS_FUZZ_SEED=N       repeats a run; the seed of each run is printed
 *     KAAS_FUZZ_SECONDS=N    how long, 20 by default
 */

import assert from "node:assert/strict";
import { apiVersionsRequest, apiVersionsResponse } from "../../lib/protocol/messages/api_versions.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { metadataRequest, metadataResponse } from "../../lib/protocol/messages/metadata.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch, recordsOf } from "../../lib/records/record.ts";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker } from "../support/broker_process.ts";
import { RawClient } from "../support/raw_client.ts";
import { Seeded } from "../unit/protocol/support/seeded.ts";
import { FUZZED_TOPIC, FuzzFrames } from "./fuzz_frames.ts";

const seed = Number(Deno.env.get("KAAS_FUZZ_SEED") ?? Math.floor(Math.random() * 1e9));
const seconds = Number(Deno.env.get("KAAS_FUZZ_SECONDS") ?? 20);
const CLIENTS = 6;
const noOperations = { includeTopicAuthorizedOperations: false };
/** The fuzzing itself holds a few megabytes of requests and replies in the broker; the rest is the broker's own. */
const MAX_GROWTH_BYTES = 300 << 20;
/** How long an ordinary request may take while all clients fuzz on a busy machine. */
const PATIENCE_MS = 20_000;

Deno.test({
  name: `A broker lives through ${seconds} s of damaged and random frames (seed ${seed})`,
  ignore: !brokersAreOwned || !brokerIsKaas,
  async fn() {
    console.log(`KAAS_FUZZ_SEED=${seed}`);
    await using broker = await started();
    const topicId = await createTopic(broker, FUZZED_TOPIC);
    await assertServes(broker);
    const apiKeys = await servedApiKeys(broker);
    const before = await residentBytes(broker);
    const deadline = Date.now() + seconds * 1000;
    const end = new AbortController();
    const clients = Promise.all(
      Array.from({ length: CLIENTS }, (_, client) => {
        const random = new Seeded(seed * CLIENTS + client);
        return fuzz(broker.port, random, new FuzzFrames(random, topicId, apiKeys), end.signal);
      }),
    );
    let most = before;
    try {
      while (Date.now() < deadline) {
        await Promise.race([assertServes(broker), clients]);
        most = Math.max(most, await residentBytes(broker));
        assert.ok(most - before < MAX_GROWTH_BYTES, `${most} bytes of memory, ${before} before`);
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    } finally {
      end.abort();
      await Promise.allSettled([clients]);
    }
    const sent = (await clients).reduce((total, frames) => total + frames, 0);
    console.log(`${sent} frames; memory ${before >> 20} MiB before, ${most >> 20} MiB at most`);
    assert.ok(sent > 1000, "a fuzzer that sends nothing finds nothing");
    await assertProducesAndFetches(broker);
    assert.deepEqual(failuresIn(broker.logs()), []);
  },
});

async function started(): Promise<BrokerProcess & AsyncDisposable> {
  const broker = await startBroker();
  return { ...broker, [Symbol.asyncDispose]: () => broker.stop() };
}

/** One client's part: connections of a few frames each, read or not, closed or left. Gives the number of frames. */
async function fuzz(port: number, random: Seeded, frames: FuzzFrames, end: AbortSignal): Promise<number> {
  let sent = 0;
  while (!end.aborted) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const isRead = !random.oneIn(10);
    const reading = isRead ? readToEnd(connection) : Promise.resolve();
    try {
      for (let count = 1 + random.below(30); count > 0; count--) {
        const bytes = frames.next();
        if (random.oneIn(20)) {
          const cut = random.below(bytes.length);
          await connection.write(bytes.subarray(0, cut));
          await connection.write(bytes.subarray(cut));
        } else {
          await connection.write(bytes);
        }
        sent++;
      }
      if (isRead && !random.oneIn(4)) {
        await connection.closeWrite();
        await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 50))]);
      }
    } catch (error) {
      // The broker closes connections that send nonsense; what else may go wrong shows at the ordinary client.
      if (!(error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.ConnectionReset)) throw error;
    } finally {
      connection.close();
    }
    await reading;
  }
  return sent;
}

async function readToEnd(connection: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(16 * 1024);
  try {
    while (await connection.read(buffer) !== null);
  } catch {
    // Closed, by whichever side.
  }
}

/** Creates a topic and gives its id. */
async function createTopic(broker: BrokerProcess, name: string): Promise<string> {
  using client = await RawClient.connect(broker.port);
  const topic = { name, numPartitions: 2, replicationFactor: 1, assignments: [], configs: [] };
  const { topics } = await inTime(
    client.call(createTopicsRequest, createTopicsResponse, 7, {
      topics: [topic],
      timeoutMs: 10_000,
      validateOnly: false,
    }),
  );
  assert.equal(topics[0].errorCode, 0);
  return topics[0].topicId;
}

async function servedApiKeys(broker: BrokerProcess): Promise<number[]> {
  using client = await RawClient.connect(broker.port);
  const software = { clientSoftwareName: "fuzz", clientSoftwareVersion: "1" };
  const { apiKeys } = await inTime(client.call(apiVersionsRequest, apiVersionsResponse, 0, software));
  return apiKeys.map(({ apiKey }) => apiKey);
}

async function assertServes(broker: BrokerProcess): Promise<void> {
  using client = await RawClient.connect(broker.port);
  const topics = [{ topicId: ZERO_UUID, name: FUZZED_TOPIC }];
  const reply = await inTime(
    client.call(metadataRequest, metadataResponse, 12, { topics, allowAutoTopicCreation: false, ...noOperations }),
  );
  assert.equal(reply.brokers.length, 1);
}

async function assertProducesAndFetches(broker: BrokerProcess): Promise<void> {
  const name = "afterwards";
  await createTopic(broker, name);
  using client = await RawClient.connect(broker.port);
  const batch = buildBatch({ records: [{ key: "k", value: "still here" }], timestamp: Date.now() });
  const produced = await inTime(client.call(produceRequest, produceResponse, 9, {
    transactionalId: null,
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{ name, topicId: ZERO_UUID, partitionData: [{ index: 0, records: batch }] }],
  }));
  const { errorCode, baseOffset } = produced.responses[0].partitionResponses[0];
  assert.deepEqual({ errorCode, baseOffset }, { errorCode: 0, baseOffset: 0 });
  const partition = { partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 };
  const fetched = await inTime(client.call(fetchRequest, fetchResponse, 12, {
    maxWaitMs: 10_000,
    minBytes: 1,
    topics: [{ topic: name, topicId: ZERO_UUID, partitions: [partition] }],
    forgottenTopicsData: [],
  }));
  const found = recordsOf(fetched.responses[0].partitions[0].records!);
  assert.ok(Array.isArray(found));
  assert.equal(new TextDecoder().decode(found[0].value!), "still here");
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the broker did not answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Memory of the broker's process in bytes. Deno itself reads /proc only with all rights, native code included. */
async function residentBytes(broker: BrokerProcess): Promise<number> {
  const { stdout } = await new Deno.Command("cat", { args: [`/proc/${broker.pid()}/status`] }).output();
  return Number(/VmRSS:\s*(\d+) kB/.exec(new TextDecoder().decode(stdout))?.[1]) * 1024;
}

/** Lines in which the broker says that something failed, each kind once. */
function failuresIn(logs: string): string[] {
  const kinds = new Map<string, string>();
  for (const line of logs.split("\n")) {
    if (!line.includes('"level":"error"')) continue;
    const { message, api, error } = JSON.parse(line);
    kinds.set(`${message} ${api} ${error}`, line);
  }
  return [...kinds.values()];
}
