/**
 * A broker's life: joining the cluster, serving, and leaving in order.
 *
 * Start: bind the listeners (a taken port is known before anything is written) → a session on the volume → settings and
 * topics → campaign for controller → act on the first assignment that knows the session → accept connections. No
 * partition is opened before it is used, unless another broker led it; groups are refused while their state is read.
 * Stop: where there are other brokers, they take over everything, one partition after the other, while this one serves
 * the rest → no new connections → groups are saved → running requests end → the maintenance of logs ends → what is still
 * led is relinquished → the leases are given back.
 */
import { sleep, systemClock, systemRandom, type Timer } from "../clock.ts";
import { parseAssignment } from "../cluster/assignment.ts";
import { AssignmentFollower } from "../cluster/assignment_follower.ts";
import type { Controller } from "../cluster/controller.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type MachineIdentity, machineIdentity } from "../disk/machine.ts";
import { realDisk } from "../disk/real_disk.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { defaultLogConfig } from "../storage/log_config.ts";
import { createResources } from "../storage/resources.ts";
import { FolderTopicStore } from "../storage/topic_store.ts";
import type { Broker } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { VolumeCluster } from "./cluster.ts";
import { isBrokerSettingName } from "./config_definitions.ts";
import { unservedSettings } from "./config_definitions_unserved.ts";
import { ConfigStore } from "./config_store.ts";
import { connectionServices } from "./connection.ts";
import { connectionLimitsOf, ConnectionRegistry } from "./connection_registry.ts";
import { Dispatcher } from "./dispatch.ts";
import { FetchSessionCache } from "./fetch_session.ts";
import { GroupCoordination } from "./group_coordination.ts";
import { handlersOf } from "./handlers/table.ts";
import { Leadership } from "./leadership.ts";
import { LogMaintenance } from "./log_maintenance.ts";
import { BrokerListener, type ListenerAddress } from "./listener.ts";
import { planListeners } from "./listener_plan.ts";
import { brokersFolder, Membership } from "./membership.ts";
import { Partitions } from "./partitions.ts";
import { ProducerIds } from "./producer_ids.ts";
import { logConfigOf } from "./topic_log_config.ts";
import { Topics } from "./topics.ts";
import { volumeController, type VolumeView, watchBrokers, watchControllers } from "./volume_controller.ts";
import * as z from "zod";

/** How long running requests may take to end when the broker stops. */
const FINISH_MS = 5000;
/** Time between two sweeps for what deleted topics left behind. */
const SWEEP_INTERVAL_MS = 300_000;
/** How long a start waits, in sessions, for an assignment; then it serves what it can. */
const PATIENT_SESSIONS = 3;
/** Time between two looks at who is alive. */
const LOOK_INTERVAL_MS = 250;
/** How long a broker that leaves waits for the others to take over. */
const DRAIN_MS = 60_000;

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
 * @throws {NodeIdInUseError} when another broker has the node id that was asked for
 * @throws {DiskError} when the volume cannot be used
 * @throws {Error} when a listener cannot be bound or the settings do not fit together
 */
