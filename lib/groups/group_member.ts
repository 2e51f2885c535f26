/** One member of a classic group. */

import type { JoinReply, SyncReply } from "./replies.ts";

/** A protocol (assignor) that a member can take part in, with what it tells the leader about itself. */
export interface MemberProtocol {
  readonly name: string;
  readonly metadata: Uint8Array;
}

/** Part of what a member says of itself when it joins, and all that a restart needs of it. */
export interface MemberFacts {
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocols: readonly MemberProtocol[];
}

export const NO_BYTES = new Uint8Array(0);

/** How long a member that has not got its first answer may stay silent: it cannot know yet that it should beat. */
const NEW_MEMBER_PATIENCE_MS = 300_000;

/** See the file's head. */
export class GroupMember {
  assignment: Uint8Array = NO_BYTES;
  /** Answers the JoinGroup that waits for the round to end; null while none does. */
  join: ((reply: JoinReply) => void) | null = null;
  /** Answers the SyncGroup that waits for the leader; null while none does. */
  sync: ((reply: SyncReply) => void) | null = null;
  /** When the session ends unless the member is heard of, in monotonic ms. */
  sessionEndMs = 0;
  /** Whether its first JoinGroup has not been answered. */
  isNew = true;
  /** Whether it has been told of the generation and has not asked for its part of it. */
  owesSync = false;

  constructor(readonly memberId: string, public facts: MemberFacts) {}

  heard(nowMs: number): number {
    const patienceMs = this.isNew ? NEW_MEMBER_PATIENCE_MS : 0;
    this.sessionEndMs = nowMs + Math.max(this.facts.sessionTimeoutMs, patienceMs);
    return this.sessionEndMs;
  }

  metadataFor(protocolName: string | null): Uint8Array {
    return this.facts.protocols.find(({ name }) => name === protocolName)?.metadata ?? NO_BYTES;
  }

  /** Whether `protocols` say exactly what the member said before. */
  matches(protocols: readonly MemberProtocol[]): boolean {
    const own = this.facts.protocols;
    return own.length === protocols.length &&
      own.every(({ name, metadata }, at) => protocols[at].name === name && sameBytes(metadata, protocols[at].metadata));
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
