/**
 * A {@link Disk} around another one that knows which paths are open through it.
 *
 * Invariant it watches over: a file is closed before its name goes (removed, or replaced by a rename). On a network
 * volume an open file whose name goes stays behind as `.nfs…`, and its folder cannot be removed. A handle counts as open
 * until `close` was called *and* its last read or sync in flight has returned: that long the system keeps the descriptor.
 * A rename takes the open paths below it along.
 */

import { assert } from "../errors.ts";
import type { Disk, Entry, FileHandle, FileStat, OpenMode } from "./disk.ts";

/** A name that went while a handle was open below it. */
export interface OpenAtUnlink {
  readonly operation: "remove" | "rename";
  readonly path: string;
  readonly openPaths: readonly string[];
}

class RegisteredHandle implements FileHandle {
  #inFlight = 0;
  #closed = false;
  #released = false;

  constructor(
    /** Changes when the file, or a folder above it, is renamed. */
    public path: string,
    private readonly inner: FileHandle,
    private readonly release: (handle: RegisteredHandle) => void,
  ) {}

  readSync(position: number, into: Uint8Array): number {
    return this.inner.readSync(position, into);
  }

  async read(position: number, into: Uint8Array): Promise<number> {
    this.#inFlight++;
    try {
      return await this.inner.read(position, into);
    } finally {
      this.#settled();
    }
  }

  writeSync(position: number, bytes: Uint8Array): void {
    this.inner.writeSync(position, bytes);
  }

  async sync(): Promise<void> {
    this.#inFlight++;
    try {
      await this.inner.sync();
    } finally {
      this.#settled();
    }
  }

  truncateSync(size: number): void {
    this.inner.truncateSync(size);
  }

  sizeSync(): number {
    return this.inner.sizeSync();
  }

  close(): void {
    this.#closed = true;
    try {
      this.inner.close();
    } finally {
      this.#releaseWhenIdle();
    }
  }

  #settled(): void {
    this.#inFlight--;
    this.#releaseWhenIdle();
  }

  #releaseWhenIdle(): void {
    if (!this.#closed || this.#released || this.#inFlight > 0) return;
    this.#released = true;
    this.release(this);
  }
}

/** See the file's head. */
export class HandleRegistry implements Disk {
  readonly #open = new Set<RegisteredHandle>();

  /** @param onOpenAtUnlink is told of a broken invariant; the default throws an AssertionError in its place */
  constructor(
    private readonly disk: Disk,
    private readonly onOpenAtUnlink: (found: OpenAtUnlink) => void = refuse,
  ) {}

  get writerId(): string {
    return this.disk.writerId;
  }

  /** Handles open now. */
  get openCount(): number {
    return this.#open.size;
  }

  /** Paths that are open now, sorted; one that is open twice is there twice. */
  openPaths(below = ""): string[] {
    const paths: string[] = [];
    for (const { path } of this.#open) if (isAtOrBelow(path, below)) paths.push(path);
    return paths.sort();
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    return this.#register(path, this.disk.openSync(path, mode));
  }

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    return this.#register(path, await this.disk.open(path, mode));
  }

  list(path: string): Promise<Entry[]> {
    return this.disk.list(path);
  }

  stat(path: string): Promise<FileStat> {
    return this.disk.stat(path);
  }

  readFile(path: string): Promise<Uint8Array> {
    return this.disk.readFile(path);
  }

  makeFolder(path: string): Promise<void> {
    return this.disk.makeFolder(path);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#checkClosed("rename", to);
    await this.disk.rename(from, to);
    for (const handle of this.#open) {
      if (isAtOrBelow(handle.path, from)) handle.path = to + handle.path.slice(from.length);
    }
  }

  async remove(path: string, options?: { recursive?: boolean }): Promise<void> {
    this.#checkClosed("remove", path);
    await this.disk.remove(path, options);
  }

  syncFolder(path: string): Promise<void> {
    return this.disk.syncFolder(path);
  }

  space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    return this.disk.space(path);
  }

  #register(path: string, inner: FileHandle): FileHandle {
    const handle = new RegisteredHandle(path, inner, (released) => this.#open.delete(released));
    this.#open.add(handle);
    return handle;
  }

  #checkClosed(operation: "remove" | "rename", path: string): void {
    const openPaths = this.openPaths(path);
    if (openPaths.length > 0) this.onOpenAtUnlink({ operation, path, openPaths });
  }
}

function refuse({ operation, path, openPaths }: OpenAtUnlink): void {
  assert(false, `${operation} ${path} while open: ${openPaths.join(", ")}`);
}

function isAtOrBelow(path: string, folder: string): boolean {
  return folder === "" || path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}
