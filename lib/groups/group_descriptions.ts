/** What groups look like from outside. */

import type { ClassicGroup } from "./classic_group.ts";
import type { GroupState } from "./classic_requests.ts";
import type { ConsumerGroup } from "./consumer_group.ts";
import type { AssignmentRules, ConsumerGroupPhase } from "./consumer_group_state.ts";
import type { Partitions } from "./topic_partitions.ts";

export interface GroupDescription {
  readonly groupId: string;
  readonly protocolType: string;
  readonly state: GroupState;
  /** The protocol chosen; "" while there is none. */
  readonly protocolName: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly clientId: string;
    readonly clientHost: string;
    readonly memberMetadata: Uint8Array;
    readonly memberAssignment: Uint8Array;
  }[];
}

export interface ConsumerGroupDescription {
  readonly groupId: string;
  readonly phase: ConsumerGroupPhase;
  readonly epoch: number;
  readonly targetEpoch: number;
  readonly assignor: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly instanceId: string | null;
    readonly rackId: string | null;
    readonly memberEpoch: number;
    readonly clientId: string;
    readonly clientHost: string;
    readonly topicNames: readonly string[];
    readonly regex: string | null;
    readonly assigned: Partitions;
    readonly target: Partitions;
    readonly isClassic: boolean;
  }[];
}

export function describeClassic(group: ClassicGroup): GroupDescription {
  const { groupId, protocolType, state } = group;
  const isStable = state === "Stable";
  const members = Array.from(group.members.values(), (member) => ({
    memberId: member.memberId,
    groupInstanceId: member.facts.instanceId,
    clientId: member.facts.clientId,
    clientHost: member.facts.clientHost,
    memberMetadata: isStable ? member.metadataFor(group.protocolName) : new Uint8Array(0),
    memberAssignment: isStable ? member.assignment : new Uint8Array(0),
  }));
  const protocolName = isStable ? group.protocolName ?? "" : "";
  return { groupId, protocolType: protocolType ?? "", state, protocolName, members };
}

export function describeConsumer({ groupId, phase, state }: ConsumerGroup, rules: AssignmentRules) {
  const members = Array.from(state.members.values(), ({ memberId, facts, current, target }) => ({
    memberId,
    instanceId: facts.instanceId,
    rackId: facts.rackId,
    memberEpoch: current.epoch,
    clientId: facts.clientId,
    clientHost: facts.clientHost,
    topicNames: facts.topicNames,
    regex: facts.regex,
    assigned: current.assigned,
    target,
    isClassic: facts.classic !== null,
  }));
  const { epoch, targetEpoch } = state;
  const described: ConsumerGroupDescription = {
    groupId,
    phase,
    epoch,
    targetEpoch,
    assignor: state.preferredAssignor(rules),
    members,
  };
  return described;
}
