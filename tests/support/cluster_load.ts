/**
 * Several brokers as processes on one data folder, and a load on them that knows what was acknowledged: idempotent
 * producers that follow the leaders through every move, one partition each.
 */

import assert from "node:assert/strict";
import { ErrorCode, errorName, isRetriable } from "../../lib/errors.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { metadataRequest, metadataResponse } from "../../lib/protocol/messages/metadata.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { type Message, type ValueOf, ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { type BrokerProcess, startBroker, until } from "./broker_process.ts";
import { RawClient } from "./raw_client.ts";
import { fetchedRecords } from "./wire_broker.ts";

/** Short, so that takeovers are soon; long enough for a busy machine. */
export const SESSION_MS = 3000;
const settings = { "broker.session.timeout.ms": String(SESSION_MS) };
const REQUEST_MS = 4000;
const PAUSE_MS = 30;

export type Metadata = ValueOf<typeof metadataResponse>;

/** Brokers on one folder. */
export class TestCluster {
  readonly brokers: BrokerProcess[] = [];

  private constructor(readonly dataFolder: string) {}

  static async start(count: number): Promise<TestCluster> {
    const cluster = new TestCluster(await Deno.makeTempDir({ prefix: "kaas-cluster-" }));
    for (let i = 0; i < count; i++) await cluster.add();
    return cluster;
  }

  /** One more broker; it must not have to be told of the others. */
  async add(): Promise<BrokerProcess> {
    const broker = await startBroker({ dataFolder: this.dataFolder, settings });
    this.brokers.push(broker);
    return broker;
  }

  async stop(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.stop()));
    await Deno.remove(this.dataFolder, { recursive: true });
  }

  /** What any broker that answers says of the cluster and these topics. */
  metadata(topics: readonly string[] = [], of?: BrokerProcess): Promise<Metadata> {
    return askAny(of === undefined ? this.brokers : [of], metadataRequest, metadataResponse, 12, {
      topics: topics.map((name) => ({ name, topicId: ZERO_UUID })),
      allowAutoTopicCreation: false,
      includeTopicAuthorizedOperations: false,
    });
  }

  async createTopic(
    name: string,
    numPartitions: number,
    configs: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { topics } = await askAny(this.brokers, createTopicsRequest, createTopicsResponse, 7, {
      topics: [{
        name,
        numPartitions,
        replicationFactor: -1,
        assignments: [],
        configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
      }],
    });
    assert.equal(topics[0].errorCode, ErrorCode.NONE, topics[0].errorMessage ?? "");
  }

  /** The broker process that leads a partition. */
  async leaderOf(topic: string, partition: number): Promise<BrokerProcess> {
    let leader: BrokerProcess | undefined;
    await until(async () => {
      const { topics, brokers } = await this.metadata([topic]);
      const leaderId = topics[0].partitions.find(({ partitionIndex }) => partitionIndex === partition)?.leaderId;
      const port = brokers.find(({ nodeId }) => nodeId === leaderId)?.port;
      leader = this.brokers.find((broker) => broker.port === port);
      return leader !== undefined;
    }, `a leader of ${topic}/${partition}`);
    return leader!;
  }

  /** Waits until each of these brokers leads some of a topic's partitions, and all are led. */
  async spread(topic: string, over: readonly BrokerProcess[]): Promise<void> {
    await until(async () => {
      const { topics, brokers } = await this.metadata([topic]);
      const leaders = topics[0].partitions.map(({ leaderId }) => brokers.find((one) => one.nodeId === leaderId)?.port);
      return leaders.every((port) => over.some((broker) => broker.port === port)) &&
        over.every((broker) => leaders.includes(broker.port));
    }, `${topic} to be spread`);
  }

  /** All values of a partition, in order, each with its offset. */
  async readAll(topic: string, partition: number): Promise<[offset: number, value: string][]> {
    const values: [number, string][] = [];
    for (let fetchOffset = 0;;) {
      const reply = await this.#fetch(topic, partition, fetchOffset);
      const records = fetchedRecords(reply.records).filter(({ offset }) => offset >= fetchOffset);
      for (const { offset, value } of records) values.push([offset, new TextDecoder().decode(value!)]);
      if (records.length > 0) fetchOffset = records.at(-1)!.offset + 1;
      if (fetchOffset >= reply.highWatermark) return values;
    }
  }

  async #fetch(topic: string, partition: number, fetchOffset: number) {
    let found: ValueOf<typeof fetchResponse>["responses"][number]["partitions"][number] | undefined;
    await until(async () => {
      const leader = await this.leaderOf(topic, partition);
      const reply = await askAny([leader], fetchRequest, fetchResponse, 12, {
        maxWaitMs: 0,
        minBytes: 0,
        forgottenTopicsData: [],
        topics: [{ topic, topicId: ZERO_UUID, partitions: [{ partition, fetchOffset, partitionMaxBytes: 1 << 20 }] }],
      });
      found = reply.responses[0].partitions[0];
      assert.ok(found.errorCode === 0 || isRetriable(found.errorCode), errorName(found.errorCode));
      return found.errorCode === 0;
    }, `records of ${topic}/${partition}`);
    return found!;
  }
}

