/**
 * A broker's life: joining the cluster, serving, and leaving in order.
 *
 * Start: bind the listeners (a taken port is known before anything is written) → a session on the volume → settings and
 * topics → campaign for controller → act on the first assignment that knows the session → accept connections. No
 * partition is opened before it is used, unless another broker led it; groups and transactions are refused
 * while their state is read.
 * Stop: where there are other brokers, they take over everything, one partition after the other, while this one serves
 * the rest → no new connections → transactions and groups are saved → running requests end → the
 * maintenance of logs ends → what is still led is relinquished → the leases are given back.
 */
import { type Clock, type Random, sleep, systemClock, systemRandom } from "../clock.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type MachineIdentity, machineIdentity, type MachineLocks, machineLocks } from "../disk/machine.ts";
import { realDisk } from "../disk/real_disk.ts";
import type { Logger } from "../observability/logger.ts";
import type { Broker } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { BrokerLinks } from "./broker_links.ts";
import { type ClusterNode, joinCluster } from "./cluster_node.ts";
import { isBrokerSettingName } from "./config_definitions.ts";
import { unservedSettings } from "./config_definitions_unserved.ts";
import { ConfigStore } from "./config_store.ts";
import { connectionServices } from "./connection.ts";
import { connectionLimitsOf, ConnectionRegistry } from "./connection_registry.ts";
import { Dispatcher } from "./dispatch.ts";
import { FetchSessionCache } from "./fetch_session.ts";
import { handlersOf } from "./handlers/table.ts";
import { BrokerListener, type ListenerAddress } from "./listener.ts";
import { planListeners } from "./listener_plan.ts";
import { brokersFolder } from "./membership.ts";
import * as z from "zod";

/** How long running requests may take to end when the broker stops. */
const FINISH_MS = 5000;
/** How long a broker waits for the cluster id that another one is making: it may have died of it. */
const CLUSTER_ID_TRIES = 50;
const CLUSTER_ID_PAUSE_MS = 20;
/** How long a broker that leaves waits for the others to take over. */
const DRAIN_MS = 60_000;

/** What a broker runs on. */
export interface Surroundings {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly machine: MachineIdentity;
  readonly locks: MachineLocks;
}

/** A broker that serves. */
export interface RunningBroker {
  readonly nodeId: number;
  /** The listeners with the ports that were really bound. */
  readonly listeners: readonly { readonly name: string; readonly host: string; readonly port: number }[];
  readonly topicCount: number;
  readonly partitionCount: number;
  /** Resolves with the reason when another broker has taken the volume: this one acknowledges nothing any more. */
  readonly superseded: Promise<string>;
  /**
   * Leaves in order; once, however often it is asked to.
   * @throws {Error} when a partition could not be relinquished; the others were
   */
  stop(): Promise<void>;
}

/**
 * Starts a broker and serves, on this machine where `surroundings` name nothing else.
 * @throws {NodeIdInUseError} when another broker has the node id that was asked for
 * @throws {DiskError} when the volume cannot be used
 * @throws {Error} when a listener cannot be bound or the settings do not fit together
 */
