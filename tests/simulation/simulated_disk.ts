/**
 * A {@link Disk} that loses, tears and fails, all of it from one seed. The fault model:
 *
 * - **Crash.** After the n-th operation, or when told to, the machine stops: every later call fails, and what was under
 *   way had any part of its effect. {@link SimulatedDisk.restart} gives the disk of the next start: unsynced bytes
 *   survived as any torn part (none, all, a prefix, any sectors, zeros in place of data), and so did creations, renames
 *   and removals that no sync of their folder covered. What was synced is whole.
 * - **Failed sync.** The pages are lost: any part of them reached the volume, no later sync brings the rest, although it
 *   succeeds. Every handle that was open then is told once. Programs go on reading the pages from the cache, or no longer
 *   do.
 * - **Errors.** Reads, writes, syncs, opens and changes of names fail with EIO, writes and creations with ENOSPC, by
 *   rates or because the volume is full. A write that fails may have written a part; a change of names that fails may
 *   have happened (the answer was lost).
 * - **Time.** Asynchronous calls take some turns of the event loop, a sync many: others go on meanwhile.
 *
 * One host sees the volume here, so caches never differ and handles are never stale. Every call is counted and leaves
 * one line in the log of a failing seed.
 */

import {
  type Disk,
  DiskError,
  type Entry,
  type FileHandle,
  type FileStat,
  type OpenMode,
} from "../../lib/disk/disk.ts";
import { assert } from "../../lib/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { type DiskAccess, fail, type FaultRates, LogLine, NO_FAULTS, SimulatedHandle } from "./simulated_handle.ts";
import { FileNode, FolderNode, Volume } from "./simulated_volume.ts";

/** No schedule needs so many calls of one start of the machine. */
const ENDLESS_CALLS = 200_000;
/** A program that has not called for this many turns of the event loop waits for something else than the disk. */
const IDLE_TURNS = 40;

export interface SimulatedDiskOptions {
  readonly random: SeededRandom;
  readonly volume?: Volume;
  /** Dates what is written. */
  readonly clock?: Clock;
  /** Starts of the machine so far; part of {@link Disk.writerId}. */
  readonly starts?: number;
  /** Gets one entry for each call, whose text is complete when the call is. */
  readonly journal?: unknown[];
  /** Longest time of a sync, in turns of the event loop. */
  readonly syncTurns?: number;
}

/** See the file's head. */
export class SimulatedDisk implements Disk {
  readonly writerId: string;
  faults: FaultRates = NO_FAULTS;
  /** Room for file contents; writes beyond it find no space. */
  capacityBytes = Infinity;
  /** Calls so far. */
  operations = 0;
  /** Handles open now. */
  openHandles = 0;
  /** Asynchronous calls under way. */
  inFlight = 0;
  readonly #random: SeededRandom;
  readonly #volume: Volume;
  readonly #clock: Clock | undefined;
  readonly #starts: number;
  readonly #syncTurns: number;
  readonly #journal: unknown[];
  #crashAfter = Infinity;
  #crashed = false;

  constructor(
    { random, clock, volume = new Volume(), starts = 0, journal = [], syncTurns = 24 }: SimulatedDiskOptions,
  ) {
    this.#random = random;
    this.#volume = volume;
    this.#clock = clock;
    this.#journal = journal;
    this.#starts = starts;
    this.#syncTurns = syncTurns;
    this.writerId = `start${starts}`;
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  /** Stops the machine as soon as the `operation`-th call (the first is 1) has done its work. */
  crashAfter(operation: number): void {
    this.#crashAfter = operation;
  }

  /** Stops the machine now. */
  crash(): void {
    this.#crashed = true;
  }

  /** The disk as the next start of the machine finds it; this one is dead from now on. */
  restart(): SimulatedDisk {
    this.#crashed = true;
    const random = this.#random.fork();
    return new SimulatedDisk({
      random,
      clock: this.#clock,
      volume: this.#volume.afterCrash(random),
      starts: this.#starts + 1,
      journal: this.#journal,
      syncTurns: this.#syncTurns,
    });
  }

  /** No more faults, and room for everything. */
  calm(): void {
    this.faults = NO_FAULTS;
    this.capacityBytes = Infinity;
  }

  /** One line for each call so far, of earlier starts too. */
  log(): string[] {
    return this.#journal.map(String);
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    return this.#call("open", path, ` ${mode}`, (line) => this.#openNow(path, mode, line));
  }

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    return await this.#later("open", path, ` ${mode}`, 3, (line) => this.#openNow(path, mode, line));
  }

