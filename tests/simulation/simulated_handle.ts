/**
 * An open file of a simulated disk, and what both need: the rates at which operations fail, and the journal's lines.
 */

import { DiskError, type FileHandle, type OpenMode } from "../../lib/disk/disk.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { FileNode } from "./simulated_volume.ts";

/** Probabilities that one operation fails. */
export interface FaultRates {
  readonly read: number;
  readonly write: number;
  readonly sync: number;
  readonly open: number;
  /** Rename, remove, make folder, list, stat, sync of a folder. */
  readonly names: number;
  /** A write or creation finds no room. */
  readonly noSpace: number;
}

export const NO_FAULTS: FaultRates = { read: 0, write: 0, sync: 0, open: 0, names: 0, noSpace: 0 };

/** One call, as a line of the journal. */
export class LogLine {
  outcome = "";

  constructor(
    readonly number: string,
    readonly operation: string,
    readonly path: string,
    readonly detail: string,
  ) {}

  toString(): string {
    return `${this.number} ${this.operation} ${this.path}${this.detail}${this.outcome}`;
  }
}

/** The error of a call that its line shows, too. */
export function fail(line: LogLine, kind: DiskError["kind"], why = `simulated ${kind}`): DiskError {
  line.outcome = ` => ${kind}`;
  return new DiskError(kind, line.operation, line.path, { cause: new Error(why) });
}

/** What a handle needs of its disk. */
export interface DiskAccess {
  call<T>(operation: string, path: string, detail: string, run: (line: LogLine) => T): T;
  later<T>(operation: string, path: string, detail: string, run: (line: LogLine) => T): Promise<T>;
  sync(path: string, begin: () => void, run: (line: LogLine) => void): Promise<void>;
  random(): SeededRandom;
  faults(): FaultRates;
  freeBytes(): number;
  wallMs(): number;
  released(): void;
}

export class SimulatedHandle implements FileHandle {
  #closed = false;
  /** Failed syncs of the file that need not be told any more. */
  #failuresTold: number;

  constructor(
    readonly path: string,
    private readonly node: FileNode,
    private readonly mode: OpenMode,
    private readonly disk: DiskAccess,
  ) {
    this.#failuresTold = node.failedSyncs;
  }

  readSync(position: number, into: Uint8Array): number {
    this.#checkOpen("read");
    return this.disk.call("read", this.path, ` @${position}+${into.byteLength}`, (line) => {
      return this.#readNow(position, into, line);
    });
  }

  async read(position: number, into: Uint8Array): Promise<number> {
    this.#checkOpen("read");
    return await this.disk.later("read", this.path, ` @${position}+${into.byteLength}`, (line) => {
      return this.#readNow(position, into, line);
    });
  }

  writeSync(position: number, bytes: Uint8Array): void {
    this.#checkOpen("write");
    this.disk.call("write", this.path, ` @${position}+${bytes.byteLength}`, (line) => {
      this.#checkWritable(line);
      this.node.modifiedMs = this.disk.wallMs();
      const random = this.disk.random();
      const room = this.disk.freeBytes() - Math.max(0, position + bytes.byteLength - this.node.size);
      const full = room < 0 || random.chance(this.disk.faults().noSpace);
      if (full || random.chance(this.disk.faults().write)) {
        const limit = Math.max(0, Math.min(bytes.byteLength, bytes.byteLength + Math.min(0, room)));
        this.node.write(position, bytes.subarray(0, random.below(limit + 1)));
        throw fail(line, full ? "no-space" : "io");
      }
      this.node.write(position, bytes);
    });
  }

  async sync(): Promise<void> {
    this.#checkOpen("sync");
    let covered = 0;
    await this.disk.sync(this.path, () => covered = this.node.changes, (line) => {
      const random = this.disk.random();
      if (random.chance(this.disk.faults().sync)) {
        this.node.lose(covered, random, random.chance(0.5));
      }
      if (this.#failuresTold < this.node.failedSyncs) {
        this.#failuresTold = this.node.failedSyncs;
        throw fail(line, "io");
      }
      this.node.settle(covered);
    });
  }

  truncateSync(size: number): void {
    this.#checkOpen("truncate");
    this.disk.call("truncate", this.path, ` ${size}`, (line) => {
      this.#checkWritable(line);
      if (this.disk.random().chance(this.disk.faults().write)) throw fail(line, "io");
      this.node.truncate(size);
    });
  }

  sizeSync(): number {
    this.#checkOpen("size");
    return this.disk.call("size", this.path, "", () => this.node.size);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.disk.released();
  }

  #readNow(position: number, into: Uint8Array, line: LogLine): number {
    if (this.disk.random().chance(this.disk.faults().read)) throw fail(line, "io");
    const bytes = this.node.bytes.subarray(position, position + into.byteLength);
    into.set(bytes);
    return bytes.byteLength;
  }

  #checkOpen(operation: string): void {
    if (this.#closed) throw new DiskError("closed", operation, this.path);
  }

  #checkWritable(line: LogLine): void {
    if (this.mode === "read") throw fail(line, "closed");
  }
}
