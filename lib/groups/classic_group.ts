/**
 * A group of the classic protocol: who belongs to it, which generation it is in, and who waits for what. Pure: time comes
 * in with each call, answers and the need to be saved go out through {@link GroupEffects}.
 *
 *     Empty → PreparingRebalance (members join) → CompletingRebalance (the leader assigns) → Stable
 *
 * Invariants:
 * - a generation has one protocol and one leader, and its assignment is given out only once it is saved;
 * - a round ends when every member has joined, or when its time is over: then who did not join is out, but for static
 *   members, who stay until their session ends;
 * - a generation whose members have not all synced when its time is over loses those who have not, and starts a round;
 * - a waiting JoinGroup or SyncGroup is answered exactly once, also when its member goes, and who waits is alive: its
 *   session goes on from the answer;
 * - what members say of themselves, and what the leader assigns, has a bound, however many they are;
 * - `wakeMs` is never later than the next thing that time alone makes happen.
 */

import { ErrorCode } from "../errors.ts";
import { ClassicAnswers, joinReplyFor } from "./classic_answers.ts";
import { ClassicMembers } from "./classic_members.ts";
import type { GroupEffects, GroupLimits, GroupState, JoinRequest, SyncRequest } from "./classic_requests.ts";
import { GroupMember, type MemberFacts, type MemberProtocol, NO_BYTES } from "./group_member.ts";
import { PendingIds } from "./pending_ids.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";

/** All that the members of a group may say of themselves, and all that a leader may hand out. */
const MAX_GROUP_BYTES = 64 * 1024 * 1024;

/** See the file's head. */
export class ClassicGroup {
  readonly type = "classic";
  state: GroupState = "Empty";
  generationId = 0;
  protocolType: string | null = null;
  protocolName: string | null = null;
  leaderId: string | null = null;
  /** Wall-clock time since when the group has no members, for the expiry of its offsets. */
  emptySinceMs: number;
  /** When {@link advance} is due, in monotonic ms. */
  wakeMs = Infinity;
  readonly #members = new ClassicMembers();
  readonly members: ReadonlyMap<string, GroupMember> = this.#members.byId;
  readonly #pending = new PendingIds();
  readonly #answers: ClassicAnswers;
  #roundEndMs = Infinity;
  /** In a group's first round: how much longer newcomers may prolong it. */
  #initial: { remainingMs: number; hasNewcomer: boolean } | null = null;
  #syncEndMs = Infinity;

  constructor(readonly groupId: string, readonly effects: GroupEffects, wallMs: number) {
    this.#answers = new ClassicAnswers(effects);
    this.emptySinceMs = wallMs;
  }

  /** Puts a member back that was there before a restart. */
  restore(memberId: string, facts: MemberFacts, assignment: Uint8Array, nowMs: number): void {
    const member = new GroupMember(memberId, facts);
    member.assignment = assignment;
    member.isNew = false;
    this.#members.enter(member);
    this.#wakeBy(member.heard(nowMs));
  }

  /** Takes what all members like best for the protocol, and begins a round: the group has come from another protocol. */
  begin(nowMs: number, wallMs: number): void {
    this.protocolName = this.#members.electProtocol();
    this.effects.save();
    this.#startRound(nowMs, wallMs);
  }

  /** Whether nothing of the group but its offsets and generation is left. */
  get isIdle(): boolean {
    return this.state === "Empty" && this.#pending.size === 0;
  }

