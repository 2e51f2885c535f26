/**
 * This broker's place in the cluster: its node id, and the session that lets it lead and acknowledge.
 *
 * The session is a lease that the broker keeps on the volume. When it runs out (a pause, a volume that hangs), the broker
 * stops leading at once and begins a new session under the same node id; what it led is assigned anew. Only a process
 * that took its node id, or a volume that is gone, ends it.
 */
import { type Clock, sleep } from "../clock.ts";
import { type BrokerFacts, brokerName, type PartitionAt } from "../cluster/broker_record.ts";
import { HeldLease, LeaseHeldError, type LeaseLoss, type LeaseRecord, parseLease } from "../cluster/lease.ts";
import { DamagedFileError, readJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { type MachineIdentity, type MachineLocks, sameBoot } from "../disk/machine.ts";
import type { Logger } from "../observability/logger.ts";
import type { Tenure } from "./broker.ts";

/** How many changed topics a broker names; a controller that missed more looks at all of them. */
const NAMED_CHANGES = 64;
/** A client may ask for more than can be kept; the latest count. */
const KEPT_WISHES = 10_000;
/** How long to wait for the lock that a dying predecessor may still hold. */
const LOCK_PATIENCE_MS = 100;
/** How often a new session is tried for, while the volume refuses. */
const RETRY_MS = 500;

/** Nothing is made anew in its place: what was acknowledged is not there any more. */
const FOLDER_GONE = "the data folder is gone, or not what it was";

/** Another process has the node id that was asked for. */
export class NodeIdInUseError extends Error {
  override readonly name = "NodeIdInUseError";

  constructor(nodeId: number, { holder, process }: LeaseRecord, dataFolder: string) {
    super(
      `${dataFolder} is served by another broker with node id ${nodeId}, ${holder} on ${process.host} ` +
        `(${process.address}); stop it first, or give this one another --node-id`,
    );
  }
}

export interface MembershipOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly machine: MachineIdentity;
  readonly locks: MachineLocks;
  /** The node id that is wanted; null: any that is free, `preferredNodeId` if it is. */
  readonly nodeId: number | null;
  readonly preferredNodeId: number | null;
  readonly rack: string | null;
  readonly listeners: BrokerFacts["listeners"];
  readonly durationMs: number;
  newIncarnation(): string;
}

/** What a membership tells whoever leads on its behalf. */
export interface MembershipListener {
  /** The session is over: nothing may be acknowledged, and everything that is open is to be closed without a write. */
  sessionLost(loss: LeaseLoss): Promise<void>;
}

/** See the file's head. */
export class Membership implements Tenure {
  #lease: HeldLease | null = null;
  #listener: MembershipListener | null = null;
  #stopped = false;
  #draining = false;
  #assignmentVersion = 0;
  #given: BrokerFacts["given"] = [];
  #wishes: BrokerFacts["wishes"] = [];
  #changes: BrokerFacts["changes"] = { count: 0, latest: [] };
  #rejoining: Promise<void> | null = null;
  readonly #superseded = Promise.withResolvers<string>();
  /** Resolves with the reason when this process may not go on under its node id. */
  readonly superseded: Promise<string> = this.#superseded.promise;

  private constructor(
    private readonly options: MembershipOptions,
    readonly nodeId: number,
    private readonly locked: boolean,
  ) {}

  /**
   * Begins the first session. Without a node id that is wanted, the one of a predecessor with the same addresses is
   * taken on, or else the lowest that is free.
   * @throws {NodeIdInUseError} when a live broker has the node id that is wanted
   * @throws {DiskError}
   */
  static async join(options: MembershipOptions): Promise<Membership> {
    if (options.nodeId !== null) {
      const locked = await options.locks.lockForLife(lockPath(options.dataFolder, options.nodeId), LOCK_PATIENCE_MS);
      return await Membership.#joinAs(options, options.nodeId, locked);
    }
    for (const nodeId of await candidates(options)) {
      if (!await options.locks.lockForLife(lockPath(options.dataFolder, nodeId), LOCK_PATIENCE_MS)) continue;
      try {
        return await Membership.#joinAs(options, nodeId, true);
      } catch (error) {
        if (!(error instanceof NodeIdInUseError)) throw error;
      }
    }
    throw new Error(`no node id is free on ${options.dataFolder}`);
  }

