/**
 * What of groups lasts, as journal entries: one per classic group (its generation and members), several per group of the
 * consumer protocol (`consumer_group_store.ts`), one per committed offset, and one per offset that waits for the end of
 * its transaction.
 * Every key and value begins with the number of its layout, so that a later layout can be told apart.
 */

import type { JournalEntry } from "../journal/journal.ts";
import { FieldReader, FieldWriter } from "../journal/fields.ts";
import type { ClassicGroup } from "./classic_group.ts";
import { readConsumerEntry, type StoredConsumerEntry } from "./consumer_group_store.ts";
import type { MemberFacts } from "./group_member.ts";
import type { CommittedOffset } from "./offsets.ts";
import type { PendingOffset } from "./pending_offsets.ts";

const LAYOUT = 1;
const Kind = { GROUP: 1, OFFSET: 2, PENDING_OFFSET: 3 } as const;

export interface StoredMember {
  readonly memberId: string;
  readonly facts: MemberFacts;
  readonly assignment: Uint8Array;
}

export interface StoredGroup {
  readonly generationId: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly leaderId: string | null;
  readonly emptySinceMs: number;
  readonly members: readonly StoredMember[];
}

/** What an entry is about. */
export type StoredEntry =
  | { readonly kind: "group"; readonly groupId: string; readonly group: StoredGroup }
  | {
    readonly kind: "offset";
    readonly groupId: string;
    readonly topic: string;
    readonly partition: number;
    readonly offset: CommittedOffset;
  }
  | {
    readonly kind: "pending-offset";
    readonly groupId: string;
    readonly producerId: number;
    readonly topic: string;
    readonly partition: number;
    readonly offset: CommittedOffset;
  }
  | StoredConsumerEntry;

export function groupEntry(group: ClassicGroup): JournalEntry {
  const value = new FieldWriter().int8(LAYOUT).int32(group.generationId).string(group.protocolType)
    .string(group.protocolName).string(group.leaderId).int64(group.emptySinceMs).int32(group.members.size);
  for (const { memberId, facts, assignment } of group.members.values()) {
    value.string(memberId).string(facts.instanceId).string(facts.clientId).string(facts.clientHost)
      .int32(facts.sessionTimeoutMs).int32(facts.rebalanceTimeoutMs).bytes(assignment).int32(facts.protocols.length);
    for (const { name, metadata } of facts.protocols) value.string(name).bytes(metadata);
  }
  return { key: groupKey(group.groupId), value: value.finish() };
}

export function groupRemoval(groupId: string): JournalEntry {
  return { key: groupKey(groupId), value: null };
}

export function offsetEntry(groupId: string, topic: string, partition: number, offset: CommittedOffset): JournalEntry {
  return { key: offsetKey(groupId, topic, partition), value: offsetValue(offset) };
}

export function offsetRemoval(groupId: string, topic: string, partition: number): JournalEntry {
  return { key: offsetKey(groupId, topic, partition), value: null };
}

export function pendingOffsetEntry(groupId: string, producerId: number, pending: PendingOffset): JournalEntry {
  return { key: pendingKey(groupId, producerId, pending), value: offsetValue(pending.offset) };
}

export function pendingOffsetRemoval(groupId: string, producerId: number, pending: PendingOffset): JournalEntry {
  return { key: pendingKey(groupId, producerId, pending), value: null };
}

/** Reads an entry back; null for one of a layout or kind that is not known here. @throws {RangeError} for cut fields */
export function readEntry({ key, value }: JournalEntry): StoredEntry | null {
  const keys = new FieldReader(key);
  const values = new FieldReader(value ?? new Uint8Array(0));
  if (keys.int8() !== LAYOUT || values.int8() !== LAYOUT) return null;
  const kind = keys.int8();
  const groupId = keys.string() ?? "";
  if (kind === Kind.GROUP) return { kind: "group", groupId, group: readGroup(values) };
  if (kind === Kind.PENDING_OFFSET) {
    const place = { producerId: keys.int64(), topic: keys.string() ?? "", partition: keys.int32() };
    return { kind: "pending-offset", groupId, ...place, offset: readOffset(values) };
  }
  if (kind !== Kind.OFFSET) return readConsumerEntry(kind, groupId, keys, values);
  return { kind: "offset", groupId, topic: keys.string() ?? "", partition: keys.int32(), offset: readOffset(values) };
}

function groupKey(groupId: string): Uint8Array {
  return new FieldWriter().int8(LAYOUT).int8(Kind.GROUP).string(groupId).finish();
}

function offsetKey(groupId: string, topic: string, partition: number): Uint8Array {
  return new FieldWriter().int8(LAYOUT).int8(Kind.OFFSET).string(groupId).string(topic).int32(partition).finish();
}

function pendingKey(groupId: string, producerId: number, { topic, partition }: PendingOffset): Uint8Array {
  return new FieldWriter().int8(LAYOUT).int8(Kind.PENDING_OFFSET).string(groupId).int64(producerId).string(topic)
    .int32(partition).finish();
}

function offsetValue(offset: CommittedOffset): Uint8Array {
  return new FieldWriter().int8(LAYOUT).int64(offset.offset).int32(offset.leaderEpoch).string(offset.metadata)
    .int64(offset.committedAtMs).int64(offset.expiresAtMs).finish();
}

function readOffset(values: FieldReader): CommittedOffset {
  return {
    offset: values.int64(),
    leaderEpoch: values.int32(),
    metadata: values.string() ?? "",
    committedAtMs: values.int64(),
    expiresAtMs: values.int64(),
  };
}

function readGroup(values: FieldReader): StoredGroup {
  const generationId = values.int32();
  const [protocolType, protocolName, leaderId] = [values.string(), values.string(), values.string()];
  const emptySinceMs = values.int64();
  const members = Array.from({ length: values.count() }, () => readMember(values));
  return { generationId, protocolType, protocolName, leaderId, emptySinceMs, members };
}

function readMember(values: FieldReader): StoredMember {
  const memberId = values.string() ?? "";
  const instanceId = values.string();
  const [clientId, clientHost] = [values.string() ?? "", values.string() ?? ""];
  const [sessionTimeoutMs, rebalanceTimeoutMs] = [values.int32(), values.int32()];
  const assignment = values.bytes() ?? new Uint8Array(0);
  const protocols = Array.from(
    { length: values.count() },
    () => ({ name: values.string() ?? "", metadata: values.bytes() ?? new Uint8Array(0) }),
  );
  const facts = { instanceId, clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs, protocols };
  return { memberId, facts, assignment };
}
