/**
 * What the tests of storage share: a clock that only moves when told, batches, logs in folders of their own, and a disk
 * around the real one on which single operations can be made to fail or to wait.
 */

import assert from "node:assert/strict";
import type { Clock, Timer } from "../../../lib/clock.ts";
import { type Disk, DiskError, type DiskErrorKind, type FileHandle, type OpenMode } from "../../../lib/disk/disk.ts";
import { HandleRegistry } from "../../../lib/disk/handle_registry.ts";
import { realDisk } from "../../../lib/disk/real_disk.ts";
import { lastOffset, nextOffset, sizeInBytes } from "../../../lib/records/batch.ts";
import { type BatchInput, buildBatch, recordsOf } from "../../../lib/records/record.ts";
import { PartitionLog, type TakeOverOptions } from "../../../lib/storage/log.ts";
import type { AppendOutcome } from "../../../lib/storage/log_appender.ts";
import { defaultLogConfig, type LogConfig } from "../../../lib/storage/log_config.ts";
import type { ReadOutcome, ReadRequest } from "../../../lib/storage/log_reader.ts";

/** Time that stands still until `advance`. */
export class ManualClock implements Clock {
  nowMs = 5_000;
  readonly #timers = new Set<{ atMs: number; fire: () => void }>();

  wallMs(): number {
    return this.nowMs;
  }
  monotonicMs(): number {
    return this.nowMs;
  }
  schedule(delayMs: number, fire: () => void): Timer {
    const timer = { atMs: this.nowMs + delayMs, fire };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }
  advance(ms: number): void {
    this.nowMs += ms;
    for (const timer of [...this.#timers]) {
      if (timer.atMs <= this.nowMs && this.#timers.delete(timer)) timer.fire();
    }
  }
}

/** What {@link HookedDisk} asks before it does something. A hook may throw a DiskError, or (if async) wait. */
export type Hook = (operation: string, path: string) => void | Promise<void>;

/** The real disk with a hook before each operation; async operations await the hook. */
export class HookedDisk implements Disk {
  readonly writerId = "test";
  hook: Hook = () => {};
  /** Every operation as `operation name`, in order. */
  readonly operations: string[] = [];

  /** Bytes that reads of open files asked for. */
  bytesAsked = 0;

  constructor(readonly inner: Disk = realDisk) {}

  #sync(operation: string, path: string): void {
    this.operations.push(`${operation} ${path.slice(path.lastIndexOf("/") + 1)}`);
    void this.hook(operation, path);
  }
  async #async(operation: string, path: string): Promise<void> {
    this.operations.push(`${operation} ${path.slice(path.lastIndexOf("/") + 1)}`);
    await this.hook(operation, path);
  }
  #wrap(handle: FileHandle): FileHandle {
    return {
      path: handle.path,
      readSync: (position, into) => {
        this.#sync("readSync", handle.path);
        this.bytesAsked += into.byteLength;
        return handle.readSync(position, into);
      },
      read: async (position, into) => {
        await this.#async("read", handle.path);
        this.bytesAsked += into.byteLength;
        return await handle.read(position, into);
      },
      writeSync: (position, bytes) => {
        try {
          this.#sync("writeSync", handle.path);
        } catch (error) {
          // A volume that fills up takes a part first.
          handle.writeSync(position, bytes.subarray(0, bytes.byteLength >> 1));
          throw error;
        }
        handle.writeSync(position, bytes);
      },
      sync: async () => {
        await this.#async("sync", handle.path);
        await handle.sync();
      },
      truncateSync: (size) => {
        this.#sync("truncateSync", handle.path);
        handle.truncateSync(size);
      },
      sizeSync: () => handle.sizeSync(),
      close: () => handle.close(),
    };
  }
  openSync(path: string, mode: OpenMode): FileHandle {
    this.#sync(`open-${mode}`, path);
    return this.#wrap(this.inner.openSync(path, mode));
  }
  async open(path: string, mode: OpenMode): Promise<FileHandle> {
    await this.#async(`open-${mode}`, path);
    return this.#wrap(await this.inner.open(path, mode));
  }
  async list(path: string) {
    await this.#async("list", path);
    return await this.inner.list(path);
  }
  async stat(path: string) {
    await this.#async("stat", path);
    return await this.inner.stat(path);
  }
  async readFile(path: string) {
    await this.#async("readFile", path);
    return await this.inner.readFile(path);
  }
  async makeFolder(path: string) {
    await this.#async("makeFolder", path);
    await this.inner.makeFolder(path);
  }
  async rename(from: string, to: string) {
    await this.#async("rename", to);
    await this.inner.rename(from, to);
  }
  async remove(path: string, options?: { recursive?: boolean }) {
    await this.#async("remove", path);
    await this.inner.remove(path, options);
  }
  async syncFolder(path: string) {
    await this.#async("syncFolder", path);
    await this.inner.syncFolder(path);
  }
  async space(path: string) {
    return await this.inner.space(path);
  }
}

/** A hook that lets operations on matching paths fail. */
export function failing(operation: string, match: RegExp, kind: DiskErrorKind = "io"): Hook {
  return (op, path) => {
    if (op === operation && match.test(path)) throw new DiskError(kind, op, path);
  };
}

/** A folder for one partition, a disk that watches over its handles, and what a takeover takes by default. */
export class Bench {
  readonly clock = new ManualClock();
  readonly hooked = new HookedDisk();
  readonly registry = new HandleRegistry(this.hooked);
  readonly messages: string[] = [];

