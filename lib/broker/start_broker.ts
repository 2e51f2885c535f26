/**
 * A broker's life: taking the volume, leading everything on it, serving, and leaving in order.
 *
 * Start: bind the listeners (a taken port is known before anything is written) → lease on the volume → settings and topics →
 * leadership of all partitions under raised epochs, durable → accept connections. No partition is opened before it is
 * used; groups are refused while their state is read. Stop: no new connections → groups are saved → running requests end →
 * the maintenance of logs ends → every partition is relinquished → the lease is given back.
 */
import { systemClock, systemRandom, type Timer } from "../clock.ts";
import { VolumeLease } from "../cluster/volume_lease.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import type { Disk } from "../disk/disk.ts";
import { lockForLife, type MachineIdentity, machineIdentity, sameBoot } from "../disk/machine.ts";
import { realDisk } from "../disk/real_disk.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { defaultLogConfig } from "../storage/log_config.ts";
import { createResources } from "../storage/resources.ts";
import { FolderTopicStore } from "../storage/topic_store.ts";
import type { Broker } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { isBrokerSettingName } from "./config_definitions.ts";
import { unservedSettings } from "./config_definitions_unserved.ts";
import { ConfigStore } from "./config_store.ts";
import { connectionServices } from "./connection.ts";
import { connectionLimitsOf, ConnectionRegistry } from "./connection_registry.ts";
import { Dispatcher } from "./dispatch.ts";
import { FetchSessionCache } from "./fetch_session.ts";
import { coordinateGroups } from "./group_coordination.ts";
import { handlersOf } from "./handlers/table.ts";
import { Leadership } from "./leadership.ts";
import { LogMaintenance } from "./log_maintenance.ts";
import { BrokerListener, type ListenerAddress } from "./listener.ts";
import { planListeners } from "./listener_plan.ts";
import { Partitions } from "./partitions.ts";
import { ProducerIds } from "./producer_ids.ts";
import { logConfigOf } from "./topic_log_config.ts";
import { Topics } from "./topics.ts";
import * as z from "zod";

/** How long running requests may take to end when the broker stops. */
const FINISH_MS = 5000;
/** How long to wait for the lock that a dying predecessor may still hold. */
const LOCK_PATIENCE_MS = 100;
/** Time between two sweeps for what deleted topics left behind. */
const SWEEP_INTERVAL_MS = 300_000;

/** A broker that serves. */
export interface RunningBroker {
  readonly nodeId: number;
  /** The listeners with the ports that were really bound. */
  readonly listeners: readonly { readonly name: string; readonly host: string; readonly port: number }[];
  readonly topicCount: number;
  readonly partitionCount: number;
  /** Resolves with the reason when another broker has taken the volume: this one acknowledges nothing any more. */
  readonly superseded: Promise<string>;
  /** Leaves in order. @throws {Error} when a partition could not be relinquished; the others were */
  stop(): Promise<void>;
}

/**
 * Starts a broker and serves.
 * @throws {VolumeInUseError} when another broker serves the volume
 * @throws {DiskError} when the volume cannot be used
 * @throws {Error} when a listener cannot be bound or the settings do not fit together
 */
