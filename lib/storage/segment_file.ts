/**
 * One handle on one segment's .log file, opened when it is needed and given back when it is idle and handles are short.
 *
 * Invariants: a handle with unsynced writes, or with anything in flight, is never evicted. Synchronous and asynchronous
 * reads never overlap on one handle, and asynchronous ones run one after the other. After `close` or `drain` nothing is
 * opened any more: every use throws {@link DiskError} `"closed"`.
 */

import { type Disk, DiskError, type FileHandle } from "../disk/disk.ts";
import type { HandleBudget, HandleOwner } from "./handle_budget.ts";

export class SegmentFile implements HandleOwner {
  used = true;
  readonly path: string;
  readonly #disk: Disk;
  readonly #budget: HandleBudget;
  readonly #mode: "read" | "write";
  #handle: FileHandle | null;
  #unsynced = false;
  #readsInFlight = 0;
  #syncsInFlight = 0;
  #lastRead: Promise<unknown> = Promise.resolve();
  /** No new use is taken on. */
  #ending = false;
  #closed = false;
  /** Called after the handle was closed to make room for others. */
  onEvicted: (() => void) | null = null;

  private constructor(
    disk: Disk,
    budget: HandleBudget,
    path: string,
    mode: "read" | "write",
    handle: FileHandle | null,
  ) {
    this.#disk = disk;
    this.#budget = budget;
    this.path = path;
    this.#mode = mode;
    this.#handle = handle;
    if (handle !== null) budget.opened(this);
  }

  /** Makes a new, empty file and opens it. @throws {DiskError} `"exists"` among others */
  static create(disk: Disk, budget: HandleBudget, path: string): SegmentFile {
    return new SegmentFile(disk, budget, path, "write", disk.openSync(path, "create"));
  }

  /** A file that exists, to be opened on first use: for writing too, or for reading only. */
  static existing(disk: Disk, budget: HandleBudget, path: string, mode: "read" | "write"): SegmentFile {
    return new SegmentFile(disk, budget, path, mode, null);
  }

  /** Whether a handle is open. */
  get isOpen(): boolean {
    return this.#handle !== null;
  }

  /** Whether `readSync` is allowed now: no asynchronous read is in flight. */
  get mayReadSync(): boolean {
    return this.#readsInFlight === 0;
  }

  /** Sees to it that a handle is open. @throws {DiskError} */
  open(): void {
    this.#openSync();
  }

  /** Writes all of `bytes` at `position`, into the page cache. @throws {DiskError} part of it may be written then */
  writeSync(position: number, bytes: Uint8Array): void {
    const handle = this.#openSync();
    this.#unsynced = true;
    handle.writeSync(position, bytes);
  }

  /** Cuts the file to `size` bytes. @throws {DiskError} */
  truncateSync(size: number): void {
    const handle = this.#openSync();
    this.#unsynced = true;
    handle.truncateSync(size);
  }

  /** Reads on the calling thread; see {@link FileHandle.readSync}. @throws {DiskError} */
  readSync(position: number, into: Uint8Array): number {
    return this.#openSync().readSync(position, into);
  }

  /** Reads off the event loop, behind the reads asked for before; see {@link FileHandle.read}. @throws {DiskError} */
  read(position: number, into: Uint8Array): Promise<number> {
    if (this.#ending) return Promise.reject(new DiskError("closed", "read", this.path));
    this.#readsInFlight++;
    const turn = this.#lastRead.then(async () => {
      try {
        const handle = await this.#openLater();
        return await handle.read(position, into);
      } finally {
        this.#readsInFlight--;
      }
    });
    this.#lastRead = turn.catch(() => {});
    return turn;
  }

  /** Makes everything written before this call durable. @throws {DiskError} a failure is final */
  async sync(): Promise<void> {
    const handle = this.#openSync();
    this.#unsynced = false;
    this.#syncsInFlight++;
    try {
      await handle.sync();
    } catch (error) {
      this.#unsynced = true;
      throw error;
    } finally {
      this.#syncsInFlight--;
    }
  }

  evict(): boolean {
    if (this.#handle === null) return true;
    if (this.#unsynced || this.#readsInFlight > 0 || this.#syncsInFlight > 0) return false;
    this.#handle.close();
    this.#handle = null;
    this.onEvicted?.();
    return true;
  }

  /** Gives the handle back if nothing is in flight on it; it is opened again when it is needed. */
  rest(): void {
    if (this.#handle !== null && this.evict()) this.#budget.closed(this);
  }

  /** Gives the handle back at once; what is in flight fails or finishes on its own. */
  close(): void {
    this.#ending = true;
    this.#closed = true;
    if (this.#handle === null) return;
    this.#handle.close();
    this.#handle = null;
    this.#budget.closed(this);
  }

  /** Gives the handle back after the reads in flight have finished; no new ones begin. */
  async drain(): Promise<void> {
    this.#ending = true;
    while (this.#readsInFlight > 0) await this.#lastRead;
    this.close();
  }

  #openSync(): FileHandle {
    this.used = true;
    if (this.#handle !== null) return this.#handle;
    if (this.#closed) throw new DiskError("closed", "open", this.path);
    this.#handle = this.#disk.openSync(this.path, this.#mode);
    this.#budget.opened(this);
    return this.#handle;
  }

  async #openLater(): Promise<FileHandle> {
    this.used = true;
    if (this.#handle !== null) return this.#handle;
    if (this.#closed) throw new DiskError("closed", "open", this.path);
    const handle = await this.#disk.open(this.path, this.#mode);
    if (this.#closed) {
      handle.close();
      throw new DiskError("closed", "open", this.path);
    }
    if (this.#handle !== null) {
      handle.close();
      return this.#handle;
    }
    this.#handle = handle;
    this.#budget.opened(this);
    return handle;
  }
}
