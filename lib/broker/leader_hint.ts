/**
 * Who leads a partition, told along with a refusal so that a client need not ask for metadata first (KIP-951).
 */
import { ErrorCode } from "../errors.ts";
import type { Broker } from "./broker.ts";
import type { RequestContext } from "./handler.ts";
import type { Partition } from "./partitions.ts";
import { brokerAddresses } from "./topic_metadata.ts";

/** A partition's part of a Produce or Fetch reply. */
export interface WithLeader {
  readonly currentLeader: { readonly leaderId: number; readonly leaderEpoch: number };
}

interface NodeEndpoint {
  nodeId: number;
  host: string;
  port: number;
  rack: string | null;
}

/** The current leader, for a reply; -1 where this broker does not know a better one than itself, and does not lead. */
export function currentLeader(
  { cluster, nodeId }: Pick<Broker, "cluster" | "nodeId">,
  { topic, index, state }: Pick<Partition, "topic" | "index" | "state">,
): { leaderId: number; leaderEpoch: number } {
  const place = cluster.placeOf(topic, index);
  if (place === null || (place.nodeId === nodeId && state === "closed")) return { leaderId: -1, leaderEpoch: -1 };
  return { leaderId: place.nodeId, leaderEpoch: place.leaderEpoch };
}

/** Why this broker leads no such partition: another one does, or will, or there is none. */
export function absence({ topics }: Pick<Broker, "topics">, topic: string, index: number): ErrorCode {
  const partitionCount = topics.get(topic)?.partitionCount ?? 0;
  return index >= 0 && index < partitionCount ? ErrorCode.NOT_LEADER_OR_FOLLOWER : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
}

/** Addresses of the leaders that a reply names, on the listener the request came in on. */
export function nodeEndpoints(
  broker: Pick<Broker, "cluster">,
  context: RequestContext,
  parts: Iterable<WithLeader>,
): NodeEndpoint[] {
  let named: Set<number> | null = null;
  for (const { currentLeader } of parts) {
    if (currentLeader.leaderId >= 0) (named ??= new Set()).add(currentLeader.leaderId);
  }
  if (named === null) return [];
  const leaders = named;
  return brokerAddresses(broker, context).filter(({ nodeId }) => leaders.has(nodeId));
}

/**
 * Compares the leader epoch that a client believes in with the present one (KIP-320): NONE, or FENCED_LEADER_EPOCH where
 * the client is behind, UNKNOWN_LEADER_EPOCH where this broker is. −1 asks for no check.
 */
export function checkLeaderEpoch(partition: Partition, currentLeaderEpoch: number): ErrorCode {
  if (currentLeaderEpoch === -1 || currentLeaderEpoch === partition.leaderEpoch) return ErrorCode.NONE;
  return currentLeaderEpoch < partition.leaderEpoch ? ErrorCode.FENCED_LEADER_EPOCH : ErrorCode.UNKNOWN_LEADER_EPOCH;
}
