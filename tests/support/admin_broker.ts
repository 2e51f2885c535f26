/**
 * What the handlers of topic, configuration and cluster requests work with, real, on a folder of its own: topics,
 * partitions, settings. And a way to ask a handler as a connection does: through the bytes of one version.
 */

import assert from "node:assert/strict";
import type { Broker } from "../../lib/broker/broker.ts";
import { BrokerConfig } from "../../lib/broker/broker_config.ts";
import type { BrokerSettingName } from "../../lib/broker/config_definitions.ts";
import { ConfigStore } from "../../lib/broker/config_store.ts";
import { type Handler, Later, Releasing, type RequestContext } from "../../lib/broker/handler.ts";
import { Partitions } from "../../lib/broker/partitions.ts";
import { logConfigOf } from "../../lib/broker/topic_log_config.ts";
import { Topics } from "../../lib/broker/topics.ts";
import { type Clock, systemClock, systemRandom } from "../../lib/clock.ts";
import { readJson, replaceJson } from "../../lib/disk/atomic_replace.ts";
import type { Disk } from "../../lib/disk/disk.ts";
import { realDisk } from "../../lib/disk/real_disk.ts";
import { ErrorCode } from "../../lib/errors.ts";
import { silentLogger } from "../../lib/observability/logger.ts";
import { decode, encode } from "../../lib/protocol/codec.ts";
import type { InputOf, Message, ValueOf } from "../../lib/protocol/schema.ts";
import { type BatchInput, buildBatch } from "../../lib/records/record.ts";
import { Writer } from "../../lib/protocol/writer.ts";
import { defaultLogConfig } from "../../lib/storage/log_config.ts";
import { FolderTopicStore } from "../../lib/storage/topic_store.ts";
import { SoleCluster } from "./sole_cluster.ts";

/** The part of a broker that these handlers see. */
export type AdminBroker = Pick<
  Broker,
  | "nodeId"
  | "clusterId"
  | "clock"
  | "cluster"
  | "config"
  | "configStore"
  | "dataFolders"
  | "disk"
  | "logger"
  | "partitions"
  | "topics"
>;

export interface AdminBrokerOptions {
  readonly settings?: { readonly [K in BrokerSettingName]?: string | number | boolean };
  readonly disk?: Disk;
  readonly clock?: Clock;
}

/** Runs `test` with a broker on an empty folder, then closes and removes everything. */
export async function withAdminBroker(
  test: (broker: AdminBroker, restart: () => Promise<AdminBroker>) => Promise<void>,
  options: AdminBrokerOptions = {},
): Promise<void> {
  const folder = await Deno.makeTempDir();
  let broker = await open(folder, options);
  try {
    await test(broker, async () => {
      await close(broker);
      return broker = await open(folder, options);
    });
  } finally {
    await close(broker);
    await Deno.remove(folder, { recursive: true });
  }
}

const kept = new WeakMap<AdminBroker, { store: FolderTopicStore }>();

async function open(folder: string, options: AdminBrokerOptions): Promise<AdminBroker> {
  const { disk = realDisk, clock = systemClock, settings = {} } = options;
  const [logger, nodeId, clusterFolder] = [silentLogger, 0, `${folder}/__cluster`];
  await disk.makeFolder(clusterFolder);
  const config = BrokerConfig.of(settings);
  const configStore = await ConfigStore.load({ disk, folder: `${clusterFolder}/configs`, nodeId, config, logger });
  const store = new FolderTopicStore({ disk, clock, dataFolder: folder, random: systemRandom, logger });
  const topics = await Topics.load({ store, config, random: systemRandom, logger });
  const partitions = new Partitions({
    disk,
    clock,
    logger,
    logConfigOf(name) {
      const topic = topics.get(name);
      return topic === undefined ? defaultLogConfig : logConfigOf(topic.settings, config);
    },
  });
  const cluster = new SoleCluster({
    nodeId,
    topics,
    partitions,
    leaderEpoch: await nextEpoch(disk, clusterFolder),
    folderOf: (topic, partition) => `${folder}/${topic}/${partition}`,
    addresses: () => [{ nodeId, host: "advertised", port: 19092, rack: config.get("broker.rack") }],
  });
  const broker = {
    nodeId,
    clusterId: "test-cluster",
    clock,
    cluster,
    config,
    configStore,
    dataFolders: [folder],
    disk,
    logger,
    partitions,
    topics,
  };
  kept.set(broker, { store });
  return broker;
}

/** Each opening of a folder leads under a higher epoch than the one before. */
async function nextEpoch(disk: Disk, clusterFolder: string): Promise<number> {
  const path = `${clusterFolder}/test-epoch.json`;
  const epoch = await readJson(disk, path, Number) ?? 0;
  await replaceJson(disk, path, epoch + 1);
  return epoch;
}

async function close(broker: AdminBroker): Promise<void> {
  await broker.partitions.relinquishAll();
  await kept.get(broker)?.store.settled();
}

/** Appends one batch of `count` records to partition 0 of a topic and waits until it is durable. */
export async function appendRecords(
  broker: AdminBroker,
  topic: string,
  count: number,
  batch: Omit<BatchInput, "records"> = {},
): Promise<void> {
  const log = await broker.partitions.get(topic, 0)?.log();
  assert.ok(typeof log === "object", `partition 0 of ${topic} cannot be opened`);
  const records = Array.from({ length: count }, (_, index) => ({ value: `record ${index}` }));
  const nowMs = broker.clock.wallMs();
  const outcome = log.append(buildBatch({ timestamp: nowMs, ...batch, records }), nowMs);
  assert.equal(outcome.kind, "appended");
  assert.equal(outcome.kind === "appended" && await log.durable(outcome.ticket), ErrorCode.NONE);
}

/** Asks `handler` in `version` of the messages, as a connection on the listener `advertised:19092` does. */
export async function ask<Request extends Message<unknown, unknown>, Response extends Message<unknown, unknown>>(
  // deno-lint-ignore no-explicit-any
  handler: Handler<any, any>,
  messages: { readonly request: Request; readonly response: Response },
  version: number,
  input: InputOf<Request>,
): Promise<ValueOf<Response>> {
  const request = decode(messages.request, version, bytesOf(messages.request, version, input));
  let reply = await handler.handle(request, contextOf(messages.request.apiKey, version));
  while (reply instanceof Later || reply instanceof Releasing) {
    reply = reply instanceof Later ? await reply.reply : reply.response;
  }
  return decode(messages.response, version, bytesOf(messages.response, version, reply)) as ValueOf<Response>;
}

function bytesOf(message: Message<unknown, unknown>, version: number, value: unknown): Uint8Array {
  const writer = new Writer();
  encode(message, version, value, writer);
  const bytes = new Uint8Array(writer.byteLength);
  let position = 0;
  for (const chunk of writer.finish()) {
    bytes.set(chunk, position);
    position += chunk.length;
  }
  return bytes;
}

function contextOf(apiKey: number, apiVersion: number): RequestContext {
  return {
    apiKey,
    apiVersion,
    correlationId: 1,
    clientId: "test",
    listener: { name: "PLAINTEXT", advertisedHost: "advertised", advertisedPort: 19092 },
    clientHost: "127.0.0.1",
    connectionId: 1,
    connectionState: { softwareName: null, softwareVersion: null },
    signal: new AbortController().signal,
  };
}
