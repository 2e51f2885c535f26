/**
 * The reading part of a takeover: from the files of a partition to the log they hold, the producer state at its end, and
 * the list of repairs. Changes nothing on the volume but index files, which are hints; `takeover.ts` does, in its order.
 *
 * Checksums are checked from the checkpoint on. In front of it only headers are read, and only where they are needed:
 * for producer state behind the snapshot, and for indexes that are missing.
 */

import type { Disk } from "../disk/disk.ts";
import { baseOffset, HEADER_BYTES, lastOffset, maxTimestamp } from "../records/batch.ts";
import { findBatchBehind, scanBatches, type ScanResult } from "./batch_scan.ts";
import type { Manifest } from "./manifest.ts";
import { ProducerReplay } from "./producer_replay.ts";
import type { ProducerSnapshot } from "./producer_snapshot.ts";
import type { ProducerState } from "./producer_state.ts";
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
  readonly #replay: ProducerReplay;
  #kept: number;
  #cutPosition: number | null = null;
  #scannedBytes = 0;
  #unsyncedPosition = 0;
  #checkpointWrong = false;

  constructor(input: ScanInput) {
    this.#input = input;
    this.#kept = input.segments.length;
    this.#start = this.#startOf(input.checkpoint);
    this.#replay = new ProducerReplay(input);
  }

  async run(): Promise<void> {
    const { segments } = this.#input;
    for (let i = 0; i < segments.length && this.#kept === segments.length; i++) {
      const checked = i > this.#start.segment ? 0 : i === this.#start.segment ? this.#start.position : Infinity;
      if (checked !== Infinity) await this.#scanSegment(i, checked);
      else if (segments[i].endOffset > this.#replay.from) await this.#replaySegment(i);
    }
  }

  async outcome(): Promise<ScanOutcome> {
    const { segments, snapshot } = this.#input;
    const end = this.#kept === 0 ? 0 : segments[this.#kept - 1].endOffset;
    const hasData = segments.some((segment) => segment.sizeBytes > 0);
    if (hasData && this.#replay.fromSnapshot && snapshot!.offset! > end) {
      this.#notes.push(`producer snapshot at offset ${snapshot!.offset} is past the log's end ${end}: rebuilt`);
      await this.#replayAll();
    }
    this.#replay.addForgotten(end);
    return {
      keptSegments: this.#kept,
      cutPosition: this.#cutPosition,
      damages: this.#damages,
      producers: this.#replay.producers,
      firstUnsynced: this.#start.segment,
      unsyncedPosition: this.#unsyncedPosition,
      scannedBytes: this.#scannedBytes,
      atCheckpoint: this.#scannedBytes === 0 && this.#replay.fromSnapshot && snapshot?.offset === end &&
        !this.#checkpointWrong,
      notes: [...this.#replay.notes, ...this.#notes],
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

  /** Reads headers of a segment in front of the checkpoint, for producer state. */
  async #replaySegment(i: number): Promise<void> {
    const segment = this.#input.segments[i];
    await this.#replay.prepare(this.#input.disk, segment);
    const indexes = segment.indexes ?? await this.#loadIndexes(segment);
    const from = await this.#entryBefore(segment, indexes, this.#replay.from);
    await this.#walkHeaders(segment, from, segment.sizeBytes, null);
  }

  /** Checks a segment from `checked` on, and reads what is needed in front. */
  async #scanSegment(i: number, checked: number): Promise<void> {
    const segment = this.#input.segments[i];
    await this.#replay.prepare(this.#input.disk, segment);
    let from = { position: 0, minOffset: segment.baseOffset };
    let indexes = SegmentIndexes.afresh(segment);
    if (checked > 0) {
      const loaded = await this.#loadIndexes(segment, checked);
      const start = await this.#entryBefore(segment, loaded, Infinity);
      if (start.position > 0) indexes = loaded;
      // Producer state needs batches in front of the last index entry as well.
      const first = this.#replay.from < start.minOffset
        ? await this.#entryBefore(segment, loaded, this.#replay.from)
        : start;
      const front = await this.#walkHeaders(segment, first, checked, indexes);
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
    this.#replay.take(segment, bytes, start);
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

  /** Builds producer state from the log alone. */
  async #replayAll(): Promise<void> {
    const { disk, segments } = this.#input;
    this.#replay.restart();
    for (const segment of segments.slice(0, this.#kept)) {
      await this.#replay.prepare(disk, segment);
      await this.#walkHeaders(segment, { position: 0, minOffset: segment.baseOffset }, segment.sizeBytes, null);
    }
  }
}

function nameOf(segment: Segment): string {
  return segment.logPath.slice(segment.logPath.lastIndexOf("/") + 1, -".log".length);
}
