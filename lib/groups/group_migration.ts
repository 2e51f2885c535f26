/**
 * A group goes from the classic protocol to the consumer protocol, or back, with its members and what they have (KIP-848).
 *
 * Up: the first member of the consumer protocol has come. The generation becomes the epoch, and what each member has
 * becomes what it is assigned, so that nothing is given to another before its owner has joined again without it.
 * Down: the last member of the consumer protocol has gone. All others are in a generation that begins with a round.
 */

import { ErrorCode } from "../errors.ts";
import type { ClassicGroup } from "./classic_group.ts";
import { namedOf, partitionsOf } from "./classic_guests.ts";
import type { ConsumerGroup } from "./consumer_group.ts";
import { ConsumerMember } from "./consumer_member.ts";
import { CONSUMER_PROTOCOL_TYPE, readAssignment, readSubscription, writeAssignment } from "./consumer_protocol.ts";
import type { GroupMember } from "./group_member.ts";
import { type Partitions, PartitionsBuilder, union, without } from "./topic_partitions.ts";
import type { TopicView } from "./topic_view.ts";

export type MigrationPolicy = "disabled" | "downgrade" | "upgrade" | "bidirectional";

export function mayUpgrade(policy: MigrationPolicy): boolean {
  return policy === "upgrade" || policy === "bidirectional";
}

export function mayDowngrade(policy: MigrationPolicy): boolean {
  return policy === "downgrade" || policy === "bidirectional";
}

/**
 * Makes of `group`, which is new, what `classic` is; null where its members are no consumers, or what they said cannot be
 * read. The classic group answers everybody who waits, and must not be used any more.
 */
export function upgraded(classic: ClassicGroup, group: ConsumerGroup, nowMs: number): ConsumerGroup | null {
  if (classic.protocolType !== CONSUMER_PROTOCOL_TYPE) return null;
  const { topics } = group.state;
  group.state.epoch = group.state.targetEpoch = Math.max(classic.generationId, 1);
  const converted: { readonly member: ConsumerMember; readonly claimed: Partitions; readonly timeoutMs: number }[] = [];
  for (const one of classic.members.values()) {
    const conversion = asConsumer(one, classic.protocolName, topics);
    if (conversion === null) return null;
    converted.push({ ...conversion, timeoutMs: one.facts.sessionTimeoutMs });
  }
  const assigned = new PartitionsBuilder();
  for (const { member } of converted) assigned.addAll(member.current.assigned);
  for (const { member, claimed, timeoutMs } of converted) {
    const has = union(member.current.assigned, without(claimed, assigned.build()));
    const { epoch } = group.state;
    member.current = { ...member.current, epoch, previousEpoch: epoch, assigned: has };
    member.target = has;
    // Two that claim the same cannot both be right: the later one has to join anew.
    if (!group.state.restore(member)) continue;
    member.sessionEndMs = nowMs + timeoutMs;
    group.state.wakeBy(member);
  }
  group.state.raiseEpoch();
  group.state.markAll();
  classic.dissolve(ErrorCode.REBALANCE_IN_PROGRESS);
  return group;
}

/**
 * A member with what it was assigned last, and what it claims besides: one of a cooperative assignor still has what it
 * said it has when it joined, until it has been told its assignment and has joined again without the rest.
 */
function asConsumer(member: GroupMember, protocolName: string | null, topics: TopicView) {
  const { facts } = member;
  const metadata = protocolName === null ? null : member.metadataFor(protocolName);
  const subscription = readSubscription(
    metadata?.length ? metadata : facts.protocols[0]?.metadata ?? new Uint8Array(0),
  );
  const assigned = readAssignment(member.assignment);
  if (subscription === null || assigned === null) return null;
  const converted = new ConsumerMember(member.memberId, {
    instanceId: facts.instanceId,
    rackId: subscription.rackId,
    clientId: facts.clientId,
    clientHost: facts.clientHost,
    rebalanceTimeoutMs: facts.rebalanceTimeoutMs,
    topicNames: [...new Set(subscription.topics)],
    regex: null,
    assignor: null,
    classic: { sessionTimeoutMs: facts.sessionTimeoutMs, protocols: facts.protocols },
  });
  converted.current = { ...converted.current, assigned: partitionsOf(assigned, topics) };
  return { member: converted, claimed: partitionsOf(subscription.owned, topics) };
}

/**
 * Makes of `classic`, which is new, what the group is, all of whose members must speak the classic protocol. It then has
 * to {@link ClassicGroup.begin}.
 */
export function downgraded({ state }: ConsumerGroup, classic: ClassicGroup, nowMs: number): ClassicGroup {
  // A generation that members are in: they are told that there is a new one, and need not forget what they have.
  classic.generationId = Math.max(1, ...Array.from(state.members.values(), ({ current }) => current.epoch));
  classic.protocolType = CONSUMER_PROTOCOL_TYPE;
  classic.state = "Stable";
  for (const { memberId, facts, current } of state.members.values()) {
    const { sessionTimeoutMs, protocols } = facts.classic!;
    const version = readSubscription(protocols[0].metadata)?.version ?? 0;
    const { instanceId, clientId, clientHost, rebalanceTimeoutMs } = facts;
    classic.leaderId ??= memberId;
    classic.restore(
      memberId,
      { instanceId, clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs, protocols },
      // All that it may have, should the group go up again before the member has joined.
      writeAssignment(version, namedOf(union(current.assigned, current.revoking), state.topics)),
      nowMs,
    );
  }
  return classic;
}
