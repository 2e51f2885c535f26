/**
 * The reading part of a takeover: from the files of a partition to the log they hold, the producer state at its end, and
 * the list of repairs. Changes nothing on the volume but index files, which are hints; `takeover.ts` does, in its order.
 *
 * Checksums are checked from the checkpoint on. In front of it only headers are read, and only where they are needed:
 * for producer state behind the snapshot, and for indexes that are missing.
 */

import type { Disk } from "../disk/disk.ts";
import {
  baseOffset,
  baseSequence,
  HEADER_BYTES,
  isControl,
  isTransactional,
  lastOffset,
  lastOffsetDelta,
  maxTimestamp,
  nextOffset,
  producerEpoch,
  producerId,
} from "../records/batch.ts";
import { readEndTransactionMarker } from "../records/control.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import { findBatchBehind, scanBatches, type ScanResult } from "./batch_scan.ts";
import type { Manifest } from "./manifest.ts";
import type { ProducerSnapshot } from "./producer_snapshot.ts";
import { ProducerState } from "./producer_state.ts";
import { type FoundDamage, repairOf } from "./recovery.ts";
import type { RecoveryCheckpoint } from "./recovery_checkpoint.ts";
import type { Segment } from "./segment.ts";
import { SegmentIndexes } from "./segment_indexes.ts";

/** What a scan starts from. */
export interface ScanInput {
  readonly disk: Disk;
  /** Live segments in order; those of a lower epoch than the next end where that begins. */
  readonly segments: readonly Segment[];
  readonly manifest: Manifest | null;
  readonly checkpoint: RecoveryCheckpoint | null;
  readonly snapshot: ProducerSnapshot | null;
  readonly indexIntervalBytes: number;
  /** Wall-clock ms: producers found in the log were last heard now, for want of a better time. */
  readonly nowMs: number;
}

/** What a scan found. The segments given to it have their true ends, indexes and corrupt ranges now. */
export interface ScanOutcome {
  /** How many of the segments remain; those behind are to be set aside. */
  readonly keptSegments: number;
  /** Where to cut the last kept segment's file; null when it is whole. */
  readonly cutPosition: number | null;
  readonly damages: FoundDamage[];
  readonly producers: ProducerState;
  /** Index of the first segment that may hold unsynced bytes, and where in it they begin. */
  readonly firstUnsynced: number;
  readonly unsyncedPosition: number;
  readonly scannedBytes: number;
  /** Whether snapshot and checkpoint stand at the log's end already. */
  readonly atCheckpoint: boolean;
  readonly notes: string[];
}

/** Reads what has to be read. @throws {DiskError} when the volume cannot be read */
export async function scanLog(input: ScanInput): Promise<ScanOutcome> {
  const scan = new LogScan(input);
  await scan.run();
  return await scan.outcome();
}

/** The place from which checksums are checked. */
interface Start {
  readonly segment: number;
  readonly position: number;
}

class LogScan {
  readonly #input: ScanInput;
  readonly #start: Start;
  readonly #notes: string[] = [];
  readonly #damages: FoundDamage[] = [];
  #producers = new ProducerState();
  /** Batches from this offset on are not in the producer state yet. */
  #replayFrom: number;
  #snapshotUsed = false;
  #kept: number;
  #cutPosition: number | null = null;
  #scannedBytes = 0;
  #unsyncedPosition = 0;
  #checkpointWrong = false;

  constructor(input: ScanInput) {
    this.#input = input;
    this.#kept = input.segments.length;
    this.#start = this.#startOf(input.checkpoint);
    this.#replayFrom = this.#restoreSnapshot();
  }

