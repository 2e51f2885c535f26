/**
 * What of groups of the consumer protocol lasts, as journal entries: one for the group, and for each member one of what it
 * said, one of its target and one of how far it is, so that a change writes little. See `group_store.ts`.
 */

import type { JournalEntry } from "../journal/journal.ts";
import { FieldReader, FieldWriter } from "../journal/fields.ts";
import type { ConsumerGroupChanges, ConsumerGroupState } from "./consumer_group_state.ts";
import {
  type ConsumerFacts,
  ConsumerMember,
  type Current,
  NOTHING_YET,
  type ReconciliationState,
} from "./consumer_member.ts";
import { NO_PARTITIONS, type Partitions, PartitionsBuilder } from "./topic_partitions.ts";

const LAYOUT = 1;
/** Beside those of `group_store.ts`. */
const Kind = { GROUP: 10, FACTS: 11, TARGET: 12, CURRENT: 13 } as const;
const states: readonly ReconciliationState[] = ["stable", "unrevoked", "unreleased"];

export interface StoredConsumerGroup {
  readonly epoch: number;
  readonly targetEpoch: number;
  readonly fingerprint: number;
  readonly emptySinceMs: number;
}

/** One entry of such a group. */
export type StoredConsumerEntry =
  & { readonly kind: "consumer"; readonly groupId: string }
  & (
    | { readonly part: "group"; readonly group: StoredConsumerGroup }
    | { readonly part: "facts"; readonly memberId: string; readonly facts: ConsumerFacts }
    | { readonly part: "target"; readonly memberId: string; readonly target: Partitions }
    | { readonly part: "current"; readonly memberId: string; readonly current: Current }
  );

/** Entries for what has changed. A member that is gone comes first: what it had may be another's now. */
export function changeEntries(group: ConsumerGroupState, changes: ConsumerGroupChanges): JournalEntry[] {
  const { groupId } = group;
  const entries = [...changes.removed].flatMap((memberId) => memberRemovals(groupId, memberId));
  for (const { memberId, facts } of changes.facts) {
    entries.push({ key: keyOf(Kind.FACTS, groupId, memberId), value: factsValue(facts) });
  }
  for (const { memberId, target } of changes.targets) {
    const value = writePartitions(new FieldWriter().int8(LAYOUT), target).finish();
    entries.push({ key: keyOf(Kind.TARGET, groupId, memberId), value });
  }
  for (const { memberId, current } of changes.currents) {
    entries.push({ key: keyOf(Kind.CURRENT, groupId, memberId), value: currentValue(current) });
  }
  if (changes.group) {
    const { epoch, targetEpoch, fingerprint, emptySinceMs } = group;
    const value = new FieldWriter().int8(LAYOUT).int32(epoch).int32(targetEpoch).int64(fingerprint).int64(emptySinceMs);
    entries.push({ key: keyOf(Kind.GROUP, groupId), value: value.finish() });
  }
  return entries;
}

/** Removes a group with these members. */
export function consumerGroupRemovals(groupId: string, memberIds: Iterable<string>): JournalEntry[] {
  const entries = Array.from(memberIds).flatMap((memberId) => memberRemovals(groupId, memberId));
  return [...entries, { key: keyOf(Kind.GROUP, groupId), value: null }];
}

/** Reads an entry back; null for one of a kind that is not known here. @throws {RangeError} for cut fields */
export function readConsumerEntry(
  kind: number,
  groupId: string,
  keys: FieldReader,
  values: FieldReader,
): StoredConsumerEntry | null {
  const of = { kind: "consumer", groupId } as const;
  if (kind === Kind.GROUP) {
    const [epoch, targetEpoch, fingerprint, emptySinceMs] = [
      values.int32(),
      values.int32(),
      values.int64(),
      values.int64(),
    ];
    return { ...of, part: "group", group: { epoch, targetEpoch, fingerprint, emptySinceMs } };
  }
  if (kind !== Kind.FACTS && kind !== Kind.TARGET && kind !== Kind.CURRENT) return null;
  const memberId = keys.string() ?? "";
  if (kind === Kind.FACTS) return { ...of, part: "facts", memberId, facts: readFacts(values) };
  if (kind === Kind.TARGET) return { ...of, part: "target", memberId, target: readPartitions(values) };
  return { ...of, part: "current", memberId, current: readCurrent(values) };
}

/** Puts a group together from its entries, in whatever order they come. */
export class StoredConsumerMembers {
  group: StoredConsumerGroup | null = null;
  readonly #facts = new Map<string, ConsumerFacts>();
  readonly #targets = new Map<string, Partitions>();
  readonly #currents = new Map<string, Current>();

