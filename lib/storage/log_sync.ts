/**
 * Making a log durable: the commit rounds, what a roll leaves to be finished, and the checkpoints that bound the next
 * takeover's scan.
 *
 * Invariants: nothing in a new segment is durable for anybody before the segment in front of it is synced and its own
 * name is; a snapshot or checkpoint is written only after the sync of everything it speaks of; a leader that the volume
 * shows to be superseded writes none of them; a file that was removed under the leader takes and syncs bytes as before, but
 * nothing that it took later than {@link PRESENCE_INTERVAL_MS} after its removal is acknowledged.
 */

import { DiskError } from "../disk/disk.ts";
import { ErrorCode } from "../errors.ts";
import { type LogState, stallKindOf } from "./log_state.ts";
import { type Manifest, readManifest, writeManifest } from "./manifest.ts";
import { parseSegmentFileName } from "../partition_state.ts";
import { encodeSnapshot, writeSnapshot } from "./producer_snapshot.ts";
import { type RecoveryCheckpoint, writeCheckpoint } from "./recovery_checkpoint.ts";
import type { Segment } from "./segment.ts";

/** Time between two looks at whether the active segment still has its name. */
const PRESENCE_INTERVAL_MS = 1000;

/** Producer state and place of one moment, to be written when everything before that moment is durable. */
interface Checkpoint {
  readonly snapshot: Uint8Array;
  readonly place: RecoveryCheckpoint;
}

/** A segment that was just sealed, and the checkpoint of the moment when that happened. */
interface Seal {
  readonly segment: Segment;
  readonly checkpoint: Checkpoint;
}

/** Thrown inside the log when the volume shows a higher epoch. */
export class SupersededError extends Error {
  override readonly name = "SupersededError";
}

export class LogSync {
  readonly #state: LogState;
  #seals: Seal[] = [];
  /** Sealed segments that a commit round has not finished with. */
  readonly #unfinished = new Set<Segment>();
  /** Appended since the last checkpoint. */
  #bytesSinceCheckpoint = 0;
  /** Side files are written one at a time. */
  #sideFiles: Promise<void> = Promise.resolve();
  #checkpointUnderWay = false;
  /** Where the producer snapshot on the volume stands. */
  #snapshotOffset: number;
  /** Whether anything was appended that snapshot and checkpoint on the volume do not know of. */
  #changed = false;
  /** When the active segment was last seen in its place, monotonic ms. */
  #seenAtMs: number;

  constructor(state: LogState) {
    this.#state = state;
    this.#seenAtMs = state.clock.monotonicMs();
    this.#snapshotOffset = state.logEndOffset;
  }

  /** Counts appended bytes towards the next checkpoint. */
  appended(bytes: number): void {
    this.#changed = true;
    this.#bytesSinceCheckpoint += bytes;
  }

  /** The segment was sealed: the log now ends where it does, and the new active segment begins there. */
  sealed(segment: Segment): void {
    this.#changed = true;
    this.#seals.push({ segment, checkpoint: this.#checkpointNow() });
    this.#unfinished.add(segment);
    this.#bytesSinceCheckpoint = 0;
  }

  /** Whether a segment is sealed, and all of it and its side files are on the volume. */
  isFinished(segment: Segment): boolean {
    return segment !== this.#state.active && !this.#unfinished.has(segment);
  }

  /** Whether a commit round would have nothing to do. */
  get isDurable(): boolean {
    return this.#seals.length === 0 && this.#state.durableOffset === this.#state.logEndOffset;
  }