  async run(): Promise<void> {
    const { segments } = this.#input;
    for (let i = 0; i < segments.length && this.#kept === segments.length; i++) {
      const checked = i > this.#start.segment ? 0 : i === this.#start.segment ? this.#start.position : Infinity;
      if (checked !== Infinity) await this.#scanSegment(i, checked);
      else if (segments[i].endOffset > this.#replayFrom) await this.#replaySegment(i);
    }
  }

  async outcome(): Promise<ScanOutcome> {
    const { segments, snapshot } = this.#input;
    const end = this.#kept === 0 ? 0 : segments[this.#kept - 1].endOffset;
    const hasData = segments.some((segment) => segment.sizeBytes > 0);
    if (hasData && this.#snapshotUsed && snapshot!.offset! > end) {
      this.#notes.push(`producer snapshot at offset ${snapshot!.offset} is past the log's end ${end}: rebuilt`);
      await this.#rebuildProducers();
    }
    if (snapshot !== null && !this.#snapshotUsed) this.#mergeSnapshot(snapshot, end);
    return {
      keptSegments: this.#kept,
      cutPosition: this.#cutPosition,
      damages: this.#damages,
      producers: this.#producers,
      firstUnsynced: this.#start.segment,
      unsyncedPosition: this.#unsyncedPosition,
      scannedBytes: this.#scannedBytes,
      atCheckpoint: this.#scannedBytes === 0 && this.#snapshotUsed && snapshot?.offset === end &&
        !this.#checkpointWrong,
      notes: this.#notes,
    };
  }

  /** Where the checkpoint says that everything in front was synced and valid. */
  #startOf(checkpoint: RecoveryCheckpoint | null): Start {
    const { segments } = this.#input;
    if (checkpoint === null || segments.length === 0) return { segment: 0, position: 0 };
    let found = segments.findLastIndex((segment) => segment.baseOffset <= checkpoint.segmentBase);
    if (found === -1) found = 0;
    const segment = segments[found];
    const sameSegment = segment.baseOffset === checkpoint.segmentBase &&
      (checkpoint.leaderEpoch === null || checkpoint.leaderEpoch === segment.epoch);
    if (!sameSegment) {
      this.#checkpointWrong = true;
      this.#notes.push(`checkpoint names segment ${checkpoint.segmentBase}, which is not live`);
      return { segment: found, position: 0 };
    }
    if (checkpoint.position > segment.sizeBytes) {
      this.#checkpointWrong = true;
      this.#notes.push(`checkpoint is at byte ${checkpoint.position}, the file has ${segment.sizeBytes}`);
      return { segment: found, position: 0 };
    }
    return { segment: found, position: checkpoint.position };
  }

  /** Takes the snapshot over if it can be placed in this log. Answers the offset that it stands for. */
  #restoreSnapshot(): number {
    const { snapshot, segments } = this.#input;
    const logStart = segments.length === 0 ? 0 : segments[0].baseOffset;
    if (snapshot === null || snapshot.offset === null) return logStart;
    const { offset, leaderEpoch } = snapshot;
    const next = leaderEpoch === null ? undefined : segments.find((segment) => segment.epoch > leaderEpoch);
    if (next !== undefined && offset > next.baseOffset) {
      this.#notes.push(`producer snapshot of epoch ${leaderEpoch} at offset ${offset} is a deposed leader's: not used`);
      return logStart;
    }
    this.#snapshotUsed = true;
    for (const entry of snapshot.entries) this.#producers.restore(copyOf(entry));
    return Math.max(offset, logStart);
  }

