/**
 * The assignor `uniform`: members get equally many partitions, as far as their subscriptions allow, and keep what they
 * have, as far as balance allows.
 *
 * - Members keep their part of the last target, less what they do not consume any more and what does not exist.
 * - What nobody has goes to the consumer of its topic that has least.
 * - Then partitions move, from a member to another consumer of their topic that has at least two fewer, until none can:
 *   first those that their member has only just got. Each move makes loads more even, so there is an end to it.
 *
 * Members with equal subscriptions end with loads that differ by one at most.
 */

import { PartitionsBuilder } from "../topic_partitions.ts";
import { type Assignor, type AssignorMember, consumersByTopic } from "./assignor.ts";

interface Consumer extends AssignorMember {
  /** What it has so far, by topic; in the order in which it can be taken away again, last first. */
  readonly has: Map<string, number[]>;
  load: number;
}

/** See the file's head. */
export const assignUniformly: Assignor = (members, partitionCounts) => {
  const consumers = members.map((member): Consumer => ({ ...member, has: new Map(), load: 0 }));
  const byTopic = consumersByTopic(consumers);
  const taken = new Map<string, Uint8Array>();
  for (const topicId of byTopic.keys()) taken.set(topicId, new Uint8Array(partitionCounts.get(topicId) ?? 0));
  for (const consumer of consumers) keepTarget(consumer, taken);
  for (const [topicId, candidates] of byTopic) giveRest(topicId, candidates, taken.get(topicId)!);
  while (moveAll(byTopic)) { /* until nothing moves */ }
  return new Map(consumers.map(({ memberId, has }) => [memberId, partitionsOf(has)]));
};

function keepTarget(consumer: Consumer, taken: ReadonlyMap<string, Uint8Array>): void {
  for (const topicId of consumer.topicIds) {
    const ofTopic = taken.get(topicId)!;
    for (const partition of consumer.target.get(topicId) ?? []) {
      if (partition >= ofTopic.length || ofTopic[partition] === 1) continue;
      ofTopic[partition] = 1;
      give(consumer, topicId, partition);
    }
  }
}

function giveRest(topicId: string, candidates: readonly Consumer[], taken: Uint8Array): void {
  if (taken.every((isTaken) => isTaken === 1)) return;
  const queue = new LoadQueue(candidates);
  for (let partition = 0; partition < taken.length; partition++) {
    if (taken[partition] === 0) queue.giveToLeast((consumer) => give(consumer, topicId, partition));
  }
}

function moveAll(byTopic: ReadonlyMap<string, readonly Consumer[]>): boolean {
  let moved = false;
  for (const [topicId, candidates] of byTopic) moved = balance(topicId, candidates) || moved;
  return moved;
}

/** Evens out the loads of a topic's consumers by partitions of this topic. Returns whether any moved. */
function balance(topicId: string, candidates: readonly Consumer[]): boolean {
  let [most, least] = [0, Infinity];
  for (const { load } of candidates) [most, least] = [Math.max(most, load), Math.min(least, load)];
  if (most - least < 2) return false;
  let moved = false;
  const byLoad = [...candidates].sort((a, b) => a.load - b.load);
  const queue = new LoadQueue(candidates);
  for (let at = byLoad.length - 1; at >= 0; at--) {
    const rich = byLoad[at];
    const has = rich.has.get(topicId) ?? [];
    while (has.length > 0 && rich.load - queue.leastLoad >= 2) {
      const partition = has.pop()!;
      rich.load--;
      queue.giveToLeast((poor) => give(poor, topicId, partition));
      moved = true;
    }
  }
  return moved;
}

function give(consumer: Consumer, topicId: string, partition: number): void {
  consumer.load++;
  const has = consumer.has.get(topicId);
  if (has === undefined) consumer.has.set(topicId, [partition]);
  else has.push(partition);
}

function partitionsOf(has: ReadonlyMap<string, readonly number[]>) {
  const builder = new PartitionsBuilder();
  for (const [topicId, indexes] of has) for (const index of indexes) builder.add(topicId, index);
  return builder.build();
}

/**
 * Consumers with the least loaded first (a binary heap). Equal loads come in the order given. A load may sink while its
 * consumer is in here: it is put in its place when it comes up, as loads of those in front are never higher than theirs.
 */
class LoadQueue {
  readonly #heap: { readonly consumer: Consumer; readonly order: number; load: number }[];

  constructor(consumers: readonly Consumer[]) {
    this.#heap = consumers.map((consumer, order) => ({ consumer, order, load: consumer.load }));
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  get leastLoad(): number {
    return this.#heap[0].load;
  }

  giveToLeast(give: (consumer: Consumer) => void): void {
    const top = this.#heap[0];
    give(top.consumer);
    top.load = top.consumer.load;
    this.#sink(0);
  }

  #sink(at: number): void {
    const heap = this.#heap;
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && this.#isBefore(child, least)) least = child;
      }
      if (least === at) return;
      [heap[at], heap[least]] = [heap[least], heap[at]];
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    return one.load < other.load || (one.load === other.load && one.order < other.order);
  }
}