  /**
   * One commit round. Durable, in this order:
   *
   * 1. each sealed segment's records — a crash before that may lose their end: none of it was acknowledged;
   * 2. producer snapshot, checkpoint and the new segment's name — a crash before that loses the new segment: nothing in
   *    it was acknowledged;
   * 3. the active segment's records — now everything is acknowledged that was appended before the round.
   */
  async commit(): Promise<ErrorCode> {
    const state = this.#state;
    const endOffset = state.logEndOffset;
    const { active } = state;
    const seals = this.#seals;
    this.#seals = [];
    const checkpoint = this.#isCheckpointDue(seals) ? this.#checkpointNow() : null;
    try {
      for (const seal of seals) {
        await seal.segment.file.sync();
        this.#durable(seal.segment.endOffset);
        await this.#finishSeal(seal);
        this.#unfinished.delete(seal.segment);
      }
      await active.file.sync();
      await this.#assertPresent(active);
    } catch (error) {
      if (state.phase === "closed") return ErrorCode.NOT_LEADER_OR_FOLLOWER;
      this.#stall("sync failed", error);
      return state.refusal() ?? ErrorCode.KAFKA_STORAGE_ERROR;
    }
    this.#durable(endOffset);
    if (checkpoint !== null) this.#writeBehind(checkpoint);
    return ErrorCode.NONE;
  }

  /**
   * Writes snapshot, checkpoint and indexes of the log's present end, which must be durable; nothing where the volume has
   * them already. @throws {DiskError}
   */
  async checkpoint(): Promise<void> {
    if (!this.#changed) return;
    this.#changed = false;
    const checkpoint = this.#checkpointNow();
    this.#bytesSinceCheckpoint = 0;
    await this.inTurn(() => this.#write(checkpoint));
    await this.#saveIndexes(this.#state.active, false);
  }

  /**
   * Sees to it that the records below `endOffset` are not needed for producer state: a snapshot of that offset or a later
   * one is durable when it resolves. @param flush makes everything durable @throws {DiskError}
   */
  async coverBySnapshot(endOffset: number, flush: () => Promise<ErrorCode>): Promise<boolean> {
    if (this.#snapshotOffset >= endOffset) return true;
    const checkpoint = this.#checkpointNow();
    if (await flush() !== ErrorCode.NONE) return false;
    await this.inTurn(() => this.#write(checkpoint));
    return this.#snapshotOffset >= endOffset;
  }

  /** Sees to it that the manifest has the present offsets; durable when it resolves. @throws {DiskError} */
  async manifest(changes: Partial<Pick<Manifest, "logStartOffset">> = {}): Promise<void> {
    const state = this.#state;
    await this.inTurn(async () => {
      const manifest: Manifest = {
        epoch: state.leaderEpoch,
        highWatermark: state.durableOffset,
        logStartOffset: state.logStartOffset,
        others: state.manifest.others,
        ...changes,
      };
      const { highWatermark, logStartOffset } = state.manifest;
      if (manifest.highWatermark === highWatermark && manifest.logStartOffset === logStartOffset) return;
      await this.#assertLeading();
      await writeManifest(state.disk, state.folder, manifest);
      state.manifest = manifest;
    });
  }

  /**
   * Whether the volume shows a leader with a higher epoch: by its manifest, or by a segment's name (a manifest may have
   * been written over by a leader that was deposed in the middle of it). @throws {DiskError}
   */
  async isSuperseded(): Promise<boolean> {
    const { disk, folder, leaderEpoch } = this.#state;
    const manifest = await readManifest(disk, folder);
    if (manifest.kind === "present" && manifest.value.epoch > leaderEpoch) return true;
    const entries = await disk.list(folder);
    return entries.some(({ name }) => (parseSegmentFileName(name)?.epoch ?? -1) > leaderEpoch);
  }

  /** Resolves when no side file is being written. */
  async settled(): Promise<void> {
    let last;
    do {
      last = this.#sideFiles;
      await last;
    } while (last !== this.#sideFiles);
  }

  /** A failure to look says nothing about where the file is. @throws {DiskError} `"not-found"`: it is gone */
  async #assertPresent(segment: Segment): Promise<void> {
    const { disk, clock } = this.#state;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#seenAtMs < PRESENCE_INTERVAL_MS) return;
    try {
      await disk.stat(segment.logPath);
      this.#seenAtMs = nowMs;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      if (error.kind !== "not-found") return;
      await this.#assertLeading();
      throw error;
    }
  }

  #stall(what: string, error: unknown): void {
    if (error instanceof SupersededError) return this.#state.stall("superseded", error.message);
    const kind = stallKindOf(error) === "gone" ? "gone" : "io";
    this.#state.stall(kind, kind === "gone" ? "the partition's files are gone" : what, error);
  }

  #durable(offset: number): void {
    const state = this.#state;
    if (offset > state.durableOffset) state.durableOffset = offset;
    state.raiseHighWatermark(offset);
  }

  #isCheckpointDue(seals: readonly Seal[]): boolean {
    return seals.length === 0 && !this.#checkpointUnderWay &&
      this.#bytesSinceCheckpoint >= this.#state.config.checkpointIntervalBytes;
  }

  #checkpointNow(): Checkpoint {
    const { producers, logEndOffset, leaderEpoch, active, config, clock } = this.#state;
    producers.expire(clock.wallMs(), config.producerIdExpirationMs);
    return {
      snapshot: encodeSnapshot(producers, { offset: logEndOffset, leaderEpoch }),
      place: {
        segmentBase: active.baseOffset,
        position: active.sizeBytes,
        highWatermark: logEndOffset,
        leaderEpoch: active.epoch,
      },
    };
  }

