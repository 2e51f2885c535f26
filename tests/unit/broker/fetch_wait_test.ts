import assert from "node:assert/strict";
import { type WaitedFor, waitForBytes } from "../../../lib/broker/fetch_wait.ts";
import type { Partition, PartitionWatcher } from "../../../lib/broker/partitions.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";

/** A partition as far as a wait sees it. */
class WatchedPartition {
  state = "leading";
  appendedBytes = 0;
  readableBytes = 0;
  openLog = { highWatermark: 0, lastStableOffset: 0 };
  readonly watchers = new Set<PartitionWatcher>();

  watch(watcher: PartitionWatcher): void {
    this.watchers.add(watcher);
  }

  unwatch(watcher: PartitionWatcher): void {
    this.watchers.delete(watcher);
  }

  /** Everything that was appended becomes readable. */
  move({ stable = true } = {}): void {
    this.readableBytes = this.appendedBytes;
    this.openLog.highWatermark++;
    if (stable) this.openLog.lastStableOffset = this.openLog.highWatermark;
    for (const watcher of this.watchers) watcher.partitionChanged(this as unknown as Partition);
  }

  read(): WaitedFor {
    return { partition: this as unknown as Partition, highWatermark: this.openLog.highWatermark };
  }
}

interface Wait {
  ended(): Promise<string | null>;
  readonly clock: SimulatedClock;
  readonly gone: AbortController;
}

function wait(waitedFor: readonly WaitedFor[], missingBytes: number): Wait {
  const clock = new SimulatedClock();
  const gone = new AbortController();
  const waiting = waitForBytes(waitedFor, { missingBytes, patienceMs: 500, clock, signal: gone.signal });
  return { clock, gone, ended: () => Promise.race([waiting, Promise.resolve(null)]) };
}

Deno.test("A wait ends with the bytes that it waits for, over several moves, and watches no longer", async () => {
  const partition = new WatchedPartition();
  const { ended } = wait([partition.read()], 150);
  partition.appendedBytes += 100;
  partition.move();
  assert.equal(await ended(), null);
  partition.appendedBytes += 100;
  partition.move();
  assert.equal(await ended(), "bytes");
  assert.equal(partition.watchers.size, 0);
});

Deno.test("What was appended before the wait and becomes readable in it counts", async () => {
  const partition = new WatchedPartition();
  partition.appendedBytes += 100;
  const { ended } = wait([partition.read()], 100);
  partition.move();
  assert.equal(await ended(), "bytes");
});

Deno.test("What became readable between the reading and the wait ends it at once", async () => {
  const partition = new WatchedPartition();
  const read = partition.read();
  partition.appendedBytes += 100;
  partition.move();
  assert.equal(await wait([read], 1).ended(), "bytes");
});

Deno.test("The end of a transaction ends the wait, however few bytes it takes", async () => {
  const partition = new WatchedPartition();
  partition.appendedBytes += 10_000;
  partition.move({ stable: false });
  const { ended } = wait([partition.read()], 5_000);
  partition.appendedBytes += 70;
  partition.move();
  assert.equal(await ended(), "bytes");
});

Deno.test("A wait ends when a partition closes, when its time is over, and when the client has gone", async () => {
  const closing = new WatchedPartition();
  const first = wait([closing.read()], 1);
  closing.state = "closed";
  closing.move();
  assert.equal(await first.ended(), "bytes");

  const quiet = new WatchedPartition();
  const second = wait([quiet.read()], 1);
  second.clock.advance(499);
  assert.equal(await second.ended(), null);
  second.clock.advance(1);
  assert.equal(await second.ended(), "time");

  const third = wait([quiet.read()], 1);
  third.gone.abort();
  assert.equal(await third.ended(), "gone");
  assert.equal(quiet.watchers.size, 0);
});
