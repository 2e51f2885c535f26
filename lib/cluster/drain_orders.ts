/**
 * Orders to relieve brokers of everything that they lead: one file a broker in `DATA/__cluster/drains`. An order stands,
 * whatever is restarted, until it is taken back.
 */
import { replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";

const ORDER_NAME = /^(0|[1-9]\d{0,9})\.json$/;

function folderOf(dataFolder: string): string {
  return `${dataFolder}/__cluster/drains`;
}

/** Node ids of the brokers with an order. @throws {DiskError} */
export async function readDrainOrders(disk: Disk, dataFolder: string): Promise<ReadonlySet<number>> {
  try {
    const names = (await disk.list(folderOf(dataFolder))).map(({ name }) => ORDER_NAME.exec(name)?.[1]);
    return new Set(names.filter((name) => name !== undefined).map(Number));
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return new Set();
    throw error;
  }
}

/** Orders that a broker be drained; durable when it resolves. @throws {DiskError} */
export async function orderDrain(disk: Disk, dataFolder: string, nodeId: number): Promise<void> {
  await disk.makeFolder(folderOf(dataFolder));
  await disk.syncFolder(`${dataFolder}/__cluster`);
  await replaceJson(disk, `${folderOf(dataFolder)}/${nodeId}.json`, { drain: true });
}

/** Takes an order back; durable when it resolves. Resolves to whether there was one. @throws {DiskError} */
export async function cancelDrain(disk: Disk, dataFolder: string, nodeId: number): Promise<boolean> {
  try {
    await disk.remove(`${folderOf(dataFolder)}/${nodeId}.json`);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return false;
    throw error;
  }
  await disk.syncFolder(folderOf(dataFolder));
  return true;
}
