/**
 * All that a broker's handlers work with, on a disk and a clock that belong to the test: topics, partitions, groups,
 * transactions. Requests go through the bytes of their version, as on a connection.
 */

import type { Broker } from "../../lib/broker/broker.ts";
import { BrokerConfig } from "../../lib/broker/broker_config.ts";
import type { BrokerSettingName } from "../../lib/broker/config_definitions.ts";
import { ConfigStore } from "../../lib/broker/config_store.ts";
import { FetchSessionCache } from "../../lib/broker/fetch_session.ts";
import type { Cluster } from "../../lib/broker/cluster.ts";
import { coordinatorKinds, GROUP_SHARDS, TRANSACTION_SHARDS } from "../../lib/broker/coordinator_shards.ts";
import { GroupCoordination } from "../../lib/broker/group_coordination.ts";
import { handlersOf } from "../../lib/broker/handlers/table.ts";
import { Partitions } from "../../lib/broker/partitions.ts";
import { ProducerIds } from "../../lib/broker/producer_ids.ts";
import { logConfigOf } from "../../lib/broker/topic_log_config.ts";
import { getOrCreateTopic } from "../../lib/broker/topic_creation.ts";
import { Topics } from "../../lib/broker/topics.ts";
import { TransactionCoordination } from "../../lib/broker/transaction_coordination.ts";
import { TransactionGuards } from "../../lib/broker/transaction_guards.ts";
import { endPlaces } from "../../lib/broker/transaction_markers.ts";
import { silentLogger } from "../../lib/observability/logger.ts";
import type { Clock } from "../../lib/clock.ts";
import { type InputOf, type Message, type ValueOf, ZERO_UUID } from "../../lib/protocol/schema.ts";
import type { TopicPartition } from "../../lib/transactions/transaction.ts";
import { defaultLogConfig } from "../../lib/storage/log_config.ts";
import { FolderTopicStore } from "../../lib/storage/topic_store.ts";
import { SeededRandom } from "../simulation/seeded_random.ts";
import { SimulatedClock } from "../simulation/simulated_clock.ts";
import { SimulatedDisk } from "../simulation/simulated_disk.ts";
import { ask } from "./admin_broker.ts";
import { SoleCluster } from "./sole_cluster.ts";

export interface SimulatedBrokerOptions {
  readonly disk: SimulatedDisk;
  readonly clock: SimulatedClock;
  readonly random: SeededRandom;
  /** Higher than that of every broker before on this disk. */
  readonly epoch: number;
  readonly settings?: { readonly [K in BrokerSettingName]?: string | number | boolean };
  /** One of several brokers: it keeps nothing but what it is told to. Without it, it keeps everything. */
  readonly member?: {
    readonly nodeId: number;
    readonly cluster: Cluster;
    readonly links: Broker["links"];
  };
}

const DATA = "data";

/** See the file's head. */
export class SimulatedBroker {
  readonly #handlers;

  private constructor(readonly broker: Broker) {
    this.#handlers = new Map(handlersOf(broker).map((handler) => [handler.request.apiKey, handler]));
  }

