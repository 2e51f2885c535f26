/**
 * A broker as a member of its cluster, without the network: its session, the topics and what it leads of them, and the
 * controller that it may be. What serves clients stands on top of this.
 *
 * Joining gets a session; {@link ClusterNode.lead} then campaigns and acts on assignments; {@link ClusterNode.handOver}
 * lets the others take over; {@link ClusterNode.leave} closes what is left in order and gives everything back.
 */
import { type Clock, type Random, sleep, type Timer } from "../clock.ts";
import { parseAssignment } from "../cluster/assignment.ts";
import { AssignmentFollower } from "../cluster/assignment_follower.ts";
import type { BrokerFacts } from "../cluster/broker_record.ts";
import type { Controller } from "../cluster/controller.ts";
import { readJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import type { MachineIdentity, MachineLocks } from "../disk/machine.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { defaultLogConfig } from "../storage/log_config.ts";
import { createResources } from "../storage/resources.ts";
import { FolderTopicStore } from "../storage/topic_store.ts";
import type { Broker } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { type Cluster, VolumeCluster } from "./cluster.ts";
import { TRANSACTION_SHARDS } from "./coordinator_shards.ts";
import { GroupCoordination } from "./group_coordination.ts";
import { Leadership } from "./leadership.ts";
import { LogMaintenance } from "./log_maintenance.ts";
import { Membership } from "./membership.ts";
import { Partitions } from "./partitions.ts";
import { ProducerIds } from "./producer_ids.ts";
import { logConfigOf } from "./topic_log_config.ts";
import { Topics } from "./topics.ts";
import { TransactionCoordination } from "./transaction_coordination.ts";
import { TransactionGuards } from "./transaction_guards.ts";
import { endPlaces } from "./transaction_markers.ts";
import { volumeController, type VolumeView, watchBrokers, watchControllers } from "./volume_controller.ts";

/** Time between two sweeps for what deleted topics left behind. */
const SWEEP_INTERVAL_MS = 300_000;
/** How long a start waits, in sessions, for an assignment; then it serves what it can. */
const PATIENT_SESSIONS = 3;
/** Time between two looks at who is alive. */
const LOOK_INTERVAL_MS = 250;

export interface ClusterNodeOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly dataFolder: string;
  readonly machine: MachineIdentity;
  readonly locks: MachineLocks;
  /** As clients are told of them. */
  readonly listeners: BrokerFacts["listeners"];
  /** Requests to other brokers. */
  readonly links: Broker["links"];
}

/** See the file's head. */
export interface ClusterNode {
  readonly membership: Membership;
  readonly topics: Topics;
  readonly partitions: Partitions;
  readonly groups: GroupCoordination;
  readonly producerIds: ProducerIds;
  readonly transactions: TransactionCoordination;
  readonly guards: TransactionGuards;
  readonly leadership: Leadership;
  readonly controller: Controller;
  readonly cluster: Cluster;
  /** Campaigns, and acts on assignments. Resolves when the first that knows this broker is in effect. */
  lead(): Promise<void>;
  /** Lets the other brokers take everything over, if there are any. Resolves when they have, or after `patienceMs`. */
  handOver(patienceMs: number): Promise<void>;
  /** Closes what is still led in order. @throws {Error} naming the partitions that could not be */
  leave(): Promise<void>;
}

/**
 * Joins the cluster on a data folder, whose `__cluster/brokers` is there.
 * @throws {NodeIdInUseError} when another broker has the node id that was asked for
 * @throws {DiskError}
 */
export async function joinCluster(options: ClusterNodeOptions): Promise<ClusterNode> {
  const { disk, clock, random, logger, config, dataFolder, machine, locks, listeners } = options;
  const membership = await Membership.join({
    disk,
    clock,
    logger,
    dataFolder,
    machine,
    locks,
    nodeId: config.get("node.id"),
    preferredNodeId: ordinalOf(machine.host),
    rack: config.get("broker.rack"),
    listeners,
    durationMs: config.get("broker.session.timeout.ms"),
    newIncarnation: () => random.uuid(),
  });
  try {
    return await nodeOf(options, membership);
  } catch (error) {
    // Nobody need wait for the end of a session that was of no use.
    await membership.leave().catch(() => {});
    throw error;
  }
}

