/**
 * The seam between kaas and a file system. `real_disk.ts` is the volume; `tests/simulation/simulated_disk.ts` is a
 * model of one that loses, tears and fails. Nothing else in `lib/` touches files.
 *
 * Durability, as every caller may rely on it and no further:
 * - bytes written through a handle survive a crash once `sync` of a handle on that file has returned;
 * - a created, renamed or removed name survives a crash once `syncFolder` of its folder has returned;
 * - `rename` replaces its target atomically; `open` with mode `"create"` is an exclusive create.
 *
 * Paths are absolute or relative to the process, with `/` between names. Every failure is a {@link DiskError}.
 */

/** What a {@link DiskError} is about; everything that needs no distinct handling is `"io"`. */
export type DiskErrorKind =
  | "not-found"
  | "exists"
  | "no-space"
  | "io"
  | "stale"
  | "permission"
  | "not-empty"
  | "closed";

/** A failed file operation: which one, on what, and why. `cause` is what the system said. */
export class DiskError extends Error {
  override readonly name = "DiskError";

  constructor(readonly kind: DiskErrorKind, readonly operation: string, readonly path: string, options?: ErrorOptions) {
    super(`${operation} ${path}: ${kind}`, options);
  }
}

/** One name in a folder. */
export interface Entry {
  readonly name: string;
  readonly isFile: boolean;
  readonly isFolder: boolean;
}

/** `size` in bytes; `modifiedMs` is wall-clock time of the last write. */
export interface FileStat {
  readonly size: number;
  readonly modifiedMs: number;
  readonly isFolder: boolean;
}

/** `"create"`: read and write, fails with `"exists"`. `"write"`: read and write, must exist. `"read"`: read only. */
export type OpenMode = "read" | "write" | "create";

/** An open file. The right to use it ends with `close`; use after that throws {@link DiskError} `"closed"`. */
export interface FileHandle {
  readonly path: string;
  /** Fills `into` from byte `position` on, on the calling thread. Returns the bytes read: fewer only at the end of file. */
  readSync(position: number, into: Uint8Array): number;
  /**
   * Like {@link readSync}, off the event loop (cold data). A handle serves either sync or async reads, not both at
   * a time: readers that may block open a handle of their own.
   */
  read(position: number, into: Uint8Array): Promise<number>;
  /** Writes all of `bytes` at byte `position` (page cache, not durable), on the calling thread. */
  writeSync(position: number, bytes: Uint8Array): void;
  /** Makes everything written so far durable (fdatasync), off the event loop. A failure must never be retried. */
  sync(): Promise<void>;
  /** Cuts or extends the file to `size` bytes. Not durable before `sync`. */
  truncateSync(size: number): void;
  /** Present size in bytes. */
  sizeSync(): number;
  /** Gives the descriptor back. Closing twice is harmless. */
  close(): void;
}

/** A file system. Methods ending in `Sync` run on the calling thread; the others never block the event loop. */
export interface Disk {
  /**
   * Letters and digits that tell this process's temporary files from those of any other process on the volume, so that
   * a deposed writer and its successor never write to one temporary name.
   */
  readonly writerId: string;
  /** Opens a file. @throws {DiskError} */
  openSync(path: string, mode: OpenMode): FileHandle;
  /** Opens a file off the event loop. @throws {DiskError} */
  open(path: string, mode: OpenMode): Promise<FileHandle>;
  /** Names in a folder, sorted. @throws {DiskError} */
  list(path: string): Promise<Entry[]>;
  /** @throws {DiskError} `"not-found"` among others */
  stat(path: string): Promise<FileStat>;
  /** The whole content of a (small) file. @throws {DiskError} */
  readFile(path: string): Promise<Uint8Array>;
  /** Makes a folder and its missing parents; no error if it is there. Durable after `syncFolder` of each parent. */
  makeFolder(path: string): Promise<void>;
  /** Moves a file or folder, replacing a file at `to` atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or, with `recursive`, a folder and all in it. @throws {DiskError} `"not-found"` among others */
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  /** Makes the names in a folder durable (fsync of the folder). */
  syncFolder(path: string): Promise<void>;
  /** Free and total bytes of the volume at `path`. */
  space(path: string): Promise<{ freeBytes: number; totalBytes: number }>;
}
