/**
 * A lease as a file on the volume: `DATA/__cluster/controller.lease` says who assigns partitions,
 * `DATA/__cluster/brokers/<node id>.json` that a broker is alive, and under which tenure.
 *
 * Invariants:
 * - a lease is judged expired only by how long its content has not changed on the observer's own clock, with the duration
 *   that its holder wrote into it; time stamps of two machines are never compared;
 * - each new holder has a higher epoch, and the epoch is claimed by an exclusive create of `<lease>.<epoch>`
 *   before the lease is replaced, so that two candidates never both win one epoch; the holder's own claim stays, and after
 *   a claim the lease is read once more, so that a slow candidate cannot claim an epoch that is already over;
 * - `isValid` is false from the moment the last renewal is older than the duration by the larger of monotonic and wall
 *   time (one of the two stands still or jumps while a machine sleeps), whatever the volume does meanwhile; and a lease
 *   that ran out is over for good: others may have acted on that, so its holder has to acquire a new one.
 *
 * A holder that released its lease, or whose process is known to be gone, is followed at once.
 */
import * as z from "zod";
import { type Clock, sleep, type Timer } from "../clock.ts";
import { DamagedFileError, readJson, replaceJson } from "../disk/atomic_replace.ts";
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

/** The file's content; each kind of lease has keys of its own besides. */
export type LeaseRecord = z.infer<typeof leaseSchema>;

/** The shape check for the file's JSON. @throws {z.ZodError} */
export function parseLease(json: unknown): LeaseRecord {
  return leaseSchema.parse(json);
}

/** Another process holds the lease. */
export class LeaseHeldError extends Error {
  override readonly name = "LeaseHeldError";

  constructor(readonly lease: LeaseRecord, readonly path: string) {
    super(`${path} is held by ${lease.holder} on ${lease.process.host} (${lease.process.address})`);
  }
}

/** Why a lease is over: another holder's was found in its place, its file is gone, or it was not renewed in time. */
export type LeaseLoss =
  | { readonly kind: "taken"; readonly by: LeaseRecord }
  | { readonly kind: "removed" }
  | { readonly kind: "lapsed" };

export interface LeaseOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  /** The file. */
  readonly path: string;
  readonly holder: string;
  /** Unique to this tenure. */
  readonly incarnation: string;
  readonly process: LeaseRecord["process"];
  readonly durationMs: number;
  /** What else the file shall say; asked at each renewal. */
  facts?(): Readonly<Record<string, unknown>>;
  /** Whether the holder of an unreleased lease is known to have died (same machine, lock free). */
  holderIsGone(lease: LeaseRecord): boolean | Promise<boolean>;
  /** Called once, when the lease is over without having been released. */
  onLost?(loss: LeaseLoss): void;
}

/** A held lease, renewed in the background until `release`. */
export class HeldLease {
  #renewedMonotonicMs = 0;
  #renewedWallMs = 0;
  #lease: LeaseRecord;
  #timer: Timer | null = null;
  #renewing: Promise<void> | null = null;
  #ended = false;
  /** Whether the last renewal has failed: the next one comes sooner, for little time may be left. */
  #hasFailed = false;

  private constructor(private readonly options: LeaseOptions, lease: LeaseRecord, startedAt: Moment) {
    this.#lease = lease;
    this.#markRenewed(startedAt);
  }

  /**
   * Takes the lease, waiting out an unreleased one.
   * @throws {LeaseHeldError} when its holder renews it, or when another candidate was faster
   * @throws {DiskError}
   */
  static async acquire(options: LeaseOptions): Promise<HeldLease> {
    const { disk, path, clock } = options;
    const previous = await readLease(options);
    const isOver = previous === null || previous.released || await options.holderIsGone(previous);
    if (!isOver) await waitUntilExpired(options, previous);
    const epoch = await claimEpoch(options, (previous?.epoch ?? 0) + 1);
    const now = await readLease(options);
    // A look while it was waited for may have taken long: a renewal that came in time shows now.
    const renewed = !isOver && now !== null && !now.released && now.renewals !== previous.renewals;
    if (now !== null && (now.epoch >= epoch || renewed)) throw new LeaseHeldError(now, path);
    const startedAt = momentOf(clock);
    const lease: LeaseRecord = {
      ...options.facts?.(),
      holder: options.holder,
      incarnation: options.incarnation,
      epoch,
      durationMs: options.durationMs,
      renewals: 0,
      released: false,
      process: options.process,
    };
    await replaceJson(disk, path, lease);
    await removeClaimsBelow(disk, path, epoch);
    const held = new HeldLease(options, lease, startedAt);
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

  /**
   * Writes the file now, so that others see the present facts soon. Resolves when they are durable, or could not be
   * written; the usual renewals try again.
   */
  async renewNow(): Promise<void> {
    // A renewal under way may have asked for the facts already: the next one surely has not.
    await this.#renewing;
    if (this.#ended) return;
    await this.#startRenewal();
  }

  /** Gives the lease back, so that the next process need not wait. @throws {DiskError} */
  async release(): Promise<void> {
    const wasHeld = !this.#ended;
    this.#ended = true;
    this.#timer?.cancel();
    await this.#renewing;
    if (!wasHeld) return;
    const found = await readLease(this.options);
    if (found?.incarnation !== this.options.incarnation) return;
    await replaceJson(this.options.disk, this.options.path, {
      ...this.#lease,
      ...this.options.facts?.(),
      released: true,
    });
  }

  #scheduleRenewal(): void {
    if (this.#ended) return;
    const delayMs = this.options.durationMs / (this.#hasFailed ? 16 : 4);
    this.#timer = this.options.clock.schedule(delayMs, () => void this.#startRenewal());
  }

  /** At most one renewal runs at a time. */
  #startRenewal(): Promise<void> {
    this.#timer?.cancel();
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
      this.#scheduleRenewal();
    });
    return this.#renewing;
  }

