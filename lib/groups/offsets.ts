/**
 * Committed offsets of one group, and when they expire (KIP-211): while a group has members, offsets of the topics they
 * subscribe to stay; without members, the retention runs from when the group became empty, or from the commit where the
 * group never had any; a commit after that renews it. A client may have given an offset an end of its own (OffsetCommit
 * 2 to 4).
 */

/** One committed offset. Times are wall-clock ms. */
export interface CommittedOffset {
  readonly offset: number;
  /** -1 where the client said none. */
  readonly leaderEpoch: number;
  readonly metadata: string;
  readonly committedAtMs: number;
  /** -1 where the retention of the broker holds. */
  readonly expiresAtMs: number;
}

export interface ExpiryRules {
  readonly nowMs: number;
  readonly retentionMs: number;
  /** When the group lost its last member; null where it has members or never had any. */
  readonly emptySinceMs: number | null;
  /** Topics whose offsets stay whatever their age; "all" where that cannot be known. */
  readonly subscribed: ReadonlySet<string> | "all";
}

/** See the file's head. */
export class CommittedOffsets {
  readonly #topics = new Map<string, Map<number, CommittedOffset>>();

  get isEmpty(): boolean {
    return this.#topics.size === 0;
  }

  get(topic: string, partition: number): CommittedOffset | undefined {
    return this.#topics.get(topic)?.get(partition);
  }

  set(topic: string, partition: number, offset: CommittedOffset): void {
    const partitions = this.#topics.get(topic);
    if (partitions === undefined) this.#topics.set(topic, new Map([[partition, offset]]));
    else partitions.set(partition, offset);
  }

  delete(topic: string, partition: number): void {
    const partitions = this.#topics.get(topic);
    partitions?.delete(partition);
    if (partitions?.size === 0) this.#topics.delete(topic);
  }

  clear(): void {
    this.#topics.clear();
  }

  /** Topics with their offsets by partition, in the order of their first commits. */
  topics(): Iterable<[topic: string, partitions: ReadonlyMap<number, CommittedOffset>]> {
    return this.#topics;
  }

  /** Those whose time is over. */
  expired({ nowMs, retentionMs, emptySinceMs, subscribed }: ExpiryRules): { topic: string; partition: number }[] {
    if (subscribed === "all") return [];
    const over: { topic: string; partition: number }[] = [];
    for (const [topic, partitions] of this.#topics) {
      if (subscribed.has(topic)) continue;
      for (const [partition, { committedAtMs, expiresAtMs }] of partitions) {
        const endMs = expiresAtMs >= 0 ? expiresAtMs : Math.max(emptySinceMs ?? 0, committedAtMs) + retentionMs;
        if (endMs <= nowMs) over.push({ topic, partition });
      }
    }
    return over;
  }
}
