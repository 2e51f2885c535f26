/** A cluster as its data folder shows it: no broker is asked. */

import { systemClock } from "../../lib/clock.ts";
import { type Assignment, parseAssignment } from "../../lib/cluster/assignment.ts";
import { brokerName, type BrokerRecord, parseBrokerRecord } from "../../lib/cluster/broker_record.ts";
import { readDrainOrders } from "../../lib/cluster/drain_orders.ts";
import { type LeaseRecord, parseLease } from "../../lib/cluster/lease.ts";
import { DamagedFileError, readJson } from "../../lib/disk/atomic_replace.ts";
import { DiskError } from "../../lib/disk/disk.ts";
import { realDisk } from "../../lib/disk/real_disk.ts";
import { errorText } from "../../lib/observability/logger.ts";
import { CommandFailure } from "../exit.ts";

/** A broker as the volume shows it. */
export interface VolumeBroker {
  readonly nodeId: number;
  /** `alive` and `silent` by whether it was seen to renew its session while the command watched. */
  readonly state: "alive" | "silent" | "left";
  readonly draining: boolean;
  readonly tenure: number;
  readonly host: string;
  readonly addresses: readonly string[];
  readonly partitions: number;
  readonly coordinators: number;
}

/** What the volume shows. */
export interface VolumeCluster {
  readonly controller: LeaseRecord | null;
  readonly assignment: Assignment | null;
  readonly brokers: readonly VolumeBroker[];
}

const LOOK_INTERVAL_MS = 100;

/** Reads `DATA/__cluster`; `watch` asks to look on until it is clear which brokers are alive. @throws {CommandFailure} */
export async function readVolume(dataFolder: string, { watch }: { readonly watch: boolean }): Promise<VolumeCluster> {
  try {
    const first = await brokerRecords(dataFolder);
    const renewed = watch ? await watchRenewals(dataFolder, first) : new Set<number>();
    const [controller, assignment, drains] = await Promise.all([
      readJson(realDisk, `${dataFolder}/__cluster/controller.lease`, parseLease),
      readAssignment(dataFolder),
      readDrainOrders(realDisk, dataFolder),
    ]);
    const ledBy = (entries: Assignment["partitions"] | undefined, nodeId: number) =>
      entries?.filter(({ broker }) => broker === brokerName(nodeId)).length ?? 0;
    const brokers = first.map((record): VolumeBroker => ({
      nodeId: record.nodeId,
      state: record.released ? "left" : renewed.has(record.nodeId) ? "alive" : "silent",
      draining: record.draining || drains.has(record.nodeId),
      tenure: record.epoch,
      host: record.process.host,
      addresses: record.listeners.map(({ name, host, port }) => `${name}://${host}:${port}`),
      partitions: ledBy(assignment?.partitions, record.nodeId),
      coordinators: ledBy(assignment?.coordinators, record.nodeId),
    }));
    return { controller, assignment, brokers };
  } catch (error) {
    if (!(error instanceof DiskError || error instanceof DamagedFileError)) throw error;
    throw new CommandFailure(`cannot read the cluster of ${dataFolder}: ${errorText(error)}`);
  }
}

/** The assignment alone. @throws {DiskError} */
export function readAssignment(dataFolder: string): Promise<Assignment | null> {
  return readJson(realDisk, `${dataFolder}/__cluster/assignment.json`, parseAssignment);
}

async function brokerRecords(dataFolder: string): Promise<BrokerRecord[]> {
  const folder = `${dataFolder}/__cluster/brokers`;
  const records: BrokerRecord[] = [];
  for (const { name } of await realDisk.list(folder)) {
    if (!/^\d+\.json$/.test(name)) continue;
    const record = await readJson(realDisk, `${folder}/${name}`, parseBrokerRecord);
    if (record !== null) records.push(record);
  }
  return records.sort((a, b) => a.nodeId - b.nodeId);
}

/** Those that renew their session within the time in which they should. */
async function watchRenewals(dataFolder: string, first: readonly BrokerRecord[]): Promise<Set<number>> {
  const renewed = new Set<number>();
  const waited = first.filter(({ released }) => !released);
  // A session is renewed each quarter of its duration.
  const deadline = systemClock.monotonicMs() + Math.max(0, ...waited.map(({ durationMs }) => durationMs / 2));
  while (renewed.size < waited.length && systemClock.monotonicMs() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    for (const record of await brokerRecords(dataFolder)) {
      const before = first.find(({ nodeId }) => nodeId === record.nodeId);
      const isRenewed = before === undefined || record.renewals !== before.renewals || record.epoch !== before.epoch;
      if (isRenewed) renewed.add(record.nodeId);
    }
  }
  return renewed;
}
