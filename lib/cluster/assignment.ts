/**
 * Who leads which partition, as `DATA/__cluster/assignment.json` says it. One writer: the controller; a file whose
 * controller epoch is not that of the controller's lease was written by a deposed one and is not obeyed.
 */
import * as z from "zod";

const partitionSchema = z.looseObject({
  topic: z.string(),
  partition: z.int().nonnegative(),
  broker: z.string(),
  epoch: z.int().nonnegative(),
  role: z.string(),
  /** Whom the partition goes to as soon as `broker` has closed it. */
  moveTo: z.string().optional(),
  /** Whom somebody chose for it by hand: it goes back there whenever it can. */
  preferred: z.string().optional(),
});

const assignmentSchema = z.looseObject({
  controllerEpoch: z.int().nonnegative(),
  assignmentVersion: z.int().nonnegative(),
  generatedAt: z.string(),
  controller: z.string(),
  brokers: z.array(z.looseObject({
    id: z.string(),
    health: z.string(),
    lastSeen: z.string(),
    /** The session that the broker leads in: the epoch of its lease. */
    tenure: z.int().optional(),
    /** How many of its changes of topics are accounted for here. */
    changes: z.int().optional(),
  })),
  partitions: z.array(partitionSchema),
  /** The topics that `partitions` are of, and how often each was changed. */
  topics: z.array(z.looseObject({ name: z.string(), topicId: z.string(), revision: z.int() })).optional(),
  /** Shards of the coordinators' state; `topic` is the kind of coordinator. */
  coordinators: z.array(partitionSchema).optional(),
});

/** One partition's leader. `epoch` is the leader epoch. */
export type PartitionAssignment = z.infer<typeof partitionSchema>;

/** The whole file. Keys that kaas does not know are kept. */
export type Assignment = z.infer<typeof assignmentSchema>;

/** The shape check for the file's JSON. @throws {z.ZodError} */
export function parseAssignment(json: unknown): Assignment {
  return assignmentSchema.parse(json);
}

/** The key of a partition among others. */
export function partitionKey({ topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${topic}/${partition}`;
}
