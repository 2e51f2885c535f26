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
  const poorest = new LoadQueue(candidates, 1);
  for (let partition = 0; partition < taken.length; partition++) {
    if (taken[partition] === 1) continue;
    give(poorest.first!, topicId, partition);
    poorest.settleFirst();
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
  const poorest = new LoadQueue(candidates, 1);
  const richest = new LoadQueue(candidates.filter(({ has }) => (has.get(topicId)?.length ?? 0) > 0), -1);
  let moved = false;
  for (let rich = richest.first; rich !== undefined && rich.load - poorest.load >= 2; rich = richest.first) {
    const has = rich.has.get(topicId)!;
    const partition = has.pop()!;
    rich.load--;
    give(poorest.first!, topicId, partition);
    poorest.settleFirst();
    if (has.length > 0) richest.settleFirst();
    else richest.dropFirst();
    moved = true;
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
 * Consumers with the least loaded first, or the most loaded (a binary heap). Equal loads come in the order given. The load
 * of another than the first may change while it is in here; its place then is the one it had before.
 */
class LoadQueue {
  readonly #heap: { readonly consumer: Consumer; readonly order: number; load: number }[];
  readonly #sign: 1 | -1;

  /** @param sign 1 for the least loaded first, −1 for the most loaded */
  constructor(consumers: readonly Consumer[], sign: 1 | -1) {
    this.#sign = sign;
    this.#heap = consumers.map((consumer, order) => ({ consumer, order, load: consumer.load }));
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  get first(): Consumer | undefined {
    return this.#heap[0]?.consumer;
  }

  /** Of the first. */
  get load(): number {
    return this.#heap[0].load;
  }

  /** The load of the first has changed. */
  settleFirst(): void {
    this.#heap[0].load = this.#heap[0].consumer.load;
    this.#sink(0);
  }

  dropFirst(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #sink(at: number): void {
    const heap = this.#heap;
    for (;;) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && this.#isBefore(child, first)) first = child;
      }
      if (first === at) return;
      [heap[at], heap[first]] = [heap[first], heap[at]];
      at = first;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    const difference = (one.load - other.load) * this.#sign;
    return difference < 0 || (difference === 0 && one.order < other.order);
  }
}