  /** Starts a broker on the folder `data`, whose coordinators have read their state. @throws {DiskError} */
  static async open(
    { disk, clock, random, epoch, settings = {}, member }: SimulatedBrokerOptions,
  ): Promise<SimulatedBroker> {
    const [logger, dataFolder, clusterFolder] = [silentLogger, DATA, `${DATA}/__cluster`];
    const nodeId = member?.nodeId ?? 0;
    await disk.makeFolder(clusterFolder);
    await disk.syncFolder("");
    await disk.syncFolder(dataFolder);
    const config = BrokerConfig.of(settings);
    const configStore = await ConfigStore.load({ disk, folder: `${clusterFolder}/configs`, nodeId, config, logger });
    const store = new FolderTopicStore({ disk, clock, dataFolder, random, logger });
    const topics = await Topics.load({ store, config, random, logger });
    const partitions = new Partitions({
      disk,
      clock,
      logger,
      logConfigOf(name) {
        const topic = topics.get(name);
        return topic === undefined ? defaultLogConfig : logConfigOf(topic.settings, config);
      },
    });
    const common = { disk, clock, random, logger, config, topics, partitions, epoch };
    const tenure = { isValid: () => !disk.crashed };
    const cluster = member?.cluster ?? new SoleCluster({
      nodeId,
      topics,
      partitions,
      leaderEpoch: epoch,
      folderOf: (topic, partition) => `${dataFolder}/${topic}/${partition}`,
      addresses: () => [{ nodeId, host: "advertised", port: 19092, rack: null }],
    });
    const groups = new GroupCoordination({
      ...common,
      tenure,
      folderOf: (shard) => `${clusterFolder}/groups/${shard}`,
    });
    const producerIds = new ProducerIds(disk, `${clusterFolder}/producer_ids`, nodeId);
    const guards = new TransactionGuards();
    const links = member?.links ?? { call: () => Promise.resolve(null) };
    const transactions = new TransactionCoordination({
      ...{ ...common, producerIds, tenure },
      folderOf: (shard) => `${clusterFolder}/transactions/${shard}`,
      endPlaces: (places, marker) =>
        endPlaces({ ...common, nodeId, cluster, groups, guards, links, tenure }, places, marker),
    });
    for (const { name, partitionCount } of member === undefined ? coordinatorKinds : []) {
      const coordination = name === GROUP_SHARDS ? groups : transactions;
      for (let shard = 0; shard < partitionCount; shard++) coordination.lead(shard, epoch);
    }
    await Promise.all([groups.loaded, transactions.loaded]);
    return new SimulatedBroker({
      ...{
        nodeId,
        cluster,
        guards,
        links,
        clusterId: "simulated",
        config,
        configStore,
        clock,
        random,
        disk,
        logger,
        tenure,
      },
      ...{ topics, partitions, producerIds, groups, transactions },
      dataFolders: [dataFolder],
      fetchSessions: new FetchSessionCache(10, random.next()),
      listeners: [{ name: "PLAINTEXT", advertisedHost: "advertised", advertisedPort: 19092 }],
    });
  }

  get clock(): Clock {
    return this.broker.clock;
  }

  at(): this {
    return this;
  }

  topicIdOf(topic: string): string {
    return this.broker.topics.get(topic)?.topicId ?? ZERO_UUID;
  }

  /** Keeps a partition, or a shard of coordinators' state, from now on. */
  lead({ topic, partition }: TopicPartition, epoch: number): void {
    const { partitions, groups, transactions } = this.broker;
    if (topic === GROUP_SHARDS) groups.lead(partition, epoch);
    else if (topic === TRANSACTION_SHARDS) transactions.lead(partition, epoch);
    else partitions.lead(topic, partition, `${DATA}/${topic}/${partition}`, epoch);
  }

  /** Keeps it no longer; resolves when nothing more is written to it. */
  async resign({ topic, partition }: TopicPartition): Promise<void> {
    const { partitions, groups, transactions } = this.broker;
    if (topic === GROUP_SHARDS) return await groups.resign(partition);
    if (topic === TRANSACTION_SHARDS) return await transactions.resign(partition);
    await partitions.get(topic, partition)?.relinquish();
    await partitions.drop(topic, partition);
  }

  /** Sends a request and gives the reply. */
  call<Request extends Message<unknown, unknown>, Response extends Message<unknown, unknown>>(
    request: Request,
    response: Response,
    version: number,
    input: InputOf<Request>,
  ): Promise<ValueOf<Response>> {
    return ask(this.#handlers.get(request.apiKey)!, { request, response }, version, input);
  }
}

/** Runs `body` with a broker on an empty simulated disk, and a topic `t` of three partitions. */
export async function withSimulatedBroker(
  body: (
    broker: SimulatedBroker,
    world: { readonly clock: SimulatedClock; pass(ms: number): Promise<void> },
  ) => Promise<void>,
  settings: SimulatedBrokerOptions["settings"] = {},
): Promise<void> {
  const random = new SeededRandom(1);
  const clock = new SimulatedClock();
  const disk = new SimulatedDisk({ random: random.fork(), clock, syncTurns: 4 });
  const broker = await SimulatedBroker.open({
    disk,
    clock,
    random,
    epoch: 1,
    settings: { "num.partitions": 3, ...settings },
  });
  await getOrCreateTopic(broker.broker, "t");
  await body(broker, {
    clock,
    async pass(ms) {
      for (let passed = 0; passed < ms; passed += 50) {
        clock.advance(Math.min(50, ms - passed));
        await disk.settle();
      }
    },
  });
}
