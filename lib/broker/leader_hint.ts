/**
 * Who leads a partition, told along with a refusal so that a client need not ask for metadata first (KIP-951).
 */
import { ErrorCode } from "../errors.ts";
import type { Broker } from "./broker.ts";
import type { RequestContext } from "./handler.ts";
import type { Partition } from "./partitions.ts";

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

/** The current leader, for a reply. */
export function currentLeader(broker: Broker, partition: Partition): { leaderId: number; leaderEpoch: number } {
  return { leaderId: broker.nodeId, leaderEpoch: partition.leaderEpoch };
}

/** Addresses of the leaders that a reply names, on the listener the request came in on. */
export function nodeEndpoints(broker: Broker, context: RequestContext, parts: Iterable<WithLeader>): NodeEndpoint[] {
  for (const { currentLeader } of parts) {
    if (currentLeader.leaderId !== broker.nodeId) continue;
    const { advertisedHost, advertisedPort } = context.listener;
    return [{
      nodeId: broker.nodeId,
      host: advertisedHost,
      port: advertisedPort,
      rack: broker.config.get("broker.rack"),
    }];
  }
  return [];
}

/**
 * Compares the leader epoch that a client believes in with the present one (KIP-320): NONE, or FENCED_LEADER_EPOCH where
 * the client is behind, UNKNOWN_LEADER_EPOCH where this broker is. −1 asks for no check.
 */
export function checkLeaderEpoch(partition: Partition, currentLeaderEpoch: number): ErrorCode {
  if (currentLeaderEpoch === -1 || currentLeaderEpoch === partition.leaderEpoch) return ErrorCode.NONE;
  return currentLeaderEpoch < partition.leaderEpoch ? ErrorCode.FENCED_LEADER_EPOCH : ErrorCode.UNKNOWN_LEADER_EPOCH;
}
