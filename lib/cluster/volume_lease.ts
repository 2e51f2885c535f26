/**
 * The lease that says which broker serves a volume: `DATA/__cluster/controller.lease`.
 *
 * Invariants:
 * - a lease is judged expired only by how long its content has not changed on the observer's own clock, with the duration
 *   that its holder wrote into it; time stamps of two machines are never compared;
 * - each new holder has a higher epoch, and the epoch is claimed by an exclusive create of `controller.lease.<epoch>`
 *   before the lease is replaced, so that two candidates never both win one epoch; the holder's own claim stays, and after
 *   a claim the lease is read once more, so that a slow candidate cannot claim an epoch that is already over;
 * - `isValid` is false from the moment the last renewal is older than the duration by the larger of monotonic and wall
 *   time (one of the two stands still or jumps while a machine sleeps), whatever the volume does meanwhile.
 *
 * A holder that released its lease, or whose process is known to be gone, is followed at once.
 */
import * as z from "zod";
import { type Clock, sleep, type Timer } from "../clock.ts";
import { readJson, replaceJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";

const leaseSchema = z.looseObject({
  holder: z.string(),
  incarnation: z.string(),
  epoch: z.int().nonnegative(),
  durationMs: z.number().positive(),
  /** Raised by each renewal, so that the content changes. */
  renewals: z.int().nonnegative(),
  released: z.boolean(),
  /** Where and as what the holder runs; for people and for {@link LeaseOptions.holderIsGone}. */
  process: z.looseObject({ host: z.string(), bootMs: z.number(), address: z.string() }),
});

/** The file's content. */
export type Lease = z.infer<typeof leaseSchema>;

/** Another process serves this volume. */
export class VolumeInUseError extends Error {
  override readonly name = "VolumeInUseError";

  constructor(readonly lease: Lease, folder: string) {
    super(
      `${folder} is served by broker ${lease.holder} on ${lease.process.host} (${lease.process.address}); ` +
        `stop it first, or choose another folder with --data`,
    );
  }
}

export interface LeaseOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  /** The `__cluster` folder. */
  readonly folder: string;
  readonly holder: string;
  /** Unique to this process. */
  readonly incarnation: string;
  readonly process: Lease["process"];
  readonly durationMs: number;
  /** Whether the holder of an unreleased lease is known to have died (same machine, lock free). */
  holderIsGone(lease: Lease): boolean | Promise<boolean>;
  /** Called once when another holder's lease is found in place of ours. */
  onLost(lease: Lease | null): void;
}

/** A held lease, renewed in the background until `release`. */
export class VolumeLease {
  #renewedMonotonicMs = 0;
  #renewedWallMs = 0;
  #lease: Lease;
  #timer: Timer | null = null;
  #renewing: Promise<void> | null = null;
  #ended = false;

  private constructor(private readonly options: LeaseOptions, lease: Lease, startedAt: Moment) {
    this.#lease = lease;
    this.#markRenewed(startedAt);
  }

  /**
   * Takes the lease, waiting out an unreleased one.
   * @throws {VolumeInUseError} when its holder renews it, or when another candidate was faster
   * @throws {DiskError}
   */
  static async acquire(options: LeaseOptions): Promise<VolumeLease> {
    const { disk, folder, clock } = options;
    const previous = await readLease(options);
    if (previous !== null && !previous.released && !(await options.holderIsGone(previous))) {
      await waitUntilExpired(options, previous);
    }
    const epoch = await claimEpoch(options, (previous?.epoch ?? 0) + 1);
    const now = await readLease(options);
    if (now !== null && now.epoch >= epoch) throw new VolumeInUseError(now, folder);
    const startedAt = momentOf(clock);
    const lease: Lease = {
      holder: options.holder,
      incarnation: options.incarnation,
      epoch,
      durationMs: options.durationMs,
      renewals: 0,
      released: false,
      process: options.process,
    };
    await replaceJson(disk, leasePath(folder), lease);
    await removeClaimsBelow(disk, folder, epoch);
    const held = new VolumeLease(options, lease, startedAt);
    held.#scheduleRenewal();
    return held;
  }

