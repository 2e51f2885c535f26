/**
 * What a broker says of itself in `DATA/__cluster/brokers/<node id>.json`, the lease of its session: where it can be
 * reached, whether it wants to leave, and what has become of partitions that the controller should do something about.
 */
import * as z from "zod";
import { parseLease } from "./lease.ts";

const partitionAt = z.object({ topic: z.string(), partition: z.int(), epoch: z.int() });

const recordSchema = z.looseObject({
  nodeId: z.int().nonnegative(),
  rack: z.string().nullable(),
  listeners: z.array(z.looseObject({ name: z.string(), host: z.string(), port: z.int() })),
  /** Whether the broker asks to be relieved of everything that it leads. */
  draining: z.boolean(),
  /** Version of the assignment that it acts on. */
  assignmentVersion: z.int(),
  /** Partitions that it led and has closed, or cannot lead on under that epoch; until they are assigned anew. */
  given: z.array(partitionAt.extend({ why: z.enum(["closed", "stalled"]) })),
  /** Leaders that somebody chose by hand, through this broker; until the assignment knows. */
  wishes: z.array(z.object({ topic: z.string(), partition: z.int(), broker: z.string() })),
  /** Topics changed through this broker: raised by each change. The latest are named, all are meant where too few are. */
  changes: z.object({ count: z.int(), latest: z.array(z.string()) }),
});

/** A partition under the leader epoch that is meant. */
export type PartitionAt = z.infer<typeof partitionAt>;

/** The keys of a broker's lease that are its own; see the file's head. */
export type BrokerFacts = z.infer<typeof recordSchema>;

/** The whole file. */
export type BrokerRecord = BrokerFacts & ReturnType<typeof parseLease>;

/** The shape check for the file's JSON. @throws {z.ZodError} */
export function parseBrokerRecord(json: unknown): BrokerRecord {
  return { ...recordSchema.parse(json), ...parseLease(json) };
}

/** The name that the assignment knows a broker by. */
export function brokerName(nodeId: number): string {
  return `kaas-${nodeId}`;
}