  /** A renewal that fails is tried again at the next turn; `isValid` runs out by itself meanwhile. */
  async #renew(): Promise<void> {
    const { clock, disk, path, incarnation, facts } = this.options;
    if (!this.isValid()) return this.#lose({ kind: "lapsed" });
    const startedAt = momentOf(clock);
    try {
      const found = await readLease(this.options);
      if (this.#ended) return;
      if (found === null) return this.#lose({ kind: "removed" });
      if (found.incarnation !== incarnation) return this.#lose({ kind: "taken", by: found });
      if (!this.isValid()) return this.#lose({ kind: "lapsed" });
      const renewals = this.#lease.renewals + 1;
      this.#lease = { ...this.#lease, ...facts?.(), renewals };
      await replaceJson(disk, path, this.#lease);
      // What took longer than the lease lasts came too late, whatever it did.
      if (this.isValid()) this.#markRenewed(startedAt);
      this.#hasFailed = false;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#hasFailed = true;
    }
  }

  #lose(loss: LeaseLoss): void {
    if (this.#ended) return;
    this.#ended = true;
    this.options.onLost?.(loss);
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

/** The lease, or null. A damaged file counts as a failing volume: what it held is not known. */
async function readLease({ disk, path }: LeaseOptions): Promise<LeaseRecord | null> {
  try {
    return await readJson(disk, path, parseLease);
  } catch (error) {
    if (!(error instanceof DamagedFileError)) throw error;
    throw new DiskError("io", "read lease", path, { cause: error });
  }
}

/** Returns once `seen` has stood unchanged for its own duration. @throws {LeaseHeldError} when it changes */
async function waitUntilExpired(options: LeaseOptions, seen: LeaseRecord): Promise<void> {
  const { clock } = options;
  const start = momentOf(clock);
  while (clock.monotonicMs() - start.monotonicMs < seen.durationMs) {
    await sleep(clock, Math.min(250, seen.durationMs / 8));
    const now = await readLease(options);
    if (now === null) continue;
    if (now.released && now.epoch === seen.epoch) return;
    if (now.epoch !== seen.epoch || now.renewals !== seen.renewals) throw new LeaseHeldError(now, options.path);
  }
}

/**
 * Claims the lowest free epoch from `first` on by an exclusive create. A claim that another made is given the time of a
 * lease to become one; only then its maker counts as dead and is passed over.
 * @throws {LeaseHeldError} when it did become one
 */
async function claimEpoch(options: LeaseOptions, first: number): Promise<number> {
  for (let epoch = first;; epoch++) {
    try {
      (await options.disk.open(`${options.path}.${epoch}`, "create")).close();
      return epoch;
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "exists") throw error;
    }
    const start = options.clock.monotonicMs();
    while (options.clock.monotonicMs() - start < options.durationMs) {
      await sleep(options.clock, options.durationMs / 16);
      const now = await readLease(options);
      if (now !== null && now.epoch >= epoch) throw new LeaseHeldError(now, options.path);
    }
  }
}

async function removeClaimsBelow(disk: Disk, path: string, epoch: number): Promise<void> {
  const slash = path.lastIndexOf("/");
  const prefix = `${path.slice(slash + 1)}.`;
  for (const { name } of await disk.list(path.slice(0, slash))) {
    const claimed = name.startsWith(prefix) ? name.slice(prefix.length) : "";
    if (/^\d+$/.test(claimed) && Number(claimed) < epoch) await disk.remove(`${path}.${claimed}`);
  }
}