export async function startBroker(config: BrokerConfig, logger: Logger): Promise<RunningBroker> {
  const machine = machineIdentity();
  const listeners = bindListeners(config, machine.host);
  try {
    return await takeVolumeAndServe(config, logger, machine, listeners);
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

async function takeVolumeAndServe(
  config: BrokerConfig,
  logger: Logger,
  machine: MachineIdentity,
  listeners: readonly BrokerListener[],
): Promise<RunningBroker> {
  const { disk, clock, random } = { disk: realDisk, clock: systemClock, random: systemRandom };
  warnOfUnserved(config, logger);
  const [dataFolder] = config.get("log.dirs") ?? config.get("log.dir");
  const clusterFolder = `${dataFolder}/__cluster`;
  const nodeId = nodeIdOf(config, machine.host);
  await disk.makeFolder(clusterFolder);
  await disk.syncFolder(dataFolder);
  const locked = await lockForLife(`${clusterFolder}/broker.lock`, LOCK_PATIENCE_MS);
  const superseded = Promise.withResolvers<string>();
  const lease = await VolumeLease.acquire({
    disk,
    clock,
    folder: clusterFolder,
    holder: `kaas-${nodeId}`,
    incarnation: random.uuid(),
    process: {
      ...machine,
      address: listeners.map(({ info }) => `${info.advertisedHost}:${info.advertisedPort}`).join(),
    },
    durationMs: config.get("broker.session.timeout.ms"),
    holderIsGone: ({ process }) => locked && sameBoot(machine, process),
    onLost: (taken) => superseded.resolve(`the volume was taken by ${taken?.holder ?? "an unknown broker"}`),
  });
  const [clusterId, configStore] = await Promise.all([
    clusterIdOf(disk, clusterFolder, random.uuid()),
    ConfigStore.load({ disk, folder: `${clusterFolder}/configs`, nodeId, config, logger }),
  ]);
  const store = new FolderTopicStore({ disk, clock, dataFolder, random, logger });
  const topics = await Topics.load({ store, config, random, logger });
  const logSettings = (name: string) => {
    const topic = topics.get(name);
    return topic === undefined ? defaultLogConfig : logConfigOf(topic.settings, config);
  };
  const partitions = new Partitions({
    disk,
    clock,
    logger,
    resources: createResources(),
    logConfigOf: logSettings,
  });
  const leadership = await Leadership.assume({
    disk,
    clock,
    logger,
    dataFolder,
    clusterFolder,
    brokerName: `kaas-${nodeId}`,
    controllerEpoch: lease.epoch,
    topics,
    partitions,
  });
  const groups = await coordinateGroups({
    disk,
    clock,
    random,
    logger,
    config,
    topics,
    clusterFolder,
    epoch: lease.epoch,
    tenure: lease,
  });
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
    tenure: lease,
    topics,
    partitions,
    producerIds: new ProducerIds(disk, `${clusterFolder}/producer_ids`, nodeId),
    groups,
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
  const maintenance = new LogMaintenance({
    disk,
    clock,
    logger,
    config,
    partitions,
    tenure: lease,
    logConfigOf: logSettings,
  });
  maintenance.start();
  const stopSweeping = every(SWEEP_INTERVAL_MS, () => store.sweep());

  return {
    nodeId,
    listeners: listeners.map(({ info, hostname, port }) => ({ name: info.name, host: hostname, port })),
    topicCount: topics.size,
    partitionCount: [...partitions.all()].length,
    superseded: superseded.promise,
    async stop() {
      stopSweeping();
      for (const listener of listeners) listener.close();
      await groups.stop();
      await registry.finish(FINISH_MS);
      await maintenance.stop();
      const failures = await partitions.relinquishAll();
      await leadership.settle();
      await store.settled();
      await lease.release();
      if (failures.length > 0) {
        const list = failures.map(({ partition: { topic, index }, error }) => `${topic}/${index}: ${errorText(error)}`);
        throw new Error(`partitions not relinquished: ${list.join("; ")}`);
      }
    },
  };

  function every(intervalMs: number, run: () => Promise<void>): () => void {
    let timer: Timer;
    const schedule = () => timer = clock.schedule(intervalMs, () => void run().finally(schedule));
    schedule();
    return () => timer.cancel();
  }
}

/** Whoever sets what nothing obeys is told. */
function warnOfUnserved(config: BrokerConfig, logger: Logger): void {
  for (const [missing, names] of Object.entries(unservedSettings)) {
    const given = names.filter((name) => isBrokerSettingName(name) && config.layersOf(name)[0]?.layer === "static");
    if (given.length > 0) logger.warn("settings without effect", { settings: given.join(","), missing });
  }
}

/** `node.id`, or the number at the end of the host's name (`kaas-2`), or 0. */
function nodeIdOf(config: BrokerConfig, hostname: string): number {
  const ordinal = /-(\d{1,4})$/.exec(hostname);
  return config.get("node.id") ?? (ordinal === null ? 0 : Number(ordinal[1]));
}

const clusterSchema = z.looseObject({ clusterId: z.string().min(1) });

/** The volume's cluster id, made once: 16 random bytes as Kafka writes them (URL-safe base64). Durable. */
async function clusterIdOf(disk: Disk, clusterFolder: string, uuid: string): Promise<string> {
  const path = `${clusterFolder}/cluster.json`;
  const found = await readJson(disk, path, (json) => clusterSchema.parse(json));
  if (found !== null) return found.clusterId;
  const bytes = uuid.replaceAll("-", "").match(/../g)!.map((pair) => parseInt(pair, 16));
  const clusterId = btoa(String.fromCharCode(...bytes)).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
  await replaceJson(disk, path, { clusterId });
  return clusterId;
}
