/**
 * A broker in this process on a folder of its own, and one raw connection to it: for tests of what travels on the wire.
 *
 *     await withWireBroker(async (wire) => { await wire.createTopic("t"); … });
 */

import assert from "node:assert/strict";
import { BrokerConfig } from "../../lib/broker/broker_config.ts";
import { type RunningBroker, startBroker, type Surroundings } from "../../lib/broker/start_broker.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { type Logger, silentLogger } from "../../lib/observability/logger.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../lib/protocol/messages/delete_topics.ts";
import { fetchRequest, fetchResponse } from "../../lib/protocol/messages/fetch.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../lib/protocol/messages/list_offsets.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { type InputOf, type ValueOf, ZERO_UUID } from "../../lib/protocol/schema.ts";
import { sizeInBytes } from "../../lib/records/batch.ts";
import { type BatchInput, type BatchRecord, buildBatch, recordsOf } from "../../lib/records/record.ts";
import { RawClient } from "./raw_client.ts";

export type ProducedPartition = ValueOf<typeof produceResponse>["responses"][number]["partitionResponses"][number];
export type FetchedPartition = ValueOf<typeof fetchResponse>["responses"][number]["partitions"][number];
type FetchInput = InputOf<typeof fetchRequest>;

/** What a Fetch asks for besides one partition. */
export type FetchTerms = Partial<Omit<FetchInput, "topics">> & {
  readonly partitionMaxBytes?: number;
  readonly currentLeaderEpoch?: number;
  readonly lastFetchedEpoch?: number;
};

type Settings = Parameters<typeof BrokerConfig.of>[0];

/** What the broker runs on, where that is not this machine, and where it logs. */
export type WireOptions = Partial<Surroundings> & { readonly logger?: Logger };

/** See the file's head. */
export class WireBroker {
  private constructor(readonly broker: RunningBroker, readonly folder: string, readonly client: RawClient) {}

  static async start(settings: Settings = {}, { logger = silentLogger, ...around }: WireOptions = {}) {
    const folder = await Deno.makeTempDir({ prefix: "kaas-wire-" });
    const config = BrokerConfig.of({ "log.dir": folder, listeners: ["PLAINTEXT://127.0.0.1:0"], ...settings });
    const broker = await startBroker(config, logger, around);
    return new WireBroker(broker, folder, await RawClient.connect(broker.listeners[0].port));
  }

  get port(): number {
    return this.broker.listeners[0].port;
  }

  connect(): Promise<RawClient> {
    return RawClient.connect(this.port);
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.broker.stop();
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Resolves to the topic's id. */
  async createTopic(name: string, configs: Readonly<Record<string, string>> = {}, numPartitions = 1): Promise<string> {
    const { topics } = await this.client.call(createTopicsRequest, createTopicsResponse, 7, {
      topics: [{
        name,
        numPartitions,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
      }],
    });
    assert.equal(topics[0].errorCode, ErrorCode.NONE, topics[0].errorMessage ?? "");
    return topics[0].topicId;
  }

  async deleteTopic(name: string): Promise<void> {
    const reply = await this.client.call(deleteTopicsRequest, deleteTopicsResponse, 5, {
      topics: [],
      topicNames: [name],
      timeoutMs: 10_000,
    });
    assert.equal(reply.responses[0].errorCode, ErrorCode.NONE);
  }

  /** Produces to partition 0 of a topic, by its id from version 13 on. */
  async produce(
    topic: string,
    records: Uint8Array | null,
    { version = 12, acks = -1, timeoutMs = 10_000, client = this.client } = {},
  ): Promise<ProducedPartition> {
    const { responses } = await client.call(produceRequest, produceResponse, version, {
      acks,
      timeoutMs,
      topicData: [{
        ...(version >= 13 ? { name: "", topicId: topic } : { name: topic, topicId: ZERO_UUID }),
        partitionData: [{ index: 0, records }],
      }],
    });
    return responses[0].partitionResponses[0];
  }

  /** Produces a batch that must be taken; resolves to its base offset. */
  async append(topic: string, batch: BatchInput): Promise<number> {
    const reply = await this.produce(topic, buildBatch({ timestamp: Date.now(), ...batch }));
    assert.equal(reply.errorCode, ErrorCode.NONE, reply.errorMessage ?? "");
    return reply.baseOffset;
  }

  /** Fetches from partition 0 of a topic, by its id from version 13 on. */
  async fetch(
    topic: string,
    fetchOffset: number,
    { version = 12, client = this.client, ...terms }: FetchTerms & { version?: number; client?: RawClient } = {},
  ): Promise<FetchedPartition> {
    const reply = await client.call(fetchRequest, fetchResponse, version, fetchOf(topic, fetchOffset, version, terms));
    assert.equal(reply.errorCode, ErrorCode.NONE);
    return reply.responses[0].partitions[0];
  }

  /** Offset and timestamp for a timestamp or one of the special places, in partition 0. */
  async listOffset(
    topic: string,
    timestamp: number,
    { version = 11, currentLeaderEpoch = -1, isolationLevel = 0 } = {},
  ) {
    const { topics } = await this.client.call(listOffsetsRequest, listOffsetsResponse, version, {
      replicaId: -1,
      isolationLevel,
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, currentLeaderEpoch, timestamp, maxNumOffsets: 10 }] }],
      timeoutMs: 10_000,
    });
    return topics[0].partitions[0];
  }
}

/** Runs `test` with a broker, then stops it and removes its folder. */
export async function withWireBroker(
  test: (wire: WireBroker) => Promise<void>,
  settings: Settings = {},
  options: WireOptions = {},
): Promise<void> {
  const wire = await WireBroker.start(settings, options);
  try {
    await test(wire);
  } finally {
    await wire.stop();
  }
}

/** A Fetch request for partition 0 of one topic that answers at once. */
export function fetchOf(topic: string, fetchOffset: number, version: number, terms: FetchTerms = {}): FetchInput {
  const { partitionMaxBytes = 1 << 20, currentLeaderEpoch = -1, lastFetchedEpoch = -1, ...rest } = terms;
  return {
    maxWaitMs: 0,
    minBytes: 0,
    forgottenTopicsData: [],
    ...rest,
    topics: [{
      ...(version >= 13 ? { topic: "", topicId: topic } : { topic, topicId: ZERO_UUID }),
      partitions: [{ partition: 0, fetchOffset, partitionMaxBytes, currentLeaderEpoch, lastFetchedEpoch }],
    }],
  };
}

/** The batches in what was fetched. */
export function batchesOf(records: Uint8Array | null): Uint8Array[] {
  const batches: Uint8Array[] = [];
  for (let at = 0; records !== null && at + 12 <= records.length;) {
    const size = sizeInBytes(records, at);
    if (at + size > records.length) break;
    batches.push(records.subarray(at, at + size));
    at += size;
  }
  return batches;
}

/** The records in what was fetched, of batches in the present format. */
export function fetchedRecords(records: Uint8Array | null): BatchRecord[] {
  return batchesOf(records).flatMap((batch) => {
    const read = recordsOf(batch);
    assert.ok(Array.isArray(read), "a fetched batch cannot be read");
    return read;
  });
}

/** The values of the records in what was fetched, as text. */
export function fetchedValues(records: Uint8Array | null): (string | null)[] {
  return fetchedRecords(records).map(({ value }) => value === null ? null : new TextDecoder().decode(value));
}
