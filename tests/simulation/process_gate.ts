/**
 * A process in a simulation of several: its view of time and of the disk, which end while it is paused or dead, and lag
 * while its volume hangs. All processes share one disk and one time; each has a wall clock that is off by something.
 *
 * Whatever a process awaits (a timer, the disk) is where it can be stopped: a paused one goes on from there later, with
 * the time that has passed meanwhile; a dead one never does.
 */

import type { Clock, Timer } from "../../lib/clock.ts";
import type { Disk, Entry, FileHandle, FileStat, OpenMode } from "../../lib/disk/disk.ts";

/** See the file's head. */
export class ProcessGate {
  #blocked = 0;
  #dead = false;
  #waiting: (() => void)[] = [];
  #stalledUntilMs = -Infinity;
  #pausedAtMs = 0;
  #missedMs = 0;
  readonly clock: Clock;
  readonly disk: Disk;

  /** @param clockStops whether the process's clocks stand still while it is paused, which no machine's wall clock does */
  constructor(private readonly world: Clock, disk: Disk, skewMs: number, private readonly clockStops = false) {
    this.clock = {
      wallMs: () => world.wallMs() + skewMs - this.#missedMs,
      monotonicMs: () => world.monotonicMs() + skewMs - this.#missedMs,
      schedule: (delayMs, fire) => this.#schedule(delayMs, fire),
    };
    this.disk = new GatedDisk(disk, this);
  }

  get isRunning(): boolean {
    return this.#blocked === 0 && !this.#dead;
  }

  /** SIGSTOP. */
  pause(): void {
    if (this.#blocked++ === 0) this.#pausedAtMs = this.world.monotonicMs();
  }

  /** SIGCONT. */
  resume(): void {
    this.#blocked--;
    if (!this.isRunning) return;
    if (this.clockStops) this.#missedMs += this.world.monotonicMs() - this.#pausedAtMs;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }

  /** SIGKILL. */
  kill(): void {
    this.#dead = true;
    this.#waiting = [];
  }

  /** Every operation of this process on the volume takes until then. */
  stallDisk(ms: number): void {
    this.#stalledUntilMs = this.world.monotonicMs() + ms;
  }

  /** Resolves when the process may go on. */
  pass(): Promise<void> | void {
    if (this.isRunning) return;
    return new Promise((resolve) => this.#dead || this.#waiting.push(resolve));
  }

  /** Resolves when the process may go on, and its volume answers. */
  async passToDisk(): Promise<void> {
    await this.pass();
    while (this.world.monotonicMs() < this.#stalledUntilMs) {
      const leftMs = this.#stalledUntilMs - this.world.monotonicMs();
      await new Promise<void>((resolve) => this.world.schedule(leftMs, resolve));
      await this.pass();
    }
  }

  #schedule(delayMs: number, fire: () => void): Timer {
    let cancelled = false;
    const timer = this.world.schedule(delayMs, async () => {
      await this.pass();
      if (!cancelled) fire();
    });
    return {
      cancel() {
        cancelled = true;
        timer.cancel();
      },
    };
  }
}

class GatedDisk implements Disk {
  constructor(private readonly disk: Disk, private readonly gate: ProcessGate) {}

  get writerId(): string {
    return this.disk.writerId;
  }

  async #through<T>(run: () => Promise<T>): Promise<T> {
    await this.gate.passToDisk();
    try {
      return await run();
    } finally {
      await this.gate.passToDisk();
    }
  }

  openSync(path: string, mode: OpenMode): FileHandle {
    return new GatedHandle(this.disk.openSync(path, mode), this.gate);
  }
  open(path: string, mode: OpenMode): Promise<FileHandle> {
    return this.#through(async () => new GatedHandle(await this.disk.open(path, mode), this.gate));
  }
  list(path: string): Promise<Entry[]> {
    return this.#through(() => this.disk.list(path));
  }
  stat(path: string): Promise<FileStat> {
    return this.#through(() => this.disk.stat(path));
  }
  readFile(path: string): Promise<Uint8Array> {
    return this.#through(() => this.disk.readFile(path));
  }
  makeFolder(path: string): Promise<void> {
    return this.#through(() => this.disk.makeFolder(path));
  }
  rename(from: string, to: string): Promise<void> {
    return this.#through(() => this.disk.rename(from, to));
  }
  remove(path: string, options?: { recursive?: boolean }): Promise<void> {
    return this.#through(() => this.disk.remove(path, options));
  }
  syncFolder(path: string): Promise<void> {
    return this.#through(() => this.disk.syncFolder(path));
  }
  space(path: string): Promise<{ freeBytes: number; totalBytes: number }> {
    return this.#through(() => this.disk.space(path));
  }
}

class GatedHandle implements FileHandle {
  constructor(private readonly handle: FileHandle, private readonly gate: ProcessGate) {}

  get path(): string {
    return this.handle.path;
  }
  readSync(position: number, into: Uint8Array): number {
    return this.handle.readSync(position, into);
  }
  async read(position: number, into: Uint8Array): Promise<number> {
    await this.gate.passToDisk();
    const read = await this.handle.read(position, into);
    await this.gate.passToDisk();
    return read;
  }
  writeSync(position: number, bytes: Uint8Array): void {
    this.handle.writeSync(position, bytes);
  }
  async sync(): Promise<void> {
    await this.gate.passToDisk();
    try {
      await this.handle.sync();
    } finally {
      await this.gate.passToDisk();
    }
  }
  truncateSync(size: number): void {
    this.handle.truncateSync(size);
  }
  sizeSync(): number {
    return this.handle.sizeSync();
  }
  close(): void {
    this.handle.close();
  }
}
