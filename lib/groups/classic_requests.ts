/** What members ask of a classic group, free of any wire format, and what the group does to the world. */

import type { ErrorCode } from "../errors.ts";
import type { MemberFacts } from "./group_member.ts";

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