  join(request: JoinRequest, answer: (reply: JoinReply) => void, limits: GroupLimits, nowMs: number): void {
    const { memberId, protocolType, facts: { instanceId, protocols } } = request;
    const refuse = (code: ErrorCode, id = memberId) => answer(refusedJoin(code, id));
    if (!this.#hasRoomFor(request, limits.maxSize)) return refuse(ErrorCode.GROUP_MAX_SIZE_REACHED);
    if (!this.#supports(protocolType, protocols)) return refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    if (memberId === "") return this.#joinUnknown(request, answer, limits, nowMs);
    if (instanceId === null && this.#pending.delete(memberId)) {
      return this.#addAndRebalance(memberId, request, answer, limits, nowMs);
    }
    const problem = this.#members.problemOf(memberId, instanceId);
    if (problem !== ErrorCode.NONE) return refuse(problem);
    const member = this.members.get(memberId)!;
    const isSame = member.matches(protocols);
    switch (this.state) {
      case "Empty":
        return refuse(ErrorCode.UNKNOWN_MEMBER_ID);
      case "PreparingRebalance":
        return this.#rejoin(member, request, answer, limits, nowMs);
      case "CompletingRebalance":
        if (!isSame) return this.#rejoin(member, request, answer, limits, nowMs);
        this.#wakeBy(member.heard(nowMs));
        return this.#answers.join(answer, this, member);
      case "Stable":
        if (!isSame || memberId === this.leaderId) return this.#rejoin(member, request, answer, limits, nowMs);
        this.#wakeBy(member.heard(nowMs));
        return this.#answers.join(answer, this, member);
    }
  }

  sync(request: SyncRequest, answer: (reply: SyncReply) => void, nowMs: number): void {
    const { memberId, instanceId, generationId, protocolType, protocolName, assignments } = request;
    const problem = this.#members.problemOf(memberId, instanceId) || this.#generationProblem(generationId);
    if (problem !== ErrorCode.NONE) return answer(refusedSync(problem));
    const disagrees = (protocolType !== null && protocolType !== this.protocolType) ||
      (protocolName !== null && protocolName !== this.protocolName);
    if (disagrees && this.state !== "PreparingRebalance") {
      return answer(refusedSync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL));
    }
    const member = this.members.get(memberId)!;
    switch (this.state) {
      case "Empty":
        return answer(refusedSync(ErrorCode.UNKNOWN_MEMBER_ID));
      case "PreparingRebalance":
        return answer(refusedSync(ErrorCode.REBALANCE_IN_PROGRESS));
      case "CompletingRebalance":
        if (memberId === this.leaderId && bytesIn(assignments) > MAX_GROUP_BYTES) {
          return answer(refusedSync(ErrorCode.MESSAGE_TOO_LARGE));
        }
        this.#wakeBy(member.heard(nowMs));
        this.#answers.refuseSync(member, ErrorCode.REBALANCE_IN_PROGRESS);
        member.sync = answer;
        member.owesSync = false;
        if (memberId === this.leaderId) this.#assign(assignments, nowMs);
        return;
      case "Stable":
        this.#wakeBy(member.heard(nowMs));
        member.owesSync = false;
        return this.#answers.sync(answer, this, member);
    }
  }

  heartbeat(memberId: string, instanceId: string | null, generationId: number, nowMs: number): ErrorCode {
    const problem = this.#members.problemOf(memberId, instanceId) || this.#generationProblem(generationId);
    if (problem !== ErrorCode.NONE) return problem;
    this.#wakeBy(this.members.get(memberId)!.heard(nowMs));
    return this.state === "PreparingRebalance" ? ErrorCode.REBALANCE_IN_PROGRESS : ErrorCode.NONE;
  }

  /** A static member may be named by its instance alone. */
  leave(memberId: string, instanceId: string | null, nowMs: number, wallMs: number): ErrorCode {
    if (instanceId === null && this.#pending.delete(memberId)) {
      this.#endRoundIfComplete(nowMs, wallMs);
      return ErrorCode.NONE;
    }
    const id = memberId === "" && instanceId !== null ? this.#members.byInstance(instanceId)?.memberId ?? "" : memberId;
    const problem = this.#members.problemOf(id, instanceId);
    if (problem === ErrorCode.NONE) this.#removeAndRebalance(this.members.get(id)!, nowMs, wallMs);
    return problem;
  }

  /** Whether a commit under this membership is allowed. @param generationId negative for no membership */
  commitProblem(memberId: string, instanceId: string | null, generationId: number, nowMs: number): ErrorCode {
    if (generationId < 0 && this.state === "Empty") return ErrorCode.NONE;
    const problem = this.#members.problemOf(memberId, instanceId) || this.#generationProblem(generationId);
    if (problem !== ErrorCode.NONE) return problem;
    this.#wakeBy(this.members.get(memberId)!.heard(nowMs));
    return this.state === "CompletingRebalance" ? ErrorCode.REBALANCE_IN_PROGRESS : ErrorCode.NONE;
  }

  /** Does what time has made due. */
  advance(nowMs: number, wallMs: number): void {
    if (nowMs < this.wakeMs) return;
    this.#pending.lapse(nowMs);
    if (this.#syncEndMs <= nowMs) {
      this.#syncEndMs = Infinity;
      const silent = [...this.members.values()].filter(({ owesSync }) => owesSync);
      for (const member of silent) this.#remove(member);
      if (silent.length > 0) this.#startRound(nowMs, wallMs);
    }
    for (const member of [...this.members.values()]) {
      const waits = (member.join !== null && !member.isNew) || member.sync !== null;
      if (!waits && member.sessionEndMs <= nowMs) this.#removeAndRebalance(member, nowMs, wallMs);
    }
    if (this.state === "PreparingRebalance") {
      if (this.#roundEndMs <= nowMs) this.#roundIsOver(nowMs, wallMs);
      else this.#endRoundIfComplete(nowMs, wallMs);
    }
    this.#findWake(nowMs);
  }

  /** Answers everybody who waits with `code`: the group is served here no longer. */
  dissolve(code: ErrorCode): void {
    for (const member of this.members.values()) {
      this.#answers.refuseJoin(member, code);
      this.#answers.refuseSync(member, code);
    }
  }

  #generationProblem(generationId: number): ErrorCode {
    return generationId === this.generationId ? ErrorCode.NONE : ErrorCode.ILLEGAL_GENERATION;
  }

  #hasRoomFor({ memberId, facts }: JoinRequest, maxSize: number): boolean {
    // A static member that comes back takes its own place.
    const member = memberId === "" ? this.#members.byInstance(facts.instanceId ?? "") : this.members.get(memberId);
    if (this.#members.bytesWith(facts, member) > MAX_GROUP_BYTES) return false;
    if (this.state === "Empty") return true;
    if (this.state !== "PreparingRebalance") return member !== undefined || this.members.size < maxSize;
    return (member !== undefined && member.join !== null) || this.#answers.waitingJoins < maxSize;
  }

  #supports(protocolType: string, protocols: readonly MemberProtocol[]): boolean {
    if (protocolType === "" || protocols.length === 0) return false;
    if (this.members.size === 0) return true;
    return this.protocolType === protocolType && protocols.some(({ name }) => this.#members.isCommon(name));
  }

  #joinUnknown(
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    const { instanceId, clientId, sessionTimeoutMs } = request.facts;
    const newId = this.effects.newMemberId(instanceId ?? clientId);
    const holder = instanceId === null ? undefined : this.#members.byInstance(instanceId);
    if (holder !== undefined) return this.#replaceStatic(holder, newId, request, answer, limits, nowMs);
    if (instanceId === null && request.needsKnownId) {
      this.#pending.add(newId, nowMs + sessionTimeoutMs);
      this.#wakeBy(nowMs + sessionTimeoutMs);
      return answer(refusedJoin(ErrorCode.MEMBER_ID_REQUIRED, newId));
    }
    this.#addAndRebalance(newId, request, answer, limits, nowMs);
  }

