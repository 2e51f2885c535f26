/**
 * The controller: whoever holds `DATA/__cluster/controller.lease` assigns partitions to brokers.
 *
 * A candidate waits for the lease; its holder looks at brokers and topics, plans, and writes the assignment, until it
 * loses the lease or is stopped. Invariants:
 * - the assignment is written only while the lease is valid, and only after a look at the one on the volume: what a write
 *   that failed, or a predecessor, left there is what the next plan goes on from;
 * - a view that cannot be had changes nothing.
 *
 * A predecessor that was paused may still write after its lease is over. Such a file carries its lower controller epoch:
 * brokers do not obey it (see `assignment_follower.ts`), and the holder replaces it.
 */
import { type Clock, sleep } from "../clock.ts";
import { DamagedFileError, readJson, replaceFile } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type Assignment, parseAssignment, partitionKey } from "./assignment.ts";
import { planAssignment, type PlannedTopic } from "./assignment_plan.ts";
import { brokerName, type BrokerRecord } from "./broker_record.ts";
import { HeldLease, LeaseHeldError, type LeaseOptions } from "./lease.ts";
import type { LeaseWatch } from "./lease_watch.ts";

/** The topics on the volume. */
export interface TopicSource {
  /** Looks at the volume again: at the topics of these names, or at all. @throws {DiskError} */
  refresh(names: readonly string[] | "all"): Promise<void>;
  /** The topics as of the last look. */
  all(): Iterable<Omit<PlannedTopic, "revision">>;
}

export interface ControllerOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  /** `DATA/__cluster`. */
  readonly folder: string;
  readonly lease: Omit<LeaseOptions, "disk" | "clock" | "path" | "onLost" | "facts" | "incarnation">;
  /** A new identity for each tenure. */
  newIncarnation(): string;
  readonly brokers: LeaseWatch<BrokerRecord>;
  readonly topics: TopicSource;
  readonly coordinators: readonly { readonly name: string; readonly partitionCount: number }[];
  /** Highest epoch among the segment names of a partition or a coordinator's shard, -1 for none. @throws {DiskError} */
  epochOnDisk(topic: string, partition: number): Promise<number>;
  /** Node ids of brokers that somebody ordered to be relieved of everything. @throws {DiskError} */
  drainOrders?(): Promise<ReadonlySet<number>>;
  /** The last assignment that this process knows of. */
  remembered?(): Assignment | null;
  /** Whether this candidate should hold back, and step down if it holds the lease: a better one is there. */
  shouldYield?(): boolean;
  /** Called after an assignment was written. */
  onAssigned?(assignment: Assignment): void;
  onProblem(problem: string, error: unknown): void;
}

/** Time between two looks at the brokers. */
const LOOK_INTERVAL_MS = 100;
/** The same while partitions are on the move. */
const MOVING_LOOK_INTERVAL_MS = 5;
/** Time between two looks at all topics, for what nobody has told. */
const REFRESH_INTERVAL_MS = 30_000;
/** Time between two looks at whether a deposed controller has overwritten the assignment. */
const VERIFY_INTERVAL_MS = 1000;
/** Partitions that move at a time to even out the load; brokers that leave are relieved of one after the other. */
const BALANCING_MOVES = 8;

/** See the file's head. */
export class Controller {
  #lease: HeldLease | null = null;
  #stopped = false;
  #running: Promise<void> | null = null;
  #poked = Promise.withResolvers<void>();
  #refreshWanted: Set<string> | "all" | null = null;
  /** How often each topic was changed. */
  readonly #revisions = new Map<string, number>();
  /** How many changes of each broker are in the revisions. */
  readonly #changes = new Map<string, number>();
  readonly #epochs = new Map<string, number>();
  #drainOrders: ReadonlySet<number> = new Set();

  constructor(private readonly options: ControllerOptions) {}

  /** Whether this candidate holds the lease. */
  get isActive(): boolean {
    return this.#lease?.isValid() === true;
  }

  /** Begins to campaign. */
  start(): void {
    this.#running ??= this.#campaign();
  }

  /** Something may have changed: look now. */
  poke(): void {
    this.#poked.resolve();
  }

