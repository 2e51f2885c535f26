/** Sets of partitions by topic id: what a consumer has, gets, and gives up. A topic without partitions is not in it. */

export type Partitions = ReadonlyMap<string, ReadonlySet<number>>;

export const NO_PARTITIONS: Partitions = new Map();

export function countPartitions(partitions: Partitions): number {
  let count = 0;
  for (const { size } of partitions.values()) count += size;
  return count;
}

export function hasPartition(partitions: Partitions, topicId: string, partition: number): boolean {
  return partitions.get(topicId)?.has(partition) ?? false;
}

export function isSubset(part: Partitions, whole: Partitions): boolean {
  for (const [topicId, indexes] of part) {
    const others = whole.get(topicId);
    if (others === undefined || indexes.size > others.size) return false;
    for (const index of indexes) if (!others.has(index)) return false;
  }
  return true;
}

export function samePartitions(a: Partitions, b: Partitions): boolean {
  return a === b || (a.size === b.size && countPartitions(a) === countPartitions(b) && isSubset(a, b));
}

/** Whether some partition is in both. */
export function overlap(a: Partitions, b: Partitions): boolean {
  for (const [topicId, indexes] of a) {
    const others = b.get(topicId);
    if (others === undefined) continue;
    for (const index of indexes) if (others.has(index)) return true;
  }
  return false;
}

/** Gathers partitions one by one. */
export class PartitionsBuilder {
  readonly #topics = new Map<string, Set<number>>();

  add(topicId: string, partition: number): this {
    const indexes = this.#topics.get(topicId);
    if (indexes === undefined) this.#topics.set(topicId, new Set([partition]));
    else indexes.add(partition);
    return this;
  }

  addAll(partitions: Partitions): this {
    for (const [topicId, indexes] of partitions) for (const index of indexes) this.add(topicId, index);
    return this;
  }

  get isEmpty(): boolean {
    return this.#topics.size === 0;
  }

  /** What was gathered; nothing may be added afterwards. */
  build(): Partitions {
    return this.#topics.size === 0 ? NO_PARTITIONS : this.#topics;
  }
}

/** All partitions that are in one or the other. */
export function union(a: Partitions, b: Partitions): Partitions {
  return b.size === 0 ? a : new PartitionsBuilder().addAll(a).addAll(b).build();
}

/** The partitions of `a` that are not in `b`. */
export function without(a: Partitions, b: Partitions): Partitions {
  const rest = new PartitionsBuilder();
  for (const [topicId, indexes] of a) {
    for (const index of indexes) if (!hasPartition(b, topicId, index)) rest.add(topicId, index);
  }
  return rest.build();
}
