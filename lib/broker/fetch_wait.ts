/**
 * The long poll of Fetch: waits until enough bytes may have become readable, the time is over, or the client is gone.
 *
 * Appends are counted, not re-read: a wait over a thousand partitions costs one addition for each append, and one reading
 * at its end. The count is an estimate (an append may be cut off by a limit); the caller reads again and may wait on.
 */
import type { Clock } from "../clock.ts";
import type { Partition, PartitionWatcher } from "./partitions.ts";

/** Why a wait ended. */
export type WaitEnd = "bytes" | "time" | "gone";

/**
 * Waits on `partitions` for `missingBytes` more bytes, or until one of them closes.
 * @param patienceMs longest wait in ms
 * @param signal aborted when the client's connection is gone
 */
export function waitForBytes(
  partitions: readonly Partition[],
  { missingBytes, patienceMs, clock, signal }: {
    readonly missingBytes: number;
    readonly patienceMs: number;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<WaitEnd> {
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

  constructor(partitions: readonly Partition[], private missing: number, private readonly enough: () => void) {
    for (const partition of partitions) this.#seen.set(partition, partition.appendedBytes);
  }

  partitionChanged(partition: Partition): void {
    const seen = this.#seen.get(partition) ?? 0;
    this.#seen.set(partition, partition.appendedBytes);
    this.missing -= partition.appendedBytes - seen;
    if (this.missing <= 0 || partition.state === "closed") this.enough();
  }
}