  /**
   * A snapshot that does not say its offset, or that knows of batches which are not in the log, cannot replace the log's
   * own word; it adds the producers whose batches the log no longer holds.
   */
  #mergeSnapshot({ leaderEpoch, entries }: ProducerSnapshot, end: number): void {
    const { segments, nowMs } = this.#input;
    const next = leaderEpoch === null ? undefined : segments.find((segment) => segment.epoch > leaderEpoch);
    const bound = Math.min(end, next?.baseOffset ?? Infinity);
    for (const entry of entries) {
      const window = entry.window.filter((batch) => batch.baseOffset < bound);
      if (window.length === 0 && entry.window.length > 0) continue;
      const lastTimestampMs = entry.lastTimestampMs || nowMs;
      this.#producers.restore({ ...entry, window, lastTimestampMs, transactionFirstOffset: -1 });
    }
  }

  /** Reads headers of a segment in front of the checkpoint, for producer state. */
  async #replaySegment(i: number): Promise<void> {
    const segment = this.#input.segments[i];
    await this.#prepareAborted(segment);
    const indexes = segment.indexes ?? await this.#loadIndexes(segment);
    const from = await this.#entryBefore(segment, indexes, this.#replayFrom);
    await this.#walkHeaders(segment, from, segment.sizeBytes, null);
  }

  /** Checks a segment from `checked` on, and reads what is needed in front. */
  async #scanSegment(i: number, checked: number): Promise<void> {
    const segment = this.#input.segments[i];
    await this.#prepareAborted(segment);
    let from = { position: 0, minOffset: segment.baseOffset };
    let indexes = SegmentIndexes.afresh(segment);
    if (checked > 0) {
      const loaded = await this.#loadIndexes(segment, checked);
      const start = await this.#entryBefore(segment, loaded, Infinity);
      if (start.position > 0) indexes = loaded;
      // Producer state needs batches in front of the last index entry as well.
      const replay = this.#replayFrom < start.minOffset
        ? await this.#entryBefore(segment, loaded, this.#replayFrom)
        : start;
      const front = await this.#walkHeaders(segment, replay, checked, indexes);
      if (front.position === checked && front.stop === "complete") {
        from = { position: checked, minOffset: front.nextOffset };
      } else {
        this.#checkpointWrong = true;
        this.#notes.push(`${nameOf(segment)}.log has no batch boundary at the checkpoint's byte ${checked}`);
        indexes = SegmentIndexes.afresh(segment);
      }
    }
    if (i === this.#start.segment) this.#unsyncedPosition = from.position;
    await this.#checkBatches(i, from, indexes);
    if (i + 1 < this.#kept) await this.#putAway(segment);
  }

  /** Saves the indexes of a segment that is behind us, so that a long scan does not gather them all in memory. */
  async #putAway(segment: Segment): Promise<void> {
    segment.indexes?.seal();
    try {
      await segment.indexes?.save(this.#input.disk, { sync: true });
    } catch (error) {
      this.#notes.push(`indexes of ${nameOf(segment)} could not be saved: ${error}`);
    }
    segment.indexes = null;
  }

  /** Checks every batch of segment `i` from a boundary on, and decides on each damage. */
  async #checkBatches(
    i: number,
    from: { position: number; minOffset: number },
    indexes: SegmentIndexes,
  ): Promise<void> {
    const segment = this.#input.segments[i];
    const fileBytes = segment.sizeBytes;
    let { position, minOffset } = from;
    this.#scannedBytes += fileBytes - position;
    for (;;) {
      const range = {
        position,
        endPosition: fileBytes,
        endOffset: segment.endOffset,
        minOffset,
        verify: "checksums" as const,
      };
      const result = await scanBatches(segment.file, range, (bytes, start, at) => {
        this.#visit(segment, indexes, bytes, start, at);
      });
      if (this.#isWhole(i, result)) {
        this.#finish(segment, indexes, result);
        return;
      }
      const resumed = await this.#repair(i, result, fileBytes);
      if (resumed === null) {
        this.#finish(segment, indexes, result);
        return;
      }
      position = resumed.position;
      minOffset = resumed.minOffset;
    }
  }

  /** Whether a segment shows everything that its name and its successor's promise. */
  #isWhole(i: number, result: ScanResult): boolean {
    const { segments } = this.#input;
    if (result.stop === "past-end-offset") return true;
    // What a deposed leader wrote after its end does not count, valid or not.
    if (i + 1 < segments.length && result.nextOffset >= segments[i + 1].baseOffset) return true;
    if (result.stop !== "complete") return false;
    return i + 1 === segments.length || this.#isDurable(i, result);
  }

  /** Decides on the damage that stopped a scan. Answers where to go on in this file; null when it ends. */
  async #repair(
    i: number,
    result: ScanResult,
    fileBytes: number,
  ): Promise<{ position: number; minOffset: number } | null> {
    const segment = this.#input.segments[i];
    const behind = await findBatchBehind(segment.file, {
      position: result.position,
      endPosition: fileBytes,
      endOffset: segment.endOffset,
      minOffset: result.nextOffset,
    });
    const kind = result.position === fileBytes ? "nothing" : behind.kind;
    const durable = this.#isDurable(i, result);
    const laterData = this.#laterData(i);
    const repair = repairOf({ durable, behind: kind, laterData });
    const endPosition = repair === "leave" && behind.kind === "batch" ? behind.position : fileBytes;
    this.#damages.push({
      durable,
      behind: kind,
      laterData,
      repair,
      segment: nameOf(segment),
      position: result.position,
      offset: result.nextOffset,
      bytes: endPosition - result.position,
    });
    if (repair !== "leave") {
      this.#kept = i + 1;
      this.#cutPosition = result.position;
      return null;
    }
    const endOffset = behind.kind === "batch" ? behind.baseOffset : segment.endOffset;
    segment.corruptRanges.push({ position: result.position, endPosition, firstOffset: result.nextOffset, endOffset });
    return behind.kind === "batch" ? { position: behind.position, minOffset: behind.baseOffset } : null;
  }

  /** Whether the place where a scan stopped was known to be synced. */
  #isDurable(i: number, result: ScanResult): boolean {
    const { segments, checkpoint, manifest } = this.#input;
    if (segments[segments.length - 1].epoch > segments[i].epoch) return true;
    if (manifest !== null && result.nextOffset < manifest.highWatermark) return true;
    if (checkpoint === null) return false;
    if (checkpoint.segmentBase > segments[i].baseOffset) return true;
    return checkpoint.segmentBase === segments[i].baseOffset && result.position < checkpoint.position &&
      (checkpoint.leaderEpoch === null || checkpoint.leaderEpoch === segments[i].epoch);
  }

  #laterData(i: number): boolean {
    return this.#input.segments.some((segment, at) => at > i && segment.sizeBytes > 0);
  }

  /** Notes how far a segment reaches; of a sealed one, its name's end stays. */
  #finish(segment: Segment, indexes: SegmentIndexes, result: ScanResult): void {
    const isLast = segment === this.#input.segments[this.#kept - 1];
    if (isLast) segment.endOffset = result.nextOffset;
    const left = segment.corruptRanges[segment.corruptRanges.length - 1];
    if (left === undefined || left.position !== result.position) segment.sizeBytes = result.position;
    indexes.truncate(segment.endOffset, segment.sizeBytes);
    segment.indexes = indexes;
    segment.maxTimestamp = indexes.maxTimestamp;
  }

  /**
   * Reads headers between two positions. With `indexes`, they get what they lack and the walk ends at the first damage;
   * without, only producer state is wanted and damage is stepped over.
   */
  async #walkHeaders(
    segment: Segment,
    from: { position: number; minOffset: number },
    endPosition: number,
    indexes: SegmentIndexes | null,
  ): Promise<ScanResult> {
    let { position, minOffset } = from;
    for (;;) {
      const range = { position, endPosition, endOffset: segment.endOffset, minOffset, verify: "headers" as const };
      const result = await scanBatches(segment.file, range, (bytes, start, at) => {
        this.#visit(segment, indexes, bytes, start, at);
      });
      if (result.stop === "complete" || result.stop === "past-end-offset" || indexes !== null) return result;
      const behind = await findBatchBehind(segment.file, { ...range, position: result.position });
      if (behind.kind !== "batch") return result;
      position = behind.position;
      minOffset = behind.baseOffset;
    }
  }

  /** Takes one batch in: indexes, time stamps, producer state. */
  #visit(segment: Segment, indexes: SegmentIndexes | null, bytes: Uint8Array, start: number, position: number): void {
    const timestamp = maxTimestamp(bytes, start);
    if (position === 0) segment.firstTimestamp = timestamp;
    indexes?.add(position, lastOffset(bytes, start), timestamp, this.#input.indexIntervalBytes);
    if (baseOffset(bytes, start) >= this.#replayFrom) {
      replayBatch(this.#producers, segment, bytes, start, this.#input.nowMs);
      this.#replayFrom = nextOffset(bytes, start);
    }
  }

  async #loadIndexes(segment: Segment, endPosition = segment.sizeBytes): Promise<SegmentIndexes> {
    return await SegmentIndexes.load(this.#input.disk, segment, { offset: segment.endOffset, position: endPosition });
  }

  /**
   * The last place at or before `offset` that an index entry names, once the batch there bears the entry out; the
   * segment's beginning otherwise.
   */
  async #entryBefore(
    segment: Segment,
    indexes: SegmentIndexes,
    offset: number,
  ): Promise<{ position: number; minOffset: number }> {
    const beginning = { position: 0, minOffset: segment.baseOffset };
    const { offsets } = indexes;
    const entry = offset === Infinity ? offsets.count - 1 : offsets.floorByOffset(offset - segment.baseOffset);
    if (entry < 0) return beginning;
    const header = new Uint8Array(HEADER_BYTES);
    const position = offsets.positionAt(entry);
    if (await segment.file.read(position, header) < HEADER_BYTES) return beginning;
    if (lastOffset(header) - segment.baseOffset !== offsets.relativeOffsetAt(entry)) return beginning;
    return { position, minOffset: baseOffset(header) };
  }

  /** The aborted transactions of a segment that is about to be replayed, without those that will be found again. */
  async #prepareAborted(segment: Segment): Promise<void> {
    if (segment.aborted !== null) return segment.aborted.truncate(this.#replayFrom);
    segment.aborted = AbortedTransactions.decode(await this.#input.disk.readFile(segment.abortedPath));
    segment.aborted.truncate(this.#replayFrom);
  }

  /** Builds producer state from the log alone. */
  async #rebuildProducers(): Promise<void> {
    const { segments } = this.#input;
    this.#producers = new ProducerState();
    this.#replayFrom = segments[0].baseOffset;
    this.#snapshotUsed = false;
    for (const segment of segments.slice(0, this.#kept)) {
      await this.#prepareAborted(segment);
      await this.#walkHeaders(segment, { position: 0, minOffset: segment.baseOffset }, segment.sizeBytes, null);
    }
  }
}

/** Takes a batch that is in the log into producer state and, if it is an abort marker, into its segment's index. */
export function replayBatch(
  producers: ProducerState,
  segment: Segment,
  bytes: Uint8Array,
  start: number,
  nowMs: number,
): void {
  const id = producerId(bytes, start);
  if (id < 0) return;
  if (isControl(bytes, start)) {
    const marker = readEndTransactionMarker(bytes, start);
    if (marker === null) return;
    const commits = marker.result === "commit";
    const aborted = producers.recordMarker({ ...marker, commits }, baseOffset(bytes, start), nowMs);
    if (aborted !== null) segment.aborted?.add(aborted);
    return;
  }
  const batch = {
    producerId: id,
    producerEpoch: producerEpoch(bytes, start),
    baseSequence: baseSequence(bytes, start),
    lastOffsetDelta: lastOffsetDelta(bytes, start),
    isTransactional: isTransactional(bytes, start),
  };
  producers.record(batch, baseOffset(bytes, start), nowMs);
}

function nameOf(segment: Segment): string {
  return segment.logPath.slice(segment.logPath.lastIndexOf("/") + 1, -".log".length);
}

function copyOf<T extends { window: readonly unknown[] }>(entry: T): T {
  return { ...entry, window: [...entry.window] };
}
