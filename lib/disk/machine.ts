/**
 * What this process can say about the machine it runs on, and an advisory lock that the kernel gives back when a process
 * dies. The lock is a shortcut only (a restart after a crash need not wait for a lease to run out): correctness never
 * rests on it, since a network volume may not carry locks from one machine to another.
 */

/** A lock that nobody has is had within this time. */
const LOOK_PATIENCE_MS = 20;

/** Two processes with equal `host` and `bootMs` within {@link sameBoot}'s slack run on one kernel. */
export interface MachineIdentity {
  readonly host: string;
  /** Wall-clock time of the machine's start, in ms; derived from the uptime, so good to some seconds. */
  readonly bootMs: number;
}

/** This machine. */
export function machineIdentity(): MachineIdentity {
  return { host: Deno.hostname(), bootMs: Date.now() - Deno.osUptime() * 1000 };
}

/** Whether both were taken on one machine between two of its starts. */
export function sameBoot(a: MachineIdentity, b: MachineIdentity): boolean {
  return a.host === b.host && Math.abs(a.bootMs - b.bootMs) < 3000;
}

/**
 * Locks the file at `path` (made if missing) for as long as this process lives. Resolves to false when another process
 * has it still after `waitMs`.
 */
export async function lockForLife(path: string, waitMs: number): Promise<boolean> {
  const file = Deno.openSync(path, { read: true, write: true, create: true });
  const locking = file.lock(true).then(() => true, () => false);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const waiting = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), waitMs));
  const isLocked = await Promise.race([locking, waiting]);
  clearTimeout(timer);
  if (isLocked) locked.push(file);
  // A lock that comes after all is not wanted any more.
  else void locking.then(() => file.close());
  return isLocked;
}

/**
 * Whether no process on this machine has the lock that {@link lockForLife} takes. A missing file counts as not known.
 * While one has it, a single thread waits for it, however often that is asked.
 */
export async function isLockFree(path: string): Promise<boolean> {
  if (awaited.has(path)) return false;
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path, { read: true, write: true });
  } catch {
    return false;
  }
  awaited.add(path);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const waiting = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), LOOK_PATIENCE_MS));
  const locking = file.lock(true).then(() => true, () => false).finally(() => {
    awaited.delete(path);
    file.close();
  });
  const isFree = await Promise.race([locking, waiting]);
  clearTimeout(timer);
  return isFree;
}

/** Locks as a broker uses them; handed in, so that a simulation has its own. */
export interface MachineLocks {
  lockForLife(path: string, waitMs: number): Promise<boolean>;
  isLockFree(path: string): Promise<boolean>;
}

/** This machine's. */
export const machineLocks: MachineLocks = { lockForLife, isLockFree };

/** Files whose lock is being waited for. */
const awaited = new Set<string>();

/** Held so that no collector closes them: closing a descriptor gives its lock back. */
const locked: Deno.FsFile[] = [];