  constructor(readonly folder: string) {}

  get disk(): Disk {
    return this.registry;
  }

  takeOver(
    leaderEpoch: number,
    config: Partial<LogConfig> = {},
    options: Partial<TakeOverOptions> = {},
  ): Promise<PartitionLog> {
    const note = (message: string, fields?: Readonly<Record<string, unknown>>) => {
      this.messages.push(`${message} ${JSON.stringify(fields)}`);
    };
    return PartitionLog.takeOver(this.disk, this.folder, {
      leaderEpoch,
      config: { ...defaultLogConfig, ...config },
      clock: this.clock,
      logger: { info: note, warn: note, error: note },
      ...options,
    });
  }

  /** Names in the folder, sorted. */
  names(): string[] {
    return [...Deno.readDirSync(this.folder)].map((entry) => entry.name).sort();
  }

  /** What a process that was killed leaves: its handles go, nothing else happens. */
  async kill(log: PartitionLog): Promise<void> {
    await log.abandon();
    this.assertClosed();
  }

  assertClosed(): void {
    assert.deepEqual(this.registry.openPaths(this.folder), []);
  }

  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  json(name: string): Record<string, unknown> {
    return JSON.parse(Deno.readTextFileSync(this.path(name)));
  }

  writeJson(name: string, value: unknown): void {
    Deno.writeTextFileSync(this.path(name), JSON.stringify(value));
  }
}

/** A test with a partition's folder of its own, removed afterwards. */
export function storageTest(name: string, test: (bench: Bench) => Promise<void>): void {
  Deno.test(name, async () => {
    const folder = Deno.makeTempDirSync();
    try {
      const bench = new Bench(folder);
      await test(bench);
      bench.assertClosed();
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  });
}

/** A batch of `count` small records, all with one time stamp. */
export function batchOf(count: number, input: Partial<BatchInput> = {}): Uint8Array {
  const records = Array.from({ length: count }, (_, i) => ({ value: `value ${i}` }));
  return buildBatch({ timestamp: 1_000, records, ...input });
}

/** A batch whose single record has a value of `bytes` bytes. */
export function batchOfBytes(bytes: number, input: Partial<BatchInput> = {}): Uint8Array {
  return buildBatch({ timestamp: 1_000, records: [{ value: new Uint8Array(bytes).fill(0x61) }], ...input });
}

export type Appended = AppendOutcome & { kind: "appended" };

/** Appends, which must succeed, without waiting for durability. */
export function append(log: PartitionLog, batch: Uint8Array, nowMs = 5_000): Appended {
  const outcome = log.append(batch, nowMs);
  assert.equal(outcome.kind, "appended", JSON.stringify(outcome));
  return outcome as Appended;
}

/** Appends and waits until that is durable. */
export async function produce(log: PartitionLog, batch: Uint8Array, nowMs = 5_000): Promise<Appended> {
  const outcome = append(log, batch, nowMs);
  assert.equal(await log.durable(outcome.ticket), 0);
  return outcome;
}

/** A read that must give batches. */
export async function read(
  log: PartitionLog,
  request: Partial<ReadRequest> = {},
): Promise<ReadOutcome & { kind: "batches" }> {
  const outcome = await log.read({
    offset: 0,
    maxBytes: 1 << 20,
    minOneBatch: true,
    limit: "highWatermark",
    ...request,
  });
  assert.equal(outcome.kind, "batches", JSON.stringify(outcome));
  return outcome as ReadOutcome & { kind: "batches" };
}

/** The offset ranges of whole batches. */
export function rangesOf(bytes: Uint8Array): [first: number, last: number][] {
  const ranges: [number, number][] = [];
  for (let at = 0; at < bytes.byteLength; at += sizeInBytes(bytes, at)) {
    const batch = bytes.subarray(at, at + sizeInBytes(bytes, at));
    assert.equal(batch.byteLength, sizeInBytes(batch), "a batch is cut short");
    const records = recordsOf(batch);
    assert.ok(Array.isArray(records), "a batch cannot be read");
    ranges.push([nextOffset(batch) - records.length, lastOffset(batch)]);
  }
  return ranges;
}

/** Everything that a consumer reads from `offset` on: the values, each with its offset. */
export async function consume(
  log: PartitionLog,
  offset = log.logStartOffset,
): Promise<{ offset: number; value: string }[]> {
  const all: { offset: number; value: string }[] = [];
  for (;;) {
    const { bytes, release } = await read(log, { offset });
    if (bytes.byteLength === 0) return all;
    for (let at = 0; at < bytes.byteLength; at += sizeInBytes(bytes, at)) {
      const records = recordsOf(bytes.subarray(at, at + sizeInBytes(bytes, at)));
      assert.ok(Array.isArray(records));
      for (const record of records) {
        if (record.offset < offset) continue;
        all.push({ offset: record.offset, value: new TextDecoder().decode(record.value ?? undefined) });
        offset = record.offset + 1;
      }
      offset = nextOffset(bytes, at);
    }
    release();
  }
}

/** The offsets that {@link consume} gives. */
export async function offsetsOf(log: PartitionLog, offset?: number): Promise<number[]> {
  return (await consume(log, offset)).map((record) => record.offset);
}

/** The path of a file given relative to this folder. */
export function fromFileUrl(relative: string): string {
  return decodeURIComponent(new URL(relative, import.meta.url).pathname);
}

/** `count` numbers from `first` on. */
export function numbers(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}
