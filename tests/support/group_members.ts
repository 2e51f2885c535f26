/** What the events of group members say: what they own at the end of them, and what they read. */

import type { ClientEvent, Running } from "./client_process.ts";

/** The partitions of a member after these events, as `topic/partition`. */
export function ownedPartitions(events: readonly ClientEvent[]): string[] {
  const owned = new Set<string>();
  for (const event of events) {
    switch (event.event) {
      case "assigned":
        for (const [topic, partition] of event.partitions) owned.add(`${topic}/${partition}`);
        break;
      case "revoked":
      case "lost":
        for (const [topic, partition] of event.partitions) owned.delete(`${topic}/${partition}`);
        break;
      default:
    }
  }
  return [...owned].sort();
}

export interface RecordOfMember {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
}

/** All records that a member read, in order. */
export function recordsOf(events: readonly ClientEvent[]): RecordOfMember[] {
  const records: RecordOfMember[] = [];
  for (const event of events) {
    if (event.event !== "records") continue;
    for (const [topic, partition, offset, key] of event.records) records.push({ topic, partition, offset, key });
  }
  return records;
}

/** The highest offset of each partition, `topic/partition`, that the member was told is committed. */
export function committedBy(events: readonly ClientEvent[]): Map<string, number> {
  const read = new Map<string, number>();
  const committed = new Map<string, number>();
  for (const event of events) {
    if (event.event === "records") {
      for (const [topic, partition, offset] of event.records) read.set(`${topic}/${partition}`, offset + 1);
    } else if (event.event === "committed") {
      for (const [partition, offset] of read) committed.set(partition, Math.max(offset, committed.get(partition) ?? 0));
    }
  }
  return committed;
}

/** What a member did, and when it stopped to be one without a word (killed, or stopped for longer than its session). */
export interface MemberHistory {
  readonly events: readonly ClientEvent[];
  readonly cutAtMs?: number;
}

/** Partitions that two members owned at one time, by their own words; members of clients that tell no times are left out. */
export function ownedTwice(members: readonly MemberHistory[]): string[] {
  const spans = members.flatMap((member, index) => spansOf(member).map((span) => ({ ...span, index })));
  const found: string[] = [];
  for (const [at, one] of spans.entries()) {
    for (const other of spans.slice(at + 1)) {
      if (one.partition !== other.partition || one.index === other.index) continue;
      if (one.fromMs < other.toMs && other.fromMs < one.toMs) {
        const span = ({ index, fromMs, toMs }: typeof one) => `member ${index} from ${fromMs} to ${toMs}`;
        found.push(`${one.partition}: ${span(one)}, ${span(other)}`);
      }
    }
  }
  return found;
}

interface Span {
  readonly partition: string;
  readonly fromMs: number;
  readonly toMs: number;
}

function spansOf({ events, cutAtMs = Infinity }: MemberHistory): Span[] {
  const since = new Map<string, number>();
  const spans: Span[] = [];
  const end = (partition: string, atMs: number) => {
    const fromMs = since.get(partition);
    if (fromMs === undefined) return;
    since.delete(partition);
    spans.push({ partition, fromMs, toMs: fromMs < cutAtMs ? Math.min(atMs, cutAtMs) : atMs });
  };
  for (const event of events) {
    if (event.event !== "assigned" && event.event !== "revoked" && event.event !== "lost") continue;
    if (event.at === undefined) return [];
    for (const [topic, partition] of event.partitions) {
      if (event.event === "assigned") since.set(`${topic}/${partition}`, event.at);
      else end(`${topic}/${partition}`, event.at);
    }
  }
  for (const partition of [...since.keys()]) end(partition, Infinity);
  return spans;
}

/** Waits for a condition over events of members that run; a minute without it is a failure. */
export async function anyEvent(
  members: readonly Running<unknown>[],
  condition: () => boolean,
  seen: () => string,
): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const warnings = members.flatMap(({ events }) => events.filter(({ event }) => event === "warning"));
    reject(new Error(`after a minute: ${seen()}; warnings: ${JSON.stringify(warnings.slice(-5))}`));
  }, 60_000);
  try {
    // Some of them may have ended; the event comes from one that runs.
    await Promise.race([late, Promise.any(members.map(({ until }) => until(condition)))]);
  } finally {
    clearTimeout(timer);
  }
}
