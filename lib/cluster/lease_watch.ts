/**
 * The processes of a cluster as one observer sees them, by the leases that they keep in one folder of the volume.
 *
 * Invariants:
 * - a holder counts as alive until its lease was seen unchanged for its duration on the observer's own clock, was
 *   released, or its process is known to have died;
 * - what the observer could not see does not count: after a time without a look, every lease has its whole duration again;
 * - a file that cannot be read or understood changes nothing.
 */
import type { Clock } from "../clock.ts";
import { DamagedFileError, readJson } from "../disk/atomic_replace.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import type { LeaseRecord } from "./lease.ts";

/** One lease, as seen last. */
export interface Sighting<Record> {
  readonly record: Record;
  readonly alive: boolean;
}

export interface LeaseWatchOptions<Record> {
  readonly disk: Disk;
  readonly clock: Clock;
  /** Holds one lease in each of its `.json` files. */
  readonly folder: string;
  parse(json: unknown): Record;
  /** Whether the process behind an unreleased lease is known to have died. Asked when a renewal is overdue. */
  isGone?(record: Record): Promise<boolean>;
}

interface Seen<Record> {
  record: Record;
  changedAtMs: number;
  gone: boolean;
}

/** See the file's head. */
export class LeaseWatch<Record extends LeaseRecord> {
  readonly #seen = new Map<string, Seen<Record>>();
  #observedAtMs = -Infinity;
  #looks = 0;

  constructor(private readonly options: LeaseWatchOptions<Record>) {}

  /** Looks at all leases. @throws {DiskError} when they cannot be listed; the view is then as it was */
  async observe(): Promise<void> {
    const { disk, clock, folder } = this.options;
    const records: [name: string, record: Record][] = [];
    for (const { name } of await listed(disk, folder)) {
      if (name.startsWith(".") || !name.endsWith(".json")) continue;
      const record = await this.#read(`${folder}/${name}`);
      if (record !== null) records.push([name, record]);
    }
    const nowMs = clock.monotonicMs();
    const isFresh = this.#observedAtMs === -Infinity;
    const gapMs = nowMs - this.#observedAtMs;
    for (const [name, record] of records) {
      const seen = this.#seen.get(name);
      if (seen === undefined) {
        this.#seen.set(name, { record, changedAtMs: nowMs, gone: false });
        continue;
      }
      const changed = seen.record.epoch !== record.epoch || seen.record.renewals !== record.renewals ||
        seen.record.incarnation !== record.incarnation;
      if (changed || (!isFresh && gapMs > record.durationMs / 2)) seen.changedAtMs = nowMs;
      if (changed) seen.gone = false;
      seen.record = record;
      const isOverdue = nowMs - seen.changedAtMs > record.durationMs / 2;
      if (isOverdue && !seen.gone && !record.released) seen.gone = await this.options.isGone?.(record) ?? false;
    }
    this.#observedAtMs = nowMs;
    this.#looks++;
  }

  /** How often all leases were looked at: what {@link sightings} gives stays the same until that changes. */
  get looks(): number {
    return this.#looks;
  }

  /** All leases that ever were, as of the last {@link observe}. */
  sightings(): Sighting<Record>[] {
    return Array.from(this.#seen.values(), (seen) => ({ record: seen.record, alive: this.#isAlive(seen) }));
  }

  #isAlive({ record, changedAtMs, gone }: Seen<Record>): boolean {
    return !record.released && !gone && this.#observedAtMs - changedAtMs < record.durationMs;
  }

  async #read(path: string): Promise<Record | null> {
    try {
      return await readJson(this.options.disk, path, this.options.parse);
    } catch (error) {
      if (error instanceof DamagedFileError || error instanceof DiskError) return null;
      throw error;
    }
  }
}

async function listed(disk: Disk, folder: string) {
  try {
    return await disk.list(folder);
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return [];
    throw error;
  }
}
