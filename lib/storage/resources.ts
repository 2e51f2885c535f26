/**
 * What all logs of a process share: bounds on handles, on read buffers, and the count of recent bytes.
 */

import { type Random, systemRandom } from "../clock.ts";
import { BufferPool } from "./buffer_pool.ts";
import { HandleBudget } from "./handle_budget.ts";
import { RecentBytes } from "./recent_bytes.ts";

export interface StorageResources {
  readonly handles: HandleBudget;
  readonly buffers: BufferPool;
  readonly recent: RecentBytes;
  readonly random: Random;
}

/** Bounds of {@link createResources}; each has a default that fits a small machine. */
export interface ResourceLimits {
  /** Log file handles kept open over all partitions. Default 4096. */
  readonly maxOpenHandles?: number;
  /** Bytes of read buffers lent at a time, and kept for reuse. Default 64 MiB. */
  readonly readBufferBytes?: number;
  /** Own writes that are taken to be in the page cache. Default 128 MiB. */
  readonly recentBytes?: number;
  /** How long they are. Default 60,000 ms. */
  readonly recentMs?: number;
  readonly random?: Random;
}

/** Resources for the logs of one process (or of one test). */
export function createResources(limits: ResourceLimits = {}): StorageResources {
  return {
    handles: new HandleBudget(limits.maxOpenHandles ?? 4096),
    buffers: new BufferPool(limits.readBufferBytes ?? 64 * 1024 * 1024),
    recent: new RecentBytes(limits.recentBytes ?? 128 * 1024 * 1024, limits.recentMs ?? 60000),
    random: limits.random ?? systemRandom,
  };
}