export async function startBroker(
  config: BrokerConfig,
  logger: Logger,
  surroundings: Partial<Surroundings> = {},
): Promise<RunningBroker> {
  const { disk = realDisk, clock = systemClock, random = systemRandom } = surroundings;
  const { machine = machineIdentity(), locks = machineLocks } = surroundings;
  const listeners = bindListeners(config, machine.host);
  try {
    return await joinAndServe(config, logger, { disk, clock, random, machine, locks }, listeners);
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
}

function bindListeners(config: BrokerConfig, hostname: string): BrokerListener[] {
  const plan = planListeners(config, hostname);
  if ("problems" in plan) throw new Error(plan.problems.join("; "));
  const bound: BrokerListener[] = [];
  try {
    for (const address of plan) bound.push(bind(address, config.get("socket.listen.backlog.size")));
    return bound;
  } catch (error) {
    for (const listener of bound) listener.close();
    throw error;
  }
}

function bind(address: ListenerAddress, backlog: number): BrokerListener {
  try {
    return BrokerListener.bind(address, backlog);
  } catch (error) {
    const { name, hostname, port } = address;
    throw new Error(`listener ${name} cannot listen on ${hostname}:${port}`, { cause: error });
  }
}

async function joinAndServe(
  config: BrokerConfig,
  logger: Logger,
  { disk, clock, random, machine, locks }: Surroundings,
  listeners: readonly BrokerListener[],
): Promise<RunningBroker> {
  warnOfUnserved(config, logger);
  const [dataFolder] = config.get("log.dirs") ?? config.get("log.dir");
  const clusterFolder = `${dataFolder}/__cluster`;
  await disk.makeFolder(brokersFolder(dataFolder));
  await disk.syncFolder(clusterFolder);
  await disk.syncFolder(dataFolder);
  const links = new BrokerLinks({
    clock,
    clientId: "kaas",
    addressOf: (id) => node.cluster.addresses(listeners[0].info.name).find(({ nodeId }) => nodeId === id) ?? null,
  });
  const node: ClusterNode = await joinCluster({
    disk,
    clock,
    random,
    logger,
    config,
    dataFolder,
    machine,
    locks,
    listeners: listeners.map(({ info }) => ({
      name: info.name,
      host: info.advertisedHost,
      port: info.advertisedPort,
    })),
    links,
  });
  const { nodeId } = node.membership;
  let clusterId: string, configStore: ConfigStore;
  try {
    [clusterId, configStore] = await Promise.all([
      clusterIdOf({ disk, clock, random, clusterFolder }),
      ConfigStore.load({ disk, folder: `${clusterFolder}/configs`, nodeId, config, logger }),
    ]);
    await node.lead();
  } catch (error) {
    // Nobody need wait for the end of a session that was of no use.
    links.close();
    await node.leave().catch(() => {});
    throw error;
  }
  const broker: Broker = {
    nodeId,
    clusterId,
    config,
    configStore,
    clock,
    random,
    disk,
    dataFolders: [dataFolder],
    logger,
    tenure: node.membership,
    cluster: node.cluster,
    topics: node.topics,
    partitions: node.partitions,
    producerIds: node.producerIds,
    groups: node.groups,
    transactions: node.transactions,
    guards: node.guards,
    links,
    fetchSessions: new FetchSessionCache(config.get("max.incremental.fetch.session.cache.slots"), random.next()),
    listeners: listeners.map(({ info }) => info),
  };
  const registry = new ConnectionRegistry(
    connectionServices({
      dispatcher: new Dispatcher(handlersOf(broker), logger),
      clock,
      logger,
      maxRequestBytes: config.get("socket.request.max.bytes"),
    }),
    connectionLimitsOf(config),
  );
  for (const listener of listeners) void listener.serve(registry, { clock, logger });

  let stopping: Promise<void> | null = null;
  const stop = async () => {
    await node.handOver(DRAIN_MS);
    for (const listener of listeners) listener.close();
    await node.transactions.stop();
    await node.groups.stop();
    links.close();
    await registry.finish(FINISH_MS);
    await node.leave();
  };
  return {
    nodeId,
    listeners: listeners.map(({ info, hostname, port }) => ({ name: info.name, host: hostname, port })),
    topicCount: node.topics.size,
    partitionCount: [...node.topics.all()].reduce((count, { partitionCount }) => count + partitionCount, 0),
    superseded: node.membership.superseded,
    stop: () => stopping ??= stop(),
  };
}

/** Whoever sets what nothing obeys is told. */
function warnOfUnserved(config: BrokerConfig, logger: Logger): void {
  for (const [missing, names] of Object.entries(unservedSettings)) {
    const given = names.filter((name) => isBrokerSettingName(name) && config.layersOf(name)[0]?.layer === "static");
    if (given.length > 0) logger.warn("settings without effect", { settings: given.join(","), missing });
  }
}

const clusterSchema = z.looseObject({ clusterId: z.string().min(1) });

/**
 * The volume's cluster id, made once: 16 random bytes as Kafka writes them (URL-safe base64). Durable. Of several brokers
 * that start at once, one makes it and the others wait for it.
 */
async function clusterIdOf(
  { disk, clock, random, clusterFolder }: Pick<Broker, "disk" | "clock" | "random"> & {
    readonly clusterFolder: string;
  },
): Promise<string> {
  const path = `${clusterFolder}/cluster.json`;
  const read = () => readJson(disk, path, (json) => clusterSchema.parse(json));
  let found = await read();
  if (found === null && !await claim(disk, `${path}.claim`)) {
    for (let tries = 0; found === null && tries < CLUSTER_ID_TRIES; tries++) {
      await sleep(clock, CLUSTER_ID_PAUSE_MS);
      found = await read();
    }
  }
  if (found !== null) return found.clusterId;
  const bytes = random.uuid().replaceAll("-", "").match(/../g)!.map((pair) => parseInt(pair, 16));
  const clusterId = btoa(String.fromCharCode(...bytes)).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
  await replaceJson(disk, path, { clusterId });
  return clusterId;
}

/** Whether this process is the first to ask for the file. */
async function claim(disk: Disk, path: string): Promise<boolean> {
  try {
    (await disk.open(path, "create")).close();
    return true;
  } catch (error) {
    if (error instanceof DiskError && error.kind === "exists") return false;
    throw error;
  }
}