  async list(path: string): Promise<Entry[]> {
    return await this.#later("list", path, "", 3, (line) => {
      this.#mayFail(this.faults.names, line);
      const entries: Entry[] = [];
      for (const [name, { kind }] of this.#folder(path, line).current) {
        entries.push({ name, isFile: kind === "file", isFolder: kind === "folder" });
      }
      return entries.sort((a, b) => a.name < b.name ? -1 : 1);
    });
  }

  async stat(path: string): Promise<FileStat> {
    return await this.#later("stat", path, "", 2, (line) => {
      this.#mayFail(this.faults.names, line);
      const node = this.#volume.find(path);
      if (node === null) throw fail(line, "not-found");
      const isFolder = node.kind === "folder";
      return { size: isFolder ? 0 : node.size, modifiedMs: node.modifiedMs, isFolder };
    });
  }

  async readFile(path: string): Promise<Uint8Array> {
    return await this.#later("read file", path, "", 3, (line) => {
      this.#mayFail(this.faults.read, line);
      return this.#file(path, line).bytes.slice();
    });
  }

  async makeFolder(path: string): Promise<void> {
    await this.#later("make folder", path, "", 3, (line) => {
      this.#changeNames(line, () => {
        const names = path.split("/").filter((name) => name !== "");
        for (let depth = 1; depth <= names.length; depth++) {
          const at = names.slice(0, depth).join("/");
          const node = this.#volume.find(at);
          if (node?.kind === "file") throw fail(line, depth === names.length ? "exists" : "not-found");
          if (node !== null) continue;
          const folder = new FolderNode();
          folder.modifiedMs = this.#access.wallMs();
          this.#volume.link(this.#volume.place(at)!, folder);
        }
      });
    });
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#later("rename", from, ` -> ${to}`, 3, (line) => {
      const node = this.#volume.find(from);
      const target = this.#volume.find(to);
      const place = this.#volume.place(to);
      if (node === null || place === null) throw fail(line, "not-found");
      if (target?.kind === "folder" && target.current.size > 0) throw fail(line, "not-empty");
      if (target !== null && target.kind !== node.kind) throw fail(line, "io");
      this.#changeNames(line, () => this.#volume.rename(this.#volume.place(from)!, place));
    });
  }

  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    const node = this.#volume.find(path);
    if (options.recursive && node?.kind === "folder") {
      for (const name of [...node.current.keys()]) await this.remove(`${path}/${name}`, options);
    }
    await this.#later("remove", path, "", 2, (line) => {
      const found = this.#volume.find(path);
      if (found === null) throw fail(line, "not-found");
      if (found.kind === "folder" && found.current.size > 0) throw fail(line, "not-empty");
      this.#changeNames(line, () => this.#volume.unlink(this.#volume.place(path)!));
    });
  }

  async syncFolder(path: string): Promise<void> {
    await this.#later("sync folder", path, "", this.#syncTurns, (line) => {
      this.#mayFail(this.faults.names, line);
      this.#volume.settle(this.#folder(path, line));
    });
  }

  async space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    return await this.#later("space", path, "", 2, () => {
      const totalBytes = Math.min(this.capacityBytes, 2 ** 40);
      return { freeBytes: Math.max(0, totalBytes - this.#volume.usedBytes()), totalBytes };
    });
  }

  #openNow(path: string, mode: OpenMode, line: LogLine): FileHandle {
    this.#mayFail(this.faults.open, line);
    if (mode === "create") {
      const place = this.#volume.place(path);
      if (place === null) throw fail(line, "not-found");
      if (place.folder.current.has(place.name)) throw fail(line, "exists");
      if (this.#random.chance(this.faults.noSpace)) throw fail(line, "no-space");
      const file = new FileNode();
      file.modifiedMs = this.#access.wallMs();
      this.#changeNames(line, () => this.#volume.link(place, file));
    }
    const node = this.#file(path, line);
    this.openHandles++;
    return new SimulatedHandle(path, node, mode, this.#access);
  }

  /** What a handle needs of the disk. */
  readonly #access: DiskAccess = {
    call: (operation, path, detail, run) => this.#call(operation, path, detail, run),
    later: (operation, path, detail, run) => this.#later(operation, path, detail, 3, run),
    sync: (path, begin, run) => this.#later("sync", path, "", this.#syncTurns, run, begin),
    random: () => this.#random,
    faults: () => this.faults,
    freeBytes: () => this.capacityBytes === Infinity ? Infinity : this.capacityBytes - this.#volume.usedBytes(),
    wallMs: () => this.#clock?.wallMs() ?? 0,
    released: () => this.openHandles--,
  };

  #call<T>(operation: string, path: string, detail: string, run: (line: LogLine) => T): T {
    const { line, number } = this.#begin(operation, path, detail);
    try {
      return run(line);
    } finally {
      this.#end(number);
    }
  }

  async #later<T>(
    operation: string,
    path: string,
    detail: string,
    turns: number,
    run: (line: LogLine) => T,
    begin: () => void = () => {},
  ): Promise<T> {
    const { line, number } = this.#begin(operation, path, detail);
    begin();
    this.inFlight++;
    try {
      for (let turn = this.#random.between(1, turns); turn > 0; turn--) await null;
      if (this.#crashed) throw fail(line, "io", "the machine stopped");
      try {
        return run(line);
      } finally {
        this.#end(number);
      }
    } finally {
      this.inFlight--;
    }
  }

  /** Resolves when nothing is under way any more, nor follows from what was. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < IDLE_TURNS; idle = this.inFlight === 0 ? idle + 1 : 0) await null;
  }

  #begin(operation: string, path: string, detail: string): { line: LogLine; number: number } {
    if (this.#crashed) throw new DiskError("io", operation, path, { cause: new Error("the machine stopped") });
    const number = ++this.operations;
    assert(number < ENDLESS_CALLS, `${number} calls: something never ends`);
    const line = new LogLine(`${this.#starts}.${number}`, operation, path, detail);
    this.#journal.push(line);
    return { line, number };
  }

  #end(number: number): void {
    if (number === this.#crashAfter) this.#crashed = true;
  }

  #mayFail(rate: number, line: LogLine): void {
    if (this.#random.chance(rate)) throw fail(line, "io");
  }

  /** Changes names, or fails; when it fails the change may have happened all the same. */
  #changeNames(line: LogLine, change: () => void): void {
    const fails = this.#random.chance(this.faults.names);
    if (!fails || this.#random.chance(0.5)) change();
    if (fails) throw fail(line, "io");
  }

  #file(path: string, line: LogLine): FileNode {
    const node = this.#volume.find(path);
    if (node === null) throw fail(line, "not-found");
    if (node.kind === "folder") throw fail(line, "io");
    return node;
  }

  #folder(path: string, line: LogLine): FolderNode {
    const node = this.#volume.find(path);
    if (node?.kind !== "folder") throw fail(line, "not-found");
    return node;
  }
}
