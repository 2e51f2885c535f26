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
 * - a waiting JoinGroup or SyncGroup is answered exactly once, also when its member goes;
 * - `wakeMs` is never later than the next thing that time alone makes happen.
 */

import { ErrorCode } from "../errors.ts";
import {
  GroupMember,
  type MemberFacts,
  type MemberProtocol,
  NEW_MEMBER_PATIENCE_MS,
  NO_BYTES,
} from "./group_member.ts";
import { type JoinReply, refusedJoin, refusedSync, type SyncReply } from "./replies.ts";

export type GroupState = "Empty" | "PreparingRebalance" | "CompletingRebalance" | "Stable";

/** What a group does to the world. */
export interface GroupEffects {
  /** The group must be saved; answers given from now on wait for that. */
  save(): void;
  /** Gives an answer, after whatever had to be saved before. `refuse` is called instead if that failed. */
  answer(give: () => void, refuse: (code: ErrorCode) => void): void;
  /** An id for a new member. */
  newMemberId(prefix: string): string;
}

export interface JoinRequest {
  readonly memberId: string;
  readonly protocolType: string;
  readonly facts: MemberFacts;
  /** Whether a new member must come again with the id it is given (KIP-394). */
  readonly needsKnownId: boolean;
  /** Whether the client understands that its leader need not assign (KIP-814). */
  readonly knowsSkipAssignment: boolean;
}

export interface SyncRequest {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly generationId: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[];
}

export interface GroupLimits {
  readonly maxSize: number;
  readonly initialDelayMs: number;
}

/** See the file's head. */
export class ClassicGroup {
  state: GroupState = "Empty";
  generationId = 0;
  protocolType: string | null = null;
  protocolName: string | null = null;
  leaderId: string | null = null;
  /** Wall-clock time since when the group has no members, for the expiry of its offsets. */
  emptySinceMs: number;
  /** When {@link advance} is due, in monotonic ms. */
  wakeMs = Infinity;
  readonly members = new Map<string, GroupMember>();
  readonly #byInstance = new Map<string, string>();
  /** Ids handed out that nobody has joined with yet, and when they lapse. */
  readonly #pending = new Map<string, number>();
  #waitingJoins = 0;
  #roundEndMs = Infinity;
  /** In a group's first round: how much longer newcomers may prolong it. */
  #initial: { remainingMs: number; hasNewcomer: boolean } | null = null;
  #syncEndMs = Infinity;

  constructor(readonly groupId: string, readonly effects: GroupEffects, wallMs: number) {
    this.emptySinceMs = wallMs;
  }

  /** Puts a member back that was there before a restart. */
  restore(memberId: string, facts: MemberFacts, assignment: Uint8Array, nowMs: number): void {
    const member = new GroupMember(memberId, facts);
    member.assignment = assignment;
    member.isNew = false;
    this.members.set(memberId, member);
    if (facts.instanceId !== null) this.#byInstance.set(facts.instanceId, memberId);
    this.#wakeBy(member.heard(nowMs));
  }

  /** Whether nothing of the group but its offsets and generation is left. */
  get isIdle(): boolean {
    return this.state === "Empty" && this.#pending.size === 0;
  }

  join(request: JoinRequest, answer: (reply: JoinReply) => void, limits: GroupLimits, nowMs: number): void {
    const { memberId, protocolType, facts: { instanceId, protocols } } = request;
    const refuse = (code: ErrorCode, id = memberId) => answer(refusedJoin(code, id));
    if (!this.#hasRoomFor(memberId, limits.maxSize)) return refuse(ErrorCode.GROUP_MAX_SIZE_REACHED);
    if (!this.#supports(protocolType, protocols)) return refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
    if (memberId === "") return this.#joinUnknown(request, answer, limits, nowMs);
    if (this.#pending.has(memberId)) {
      this.#pending.delete(memberId);
      return this.#addAndRebalance(memberId, request, answer, limits, nowMs);
    }
    const problem = this.#problemOf(memberId, instanceId);
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
        return this.#answerJoin(answer, this.#joinReplyFor(member));
      case "Stable":
        if (!isSame || memberId === this.leaderId) return this.#rejoin(member, request, answer, limits, nowMs);
        this.#wakeBy(member.heard(nowMs));
        return this.#answerJoin(answer, this.#joinReplyFor(member));
    }
  }

  sync(request: SyncRequest, answer: (reply: SyncReply) => void, nowMs: number): void {
    const { memberId, instanceId, generationId, protocolType, protocolName, assignments } = request;
    const problem = this.#problemOf(memberId, instanceId) || this.#generationProblem(generationId);
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
        this.#wakeBy(member.heard(nowMs));
        this.#refuseSync(member, ErrorCode.REBALANCE_IN_PROGRESS);
        member.sync = answer;
        if (memberId === this.leaderId) this.#assign(assignments, nowMs);
        return;
      case "Stable":
        this.#wakeBy(member.heard(nowMs));
        return this.#answerSync(answer, member);
    }
  }

