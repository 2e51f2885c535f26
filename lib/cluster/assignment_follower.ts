/**
 * A broker's eye on the assignment: reads it when it changes, and hands on what is to be obeyed.
 *
 * An assignment is obeyed if its controller epoch is that of the controller's lease as it is read *after* the assignment.
 * A deposed controller's late file is thereby recognized: its successor holds the lease before it reads the assignment
 * that it goes on from, so a file that came too late for the successor to see is read after the successor's lease.
 */
import type { Clock, Timer } from "../clock.ts";
import { DamagedFileError, readJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type Assignment, parseAssignment } from "./assignment.ts";
import { isLater } from "./controller.ts";
import { parseLease } from "./lease.ts";

export interface FollowerOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  /** `DATA/__cluster`. */
  readonly folder: string;
  onAssignment(assignment: Assignment): void;
  onProblem(problem: string, error: unknown): void;
}

/** Time between two looks at the file. */
const LOOK_INTERVAL_MS = 20;
/** The same while partitions are on the move. */
const MOVING_LOOK_INTERVAL_MS = 5;
/** What a volume says of a file may be old for some seconds, its content after opening it is not. */
const READ_INTERVAL_MS = 1000;

/** See the file's head. */
export class AssignmentFollower {
  #latest: Assignment | null = null;
  #mark = "";
  #readAtMs = -Infinity;
  #looking: Promise<void> | null = null;
  #timer: Timer | null = null;
  #stopped = false;
  #isMoving = false;

  constructor(private readonly options: FollowerOptions) {}

  /** The last one that was obeyed. */
  get latest(): Assignment | null {
    return this.#latest;
  }

  /** Looks now and from time to time. Resolves after the first look. */
  async start(): Promise<void> {
    await this.look();
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  /** Looks now; resolves when what there is to obey has been handed on. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => this.#looking = null);
    return this.#looking;
  }

  /** Looks once more after any look under way. */
  async lookAgain(): Promise<void> {
    await this.#looking;
    this.#mark = "";
    await this.look();
  }

  #schedule(): void {
    if (this.#stopped) return;
    const delayMs = this.#isMoving ? MOVING_LOOK_INTERVAL_MS : LOOK_INTERVAL_MS;
    this.#timer = this.options.clock.schedule(delayMs, () => void this.look().finally(() => this.#schedule()));
  }

  async #look(): Promise<void> {
    const { disk, clock, folder } = this.options;
    const path = `${folder}/assignment.json`;
    try {
      const { size, modifiedMs } = await disk.stat(path);
      const mark = `${size} ${modifiedMs}`;
      const nowMs = clock.monotonicMs();
      if (mark === this.#mark && nowMs - this.#readAtMs < READ_INTERVAL_MS) return;
      const assignment = await readJson(disk, path, parseAssignment);
      if (assignment === null) return;
      const lease = await readJson(disk, `${folder}/controller.lease`, parseLease);
      this.#readAtMs = nowMs;
      if (lease === null || lease.epoch !== assignment.controllerEpoch) return;
      this.#mark = mark;
      if (this.#latest !== null && !isLater(assignment, this.#latest)) return;
      this.#latest = assignment;
      this.#isMoving = [...assignment.partitions, ...assignment.coordinators ?? []].some((p) => p.moveTo);
      if (!this.#stopped) this.options.onAssignment(assignment);
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return;
      if (!(error instanceof DiskError || error instanceof DamagedFileError)) throw error;
      this.options.onProblem("the assignment cannot be read", error);
    }
  }
}
