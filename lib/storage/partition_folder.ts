/**
 * What a partition's folder holds: names and sizes, handed to the pure rules of `partition_state.ts`. Opens nothing.
 */

import { type Disk, DiskError } from "../disk/disk.ts";
import { type PartitionState, partitionStateOf } from "../partition_state.ts";

export interface PartitionFolder {
  readonly state: PartitionState;
  readonly names: ReadonlySet<string>;
}

/** Lists a partition's folder and asks for the size of each file. @throws {DiskError} */
export async function readPartitionFolder(disk: Disk, folder: string): Promise<PartitionFolder> {
  const entries = (await disk.list(folder)).filter((entry) => entry.isFile);
  const sized = await Promise.all(entries.map(async ({ name }) => ({ name, size: await sizeOf(disk, folder, name) })));
  const present = sized.filter((file): file is { name: string; size: number } => file.size !== null);
  return { state: partitionStateOf(present), names: new Set(present.map((file) => file.name)) };
}

/** Null for a file that went away since it was listed: a deposed leader may still be tidying up. */
async function sizeOf(disk: Disk, folder: string, name: string): Promise<number | null> {
  try {
    return (await disk.stat(`${folder}/${name}`)).size;
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return null;
    throw error;
  }
}