  heartbeat(memberId: string, instanceId: string | null, generationId: number, nowMs: number): ErrorCode {
    const problem = this.#problemOf(memberId, instanceId) || this.#generationProblem(generationId);
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
    const id = memberId === "" && instanceId !== null ? this.#byInstance.get(instanceId) ?? "" : memberId;
    const problem = this.#problemOf(id, instanceId);
    if (problem === ErrorCode.NONE) this.#removeAndRebalance(this.members.get(id)!, nowMs, wallMs);
    return problem;
  }

  /** Whether a commit under this membership is allowed. @param generationId negative for no membership */
  commitProblem(memberId: string, instanceId: string | null, generationId: number, nowMs: number): ErrorCode {
    if (generationId < 0 && this.state === "Empty") return ErrorCode.NONE;
    const problem = this.#problemOf(memberId, instanceId) || this.#generationProblem(generationId);
    if (problem !== ErrorCode.NONE) return problem;
    this.#wakeBy(this.members.get(memberId)!.heard(nowMs));
    return this.state === "CompletingRebalance" ? ErrorCode.REBALANCE_IN_PROGRESS : ErrorCode.NONE;
  }

  /**
   * Whether a transaction may commit offsets here (KIP-447): NONE also for a producer that says nothing of its consumer,
   * as those before KIP-447 do.
   */
  transactionalCommitProblem(memberId: string, instanceId: string | null, generationId: number, nowMs: number) {
    if (generationId < 0 && memberId === "" && instanceId === null) return ErrorCode.NONE;
    const problem = this.commitProblem(memberId, instanceId, generationId, nowMs);
    return problem === ErrorCode.REBALANCE_IN_PROGRESS ? ErrorCode.NONE : problem;
  }

  /** Does what time has made due. */
  advance(nowMs: number, wallMs: number): void {
    if (nowMs < this.wakeMs) return;
    for (const [id, endMs] of this.#pending) if (endMs <= nowMs) this.#pending.delete(id);
    if (this.state === "CompletingRebalance" && this.#syncEndMs <= nowMs) {
      for (const member of [...this.members.values()]) {
        if (member.sync === null) this.#remove(member);
      }
      this.#startRound(nowMs, wallMs);
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
      this.#refuseJoin(member, code);
      this.#refuseSync(member, code);
    }
  }

  /** Refusal for a member that is not, or not any more, who it says: NONE if it is. */
  #problemOf(memberId: string, instanceId: string | null): ErrorCode {
    if (instanceId !== null) {
      const holder = this.#byInstance.get(instanceId);
      if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
      return holder === memberId ? ErrorCode.NONE : ErrorCode.FENCED_INSTANCE_ID;
    }
    return this.members.has(memberId) ? ErrorCode.NONE : ErrorCode.UNKNOWN_MEMBER_ID;
  }

