/**
 * What consumers of the classic protocol tell each other inside JoinGroup and SyncGroup, protocol type "consumer":
 *
 *     subscription  version int16, topics, user data, from v1 owned partitions, from v2 generation, from v3 rack
 *     assignment    version int16, partitions, user data
 *
 * The bytes come from clients: nothing here throws. A later version may append to the fields of an earlier one.
 */

import type { MemberProtocol } from "./group_member.ts";

/** Partitions of one topic, by its name. */
export interface NamedPartitions {
  readonly topic: string;
  readonly partitions: readonly number[];
}

export interface Subscription {
  readonly version: number;
  readonly topics: readonly string[];
  /** What a member of a cooperative assignor keeps while it joins. */
  readonly owned: readonly NamedPartitions[];
  readonly rackId: string | null;
}

/** The protocol type of groups whose members consume topics. */
export const CONSUMER_PROTOCOL_TYPE = "consumer";
/** The newest version of the assignment. */
const NEWEST_VERSION = 3;

const text = new TextDecoder("utf-8", { ignoreBOM: true });
const utf8 = new TextEncoder();

/** What a consumer subscribes to, or null where the bytes are no subscription. */
export function readSubscription(metadata: Uint8Array): Subscription | null {
  const bytes = new Cursor(metadata);
  const version = bytes.int16();
  const topics = bytes.array(() => bytes.name());
  bytes.skipBytes();
  const owned = version >= 1 ? bytes.array(() => readPartitions(bytes)) : [];
  if (version >= 2) bytes.int32();
  const rackId = version >= 3 ? bytes.string() : null;
  return bytes.isCut || version < 0 ? null : { version, topics, owned, rackId };
}

/** The topics named, whatever else the bytes hold; null where they are no subscription. */
export function subscribedTopics(metadata: Uint8Array): readonly string[] | null {
  const bytes = new Cursor(metadata);
  bytes.int16();
  const topics = bytes.array(() => bytes.name());
  return bytes.isCut ? null : topics;
}

/** What a member was given, or null where the bytes are no assignment. No bytes are no partitions. */
export function readAssignment(assignment: Uint8Array): readonly NamedPartitions[] | null {
  if (assignment.length === 0) return [];
  const bytes = new Cursor(assignment);
  const version = bytes.int16();
  const partitions = bytes.array(() => readPartitions(bytes));
  return bytes.isCut || version < 0 ? null : partitions;
}

/** An assignment for a member that subscribed in this version. */
export function writeAssignment(subscriptionVersion: number, assigned: readonly NamedPartitions[]): Uint8Array {
  const names = assigned.map(({ topic }) => utf8.encode(topic));
  const size = assigned.reduce((sum, { partitions }, at) => sum + 2 + names[at].length + 4 + 4 * partitions.length, 10);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setInt16(0, Math.min(subscriptionVersion, NEWEST_VERSION));
  view.setInt32(2, assigned.length);
  let at = 6;
  for (const [index, { partitions }] of assigned.entries()) {
    view.setInt16(at, names[index].length);
    bytes.set(names[index], at + 2);
    at += 2 + names[index].length;
    view.setInt32(at, partitions.length);
    at += 4;
    for (const partition of partitions) {
      view.setInt32(at, partition);
      at += 4;
    }
  }
  // No user data.
  view.setInt32(at, -1);
  return bytes;
}

/**
 * The subscription of a consumer: that of its first protocol, as they all say the same. Null where there is none, or
 * where the protocols are not those of consumers.
 */
export function subscriptionOf(protocols: readonly MemberProtocol[]): Subscription | null {
  return protocols.length === 0 ? null : readSubscription(protocols[0].metadata);
}

function readPartitions(bytes: Cursor): NamedPartitions {
  return { topic: bytes.name(), partitions: bytes.array(() => bytes.int32()) };
}

/** Reads fields; where the bytes end too early, or make no sense, it says so once for all, and reads zeros. */
class Cursor {
  readonly #view: DataView;
  #at = 0;
  isCut = false;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  int16(): number {
    const at = this.#advance(2);
    return at < 0 ? 0 : this.#view.getInt16(at);
  }

  int32(): number {
    const at = this.#advance(4);
    return at < 0 ? 0 : this.#view.getInt32(at);
  }

  name(): string {
    const name = this.string();
    if (name === null) this.isCut = true;
    return name ?? "";
  }

  string(): string | null {
    const length = this.int16();
    const at = length < 0 ? -1 : this.#advance(length);
    return at < 0 ? null : text.decode(new Uint8Array(this.#view.buffer, this.#view.byteOffset + at, length));
  }

  skipBytes(): void {
    this.#advance(Math.max(0, this.int32()));
  }

  array<T>(read: () => T): T[] {
    const count = this.int32();
    if (count < 0) this.isCut = true;
    const items: T[] = [];
    for (let index = 0; index < count && !this.isCut; index++) items.push(read());
    return items;
  }

  #advance(count: number): number {
    if (this.isCut || this.#at + count > this.#view.byteLength) {
      this.isCut = true;
      return -1;
    }
    this.#at += count;
    return this.#at - count;
  }
}