async function nodeOf(options: ClusterNodeOptions, membership: Membership): Promise<ClusterNode> {
  const { disk, clock, random, logger, config, dataFolder, machine, locks, listeners } = options;
  const clusterFolder = `${dataFolder}/__cluster`;
  const durationMs = config.get("broker.session.timeout.ms");
  const { nodeId } = membership;
  const view: VolumeView = { disk, clock, dataFolder, machine, locks, nodeId };
  // Whoever is known to have led what: a damaged file is the controller's to mourn.
  const before = await readJson(disk, `${clusterFolder}/assignment.json`, parseAssignment).catch(() => null);
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
    isPresent: (name, topicId) => store.isPresent({ name, topicId }),
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
  const producerIds = new ProducerIds(disk, `${clusterFolder}/producer_ids`, nodeId);
  const guards = new TransactionGuards();
  const transactions = new TransactionCoordination({
    disk,
    clock,
    logger,
    config,
    topics,
    producerIds,
    tenure: membership,
    folderOf: (shard) => `${dataFolder}/${TRANSACTION_SHARDS}/${shard}`,
    endPlaces: (places, marker) => {
      const here = { partitions, topics, groups, guards, clock, tenure: membership };
      return endPlaces({ ...here, cluster, nodeId, links: options.links }, places, marker);
    },
  });
  const coordinationOf = (kind: string) => kind === TRANSACTION_SHARDS ? transactions : groups;
  const brokers = watchBrokers(view);
  const leadership: Leadership = new Leadership({
    logger,
    clock,
    membership,
    brokers,
    topics,
    partitions,
    coordinators: {
      lead: (kind, shard, epoch) => coordinationOf(kind).lead(shard, epoch),
      resign: (kind, shard) => coordinationOf(kind).resign(shard),
    },
    folderOf: (topic, partition) => `${dataFolder}/${topic}/${partition}`,
    pokeController: () => controller.poke(),
  }, before);
  const cluster = new VolumeCluster(nodeId, brokers, leadership, clock);
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
    address: listeners.map(({ host, port }) => `${host}:${port}`).join(),
    durationMs,
    brokers,
    topics,
    remembered: () => follower.latest,
    // A process that does nothing else is the better controller.
    shouldYield: () => controllers.sightings().some(({ alive }) => alive),
    onAssigned: () => void follower.lookAgain(),
  });
  const maintenance = new LogMaintenance({
    disk,
    clock,
    logger,
    config,
    partitions,
    tenure: membership,
    logConfigOf: logSettings,
  });
  let stopSweeping = () => {};
  let stopLooking = () => {};

  return {
    membership,
    topics,
    partitions,
    groups,
    producerIds,
    transactions,
    guards,
    leadership,
    controller,
    cluster,

    async lead() {
      await look();
      controller.start();
      await follower.start();
      maintenance.start();
      stopSweeping = every(SWEEP_INTERVAL_MS, () => store.sweep());
      stopLooking = every(LOOK_INTERVAL_MS, look);
      await Promise.race([leadership.ready, sleep(clock, PATIENT_SESSIONS * durationMs)]);
    },

    async handOver(patienceMs) {
      const total = leadership.dutyCount;
      const others = () =>
        brokers.sightings().filter(({ record, alive }) => alive && !record.draining && record.nodeId !== nodeId)
          .map(({ record }) => record.holder);
      if (others().length === 0 || total === 0 || !membership.isValid()) return;
      logger.info("draining", { partitions: total, to: others().join(",") });
      const deadline = clock.monotonicMs() + patienceMs;
      await membership.drain(true);
      controller.poke();
      while (
        leadership.dutyCount > 0 && others().length > 0 && membership.isValid() && clock.monotonicMs() < deadline
      ) {
        await Promise.race([leadership.nextChange(), sleep(clock, LOOK_INTERVAL_MS)]);
      }
      const left = leadership.dutyCount;
      if (left === 0) logger.info("drained", { partitions: total });
      else if (others().length === 0) logger.info("nobody is left to take over", { partitions: left });
      else {
        logger.warn("not drained: what is left is closed here and taken over later", { partitions: left, of: total });
      }
    },

    async leave() {
      stopSweeping();
      await maintenance.stop();
      await controller.stop();
      await follower.stop();
      await leadership.stop();
      stopLooking();
      await transactions.stop();
      await groups.stop();
      const failures = await partitions.relinquishAll();
      await store.settled();
      await membership.leave();
      if (failures.length === 0) return;
      const list = failures.map(({ partition: { topic, index }, error }) => `${topic}/${index}: ${errorText(error)}`);
      throw new Error(`partitions not relinquished: ${list.join("; ")}`);
    },
  };

  async function look(): Promise<void> {
    try {
      await Promise.all([brokers.observe(), controllers.observe()]);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
    }
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

/** The number at the end of a host's name, as members of a StatefulSet have it (`kaas-2`); null if there is none. */
function ordinalOf(hostname: string): number | null {
  const ordinal = /-(\d{1,4})$/.exec(hostname);
  return ordinal === null ? null : Number(ordinal[1]);
}