  #generationProblem(generationId: number): ErrorCode {
    return generationId === this.generationId ? ErrorCode.NONE : ErrorCode.ILLEGAL_GENERATION;
  }

  #hasRoomFor(memberId: string, maxSize: number): boolean {
    const member = this.members.get(memberId);
    if (this.state === "Empty") return true;
    if (this.state !== "PreparingRebalance") return member !== undefined || this.members.size < maxSize;
    return (member !== undefined && member.join !== null) || this.#waitingJoins < maxSize;
  }

  #supports(protocolType: string, protocols: readonly MemberProtocol[]): boolean {
    if (protocolType === "" || protocols.length === 0) return false;
    if (this.members.size === 0) return true;
    if (this.protocolType !== protocolType) return false;
    const common = this.#commonProtocols();
    return protocols.some(({ name }) => common.has(name));
  }

  #commonProtocols(): Set<string> {
    const counts = new Map<string, number>();
    for (const { facts } of this.members.values()) {
      for (const name of new Set(facts.protocols.map((protocol) => protocol.name))) {
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
    return new Set([...counts].flatMap(([name, count]) => count === this.members.size ? name : []));
  }

  /** The protocol that most members like best, of those that all can do. */
  #electProtocol(): string {
    const common = this.#commonProtocols();
    const votes = new Map<string, number>();
    for (const { facts } of this.members.values()) {
      const liked = facts.protocols.find(({ name }) => common.has(name))?.name;
      if (liked !== undefined) votes.set(liked, (votes.get(liked) ?? 0) + 1);
    }
    let best = "";
    for (const [name, count] of votes) if (best === "" || count > votes.get(best)!) best = name;
    return best;
  }

  #joinUnknown(
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    const { instanceId, clientId, sessionTimeoutMs } = request.facts;
    const newId = this.effects.newMemberId(instanceId ?? clientId);
    const holder = instanceId === null ? undefined : this.members.get(this.#byInstance.get(instanceId) ?? "");
    if (holder !== undefined) return this.#replaceStatic(holder, newId, request, answer, limits, nowMs);
    if (instanceId === null && request.needsKnownId) {
      this.#pending.set(newId, nowMs + sessionTimeoutMs);
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
    this.#refuseJoin(old, ErrorCode.FENCED_INSTANCE_ID);
    this.#refuseSync(old, ErrorCode.FENCED_INSTANCE_ID);
    const wasLeader = this.leaderId === old.memberId;
    const member = new GroupMember(newId, request.facts);
    member.assignment = old.assignment;
    member.isNew = false;
    this.members.delete(old.memberId);
    this.members.set(newId, member);
    this.#byInstance.set(request.facts.instanceId!, newId);
    if (wasLeader) this.leaderId = newId;
    this.#wakeBy(member.heard(nowMs));
    if (this.state !== "Stable" || this.#electProtocol() !== this.protocolName) {
      return this.#rejoin(member, request, answer, limits, nowMs);
    }
    this.effects.save();
    const reply = this.#joinReplyFor(member);
    if (!wasLeader || request.knowsSkipAssignment) {
      return this.#answerJoin(answer, { ...reply, skipAssignment: wasLeader });
    }
    // A leader that cannot be told to leave the assignment alone must not know that it leads.
    this.#answerJoin(answer, { ...reply, leader: old.memberId, members: [] });
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
    this.members.set(memberId, member);
    if (request.facts.instanceId !== null) this.#byInstance.set(request.facts.instanceId, memberId);
    if (this.#initial !== null) this.#initial.hasNewcomer = true;
    this.#await(member, answer);
    member.sessionEndMs = nowMs + Math.max(request.facts.sessionTimeoutMs, NEW_MEMBER_PATIENCE_MS);
    this.#wakeBy(member.sessionEndMs);
    this.#rebalance(limits, nowMs);
  }

  #rejoin(
    member: GroupMember,
    request: JoinRequest,
    answer: (reply: JoinReply) => void,
    limits: GroupLimits,
    nowMs: number,
  ): void {
    member.facts = request.facts;
    this.#refuseJoin(member, ErrorCode.REBALANCE_IN_PROGRESS);
    this.#await(member, answer);
    this.#wakeBy(member.heard(nowMs));
    this.#rebalance(limits, nowMs);
  }

  #await(member: GroupMember, answer: (reply: JoinReply) => void): void {
    member.join = answer;
    this.#waitingJoins++;
  }

  #rebalance(limits: GroupLimits, nowMs: number): void {
    if (this.state === "Empty" && limits.initialDelayMs > 0) {
      this.state = "PreparingRebalance";
      const remainingMs = Math.max(0, this.#longestRebalanceMs() - limits.initialDelayMs);
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
        if (this.state === "CompletingRebalance") this.#refuseSync(member, ErrorCode.REBALANCE_IN_PROGRESS);
      }
      this.state = "PreparingRebalance";
      this.#syncEndMs = Infinity;
      this.#roundEndMs = nowMs + this.#longestRebalanceMs();
      this.#wakeBy(this.#roundEndMs);
    }
    this.#endRoundIfComplete(nowMs, wallMs);
  }

  #endRoundIfComplete(nowMs: number, wallMs: number): void {
    if (this.state !== "PreparingRebalance" || this.#initial !== null) return;
    if (this.#waitingJoins === this.members.size && this.#pending.size === 0) this.#endRound(nowMs, wallMs);
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
    if (this.members.size > 0 && this.#waitingJoins === 0) {
      // Only absent static members are left: nobody could lead.
      this.#roundEndMs = nowMs + this.#longestRebalanceMs();
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
    this.protocolName = this.#electProtocol();
    if (this.members.get(this.leaderId ?? "")?.join == null) {
      for (const { memberId, join } of this.members.values()) {
        if (join === null) continue;
        this.leaderId = memberId;
        break;
      }
    }
    this.state = "CompletingRebalance";
    this.#syncEndMs = nowMs + this.#longestRebalanceMs();
    this.#wakeBy(this.#syncEndMs);
    for (const member of this.members.values()) {
      member.assignment = NO_BYTES;
      if (member.join === null) continue;
      const answer = member.join;
      member.join = null;
      member.isNew = false;
      this.#wakeBy(member.heard(nowMs));
      this.#answerJoin(answer, this.#joinReplyFor(member));
    }
    this.#waitingJoins = 0;
  }

  #assign(assignments: SyncRequest["assignments"], nowMs: number): void {
    const byMember = new Map(assignments.map(({ memberId, assignment }) => [memberId, assignment]));
    this.state = "Stable";
    this.#syncEndMs = Infinity;
    for (const member of this.members.values()) member.assignment = byMember.get(member.memberId)?.slice() ?? NO_BYTES;
    this.effects.save();
    for (const member of this.members.values()) {
      const answer = member.sync;
      if (answer === null) continue;
      member.sync = null;
      this.#wakeBy(member.heard(nowMs));
      this.#answerSync(answer, member);
    }
  }

  #removeAndRebalance(member: GroupMember, nowMs: number, wallMs: number): void {
    this.#remove(member);
    this.#startRound(nowMs, wallMs);
  }

  #remove(member: GroupMember): void {
    this.#refuseJoin(member, ErrorCode.UNKNOWN_MEMBER_ID);
    this.#refuseSync(member, ErrorCode.UNKNOWN_MEMBER_ID);
    const { memberId, facts: { instanceId } } = member;
    this.members.delete(memberId);
    if (instanceId !== null && this.#byInstance.get(instanceId) === memberId) this.#byInstance.delete(instanceId);
    if (this.leaderId === memberId) this.leaderId = this.members.keys().next().value ?? null;
  }

  #refuseJoin(member: GroupMember, code: ErrorCode): void {
    if (member.join === null) return;
    const answer = member.join;
    member.join = null;
    this.#waitingJoins--;
    answer(refusedJoin(code, member.memberId));
  }

  #refuseSync(member: GroupMember, code: ErrorCode): void {
    member.sync?.(refusedSync(code));
    member.sync = null;
  }

  #answerJoin(answer: (reply: JoinReply) => void, reply: JoinReply): void {
    this.effects.answer(() => answer(reply), (code) => answer(refusedJoin(code, reply.memberId)));
  }

  #answerSync(answer: (reply: SyncReply) => void, { assignment }: GroupMember): void {
    const { protocolType, protocolName } = this;
    const reply = { errorCode: ErrorCode.NONE, protocolType, protocolName, assignment };
    this.effects.answer(() => answer(reply), (code) => answer(refusedSync(code)));
  }

  #joinReplyFor(member: GroupMember): JoinReply {
    const isLeader = member.memberId === this.leaderId;
    const members = !isLeader ? [] : Array.from(this.members.values(), (one) => ({
      memberId: one.memberId,
      groupInstanceId: one.facts.instanceId,
      metadata: one.metadataFor(this.protocolName),
    }));
    return {
      errorCode: ErrorCode.NONE,
      generationId: this.generationId,
      protocolType: this.protocolType,
      protocolName: this.protocolName,
      leader: this.leaderId ?? "",
      memberId: member.memberId,
      skipAssignment: false,
      members,
    };
  }

  #longestRebalanceMs(): number {
    let longest = 0;
    for (const { facts } of this.members.values()) longest = Math.max(longest, facts.rebalanceTimeoutMs);
    return longest;
  }

  #wakeBy(dueMs: number): void {
    if (dueMs < this.wakeMs) this.wakeMs = dueMs;
  }

  #findWake(nowMs: number): void {
    let wake = Math.min(this.#roundEndMs, this.#syncEndMs);
    for (const endMs of this.#pending.values()) wake = Math.min(wake, endMs);
    for (const { sessionEndMs, join, sync, isNew } of this.members.values()) {
      const waits = (join !== null && !isNew) || sync !== null;
      if (!waits) wake = Math.min(wake, sessionEndMs);
    }
    this.wakeMs = Math.max(wake, nowMs + 1);
  }
}
