/**
 * Who leads which partition, as `DATA/__cluster/assignment.json` says it: pure functions over one immutable value.
 *
 * Invariants: a partition's leader epoch only rises; a partition that is on the volume but not in the file (a lost or
 * older file) gets an epoch above the highest one in its segment names, so that a fresh segment always fences.
 */
import * as z from "zod";

const partitionSchema = z.looseObject({
  topic: z.string(),
  partition: z.int().nonnegative(),
  broker: z.string(),
  epoch: z.int().nonnegative(),
  role: z.string(),
});

const assignmentSchema = z.looseObject({
  controllerEpoch: z.int().nonnegative(),
  assignmentVersion: z.int().nonnegative(),
  generatedAt: z.string(),
  controller: z.string(),
  brokers: z.array(z.looseObject({ id: z.string(), health: z.string(), lastSeen: z.string() })),
  partitions: z.array(partitionSchema),
});

/** One partition's leader. `epoch` is the leader epoch. */
export type PartitionAssignment = z.infer<typeof partitionSchema>;

/** The whole file. Keys that kaas does not know are kept. */
export type Assignment = z.infer<typeof assignmentSchema>;

/** The shape check for the file's JSON. @throws {z.ZodError} */
export function parseAssignment(json: unknown): Assignment {
  return assignmentSchema.parse(json);
}

/** A partition as found on the volume; `epochOnDisk` is the highest epoch in its segment names, -1 for none. */
export interface PartitionOnVolume {
  readonly topic: string;
  readonly partition: number;
  readonly epochOnDisk: number;
}

/**
 * The assignment of a broker that starts alone on a volume: it leads every partition found there, each with an epoch
 * above both the previous assignment's and the one on disk. Partitions that are no longer on the volume are dropped.
 */
export function assignAllTo(
  broker: string,
  found: readonly PartitionOnVolume[],
  previous: Assignment | null,
  now: { readonly wallMs: number; readonly controllerEpoch: number },
): Assignment {
  const epochs = new Map<string, number>();
  for (const p of previous?.partitions ?? []) epochs.set(`${p.topic}/${p.partition}`, p.epoch);
  const time = new Date(now.wallMs).toISOString();
  return {
    ...previous,
    controllerEpoch: now.controllerEpoch,
    assignmentVersion: (previous?.assignmentVersion ?? 0) + 1,
    generatedAt: time,
    controller: broker,
    brokers: [{ id: broker, health: "alive", lastSeen: time }],
    partitions: found.map(({ topic, partition, epochOnDisk }) => ({
      topic,
      partition,
      broker,
      epoch: Math.max(epochs.get(`${topic}/${partition}`) ?? -1, epochOnDisk) + 1,
      role: "leader",
    })),
  };
}