  /** A static member has come back under a new id; whoever still holds the old one is fenced. */
  #replaceStatic(
    old: GroupMember,
    newId: string,
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    this.#answers.refuseJoin(old, ErrorCode.FENCED_INSTANCE_ID);
    this.#answers.refuseSync(old, ErrorCode.FENCED_INSTANCE_ID);
    const wasLeader = this.leaderId === old.memberId;
    const member = new GroupMember(newId, request.facts);
    member.assignment = old.assignment;
    member.isNew = false;
    this.#members.drop(old);
    this.#members.enter(member);
    if (wasLeader) this.leaderId = newId;
    this.#wakeBy(member.heard(nowMs));
    if (this.state !== "Stable" || this.#members.electProtocol() !== this.protocolName) {
      return this.#rejoin(member, request, answer, limits, nowMs);
    }
    this.effects.save();
    const reply = joinReplyFor(this, member);
    if (!wasLeader || request.knowsSkipAssignment) {
      return this.#answers.giveJoin(answer, { ...reply, skipAssignment: wasLeader });
    }
    // A leader that cannot be told to leave the assignment alone must not know that it leads.
    this.#answers.giveJoin(answer, { ...reply, leader: old.memberId, members: [] });
  }

  #addAndRebalance(
    memberId: string,
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    const member = new GroupMember(memberId, request.facts);
    if (this.members.size === 0) this.protocolType = request.protocolType;
    this.leaderId ??= memberId;
    this.#members.enter(member);
    if (this.#initial !== null) this.#initial.hasNewcomer = true;
    this.#answers.awaitJoin(member, answer);
    this.#wakeBy(member.heard(nowMs));
    this.#rebalance(limits, nowMs);
  }

  #rejoin(
    member: GroupMember,
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    this.#members.update(member, request.facts);
    this.#answers.refuseJoin(member, ErrorCode.REBALANCE_IN_PROGRESS);
    this.#answers.awaitJoin(member, answer);
    this.#wakeBy(member.heard(nowMs));
    this.#rebalance(limits, nowMs);
  }

  #rebalance(limits: GroupLimits, nowMs: number): void {
    if (this.state === "Empty" && limits.initialDelayMs > 0) {
      this.state = "PreparingRebalance";
      const remainingMs = Math.max(0, this.#members.longestRebalanceMs() - limits.initialDelayMs);
      this.#initial = { remainingMs, hasNewcomer: false };
      this.#initialDelayMs = limits.initialDelayMs;
      this.#roundEndMs = nowMs + limits.initialDelayMs;
      this.#wakeBy(this.#roundEndMs);
      return;
    }
    this.#startRound(nowMs, this.emptySinceMs);
  }

  #initialDelayMs = 0;

  /** Goes into a round of joining, or looks whether the one that runs is complete. */
  #startRound(nowMs: number, wallMs: number): void {
    if (this.state !== "PreparingRebalance") {
      for (const member of this.members.values()) {
        if (member.sync === null) continue;
        this.#answers.refuseSync(member, ErrorCode.REBALANCE_IN_PROGRESS);
        this.#wakeBy(member.heard(nowMs));
      }
      this.state = "PreparingRebalance";
      this.#syncEndMs = Infinity;
      this.#roundEndMs = nowMs + this.#members.longestRebalanceMs();
      this.#wakeBy(this.#roundEndMs);
    }
    this.#endRoundIfComplete(nowMs, wallMs);
  }

  #endRoundIfComplete(nowMs: number, wallMs: number): void {
    if (this.state !== "PreparingRebalance" || this.#initial !== null) return;
    if (this.#answers.waitingJoins === this.members.size && this.#pending.size === 0) this.#endRound(nowMs, wallMs);
  }

  #roundIsOver(nowMs: number, wallMs: number): void {
    const initial = this.#initial;
    if (initial !== null && initial.hasNewcomer && initial.remainingMs > 0) {
      const delayMs = Math.min(this.#initialDelayMs, initial.remainingMs);
      this.#initial = { remainingMs: initial.remainingMs - delayMs, hasNewcomer: false };
      this.#roundEndMs = nowMs + delayMs;
      return;
    }
    this.#endRound(nowMs, wallMs);
  }

  #endRound(nowMs: number, wallMs: number): void {
    this.#initial = null;
    for (const member of [...this.members.values()]) {
      if (member.join === null && member.facts.instanceId === null) this.#remove(member);
    }
    if (this.members.size > 0 && this.#answers.waitingJoins === 0) {
      // Only absent static members are left: nobody could lead.
      this.#roundEndMs = nowMs + this.#members.longestRebalanceMs();
      return;
    }
    this.#roundEndMs = Infinity;
    this.generationId++;
    if (this.members.size === 0) {
      this.state = "Empty";
      this.protocolName = null;
      this.leaderId = null;
      this.emptySinceMs = wallMs;
      this.effects.save();
      return;
    }
    this.protocolName = this.#members.electProtocol();
    if (this.members.get(this.leaderId ?? "")?.join == null) {
      for (const { memberId, join } of this.members.values()) {
        if (join === null) continue;
        this.leaderId = memberId;
        break;
      }
    }
    this.state = "CompletingRebalance";
    this.#syncEndMs = nowMs + this.#members.longestRebalanceMs();
    this.#wakeBy(this.#syncEndMs);
    for (const member of this.members.values()) {
      member.assignment = NO_BYTES;
      if (member.join === null) continue;
      member.isNew = false;
      member.owesSync = true;
      this.#wakeBy(member.heard(nowMs));
      this.#answers.endJoin(member, this);
    }
  }

  #assign(assignments: SyncRequest["assignments"], nowMs: number): void {
    const byMember = new Map(assignments.map(({ memberId, assignment }) => [memberId, assignment]));
    this.state = "Stable";
    for (const member of this.members.values()) member.assignment = byMember.get(member.memberId)?.slice() ?? NO_BYTES;
    this.effects.save();
    for (const member of this.members.values()) {
      const answer = member.sync;
      if (answer === null) continue;
      member.sync = null;
      this.#wakeBy(member.heard(nowMs));
      this.#answers.sync(answer, this, member);
    }
  }

  #removeAndRebalance(member: GroupMember, nowMs: number, wallMs: number): void {
    this.#remove(member);
    this.#startRound(nowMs, wallMs);
  }

  #remove(member: GroupMember): void {
    this.#answers.refuseJoin(member, ErrorCode.UNKNOWN_MEMBER_ID);
    this.#answers.refuseSync(member, ErrorCode.UNKNOWN_MEMBER_ID);
    this.#members.drop(member);
    if (this.leaderId === member.memberId) this.leaderId = this.members.keys().next().value ?? null;
  }

  #wakeBy(dueMs: number): void {
    if (dueMs < this.wakeMs) this.wakeMs = dueMs;
  }

  #findWake(nowMs: number): void {
    let wake = Math.min(this.#roundEndMs, this.#syncEndMs, this.#pending.nextLapseMs);
    for (const { sessionEndMs, join, sync, isNew } of this.members.values()) {
      const waits = (join !== null && !isNew) || sync !== null;
      if (!waits) wake = Math.min(wake, sessionEndMs);
    }
    this.wakeMs = Math.max(wake, nowMs + 1);
  }
}

function bytesIn(assignments: SyncRequest["assignments"]): number {
  return assignments.reduce((sum, { assignment }) => sum + assignment.length, 0);
}