  /** Steps down and campaigns no more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.poke();
    await this.#running;
  }

  async #campaign(): Promise<void> {
    const { clock } = this.options;
    while (!this.#stopped) {
      if (this.options.shouldYield?.() !== true) {
        const lease = await this.#acquire();
        if (lease !== null) {
          this.#lease = lease;
          try {
            await this.#reign(lease);
          } finally {
            this.#lease = null;
            await lease.release().catch((error) => this.#report("the controller's lease is not given back", error));
          }
        }
      }
      if (!this.#stopped) await sleep(clock, this.options.lease.durationMs / 16);
    }
  }

  async #acquire(): Promise<HeldLease | null> {
    const { disk, clock, folder, lease } = this.options;
    const incarnation = this.options.newIncarnation();
    try {
      return await HeldLease.acquire({ ...lease, incarnation, disk, clock, path: `${folder}/controller.lease` });
    } catch (error) {
      if (error instanceof LeaseHeldError) return null;
      this.#report("cannot campaign for controller", error);
      return null;
    }
  }

  async #reign(lease: HeldLease): Promise<void> {
    const { clock } = this.options;
    this.#refreshWanted = null;
    this.#epochs.clear();
    let current: Assignment | null | undefined;
    let refreshedAtMs = clock.monotonicMs();
    let verifiedAtMs = -Infinity;
    while (!this.#stopped && lease.isValid() && this.options.shouldYield?.() !== true) {
      this.#poked = Promise.withResolvers();
      try {
        if (clock.monotonicMs() - refreshedAtMs > REFRESH_INTERVAL_MS) this.#refreshWanted = "all";
        await this.options.brokers.observe();
        if (current === undefined || clock.monotonicMs() - verifiedAtMs >= VERIFY_INTERVAL_MS) {
          current = await this.#verified(current, lease);
          verifiedAtMs = clock.monotonicMs();
          this.#drainOrders = await this.options.drainOrders?.() ?? new Set();
          this.#recall(current);
          this.#wantRefresh(this.#disputed(current));
        }
        this.#noteChanges();
        if (this.#refreshWanted !== null) {
          await this.#refreshTopics();
          refreshedAtMs = clock.monotonicMs();
        }
        const next = await this.#plan(current, lease);
        if (next !== null && lease.isValid()) {
          // Should the write fail, nobody knows which of the two is on the volume.
          current = undefined;
          await this.#store(next);
          current = next;
          this.options.onAssigned?.(next);
        }
      } catch (error) {
        this.#report("the controller could not act; it tries again", error);
        await sleep(clock, LOOK_INTERVAL_MS);
        continue;
      }
      const isMoving = [...current?.partitions ?? [], ...current?.coordinators ?? []].some((p) => p.moveTo);
      await this.#rest(isMoving ? MOVING_LOOK_INTERVAL_MS : LOOK_INTERVAL_MS);
    }
  }

  /** The assignment on the volume; ours again where a deposed controller has overwritten it. */
  async #verified(known: Assignment | null | undefined, lease: HeldLease): Promise<Assignment | null> {
    const found = await this.#read(known ?? this.options.remembered?.() ?? null);
    if (found === null || known === undefined || known === null) return found;
    if (isLater(found, known) || found.assignmentVersion === known.assignmentVersion) return found;
    if (!lease.isValid()) return known;
    const again = { ...known, assignmentVersion: known.assignmentVersion + 1 };
    await this.#store(again);
    return again;
  }

  /**
   * Where the file is missing or makes no sense, the last one that is remembered counts. Without that, nothing is known of
   * who leads: a new one can be made only when nobody acts on the old one.
   */
  async #read(remembered: Assignment | null): Promise<Assignment | null> {
    let damage: DamagedFileError | null = null;
    try {
      const found = await readJson(this.options.disk, this.#path, parseAssignment);
      if (found !== null) return found;
    } catch (error) {
      if (!(error instanceof DamagedFileError)) throw error;
      damage = error;
    }
    if (remembered !== null) return { ...remembered, assignmentVersion: remembered.assignmentVersion + 1 };
    const acting = this.#brokers().find(({ record, alive }) => alive && record.assignmentVersion > 0);
    if (acting !== undefined) {
      const problem =
        `${this.#path} is lost while broker ${acting.record.holder} acts on it; stop that broker, or restore it`;
      throw new DiskError("io", problem, this.#path, { cause: damage });
    }
    return null;
  }

  get #path(): string {
    return `${this.options.folder}/assignment.json`;
  }

  async #plan(previous: Assignment | null, lease: HeldLease): Promise<Assignment | null> {
    const { topics, coordinators, clock } = this.options;
    const brokers = this.#brokers().map(({ record, alive }) => ({
      id: brokerName(record.nodeId),
      alive,
      draining: record.draining || this.#drainOrders.has(record.nodeId),
      tenure: record.epoch,
      given: record.given,
      changes: record.changes.count,
    }));
    const present = Array.from(topics.all(), ({ name, topicId, partitionCount }) => {
      return { name, topicId, partitionCount, revision: this.#revisions.get(name) ?? 0 };
    }).sort((a, b) => a.name < b.name ? -1 : 1);
    await this.#findEpochs(present, brokers.flatMap(({ given }) => given), previous);
    const wishes = new Map<string, string>();
    for (const { record } of this.#brokers()) {
      for (const wish of record.wishes) wishes.set(partitionKey(wish), wish.broker);
    }
    // Who has not acted on the present assignment may lead what that does not know.
    const isBehind = previous !== null &&
      this.#brokers().some(({ record, alive }) => alive && record.assignmentVersion < previous.assignmentVersion);
    const isDraining = brokers.some(({ alive, draining }) => alive && draining);
    return planAssignment({
      previous,
      topics: present,
      coordinators,
      brokers,
      controller: { name: this.options.lease.holder, epoch: lease.epoch },
      wallMs: clock.wallMs(),
      epochOnDisk: (topic, partition) => this.#epochs.get(`${topic}/${partition}`) ?? -1,
      mayBeLed: () => isBehind,
      wanted: (topic, partition) => wishes.get(`${topic}/${partition}`),
      movesAtOnce: isDraining ? 1 : BALANCING_MOVES,
    });
  }

  /** Looks up the epochs of partitions that `previous` does not know. */
  async #findEpochs(
    topics: readonly PlannedTopic[],
    given: BrokerRecord["given"],
    previous: Assignment | null,
  ): Promise<void> {
    this.#epochs.clear();
    const known = new Set([...previous?.partitions ?? [], ...previous?.coordinators ?? []].map(partitionKey));
    const ids = new Map(previous?.topics?.map(({ name, topicId }) => [name, topicId]));
    const unknown: { topic: string; partition: number }[] = given.filter(({ why }) => why === "stalled");
    for (const { name, topicId, partitionCount } of [...topics, ...this.options.coordinators.map(asTopic)]) {
      const isAnother = ids.has(name) && ids.get(name) !== topicId;
      for (let partition = 0; partition < partitionCount; partition++) {
        if (isAnother || !known.has(`${name}/${partition}`)) unknown.push({ topic: name, partition });
      }
    }
    let next = 0;
    const worker = async () => {
      while (next < unknown.length) {
        const place = unknown[next++];
        this.#epochs.set(partitionKey(place), await this.options.epochOnDisk(place.topic, place.partition));
      }
    };
    await Promise.all(Array.from({ length: 64 }, worker));
  }

  /** Without blanks: with many partitions this file is large, and it is written often. */
  #store(assignment: Assignment): Promise<void> {
    return replaceFile(this.options.disk, this.#path, new TextEncoder().encode(`${JSON.stringify(assignment)}\n`));
  }

  /** In the order of their node ids, so that the same view always leads to the same plan. */
  #brokers() {
    return this.options.brokers.sightings().sort((a, b) => a.record.nodeId - b.record.nodeId);
  }

  /** Goes on counting where the assignment stands. */
  #recall(assignment: Assignment | null): void {
    for (const { name, revision } of assignment?.topics ?? []) {
      this.#revisions.set(name, Math.max(revision, this.#revisions.get(name) ?? 0));
    }
    for (const { id, changes } of assignment?.brokers ?? []) {
      if (changes !== undefined && !this.#changes.has(id)) this.#changes.set(id, changes);
    }
  }

  /** Which topics the brokers say that they have changed. */
  #noteChanges(): void {
    for (const { record: { nodeId, changes } } of this.#brokers()) {
      const id = brokerName(nodeId);
      const before = this.#changes.get(id) ?? 0;
      if (before === changes.count) continue;
      this.#changes.set(id, changes.count);
      const missed = changes.count - before;
      if (missed > 0 && missed <= changes.latest.length) this.#changed(changes.latest.slice(-missed));
      else {
        // A broker that began anew counts from 0 again.
        this.#refreshWanted = "all";
        this.#changed(Array.from(this.options.topics.all(), ({ name }) => name));
      }
    }
  }

  #changed(names: readonly string[]): void {
    for (const name of names) this.#revisions.set(name, (this.#revisions.get(name) ?? 0) + 1);
    this.#wantRefresh(names);
  }

  /** Topics that the assignment and this process see differently: one of the two is not up to date. */
  #disputed(assignment: Assignment | null): string[] {
    const assigned = new Map(assignment?.topics?.map(({ name, topicId }) => [name, topicId]));
    const disputed: string[] = [];
    for (const { name, topicId } of this.options.topics.all()) {
      if (assigned.get(name) !== topicId) disputed.push(name);
      assigned.delete(name);
    }
    return [...disputed, ...assigned.keys()];
  }

  #wantRefresh(names: readonly string[]): void {
    if (this.#refreshWanted === "all" || names.length === 0) return;
    this.#refreshWanted ??= new Set();
    for (const name of names) this.#refreshWanted.add(name);
  }

  async #refreshTopics(): Promise<void> {
    const wanted = this.#refreshWanted;
    if (wanted === null) return;
    this.#refreshWanted = null;
    try {
      await this.options.topics.refresh(wanted === "all" ? "all" : [...wanted]);
    } catch (error) {
      this.#refreshWanted = "all";
      throw error;
    }
  }

  async #rest(ms: number): Promise<void> {
    const poked = this.#poked.promise;
    const timer = this.options.clock.schedule(ms, () => this.#poked.resolve());
    await poked;
    timer.cancel();
  }

  #report(problem: string, error: unknown): void {
    if (!(error instanceof DiskError || error instanceof DamagedFileError)) throw error;
    this.options.onProblem(problem, error);
  }
}

function asTopic({ name, partitionCount }: { readonly name: string; readonly partitionCount: number }) {
  return { name, partitionCount, topicId: "" };
}

/** Whether `a` supersedes `b`. */
export function isLater(a: Assignment, b: Assignment): boolean {
  return a.controllerEpoch > b.controllerEpoch ||
    (a.controllerEpoch === b.controllerEpoch && a.assignmentVersion > b.assignmentVersion);
}