  add(entry: StoredConsumerEntry): void {
    if (entry.part === "group") this.group = entry.group;
    else if (entry.part === "facts") this.#facts.set(entry.memberId, entry.facts);
    else if (entry.part === "target") this.#targets.set(entry.memberId, entry.target);
    else this.#currents.set(entry.memberId, entry.current);
  }

  members(): ConsumerMember[] {
    return Array.from(this.#facts, ([memberId, facts]) => {
      const member = new ConsumerMember(memberId, facts);
      member.target = this.#targets.get(memberId) ?? NO_PARTITIONS;
      member.current = this.#currents.get(memberId) ?? NOTHING_YET;
      return member;
    });
  }

  /** Of all members of whom there is anything. */
  memberIds(): Set<string> {
    return new Set([...this.#facts.keys(), ...this.#targets.keys(), ...this.#currents.keys()]);
  }
}

/** Removes one member. */
export function memberRemovals(groupId: string, memberId: string): JournalEntry[] {
  return [Kind.CURRENT, Kind.TARGET, Kind.FACTS].map((kind) => ({ key: keyOf(kind, groupId, memberId), value: null }));
}

function keyOf(kind: number, groupId: string, memberId?: string): Uint8Array {
  const key = new FieldWriter().int8(LAYOUT).int8(kind).string(groupId);
  return (memberId === undefined ? key : key.string(memberId)).finish();
}

function factsValue(facts: ConsumerFacts): Uint8Array {
  const value = new FieldWriter().int8(LAYOUT).string(facts.instanceId).string(facts.rackId).string(facts.clientId)
    .string(facts.clientHost).int32(facts.rebalanceTimeoutMs).string(facts.regex).string(facts.assignor)
    .int32(facts.topicNames.length);
  for (const name of facts.topicNames) value.string(name);
  const { classic } = facts;
  value.int8(classic === null ? 0 : 1);
  if (classic === null) return value.finish();
  value.int32(classic.sessionTimeoutMs).int32(classic.protocols.length);
  for (const { name, metadata } of classic.protocols) value.string(name).bytes(metadata);
  return value.finish();
}

function readFacts(values: FieldReader): ConsumerFacts {
  const [instanceId, rackId, clientId, clientHost] = [
    values.string(),
    values.string(),
    values.string() ?? "",
    values.string() ?? "",
  ];
  const rebalanceTimeoutMs = values.int32();
  const [regex, assignor] = [values.string(), values.string()];
  const topicNames = Array.from({ length: values.int32() }, () => values.string() ?? "");
  const said = { instanceId, rackId, clientId, clientHost, rebalanceTimeoutMs, regex, assignor, topicNames };
  if (values.int8() === 0) return { ...said, classic: null };
  const sessionTimeoutMs = values.int32();
  const protocols = Array.from(
    { length: values.int32() },
    () => ({ name: values.string() ?? "", metadata: values.bytes() ?? new Uint8Array(0) }),
  );
  return { ...said, classic: { sessionTimeoutMs, protocols } };
}

function currentValue({ epoch, previousEpoch, state, assigned, revoking }: Current): Uint8Array {
  const value = new FieldWriter().int8(LAYOUT).int32(epoch).int32(previousEpoch).int8(states.indexOf(state));
  return writePartitions(writePartitions(value, assigned), revoking).finish();
}

function readCurrent(values: FieldReader): Current {
  const [epoch, previousEpoch] = [values.int32(), values.int32()];
  const state = states[values.int8()] ?? "stable";
  const [assigned, revoking] = [readPartitions(values), readPartitions(values)];
  return { epoch, previousEpoch, state, assigned, revoking };
}

/** Partitions of a topic in order, each by its distance from the one before. */
function writePartitions(value: FieldWriter, partitions: Partitions): FieldWriter {
  value.varint(partitions.size);
  for (const [topicId, indexes] of partitions) {
    value.uuid(topicId).varint(indexes.size);
    let before = 0;
    for (const index of [...indexes].sort((a, b) => a - b)) {
      value.varint(index - before);
      before = index;
    }
  }
  return value;
}

function readPartitions(values: FieldReader): Partitions {
  const builder = new PartitionsBuilder();
  for (let topics = values.varint(); topics > 0; topics--) {
    const topicId = values.uuid();
    let index = 0;
    for (let count = values.varint(); count > 0; count--) {
      index += values.varint();
      builder.add(topicId, index);
    }
  }
  return builder.build();
}
