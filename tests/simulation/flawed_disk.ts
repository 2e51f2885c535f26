/** Disks that keep a promise less than they should: for proving that the simulation notices. */

import type { Disk, Entry, FileHandle, FileStat, OpenMode } from "../../lib/disk/disk.ts";
import { parseSegmentFileName, segmentStem } from "../../lib/partition_state.ts";

/** Passes everything on; the base of the others. */
export class DiskWrapper implements Disk {
  constructor(protected readonly disk: Disk) {}

  get writerId(): string {
    return this.disk.writerId;
  }
  openSync(path: string, mode: OpenMode): FileHandle {
    return this.disk.openSync(path, mode);
  }
  open(path: string, mode: OpenMode): Promise<FileHandle> {
    return this.disk.open(path, mode);
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
  rename(from: string, to: string): Promise<void> {
    return this.disk.rename(from, to);
  }
  remove(path: string, options?: { recursive?: boolean }): Promise<void> {
    return this.disk.remove(path, options);
  }
  syncFolder(path: string): Promise<void> {
    return this.disk.syncFolder(path);
  }
  space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    return this.disk.space(path);
  }
}

/** Storage that forgets to sync folders. */
export class WithoutFolderSync extends DiskWrapper {
  override syncFolder(): Promise<void> {
    return Promise.resolve();
  }
}

/** Storage that forgets to sync files. */
export class WithoutFileSync extends DiskWrapper {
  override openSync(path: string, mode: OpenMode): FileHandle {
    return withoutSync(super.openSync(path, mode));
  }
  override async open(path: string, mode: OpenMode): Promise<FileHandle> {
    return withoutSync(await super.open(path, mode));
  }
}

function withoutSync(handle: FileHandle): FileHandle {
  return {
    path: handle.path,
    readSync: (position, into) => handle.readSync(position, into),
    read: (position, into) => handle.read(position, into),
    writeSync: (position, bytes) => handle.writeSync(position, bytes),
    sync: () => Promise.resolve(),
    truncateSync: (size) => handle.truncateSync(size),
    sizeSync: () => handle.sizeSync(),
    close: () => handle.close(),
  };
}

/** Storage that does not look at the epochs in segment names: all of them seem to be of epoch 0. */
export class WithoutEpochs extends DiskWrapper {
  /** Names as they are shown, and as they are. */
  readonly #stored = new Map<string, string>();

  override async list(path: string): Promise<Entry[]> {
    const shown = new Map<string, Entry>();
    for (const entry of await super.list(path)) {
      const segment = parseSegmentFileName(entry.name);
      const name = segment === null ? entry.name : `${segmentStem(0, segment.baseOffset)}.${segment.suffix}`;
      this.#stored.set(`${path}/${name}`, `${path}/${entry.name}`);
      shown.set(name, { ...entry, name });
    }
    return [...shown.values()];
  }

  override openSync(path: string, mode: OpenMode): FileHandle {
    return super.openSync(this.#real(path, mode), mode);
  }
  override open(path: string, mode: OpenMode): Promise<FileHandle> {
    return super.open(this.#real(path, mode), mode);
  }
  override stat(path: string): Promise<FileStat> {
    return super.stat(this.#real(path));
  }
  override readFile(path: string): Promise<Uint8Array> {
    return super.readFile(this.#real(path));
  }
  override rename(from: string, to: string): Promise<void> {
    return super.rename(this.#real(from), to);
  }
  override remove(path: string, options?: { recursive?: boolean }): Promise<void> {
    return super.remove(this.#real(path), options);
  }

  #real(path: string, mode: OpenMode = "read"): string {
    return mode === "create" ? path : this.#stored.get(path) ?? path;
  }
}

/** Waits before each asynchronous call for what the test wants: a process that is held up anywhere. */
export class HeldUpDisk extends DiskWrapper {
  #calls = 0;

  constructor(disk: Disk, private readonly before: (call: number) => Promise<unknown> | undefined) {
    super(disk);
  }

  /** Calls so far. */
  get calls(): number {
    return this.#calls;
  }
  override async open(path: string, mode: OpenMode): Promise<FileHandle> {
    await this.before(++this.#calls);
    return await super.open(path, mode);
  }
  override async list(path: string): Promise<Entry[]> {
    await this.before(++this.#calls);
    return await super.list(path);
  }
  override async readFile(path: string): Promise<Uint8Array> {
    await this.before(++this.#calls);
    return await super.readFile(path);
  }
  override async rename(from: string, to: string): Promise<void> {
    await this.before(++this.#calls);
    await super.rename(from, to);
  }
  override async remove(path: string, options?: { recursive?: boolean }): Promise<void> {
    await this.before(++this.#calls);
    await super.remove(path, options);
  }
  override async syncFolder(path: string): Promise<void> {
    await this.before(++this.#calls);
    await super.syncFolder(path);
  }
}
