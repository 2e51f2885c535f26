/**
 * The controller over a volume: how a process that has the topics of a data folder in memory campaigns, and whom it sees
 * there. A broker runs one beside everything else, `kaas controller` runs nothing else.
 */
import type { Clock, Random } from "../clock.ts";
import type { Assignment } from "../cluster/assignment.ts";
import { type BrokerRecord, parseBrokerRecord } from "../cluster/broker_record.ts";
import { Controller } from "../cluster/controller.ts";
import { readDrainOrders } from "../cluster/drain_orders.ts";
import { type LeaseRecord, parseLease } from "../cluster/lease.ts";
import { LeaseWatch } from "../cluster/lease_watch.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type MachineIdentity, type MachineLocks, sameBoot } from "../disk/machine.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { parseSegmentFileName } from "../partition_state.ts";
import { coordinatorKinds } from "./coordinator_shards.ts";
import { brokersFolder, lockPath } from "./membership.ts";
import type { Topics } from "./topics.ts";

/** Where a process looks, and as what. */
export interface VolumeView {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly dataFolder: string;
  readonly machine: MachineIdentity;
  readonly locks: MachineLocks;
  /** The node id of the process itself; null for one that is no broker. */
  readonly nodeId: number | null;
}

export interface VolumeControllerOptions extends VolumeView {
  readonly random: Random;
  readonly logger: Logger;
  /** The name in the lease. */
  readonly holder: string;
  /** For people. */
  readonly address: string;
  readonly durationMs: number;
  readonly brokers: LeaseWatch<BrokerRecord>;
  /** All topics as this process knows them. */
  readonly topics: Topics;
  remembered?(): Assignment | null;
  shouldYield?(): boolean;
  onAssigned?(assignment: Assignment): void;
}

/** Where processes that are controllers and nothing else keep their leases. */
export function controllersFolder(dataFolder: string): string {
  return `${dataFolder}/__cluster/controllers`;
}

/** The brokers of a volume. */
export function watchBrokers(view: VolumeView): LeaseWatch<BrokerRecord> {
  const { disk, clock, dataFolder } = view;
  return new LeaseWatch({
    disk,
    clock,
    folder: brokersFolder(dataFolder),
    parse: parseBrokerRecord,
    isGone: (record) => isGone(view, record.nodeId, record),
  });
}

/** The processes on a volume that are controllers and nothing else. */
export function watchControllers({ disk, clock, dataFolder }: VolumeView): LeaseWatch<LeaseRecord> {
  return new LeaseWatch({ disk, clock, folder: controllersFolder(dataFolder), parse: parseLease });
}

/** The controller; it does nothing before its start. */
export function volumeController(options: VolumeControllerOptions): Controller {
  const { disk, clock, random, logger, dataFolder, machine, nodeId, topics } = options;
  return new Controller({
    disk,
    clock,
    folder: `${dataFolder}/__cluster`,
    lease: {
      holder: options.holder,
      process: { ...machine, address: options.address },
      durationMs: options.durationMs,
      async holderIsGone(lease) {
        const holder = /^kaas-(\d+)$/.exec(lease.holder)?.[1];
        if (holder === undefined) return false;
        return Number(holder) === nodeId || await isGone(options, Number(holder), lease);
      },
    },
    newIncarnation: () => random.uuid(),
    brokers: options.brokers,
    topics: {
      all: () => topics.all(),
      async refresh(names) {
        if (names === "all") await topics.reloadAll();
        else for (const name of names) await topics.reload(name);
      },
    },
    coordinators: coordinatorKinds,
    epochOnDisk: (topic, partition) => epochOnDisk(disk, `${dataFolder}/${topic}/${partition}`),
    drainOrders: () => readDrainOrders(disk, dataFolder),
    remembered: options.remembered,
    shouldYield: options.shouldYield,
    onAssigned: options.onAssigned,
    onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
  });
}

/** Whether a broker's process is known to have died: it ran on this machine, and its lock is free. */
async function isGone({ dataFolder, machine, locks, nodeId }: VolumeView, ofNodeId: number, lease: LeaseRecord) {
  return ofNodeId !== nodeId && sameBoot(machine, lease.process) &&
    await locks.isLockFree(lockPath(dataFolder, ofNodeId));
}

/** Highest epoch among the file names of a partition, or of a shard of coordinators' state; -1 for none. */
async function epochOnDisk(disk: Disk, folder: string): Promise<number> {
  let highest = -1;
  try {
    for (const { name } of await disk.list(folder)) {
      highest = Math.max(highest, parseSegmentFileName(name)?.epoch ?? -1);
    }
  } catch (error) {
    if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
  }
  return highest;
}
