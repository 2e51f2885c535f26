/** What the events of group members say: what they own at the end of them, and what they read. */

import type { ClientEvent } from "./client_process.ts";

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
