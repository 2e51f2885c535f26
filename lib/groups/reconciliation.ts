/**
 * The step that brings one member nearer to its target (KIP-848). What it has to give up comes first: until it confirms
 * that, it stays in its epoch and gets nothing. What is still in other hands it gets when those have let go.
 */

import { unreachable } from "../errors.ts";
import type { Current } from "./consumer_member.ts";
import { NO_PARTITIONS, overlap, type Partitions, PartitionsBuilder, union } from "./topic_partitions.ts";

export interface Goal {
  readonly epoch: number;
  readonly partitions: Partitions;
}

/**
 * The next state of a member; `current` itself where nothing changes.
 *
 * @param owned what the member says it has; null if it did not say
 * @param isTaken whether another member has a partition, or may still have it
 */
export function reconcile(
  current: Current,
  goal: Goal,
  owned: Partitions | null,
  isTaken: (topicId: string, partition: number) => boolean,
): Current {
  switch (current.state) {
    case "stable":
      return current.epoch === goal.epoch ? current : step(current, goal, owned, isTaken);
    case "unrevoked":
      return mayHave(current.revoking, owned) ? current : step(current, goal, owned, isTaken);
    case "unreleased":
      return step(current, goal, owned, isTaken);
    default:
      return unreachable(current.state);
  }
}

function step(
  current: Current,
  goal: Goal,
  owned: Partitions | null,
  isTaken: (topicId: string, partition: number) => boolean,
): Current {
  const [kept, revoking, gained] = [new PartitionsBuilder(), new PartitionsBuilder(), new PartitionsBuilder()];
  let waits = false;
  for (const [topicId, partitions] of current.assigned) {
    const wanted = goal.partitions.get(topicId);
    for (const partition of partitions) (wanted?.has(partition) ? kept : revoking).add(topicId, partition);
  }
  for (const [topicId, partitions] of goal.partitions) {
    const had = current.assigned.get(topicId);
    for (const partition of partitions) {
      if (had?.has(partition)) continue;
      if (isTaken(topicId, partition)) waits = true;
      else gained.add(topicId, partition);
    }
  }
  const toRevoke = revoking.build();
  if (mayHave(toRevoke, owned)) {
    return { ...current, state: "unrevoked", assigned: kept.build(), revoking: toRevoke };
  }
  if (
    current.state === "unreleased" && waits && gained.isEmpty && toRevoke.size === 0 && current.epoch === goal.epoch
  ) {
    return current;
  }
  return {
    epoch: goal.epoch,
    previousEpoch: current.epoch === goal.epoch ? current.previousEpoch : current.epoch,
    state: waits ? "unreleased" : "stable",
    assigned: union(kept.build(), gained.build()),
    revoking: NO_PARTITIONS,
  };
}

function mayHave(partitions: Partitions, owned: Partitions | null): boolean {
  return partitions.size > 0 && (owned === null || overlap(partitions, owned));
}