/** Writes numbered records to one partition, one batch at a time, until it is stopped; nothing is ever given up. */
export class Load {
  acknowledged = 0;
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(private readonly cluster: TestCluster, readonly topic: string, readonly partition: number) {
    this.#done = this.#run();
  }

  /** Waits until so many more records are acknowledged. */
  async progress(count: number, timeoutMs = 30_000): Promise<void> {
    const goal = this.acknowledged + count;
    await until(() => this.acknowledged >= goal, `${count} more records in ${this.topic}/${this.partition}`, timeoutMs);
  }

  /** Ends the load, and checks that the log holds each record once, in order, and nothing else. */
  async verify(): Promise<void> {
    this.#stopped = true;
    await this.#done;
    const values = await this.cluster.readAll(this.topic, this.partition);
    assert.deepEqual(
      values.map(([, value]) => value),
      Array.from({ length: this.acknowledged }, (_, i) => String(i)),
      `${this.topic}/${this.partition} of ${this.acknowledged} acknowledged records`,
    );
  }

  async #run(): Promise<void> {
    const { cluster, topic, partition } = this;
    const { producerId, producerEpoch } = await askAny(
      cluster.brokers,
      initProducerIdRequest,
      initProducerIdResponse,
      4,
      {
        transactionalId: null,
        transactionTimeoutMs: 60_000,
      },
    );
    let connection: RawClient | null = null;
    for (let sequence = 0; !this.#stopped;) {
      const records = buildBatch({
        ...{ timestamp: Date.now(), producerId, producerEpoch, baseSequence: sequence },
        records: [{ value: String(sequence) }],
      });
      try {
        connection ??= await RawClient.connect((await cluster.leaderOf(topic, partition)).port);
        const asking = connection.call(produceRequest, produceResponse, 9, {
          acks: -1,
          timeoutMs: REQUEST_MS,
          topicData: [{ name: topic, topicId: ZERO_UUID, partitionData: [{ index: partition, records }] }],
        });
        const { responses } = await within(asking, REQUEST_MS);
        const { errorCode } = responses[0].partitionResponses[0];
        if (errorCode === ErrorCode.NONE) {
          this.acknowledged = ++sequence;
          continue;
        }
        assert.ok(isRetriable(errorCode), `${topic}/${partition}: ${errorName(errorCode)} is not retriable`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      connection?.close();
      connection = null;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    connection?.close();
  }
}

/** Asks the first of these brokers that answers; goes round until one does. */
async function askAny<Input, Value>(
  brokers: readonly BrokerProcess[],
  request: Message<unknown, Input>,
  response: Message<Value, unknown>,
  version: number,
  value: Input,
): Promise<Value> {
  let reply: { readonly value: Value } | undefined;
  await until(async () => {
    for (const { port } of brokers) {
      let client: RawClient | undefined;
      try {
        client = await RawClient.connect(port);
        reply = { value: await within(client.call(request, response, version, value), REQUEST_MS) };
        return true;
      } catch {
        // Another one may answer.
      } finally {
        client?.close();
      }
    }
    return false;
  }, `an answer to ${request.name}`);
  return reply!.value;
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => timer = setTimeout(() => reject(new Error("too late")), ms));
  promise.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Paths below `folder` that a process has open. Linux only; read by another program, as Deno may not look there. */
export function openFiles(pid: number, folder: string): string[] {
  const { stdout } = new Deno.Command("find", {
    args: [`/proc/${pid}/fd`, "-type", "l", "-printf", "%l\\n"],
    stderr: "null",
  }).outputSync();
  return new TextDecoder().decode(stdout).split("\n").filter((path) => path.startsWith(folder));
}
