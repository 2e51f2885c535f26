/** One member of a group of the consumer protocol (KIP-848): what it says of itself, what it has, and what it shall have. */

import type { MemberProtocol } from "./group_member.ts";
import { NO_PARTITIONS, type Partitions } from "./topic_partitions.ts";

/**
 * Where a member is on its way to its target:
 * - `stable`: it was told everything;
 * - `unrevoked`: it was told to give partitions up, and has not confirmed that;
 * - `unreleased`: it waits for partitions that other members have not given up.
 */
export type ReconciliationState = "stable" | "unrevoked" | "unreleased";

/** Epochs that mean something else than an epoch. */
export const JOINING_EPOCH = 0;
export const LEAVING_EPOCH = -1;
/** Of a static member that goes, and comes back within its session. */
export const STATIC_LEAVING_EPOCH = -2;

/** What only members have that speak the classic protocol. */
export interface ClassicSide {
  readonly sessionTimeoutMs: number;
  readonly protocols: readonly MemberProtocol[];
}

/** What a member says of itself, and all that a restart needs of that. */
export interface ConsumerFacts {
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly rebalanceTimeoutMs: number;
  /** Topics by name; there need not be such. */
  readonly topicNames: readonly string[];
  /** Topics by a pattern, besides those named; null for none. */
  readonly regex: string | null;
  /** The assignor it would like; null for whatever others like. */
  readonly assignor: string | null;
  /** Null for a member that speaks the consumer protocol. */
  readonly classic: ClassicSide | null;
}

/** How far a member is. */
export interface Current {
  readonly epoch: number;
  readonly previousEpoch: number;
  readonly state: ReconciliationState;
  /** What it has, as far as it was told. */
  readonly assigned: Partitions;
  /** What it must give up, and may still have. */
  readonly revoking: Partitions;
}

/** Of a member that has just come. */
export const NOTHING_YET: Current = {
  epoch: JOINING_EPOCH,
  previousEpoch: JOINING_EPOCH,
  state: "stable",
  assigned: NO_PARTITIONS,
  revoking: NO_PARTITIONS,
};

/** See the file's head. */
export class ConsumerMember {
  current: Current = NOTHING_YET;
  target: Partitions = NO_PARTITIONS;
  /** The topics that it consumes, named and matched, in order; shared by members that consume the same. */
  topics: readonly string[] = [];
  /** When the session ends unless the member is heard of, in monotonic ms. */
  sessionEndMs = Infinity;
  /** Until when it must have given up partitions or, with the classic protocol, joined or synced; in monotonic ms. */
  answerDueMs = Infinity;

  constructor(readonly memberId: string, public facts: ConsumerFacts) {}

  /** Whether it is a static member that has gone and may come back. */
  get isAway(): boolean {
    return this.current.epoch === STATIC_LEAVING_EPOCH;
  }

  get dueMs(): number {
    return Math.min(this.sessionEndMs, this.answerDueMs);
  }
}

/** Whether both subscribe to the same. */
export function sameSubscription(a: ConsumerFacts, b: ConsumerFacts): boolean {
  return a.regex === b.regex && sameTexts(a.topicNames, b.topicNames);
}

/** Whether both say the same. */
export function sameFacts(a: ConsumerFacts, b: ConsumerFacts): boolean {
  return sameSubscription(a, b) && a.instanceId === b.instanceId && a.rackId === b.rackId &&
    a.clientId === b.clientId && a.clientHost === b.clientHost && a.rebalanceTimeoutMs === b.rebalanceTimeoutMs &&
    a.assignor === b.assignor && a.classic === b.classic;
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((one, at) => one === b[at]));
}