  /** Steps 2 of a round. What fails here but the names' durability is only a longer scan for the next takeover. */
  async #finishSeal({ segment, checkpoint }: Seal): Promise<void> {
    const { disk, folder } = this.#state;
    await this.#saveIndexes(segment, true);
    try {
      await this.inTurn(() => this.#write(checkpoint));
    } catch (error) {
      if (error instanceof SupersededError) throw error;
      this.#warn("checkpoint could not be written", error);
      await disk.syncFolder(folder);
    }
  }

  #writeBehind(checkpoint: Checkpoint): void {
    this.#bytesSinceCheckpoint = 0;
    this.#checkpointUnderWay = true;
    const { active } = this.#state;
    const write = async () => {
      await this.#write(checkpoint);
      if (this.#state.phase !== "closed") await this.#saveIndexes(active, false);
    };
    this.inTurn(write).catch((error) => {
      if (this.#state.phase === "closed") return;
      if (error instanceof SupersededError || stallKindOf(error) === "gone") this.#stall("", error);
      else this.#warn("checkpoint could not be written", error);
    }).finally(() => this.#checkpointUnderWay = false);
  }

  /**
   * 1. aborted transactions up to the snapshot, also those that an earlier try could not save — a crash after it leaves
   *    an older snapshot, whose replay finds them again, or drops them where their markers are lost;
   * 2. snapshot — a crash after it leaves an older checkpoint: a longer scan;
   * 3. checkpoint.
   */
  async #write({ snapshot, place }: Checkpoint): Promise<void> {
    const { disk, folder, segments } = this.#state;
    await this.#assertLeading();
    const steps = [
      ...segments.filter((segment) => segment.abortedChanged).map((segment) => () => segment.saveAborted(disk)),
      async () => {
        await writeSnapshot(disk, folder, snapshot);
        this.#snapshotOffset = place.highWatermark;
      },
      () => writeCheckpoint(disk, folder, place),
    ];
    for (const step of steps) {
      if (this.#state.phase !== "closed") await step();
    }
  }

  async #assertLeading(): Promise<void> {
    if (await this.isSuperseded()) throw new SupersededError("the manifest carries a higher epoch");
  }

  async #saveIndexes(segment: Segment, sync: boolean): Promise<void> {
    try {
      if (!segment.isReplaced) await segment.indexes?.save(this.#state.disk, { sync });
    } catch (error) {
      this.#warn("index could not be saved", error);
    }
  }

  /** Runs `write` when no side file is being written, and lets none be written meanwhile; not at all once closed. */
  inTurn(write: () => Promise<void>): Promise<void> {
    const turn = this.#sideFiles.then(() => {
      if (this.#state.phase !== "closed") return write();
    });
    this.#sideFiles = turn.catch(() => {});
    return turn;
  }

  #warn(message: string, error: unknown): void {
    this.#state.logger.warn(message, { folder: this.#state.folder, error: String(error) });
  }
}
