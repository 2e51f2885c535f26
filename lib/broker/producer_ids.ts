/**
 * Producer ids, unique for ever on one volume.
 *
 * Each broker hands out ids with its own number in the upper bits ((node id + 1) · 2⁴⁰ + counter) and reserves them in
 * blocks: `DATA/__cluster/producer_ids/kaas-<node id>.json` holds the first counter that no block covers yet, and is durable
 * before the first id of a block is used. A crash wastes the rest of a block, never repeats an id.
 */
import * as z from "zod";
import type { Disk } from "../disk/disk.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";

const BLOCK_IDS = 1000;
const NODE_FACTOR = 2 ** 40;

const fileSchema = z.looseObject({ nextBlock: z.int().nonnegative() });

/** Hands out producer ids for one broker. */
export class ProducerIds {
  #next = 0;
  #blockEnd = 0;
  #reserving: Promise<void> | null = null;

  constructor(private readonly disk: Disk, private readonly folder: string, private readonly nodeId: number) {}

  /** The next id. Durable: never handed out again. @throws {DiskError} when a block cannot be reserved */
  async next(): Promise<number> {
    while (this.#next === this.#blockEnd) {
      this.#reserving ??= this.#reserve().finally(() => this.#reserving = null);
      await this.#reserving;
    }
    return (this.nodeId + 1) * NODE_FACTOR + this.#next++;
  }

  async #reserve(): Promise<void> {
    const path = `${this.folder}/kaas-${this.nodeId}.json`;
    await this.disk.makeFolder(this.folder);
    // A file is no more durable than the name of its folder.
    await this.disk.syncFolder(this.folder.slice(0, this.folder.lastIndexOf("/")));
    const found = await readJson(this.disk, path, (json) => fileSchema.parse(json));
    const first = Math.max(found?.nextBlock ?? 0, this.#blockEnd);
    await replaceJson(this.disk, path, { ...found, nextBlock: first + BLOCK_IDS });
    this.#next = first;
    this.#blockEnd = first + BLOCK_IDS;
  }
}