  static async #joinAs(options: MembershipOptions, nodeId: number, locked: boolean): Promise<Membership> {
    const membership = new Membership(options, nodeId, locked);
    try {
      membership.#lease = await membership.#acquire();
    } catch (error) {
      if (!(error instanceof LeaseHeldError)) throw error;
      throw new NodeIdInUseError(nodeId, error.lease, options.dataFolder);
    }
    return membership;
  }

  /** The name that the assignment knows this broker by. */
  get name(): string {
    return brokerName(this.nodeId);
  }

  /** Epoch of the present session; -1 between two sessions. */
  get tenure(): number {
    return this.#lease?.isValid() ? this.#lease.epoch : -1;
  }

  isValid(): boolean {
    return this.#lease?.isValid() === true;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /** Who is to be told of the session's end. */
  listen(listener: MembershipListener): void {
    this.#listener = listener;
  }

  /** Says that partitions are closed, or cannot be led on, under these epochs. Resolves when others can see it. */
  async give(partitions: readonly PartitionAt[], why: BrokerFacts["given"][number]["why"]): Promise<void> {
    this.#given = [...this.#given, ...partitions.map((partition) => ({ ...partition, why }))];
    await this.#lease?.renewNow();
  }

  /** Forgets what was given or wished where that has been acted on, and says which assignment is in effect. */
  assigned(
    version: number,
    isSettled: (given: PartitionAt) => boolean,
    isGranted: (wish: BrokerFacts["wishes"][number]) => boolean,
  ): void {
    this.#assignmentVersion = version;
    this.#given = this.#given.filter((one) => !isSettled(one));
    this.#wishes = this.#wishes.filter((one) => !isGranted(one));
  }

  /** Says whom somebody wants to lead partitions. Resolves when others can see it. */
  async wish(wishes: BrokerFacts["wishes"]): Promise<void> {
    this.#wishes = [...this.#wishes, ...wishes].slice(-KEPT_WISHES);
    await this.#lease?.renewNow();
  }

  /** Says that a topic was changed on the volume. Resolves when others can see it. */
  async topicChanged(name: string): Promise<void> {
    const { count, latest } = this.#changes;
    this.#changes = { count: count + 1, latest: [...latest, name].slice(-NAMED_CHANGES) };
    await this.#lease?.renewNow();
  }

  /** Lets others see the present facts soon. */
  async publish(): Promise<void> {
    await this.#lease?.renewNow();
  }

  /** Asks to be relieved of everything. Resolves when others can see it. */
  async drain(draining: boolean): Promise<void> {
    this.#draining = draining;
    await this.#lease?.renewNow();
  }

  /** Leaves: the session is given back. @throws {DiskError} */
  async leave(): Promise<void> {
    this.#stopped = true;
    await this.#rejoining;
    await this.#lease?.release();
  }

  #acquire(previousIncarnation: string | null = null): Promise<HeldLease> {
    const { disk, clock, machine, durationMs, listeners } = this.options;
    const incarnation = this.options.newIncarnation();
    return HeldLease.acquire({
      disk,
      clock,
      path: this.#path,
      holder: this.name,
      incarnation,
      process: { ...machine, address: listeners.map(({ host, port }) => `${host}:${port}`).join() },
      durationMs,
      facts: () => this.#facts(),
      holderIsGone: (lease) =>
        lease.incarnation === previousIncarnation || (this.locked && sameBoot(machine, lease.process)),
      onLost: (loss) => void (this.#rejoining = this.#lost(loss, incarnation)),
    });
  }

  get #path(): string {
    return `${brokersFolder(this.options.dataFolder)}/${this.nodeId}.json`;
  }

  /** Whether the volume knows nothing of any session under this node id, though there was one. @throws {DiskError} */
  async #isGone(): Promise<boolean> {
    try {
      await this.options.disk.stat(this.#path);
      return false;
    } catch (error) {
      if (error instanceof DiskError && error.kind === "not-found") return true;
      throw error;
    }
  }

  #facts(): BrokerFacts {
    return {
      nodeId: this.nodeId,
      rack: this.options.rack,
      listeners: this.options.listeners,
      draining: this.#draining,
      assignmentVersion: this.#assignmentVersion,
      given: this.#given,
      wishes: this.#wishes,
      changes: this.#changes,
    };
  }

  async #lost(loss: LeaseLoss, incarnation: string): Promise<void> {
    const { logger, clock } = this.options;
    this.#lease = null;
    if (loss.kind === "lapsed") logger.error("the session ran out: nothing is led until a new one begins");
    await this.#listener?.sessionLost(loss);
    this.#given = [];
    if (loss.kind === "taken") {
      return this.#superseded.resolve(`node id ${this.nodeId} was taken by a broker on ${loss.by.process.host}`);
    }
    if (loss.kind === "removed") return this.#superseded.resolve(FOLDER_GONE);
    while (!this.#stopped) {
      try {
        if (await this.#isGone()) return this.#superseded.resolve(FOLDER_GONE);
        this.#lease = await this.#acquire(incarnation);
        logger.info("a new session has begun", { tenure: this.#lease.epoch });
        return;
      } catch (error) {
        if (error instanceof LeaseHeldError) {
          return this.#superseded.resolve(`node id ${this.nodeId} was taken by ${error.lease.process.address}`);
        }
        if (!(error instanceof DiskError)) throw error;
        logger.error("no new session: the volume refuses", { error: String(error) });
        await sleep(clock, RETRY_MS);
      }
    }
  }
}

/** Where brokers keep their sessions. */
export function brokersFolder(dataFolder: string): string {
  return `${dataFolder}/__cluster/brokers`;
}

/** The file that a broker on this machine keeps locked for as long as its process lives. */
export function lockPath(dataFolder: string, nodeId: number): string {
  return `${brokersFolder(dataFolder)}/${nodeId}.lock`;
}

/** Node ids in the order in which they are to be tried. */
async function candidates({ disk, dataFolder, listeners, preferredNodeId }: MembershipOptions): Promise<number[]> {
  const address = listeners.map(({ host, port }) => `${host}:${port}`).join();
  const taken = new Map<number, LeaseRecord | null>();
  for (const { name } of await disk.list(brokersFolder(dataFolder))) {
    const match = /^(\d{1,9})\.json$/.exec(name);
    if (match === null) continue;
    try {
      taken.set(Number(match[1]), await readJson(disk, `${brokersFolder(dataFolder)}/${name}`, parseLease));
    } catch (error) {
      if (!(error instanceof DamagedFileError)) throw error;
      taken.set(Number(match[1]), null);
    }
  }
  const mine = [...taken].filter(([, lease]) => lease?.process.address === address).map(([nodeId]) => nodeId);
  const free = [...taken].filter(([, lease]) => lease?.released === true).map(([nodeId]) => nodeId);
  const unused: number[] = [];
  for (let nodeId = 0; unused.length < 8; nodeId++) if (!taken.has(nodeId)) unused.push(nodeId);
  const rest = [...taken.keys()].filter((nodeId) => !mine.includes(nodeId) && !free.includes(nodeId));
  const preferred = preferredNodeId === null ? [] : [preferredNodeId];
  return [...new Set([...preferred, ...mine, ...[...free, ...unused].sort((a, b) => a - b), ...rest])];
}