export async function startBroker(config: BrokerConfig, logger: Logger): Promise<RunningBroker> {
  const machine = machineIdentity();
  const listeners = bindListeners(config, machine.host);
  try {
    return await joinAndServe(config, logger, machine, listeners);
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
  machine: MachineIdentity,
  listeners: readonly BrokerListener[],
): Promise<RunningBroker> {
  const { disk, clock, random } = { disk: realDisk, clock: systemClock, random: systemRandom };
  warnOfUnserved(config, logger);
  const [dataFolder] = config.get("log.dirs") ?? config.get("log.dir");
  const clusterFolder = `${dataFolder}/__cluster`;
  await disk.makeFolder(brokersFolder(dataFolder));
  await disk.syncFolder(clusterFolder);
  await disk.syncFolder(dataFolder);
  const durationMs = config.get("broker.session.timeout.ms");
  const membership = await Membership.join({
    disk,
    clock,
    logger,
    dataFolder,
    machine,
    nodeId: config.get("node.id"),
    preferredNodeId: ordinalOf(machine.host),
    rack: config.get("broker.rack"),
    listeners: listeners.map(({ info }) => ({
      name: info.name,
      host: info.advertisedHost,
      port: info.advertisedPort,
    })),
    durationMs,
    newIncarnation: () => random.uuid(),
  });
  const { nodeId } = membership;
  const view: VolumeView = { disk, clock, dataFolder, machine, nodeId };
  const [clusterId, configStore, before] = await Promise.all([
    clusterIdOf(disk, clusterFolder, random.uuid()),
    ConfigStore.load({ disk, folder: `${clusterFolder}/configs`, nodeId, config, logger }),
    readJson(disk, `${clusterFolder}/assignment.json`, parseAssignment).catch(() => null),
  ]);
  const store = new FolderTopicStore({ disk, clock, dataFolder, random, logger });
  const topics: Topics = await Topics.load({
    store,
    config,
    random,
    logger,
    closedEverywhere: (topic) => leadership.closedEverywhere(topic),
  });
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
    mayLead: () => membership.isValid(),
    onStalled: (partition) => leadership.stalled(partition),
  });
  const groups = new GroupCoordination({
    disk,
    clock,
    random,
    logger,
    config,
    topics,
    tenure: membership,
    folderOf: (shard) => `${clusterFolder}/groups/${shard}`,
  });
  const brokers = watchBrokers(view);
  const leadership: Leadership = new Leadership({
    logger,
    clock,
    membership,
    brokers,
    topics,
    partitions,
    coordinators: {
      lead: (_kind, shard, epoch) => groups.lead(shard, epoch),
      resign: (_kind, shard) => groups.resign(shard),
    },
    folderOf: (topic, partition) => `${dataFolder}/${topic}/${partition}`,
    pokeController: () => controller.poke(),
  }, before);
  const follower: AssignmentFollower = new AssignmentFollower({
    disk,
    clock,
    folder: clusterFolder,
    onAssignment: (assignment) => leadership.apply(assignment),
    onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
  });
  const controllers = watchControllers(view);
  const controller: Controller = volumeController({
    ...view,
    random,
    logger,
    holder: membership.name,
    address: listeners.map(({ info }) => `${info.advertisedHost}:${info.advertisedPort}`).join(),
    durationMs,
    brokers,
    topics,
    remembered: () => follower.latest,
    // A process that does nothing else is the better controller.
    shouldYield: () => controllers.sightings().some(({ alive }) => alive),
    onAssigned: () => void follower.lookAgain(),
  });
  await brokers.observe();
  await controllers.observe();
  controller.start();
  await follower.start();
  await Promise.race([leadership.ready, sleep(clock, PATIENT_SESSIONS * durationMs)]);
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
    tenure: membership,
    cluster: new VolumeCluster(nodeId, brokers, leadership),
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
    tenure: membership,
    logConfigOf: logSettings,
  });
  maintenance.start();
  const stopSweeping = every(SWEEP_INTERVAL_MS, () => store.sweep());
  const stopLooking = every(LOOK_INTERVAL_MS, async () => {
    await Promise.all([brokers.observe(), controllers.observe()]).catch((error) => {
      if (!(error instanceof DiskError)) throw error;
    });
  });

  return {
    nodeId,
    listeners: listeners.map(({ info, hostname, port }) => ({ name: info.name, host: hostname, port })),
    topicCount: topics.size,
    partitionCount: [...topics.all()].reduce((count, { partitionCount }) => count + partitionCount, 0),
    superseded: membership.superseded,
    async stop() {
      stopSweeping();
      await handOver();
      for (const listener of listeners) listener.close();
      await groups.stop();
      await registry.finish(FINISH_MS);
      await maintenance.stop();
      await controller.stop();
      await follower.stop();
      await leadership.stop();
      stopLooking();
      const failures = await partitions.relinquishAll();
      await store.settled();
      await membership.leave();
      if (failures.length > 0) {
        const list = failures.map(({ partition: { topic, index }, error }) => `${topic}/${index}: ${errorText(error)}`);
        throw new Error(`partitions not relinquished: ${list.join("; ")}`);
      }
    },
  };

  /** Lets the other brokers take everything over, if there are any. */
  async function handOver(): Promise<void> {
    const total = leadership.dutyCount;
    const others = brokers.sightings().filter(({ record, alive }) =>
      alive && !record.draining && record.nodeId !== nodeId
    );
    if (others.length === 0 || total === 0 || !membership.isValid()) return;
    logger.info("draining", { partitions: total, to: others.map(({ record }) => record.holder).join(",") });
    const deadline = clock.monotonicMs() + DRAIN_MS;
    await membership.drain(true);
    controller.poke();
    while (leadership.dutyCount > 0 && membership.isValid() && clock.monotonicMs() < deadline) {
      await Promise.race([leadership.nextChange(), sleep(clock, 250)]);
    }
    const left = leadership.dutyCount;
    if (left === 0) logger.info("drained", { partitions: total });
    else logger.warn("not drained: what is left is closed here and taken over later", { partitions: left, of: total });
  }

  function every(intervalMs: number, run: () => Promise<void>): () => void {
    let timer: Timer;
    let stopped = false;
    const schedule = () => {
      if (!stopped) timer = clock.schedule(intervalMs, () => void run().finally(schedule));
    };
    schedule();
    return () => {
      stopped = true;
      timer.cancel();
    };
  }
}

/** Whoever sets what nothing obeys is told. */
function warnOfUnserved(config: BrokerConfig, logger: Logger): void {
  for (const [missing, names] of Object.entries(unservedSettings)) {
    const given = names.filter((name) => isBrokerSettingName(name) && config.layersOf(name)[0]?.layer === "static");
    if (given.length > 0) logger.warn("settings without effect", { settings: given.join(","), missing });
  }
}

/** The number at the end of a host's name, as members of a StatefulSet have it (`kaas-2`); null if there is none. */
function ordinalOf(hostname: string): number | null {
  const ordinal = /-(\d{1,4})$/.exec(hostname);
  return ordinal === null ? null : Number(ordinal[1]);
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
