/**
 * The {@link Disk} that is a real volume: a local folder or a network file system, through `Deno.FsFile`.
 *
 * Invariants:
 * - no descriptor is lost: whoever gets no handle back has none to close, whatever failed in between;
 * - a read or write that the system cut short is continued; a read ends early only at the end of the file;
 * - every failure is a {@link DiskError} whose kind comes from the system's error number, with the original as `cause`.
 *
 * A descriptor that is closed while a `read` or `sync` is under way stays with the system until that one returns.
 */

import { statfs } from "node:fs/promises";
import { assert } from "../errors.ts";
import { type Disk, DiskError, type Entry, type FileHandle, type FileStat, type OpenMode } from "./disk.ts";
import { asDiskError, systemCodeOf } from "./system_errors.ts";

const OPEN_OPTIONS: Readonly<Record<OpenMode, Deno.OpenOptions>> = {
  read: { read: true },
  write: { read: true, write: true },
  create: { read: true, write: true, createNew: true },
};

let openHandles = 0;

/** Handles that this process holds on files of the volume at the moment. */
export function openHandleCount(): number {
  return openHandles;
}

class RealFileHandle implements FileHandle {
  readonly path: string;
  readonly #file: Deno.FsFile;
  /** Where the descriptor's own position stands; −1 when that is not known. Spares a seek on sequential access. */
  #cursor = 0;
  #readsInFlight = 0;
  #lastRead: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(path: string, file: Deno.FsFile) {
    this.path = path;
    this.#file = file;
    openHandles++;
  }

  readSync(position: number, into: Uint8Array): number {
    this.#begin("read", position);
    let done = 0;
    try {
      this.#seek(position);
      while (done < into.byteLength) {
        const count = this.#file.readSync(done === 0 ? into : into.subarray(done));
        if (count === null || count === 0) break;
        done += count;
      }
      this.#cursor = position + done;
      return done;
    } catch (error) {
      this.#cursor = -1;
      throw asDiskError("read", this.path, error);
    }
  }

  read(position: number, into: Uint8Array): Promise<number> {
    this.#readsInFlight++;
    const turn = this.#lastRead.then(() => this.#readAlone(position, into)).finally(() => this.#readsInFlight--);
    this.#lastRead = turn.catch(() => {});
    return turn;
  }

  async #readAlone(position: number, into: Uint8Array): Promise<number> {
    if (this.#closed) throw new DiskError("closed", "read", this.path);
    let done = 0;
    try {
      this.#seek(position);
      this.#cursor = -1;
      while (done < into.byteLength) {
        const count = await this.#file.read(into.subarray(done));
        if (count === null || count === 0) break;
        done += count;
      }
      return done;
    } catch (error) {
      throw asDiskError("read", this.path, error);
    }
  }

  writeSync(position: number, bytes: Uint8Array): void {
    this.#begin("write", position);
    let done = 0;
    try {
      this.#seek(position);
      while (done < bytes.byteLength) done += this.#file.writeSync(done === 0 ? bytes : bytes.subarray(done));
      this.#cursor = position + done;
    } catch (error) {
      this.#cursor = -1;
      throw asDiskError("write", this.path, error);
    }
  }

  async sync(): Promise<void> {
    if (this.#closed) throw new DiskError("closed", "sync", this.path);
    try {
      await this.#file.syncData();
    } catch (error) {
      throw asDiskError("sync", this.path, error);
    }
  }

  truncateSync(size: number): void {
    this.#begin("truncate", size);
    try {
      this.#file.truncateSync(size);
    } catch (error) {
      throw asDiskError("truncate", this.path, error);
    }
  }

  sizeSync(): number {
    if (this.#closed) throw new DiskError("closed", "size", this.path);
    try {
      return this.#file.statSync().size;
    } catch (error) {
      throw asDiskError("size", this.path, error);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    openHandles--;
    try {
      this.#file.close();
    } catch (error) {
      throw asDiskError("close", this.path, error);
    }
  }

  #begin(operation: string, position: number): void {
    if (this.#closed) throw new DiskError("closed", operation, this.path);
    assert(
      Number.isSafeInteger(position) && position >= 0,
      `${operation} ${this.path}: impossible position ${position}`,
    );
    assert(this.#readsInFlight === 0, `${operation} ${this.path}: the handle serves an asynchronous read`);
  }

  #seek(position: number): void {
    if (this.#cursor !== position) this.#file.seekSync(position, Deno.SeekMode.Start);
  }
}

/** The machine's file systems. */
export const realDisk: Disk = {
  writerId: crypto.randomUUID().replaceAll("-", "").slice(0, 12),

  openSync(path: string, mode: OpenMode): FileHandle {
    try {
      return new RealFileHandle(path, Deno.openSync(path, OPEN_OPTIONS[mode]));
    } catch (error) {
      throw asDiskError("open", path, error);
    }
  },

  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    try {
      return new RealFileHandle(path, await Deno.open(path, OPEN_OPTIONS[mode]));
    } catch (error) {
      throw asDiskError("open", path, error);
    }
  },

  async list(path: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    try {
      for await (const { name, isFile, isDirectory, isSymlink } of Deno.readDir(path)) {
        entries.push(isSymlink ? await behindLink(path, name) : { name, isFile, isFolder: isDirectory });
      }
    } catch (error) {
      throw asDiskError("list", path, error);
    }
    return entries.sort((a, b) => a.name < b.name ? -1 : 1);
  },

  async stat(path: string): Promise<FileStat> {
    try {
      const { size, mtime, isDirectory } = await Deno.stat(path);
      return { size, modifiedMs: mtime?.getTime() ?? 0, isFolder: isDirectory };
    } catch (error) {
      throw asDiskError("stat", path, error);
    }
  },

  async readFile(path: string): Promise<Uint8Array> {
    try {
      return await Deno.readFile(path);
    } catch (error) {
      throw asDiskError("read", path, error);
    }
  },

  async makeFolder(path: string): Promise<void> {
    try {
      await Deno.mkdir(path, { recursive: true });
    } catch (error) {
      throw asDiskError("make folder", path, error);
    }
  },

  async rename(from: string, to: string): Promise<void> {
    try {
      await Deno.rename(from, to);
    } catch (error) {
      throw asDiskError("rename", from, error);
    }
  },

  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    try {
      await Deno.remove(path, { recursive: options.recursive ?? false });
    } catch (error) {
      throw asDiskError("remove", path, error);
    }
  },

  async syncFolder(path: string): Promise<void> {
    try {
      const folder = await Deno.open(path, { read: true });
      try {
        await folder.sync();
      } finally {
        folder.close();
      }
    } catch (error) {
      // Some file systems (SMB shares among them) have no fsync of folders: there a rename is all that can be had.
      const code = systemCodeOf(error);
      if (code === "EINVAL" || code === "ENOTSUP" || code === "EOPNOTSUPP") return;
      throw asDiskError("sync folder", path, error);
    }
  },

  async space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    try {
      const { bsize, bavail, blocks } = await statfs(path);
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    } catch (error) {
      throw asDiskError("space", path, error);
    }
  },
};

/** What a symbolic link leads to; neither file nor folder when it leads nowhere. */
async function behindLink(folder: string, name: string): Promise<Entry> {
  try {
    const { isFile, isDirectory } = await Deno.stat(`${folder}/${name}`);
    return { name, isFile, isFolder: isDirectory };
  } catch (error) {
    if (asDiskError("stat", name, error).kind !== "not-found") throw error;
    return { name, isFile: false, isFolder: false };
  }
}
