/**
 * The long poll of Fetch: waits until enough bytes may have become readable, the time is over, or the client is gone.
 *
 * Appends are counted, not re-read: a wait over a thousand partitions costs one addition for each append, and one reading
 * at its end. The count is an estimate that never comes out too low (bytes that were appended before the wait and become
 * readable in it count, others may too early); the caller reads again and may wait on.
 */
import type { Clock } from "../clock.ts";
import type { Partition, PartitionWatcher } from "./partitions.ts";

/** Why a wait ended. */
export type WaitEnd = "bytes" | "time" | "gone";

/** A partition as it was read in vain. */
export interface WaitedFor {
  readonly partition: Partition;
  /** Its high watermark then. */
  readonly highWatermark: number;
}

/**
 * Waits on partitions for `missingBytes` more bytes, or until one of them closes.
 * @param patienceMs longest wait in ms
 * @param signal aborted when the client's connection is gone
 */
export function waitForBytes(
  waitedFor: readonly WaitedFor[],
  { missingBytes, patienceMs, clock, signal }: {
    readonly missingBytes: number;
    readonly patienceMs: number;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<WaitEnd> {
  const partitions = waitedFor.map(({ partition }) => partition);
  // What has come since they were read would wake nobody any more.
  const isStale = ({ partition, highWatermark }: WaitedFor) =>
    partition.state === "closed" || (partition.openLog !== null && partition.openLog.highWatermark !== highWatermark);
  if (waitedFor.some(isStale)) return Promise.resolve("bytes");
  return new Promise((resolve) => {
    const watcher = new ByteCounter(partitions, missingBytes, () => end("bytes"));
    const gone = () => end("gone");
    const end = (why: WaitEnd) => {
      timer.cancel();
      signal.removeEventListener("abort", gone);
      for (const partition of partitions) partition.unwatch(watcher);
      resolve(why);
    };
    const timer = clock.schedule(patienceMs, () => end("time"));
    signal.addEventListener("abort", gone);
    for (const partition of partitions) partition.watch(watcher);
    if (signal.aborted) gone();
  });
}

class ByteCounter implements PartitionWatcher {
  readonly #seen = new Map<Partition, number>();
  /** Partitions with transactions under way: the end of one may make much readable that was counted long ago. */
  readonly #unstable = new Set<Partition>();

  constructor(partitions: readonly Partition[], private missing: number, private readonly enough: () => void) {
    for (const partition of partitions) {
      this.#seen.set(partition, partition.readableBytes);
      if (isUnstable(partition)) this.#unstable.add(partition);
    }
  }

  partitionChanged(partition: Partition): void {
    const seen = this.#seen.get(partition) ?? 0;
    this.#seen.set(partition, partition.appendedBytes);
    this.missing -= Math.max(1, partition.appendedBytes - seen);
    if (this.missing <= 0 || partition.state === "closed" || this.#unstable.has(partition)) this.enough();
    else if (isUnstable(partition)) this.#unstable.add(partition);
  }
}

function isUnstable({ openLog }: Partition): boolean {
  return openLog !== null && openLog.lastStableOffset < openLog.highWatermark;
}
