/**
 * Who belongs to a classic group, and what follows from what they all say of themselves: static members by their
 * instance, protocols that all can do, how much is kept.
 */

import { ErrorCode } from "../errors.ts";
import type { GroupMember, MemberFacts } from "./group_member.ts";

/** See the file's head. */
export class ClassicMembers {
  readonly byId = new Map<string, GroupMember>();
  readonly #byInstance = new Map<string, string>();
  /** How many members can do a protocol, by its name. */
  readonly #protocolCounts = new Map<string, number>();
  #metadataBytes = 0;

  /** The bytes of names and metadata that all would say if `facts` came in the place of `member`. */
  bytesWith(facts: MemberFacts, member: GroupMember | undefined): number {
    return this.#metadataBytes - (member === undefined ? 0 : metadataBytes(member.facts)) + metadataBytes(facts);
  }

  byInstance(instanceId: string): GroupMember | undefined {
    return this.byId.get(this.#byInstance.get(instanceId) ?? "");
  }

  /** Refusal for a member that is not, or not any more, who it says: NONE if it is. */
  problemOf(memberId: string, instanceId: string | null): ErrorCode {
    if (instanceId !== null) {
      const holder = this.#byInstance.get(instanceId);
      if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
      return holder === memberId ? ErrorCode.NONE : ErrorCode.FENCED_INSTANCE_ID;
    }
    return this.byId.has(memberId) ? ErrorCode.NONE : ErrorCode.UNKNOWN_MEMBER_ID;
  }

  enter(member: GroupMember): void {
    const { memberId, facts } = member;
    this.byId.set(memberId, member);
    if (facts.instanceId !== null) this.#byInstance.set(facts.instanceId, memberId);
    this.#count(facts, 1);
  }

  drop({ memberId, facts }: GroupMember): void {
    this.byId.delete(memberId);
    if (facts.instanceId !== null) this.#byInstance.delete(facts.instanceId);
    this.#count(facts, -1);
  }

  update(member: GroupMember, facts: MemberFacts): void {
    this.#count(member.facts, -1);
    // A static member stays one, also where it leaves its instance unsaid.
    member.facts = { ...facts, instanceId: member.facts.instanceId };
    this.#count(member.facts, 1);
  }

  /** Whether all members can do the protocol. */
  isCommon(protocol: string): boolean {
    return this.#protocolCounts.get(protocol) === this.byId.size;
  }

  /** The protocol that most members like best, of those that all can do. */
  electProtocol(): string {
    const votes = new Map<string, number>();
    for (const { facts } of this.byId.values()) {
      const liked = facts.protocols.find(({ name }) => this.isCommon(name))?.name;
      if (liked !== undefined) votes.set(liked, (votes.get(liked) ?? 0) + 1);
    }
    let best = "";
    for (const [name, count] of votes) if (best === "" || count > votes.get(best)!) best = name;
    return best;
  }

  /** The longest time that a member may need to join again, in ms. */
  longestRebalanceMs(): number {
    let longest = 0;
    for (const { facts } of this.byId.values()) longest = Math.max(longest, facts.rebalanceTimeoutMs);
    return longest;
  }

  #count(facts: MemberFacts, step: 1 | -1): void {
    this.#metadataBytes += step * metadataBytes(facts);
    for (const name of new Set(facts.protocols.map((protocol) => protocol.name))) {
      const count = (this.#protocolCounts.get(name) ?? 0) + step;
      if (count === 0) this.#protocolCounts.delete(name);
      else this.#protocolCounts.set(name, count);
    }
  }
}

/** Names count too: they are kept just as long. */
function metadataBytes({ protocols }: MemberFacts): number {
  return protocols.reduce((sum, { name, metadata }) => sum + name.length + metadata.length, 0);
}
