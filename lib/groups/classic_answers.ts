/**
 * The answers of a classic group: to members that wait for a round to end or for their leader, and to all others as soon
 * as what was changed before is saved. Each request is answered exactly once.
 */

import { ErrorCode } from "../errors.ts";
import type { GroupEffects } from "./classic_requests.ts";
import type { GroupMember } from "./group_member.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";

/** What members are told of their generation. */
export interface Generation {
  readonly generationId: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly leaderId: string | null;
  readonly members: ReadonlyMap<string, GroupMember>;
}

/** See the file's head. */
export class ClassicAnswers {
  readonly #effects: GroupEffects;
  /** How many members wait for the round to end. */
  waitingJoins = 0;

  constructor(effects: GroupEffects) {
    this.#effects = effects;
  }

  awaitJoin(member: GroupMember, answer: (reply: JoinReply) => void): void {
    member.join = answer;
    this.waitingJoins++;
  }

  /** Tells a member that waits for the round, if it does, what came of it; it waits no longer. */
  endJoin(member: GroupMember, generation: Generation): void {
    const answer = member.join;
    if (answer === null) return;
    member.join = null;
    this.waitingJoins--;
    this.join(answer, generation, member);
  }

  refuseJoin(member: GroupMember, code: ErrorCode): void {
    const answer = member.join;
    if (answer === null) return;
    member.join = null;
    this.waitingJoins--;
    answer(refusedJoin(code, member.memberId));
  }

  refuseSync(member: GroupMember, code: ErrorCode): void {
    member.sync?.(refusedSync(code));
    member.sync = null;
  }

  join(answer: (reply: JoinReply) => void, generation: Generation, member: GroupMember): void {
    this.giveJoin(answer, joinReplyFor(generation, member));
  }

  giveJoin(answer: (reply: JoinReply) => void, reply: JoinReply): void {
    this.#effects.answer(() => answer(reply), (code) => answer(refusedJoin(code, reply.memberId)));
  }

  sync(
    answer: (reply: SyncReply) => void,
    { protocolType, protocolName }: Generation,
    { assignment }: GroupMember,
  ): void {
    const reply = { errorCode: ErrorCode.NONE, protocolType, protocolName, assignment };
    this.#effects.answer(() => answer(reply), (code) => answer(refusedSync(code)));
  }
}

/** What a member is told that has joined: the leader hears of everybody. */
export function joinReplyFor(generation: Generation, { memberId }: GroupMember): JoinReply {
  const { generationId, protocolType, protocolName, leaderId } = generation;
  const members = memberId !== leaderId ? [] : Array.from(generation.members.values(), (one) => ({
    memberId: one.memberId,
    groupInstanceId: one.facts.instanceId,
    metadata: one.metadataFor(protocolName),
  }));
  return {
    errorCode: ErrorCode.NONE,
    generationId,
    protocolType,
    protocolName,
    leader: leaderId ?? "",
    memberId,
    skipAssignment: false,
    members,
  };
}
