/**
 * Which partitions this broker leads and under which epochs: follows the topics of the volume, tells {@link Partitions},
 * and keeps `DATA/__cluster/assignment.json` up to date.
 *
 * The epochs of a new tenure are durable in the file before the first partition is led. Later changes are written behind
 * (many in one write): a partition that a crash keeps out of the file gets its epoch from its segment names instead.
 */
import type { Clock } from "../clock.ts";
import { assignAllTo, type Assignment, parseAssignment, type PartitionOnVolume } from "../cluster/assignment.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import type { Logger } from "../observability/logger.ts";
import { parseSegmentFileName } from "../partition_state.ts";
import type { Partitions } from "./partitions.ts";
import type { Topic, TopicListener, Topics } from "./topics.ts";

/** Folders that are listed at a time at start. */
const LISTED_AT_ONCE = 64;

export interface LeadershipOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly clusterFolder: string;
  /** How the assignment names this broker: `kaas-<node id>`. */
  readonly brokerName: string;
  readonly controllerEpoch: number;
  readonly topics: Topics;
  readonly partitions: Partitions;
}

/** See the file's head. */
export class Leadership implements TopicListener {
  #assignment: Assignment;
  #writing: Promise<void> | null = null;
  #dirty = false;

  private constructor(private readonly options: LeadershipOptions, assignment: Assignment) {
    this.#assignment = assignment;
  }

  /**
   * Takes the leadership of every partition on the volume, durably, and follows the topics from then on. No partition is
   * opened. @throws {DiskError}
   */
  static async assume(options: LeadershipOptions): Promise<Leadership> {
    const { disk, clusterFolder, brokerName, clock, controllerEpoch } = options;
    const path = `${clusterFolder}/assignment.json`;
    const previous = await readJson(disk, path, parseAssignment);
    const found = await partitionsOnVolume(options);
    const now = { wallMs: clock.wallMs(), controllerEpoch: Math.max(controllerEpoch, previous?.controllerEpoch ?? 0) };
    const assignment = assignAllTo(brokerName, found, previous, now);
    await replaceJson(disk, path, assignment);
    const leadership = new Leadership(options, assignment);
    for (const { topic, partition, epoch } of assignment.partitions) leadership.#lead(topic, partition, epoch);
    options.topics.subscribe(leadership);
    return leadership;
  }

  partitionsAdded(topic: Topic, firstPartition: number): void {
    const added = [];
    for (let partition = firstPartition; partition < topic.partitionCount; partition++) {
      this.#lead(topic.name, partition, 0);
      added.push({ topic: topic.name, partition, broker: this.options.brokerName, epoch: 0, role: "leader" });
    }
    this.#change([...this.#assignment.partitions, ...added]);
  }

  async topicDeleted(topic: Topic): Promise<void> {
    await this.options.partitions.abandonTopic(topic.name);
    this.#change(this.#assignment.partitions.filter((p) => p.topic !== topic.name));
  }

  topicConfigured(topic: Topic): void {
    this.options.partitions.applyConfig(topic.name);
  }

  /** Resolves when every change so far is in the file, or the volume refuses it. */
  async settle(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  #lead(topic: string, partition: number, epoch: number): void {
    this.options.partitions.lead(topic, partition, `${this.options.dataFolder}/${topic}/${partition}`, epoch);
  }

  #change(partitions: Assignment["partitions"]): void {
    this.#assignment = {
      ...this.#assignment,
      partitions,
      assignmentVersion: this.#assignment.assignmentVersion + 1,
    };
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => this.#writing = null);
  }

  async #write(): Promise<void> {
    while (this.#dirty) {
      this.#dirty = false;
      try {
        await replaceJson(this.options.disk, `${this.options.clusterFolder}/assignment.json`, this.#assignment);
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        this.options.logger.warn("cannot write the assignment; the next change tries again", { error: String(error) });
      }
    }
  }
}

/** Every partition of every topic with the highest epoch among its segment names. Opens nothing. */
async function partitionsOnVolume({ disk, dataFolder, topics }: LeadershipOptions): Promise<PartitionOnVolume[]> {
  const found: { topic: string; partition: number; epochOnDisk: number }[] = [];
  for (const topic of topics.all()) {
    for (let partition = 0; partition < topic.partitionCount; partition++) {
      found.push({ topic: topic.name, partition, epochOnDisk: -1 });
    }
  }
  let next = 0;
  const lister = async () => {
    while (next < found.length) {
      const place = found[next++];
      place.epochOnDisk = await epochOnDisk(disk, `${dataFolder}/${place.topic}/${place.partition}`);
    }
  };
  await Promise.all(Array.from({ length: LISTED_AT_ONCE }, lister));
  return found;
}

async function epochOnDisk(disk: Disk, folder: string): Promise<number> {
  let highest = -1;
  try {
    for (const { name } of await disk.list(folder)) {
      highest = Math.max(highest, parseSegmentFileName(name)?.epoch ?? -1);
    }
  } catch (error) {
    if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
  }
  return highest;
}