  /** The epoch of this tenure; higher than any before on this volume. */
  get epoch(): number {
    return this.#lease.epoch;
  }

  /** Whether this process may still acknowledge anything. */
  isValid(): boolean {
    const { clock, durationMs } = this.options;
    const elapsedMs = Math.max(
      clock.monotonicMs() - this.#renewedMonotonicMs,
      clock.wallMs() - this.#renewedWallMs,
    );
    return !this.#ended && elapsedMs < durationMs;
  }

  /** Gives the lease back, so that the next process need not wait. */
  async release(): Promise<void> {
    this.#ended = true;
    this.#timer?.cancel();
    await this.#renewing;
    const found = await readLease(this.options);
    if (found?.incarnation !== this.options.incarnation) return;
    await replaceJson(this.options.disk, leasePath(this.options.folder), { ...this.#lease, released: true });
  }

  #scheduleRenewal(): void {
    if (this.#ended) return;
    this.#timer = this.options.clock.schedule(this.options.durationMs / 4, () => {
      this.#renewing = this.#renew().finally(() => this.#scheduleRenewal());
    });
  }

  /** A renewal that fails is tried again at the next turn; `isValid` runs out by itself meanwhile. */
  async #renew(): Promise<void> {
    const startedAt = momentOf(this.options.clock);
    try {
      const found = await readLease(this.options);
      if (found?.incarnation !== this.options.incarnation) {
        this.#ended = true;
        this.options.onLost(found);
        return;
      }
      this.#lease = { ...this.#lease, renewals: this.#lease.renewals + 1 };
      await replaceJson(this.options.disk, leasePath(this.options.folder), this.#lease);
      this.#markRenewed(startedAt);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
    }
  }

  /** Counts from before the write began: an observer sees the change later than that, never earlier. */
  #markRenewed(at: Moment): void {
    this.#renewedMonotonicMs = at.monotonicMs;
    this.#renewedWallMs = at.wallMs;
  }
}

interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

function leasePath(folder: string): string {
  return `${folder}/controller.lease`;
}

function readLease({ disk, folder }: LeaseOptions): Promise<Lease | null> {
  return readJson(disk, leasePath(folder), (json) => leaseSchema.parse(json));
}

/** Returns once `seen` has stood unchanged for its own duration. @throws {VolumeInUseError} when it changes */
async function waitUntilExpired(options: LeaseOptions, seen: Lease): Promise<void> {
  const { clock } = options;
  const start = momentOf(clock);
  while (clock.monotonicMs() - start.monotonicMs < seen.durationMs) {
    await sleep(clock, Math.min(250, seen.durationMs / 8));
    const now = await readLease(options);
    if (now === null) continue;
    if (now.released && now.epoch === seen.epoch) return;
    if (now.epoch !== seen.epoch || now.renewals !== seen.renewals) throw new VolumeInUseError(now, options.folder);
  }
}

/**
 * Claims the lowest free epoch from `first` on by an exclusive create. A claim that another made is given the time of a
 * lease to become one; only then its maker counts as dead and is passed over.
 * @throws {VolumeInUseError} when it did become one
 */
async function claimEpoch(options: LeaseOptions, first: number): Promise<number> {
  for (let epoch = first;; epoch++) {
    try {
      (await options.disk.open(`${leasePath(options.folder)}.${epoch}`, "create")).close();
      return epoch;
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "exists") throw error;
    }
    const start = options.clock.monotonicMs();
    while (options.clock.monotonicMs() - start < options.durationMs) {
      await sleep(options.clock, options.durationMs / 16);
      const now = await readLease(options);
      if (now !== null && now.epoch >= epoch) throw new VolumeInUseError(now, options.folder);
    }
  }
}

async function removeClaimsBelow(disk: Disk, folder: string, epoch: number): Promise<void> {
  for (const { name } of await disk.list(folder)) {
    const claim = /^controller\.lease\.(\d+)$/.exec(name);
    if (claim && Number(claim[1]) < epoch) await disk.remove(`${folder}/${name}`);
  }
}
