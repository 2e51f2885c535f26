/**
 * Reading a led log. One set of steps serves both ways of reading: recent records are read on the spot from the page
 * cache, cold ones off the event loop through a handle of their own.
 *
 * Invariants: a reply holds whole batches of one segment, none of them at or past the limit asked for; bytes of a deposed
 * leader are never returned; a failing volume, or bytes that are no batch, refuse this read and nothing else.
 */

import { DiskError } from "../disk/disk.ts";
import { ErrorCode, unreachable } from "../errors.ts";
import { HEADER_BYTES, lastOffset } from "../records/batch.ts";
import type { AbortedRange } from "./aborted_transactions.ts";
import { findBatchBehind, isPlausibleHeader } from "./batch_scan.ts";
import { findWindow } from "./batch_window.ts";
import type { Loan } from "./buffer_pool.ts";
import type { LogState } from "./log_state.ts";
import { RecentTail } from "./recent_bytes.ts";
import type { Segment } from "./segment.ts";
import { SegmentFile } from "./segment_file.ts";
import type { SegmentIndexing } from "./segment_indexing.ts";

/** Up to where records are wanted. */
export type ReadLimit = "highWatermark" | "lastStableOffset" | "logEnd";

export interface ReadRequest {
  readonly offset: number;
  /** Bytes of batches wanted at most. */
  readonly maxBytes: number;
  /** Whether the first batch comes whole even if it is larger than `maxBytes`. */
  readonly minOneBatch: boolean;
  readonly limit: ReadLimit;
}

/** What a read gives. `bytes` must not be used after `release`. */
export type ReadOutcome =
  | {
    readonly kind: "batches";
    /** Whole batches; the first one may begin before the offset asked for. Empty when there is nothing to read yet. */
    readonly bytes: Uint8Array;
    readonly logStartOffset: number;
    readonly highWatermark: number;
    readonly lastStableOffset: number;
    /** With limit `lastStableOffset`: the aborted transactions that overlap `bytes`. */
    readonly abortedTransactions: readonly AbortedRange[];
    release(): void;
  }
  | { readonly kind: "refused"; readonly errorCode: ErrorCode };

/** A step that the reading steps ask their driver to take. */
type Step =
  | { readonly kind: "read"; readonly segment: Segment; readonly position: number; readonly into: Uint8Array }
  /** Something that only works off the event loop. */
  | { readonly kind: "later"; run(): Promise<void> };

/** A place where a batch begins that some reader will want next. */
interface Cursor {
  readonly offset: number;
  readonly segment: Segment;
  readonly position: number;
}

const CURSORS = 16;
/** The least that is read at a time: a few small batches come with one read. */
const MIN_READ_BYTES = 4096;
const NO_RANGES: readonly AbortedRange[] = [];
const NO_BYTES = new Uint8Array(0);

export class LogReader {
  readonly #state: LogState;
  readonly #indexing: SegmentIndexing;
  readonly #recent: RecentTail;
  readonly #cursors: (Cursor | undefined)[] = new Array(CURSORS);
  #nextCursor = 0;

  constructor(state: LogState, indexing: SegmentIndexing) {
    this.#state = state;
    this.#indexing = indexing;
    this.#recent = new RecentTail(state.resources.recent);
  }

  /** A batch was appended: readers will find it in the page cache. */
  appended(offset: number, bytes: number, nowMs: number): void {
    this.#recent.appended(offset, bytes, nowMs);
  }

  /** See {@link PartitionLog.read}. */
  read(request: ReadRequest): ReadOutcome | Promise<ReadOutcome> {
    const state = this.#state;
    if (state.phase === "closed") return refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER);
    const { offset } = request;
    if (!(offset >= state.logStartOffset && offset <= state.logEndOffset)) return refuse(ErrorCode.OFFSET_OUT_OF_RANGE);
    if (offset >= this.#limitOf(request) || (request.maxBytes <= 0 && !request.minOneBatch)) return this.#nothing();
    if (offset >= this.#recent.startOffset(state.clock.monotonicMs())) {
      const outcome = this.#readNow(request);
      if (outcome !== null) return outcome;
    }
    return this.#readLater(request);
  }

  /** Null when it cannot be done without waiting. */
  #readNow(request: ReadRequest): ReadOutcome | null {
    const steps = this.#steps(request);
    try {
      let turn = steps.next(0);
      while (!turn.done) {
        const step = turn.value;
        if (step.kind === "later" || step.segment.isReplaced || !step.segment.file.mayReadSync) {
          steps.return(undefined as never);
          return null;
        }
        turn = steps.next(step.segment.file.readSync(step.position, step.into));
      }
      return turn.value;
    } catch (error) {
      steps.return(undefined as never);
      return this.#failed(request, error);
    }
  }

  async #readLater(request: ReadRequest): Promise<ReadOutcome> {
    try {
      return await this.#state.throughChanges(() => this.#readOnce(request));
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  async #readOnce(request: ReadRequest): Promise<ReadOutcome> {
    const steps = this.#steps(request);
    try {
      let turn = steps.next(0);
      while (!turn.done) {
        const step = turn.value;
        if (step.kind === "later") {
          await step.run();
          turn = steps.next(0);
        } else {
          turn = steps.next(await this.fileFor(step.segment).read(step.position, step.into));
        }
      }
      return turn.value;
    } finally {
      steps.return(undefined as never);
    }
  }

  /** The file that asynchronous reads of a segment go through. */
  fileFor(segment: Segment): SegmentFile {
    const { disk, resources, active } = this.#state;
    if (segment !== active) return segment.file;
    return segment.coldFile ??= SegmentFile.existing(disk, resources.handles, segment.logPath, "read");
  }

  /** The whole of a read. Yields what is to be read or waited for, and is given the number of bytes read. */
  *#steps(request: ReadRequest): Generator<Step, ReadOutcome, number> {
    const state = this.#state;
    const limitOffset = this.#limitOf(request);
    let { offset } = request;
    for (;;) {
      if (offset < state.logStartOffset) return refuse(ErrorCode.OFFSET_OUT_OF_RANGE);
      const segment = state.segments[state.segmentIndexAt(offset)];
      const found = yield* this.#stepsIn(segment, { ...request, offset }, limitOffset);
      if (found !== "end") return found;
      // The segment ends before its successor begins: what lay between is gone, reading goes on behind.
      const next = state.segments.find(({ baseOffset }) => baseOffset >= segment.endOffset);
      if (next === undefined || next.baseOffset >= limitOffset) return this.#nothing();
      offset = next.baseOffset;
    }
  }

  /** Reads from one segment; `end` when it holds nothing at or behind the offset. */
  *#stepsIn(segment: Segment, request: ReadRequest, limitOffset: number): Generator<Step, ReadOutcome | "end", number> {
    const { buffers } = this.#state.resources;
    const { offset, minOneBatch } = request;
    if (isKnownCorrupt(segment, offset)) return refuse(ErrorCode.CORRUPT_MESSAGE);
    if (segment.indexes === null) yield { kind: "later", run: () => this.#indexing.indexes(segment) };
    // Past its end, a sealed segment may hold what a deposed leader went on to write.
    const limit = Math.min(limitOffset, segment.endOffset);
    const maxBytes = buffers.grant(Math.max(0, request.maxBytes));
    let place = this.#placeOf(segment, offset);
    let wanted = Math.max(maxBytes, MIN_READ_BYTES) + place.slackBytes;
    for (;;) {
      const { position } = place;
      const size = Math.min(wanted, segment.sizeBytes - position);
      if (size <= 0) return "end";
      const loan = buffers.lend(size);
      let kept = false;
      try {
        const length = yield { kind: "read", segment, position, into: loan.bytes.subarray(0, size) };
        if (!bearsOut(place, loan.bytes, length)) {
          yield { kind: "later", run: () => this.#indexing.rebuild(segment) };
          place = { ...this.#placeOf(segment, offset), lastOffset: NOT_SAID };
          continue;
        }
        const jump = this.#lastEntryIn(segment, position, length, limit);
        const window = findWindow(loan.bytes, length, { offset, limitOffset: limit, maxBytes, ...jump });
        switch (window.kind) {
          case "batches": {
            if (!minOneBatch && window.end - window.start > request.maxBytes) return this.#nothing();
            this.#remember({ offset: window.nextOffset, segment, position: position + window.end });
            const aborted = yield* this.#abortedIn(segment, request, window.nextOffset);
            kept = true;
            return this.#batches(loan, window.start, window.end, aborted);
          }
          case "limit":
            return limit < limitOffset ? "end" : this.#nothing();
          case "end":
            if (length < size) return "end";
            place = at(position + length);
            break;
          case "partial":
          case "corrupt": {
            if (window.kind === "partial") {
              if (!minOneBatch && window.bytes > request.maxBytes) return this.#nothing();
              if (length === size && position + window.start + window.bytes <= segment.sizeBytes) {
                place = at(position + window.start);
                wanted = Math.max(window.bytes, maxBytes, MIN_READ_BYTES);
                break;
              }
              // The file, or the segment, ends inside this batch: that is damage too.
            }
            const behind = yield* this.#behindCorruption(segment, position + window.start, offset);
            if (behind === null) return refuse(ErrorCode.CORRUPT_MESSAGE);
            place = behind;
            break;
          }
          default:
            return unreachable(window);
        }
      } finally {
        if (!kept) loan.release();
      }
    }
  }

  /** Where to begin reading for an offset. */
  #placeOf(segment: Segment, offset: number): Place {
    for (const cursor of this.#cursors) {
      if (cursor !== undefined && cursor.offset === offset && cursor.segment === segment) return at(cursor.position);
    }
    const slackBytes = this.#state.config.indexIntervalBytes;
    const offsets = segment.indexes?.offsets;
    const entry = offsets?.floorByOffset(offset - segment.baseOffset) ?? -1;
    if (offsets === undefined || entry < 0) return { position: 0, slackBytes, lastOffset: NOT_SAID };
    const lastOffset = segment.baseOffset + offsets.relativeOffsetAt(entry);
    return { position: offsets.positionAt(entry), slackBytes, lastOffset };
  }

  /** Place, relative to what was read, of the last indexed batch that surely is to be returned; 0 for none. */
  #lastEntryIn(segment: Segment, position: number, length: number, limitOffset: number) {
    const offsets = segment.indexes?.offsets;
    if (offsets === undefined) return NO_JUMP;
    const byPosition = offsets.floorByPosition(position + length);
    const byLimit = offsets.floorByOffset(Math.min(limitOffset - 1 - segment.baseOffset, 0xffff_ffff));
    const entry = Math.min(byPosition, byLimit);
    if (entry < 0 || offsets.positionAt(entry) <= position) return NO_JUMP;
    const jumpLastOffset = segment.baseOffset + offsets.relativeOffsetAt(entry);
    return { jumpTo: offsets.positionAt(entry) - position, jumpLastOffset };
  }

  /**
   * Corrupt bytes stand between what was read and the offset. Looks for the next batch behind them: reading goes on there
   * if it is not past the offset; null when it is, for then the offset itself is among what is lost.
   */
  *#behindCorruption(segment: Segment, position: number, offset: number): Generator<Step, Place | null, number> {
    const { sizeBytes, endOffset, baseOffset } = segment;
    const range = { position, endPosition: sizeBytes, endOffset, minOffset: baseOffset };
    let place: Place | null = null;
    const run = async () => {
      const behind = await findBatchBehind(this.fileFor(segment), range);
      this.#state.logger.warn("corrupt records", { file: segment.logPath, position, offset });
      if (behind.kind === "batch" && behind.baseOffset <= offset) place = at(behind.position);
    };
    yield { kind: "later", run };
    return place;
  }

  /** The aborted transactions that a reply up to `endOffset` has to name. */
  *#abortedIn(
    segment: Segment,
    request: ReadRequest,
    endOffset: number,
  ): Generator<Step, readonly AbortedRange[], number> {
    if (request.limit !== "lastStableOffset") return NO_RANGES;
    const { segments } = this.#state;
    const found: AbortedRange[] = [];
    for (let i = this.#state.segmentIndexAt(segment.baseOffset); i < segments.length; i++) {
      const { aborted } = segments[i];
      if (aborted === null) yield { kind: "later", run: () => this.#indexing.aborted(segments[i]) };
      if (segments[i].aborted?.collect(request.offset, endOffset, found)) break;
    }
    return found;
  }

  #limitOf({ limit }: ReadRequest): number {
    const state = this.#state;
    if (limit === "highWatermark") return state.highWatermark;
    return limit === "logEnd" ? state.logEndOffset : state.lastStableOffset;
  }

  #remember(cursor: Cursor): void {
    this.#cursors[this.#nextCursor] = cursor;
    this.#nextCursor = (this.#nextCursor + 1) % CURSORS;
  }

  #batches(loan: Loan, start: number, end: number, abortedTransactions: readonly AbortedRange[]): ReadOutcome {
    const { logStartOffset, highWatermark, lastStableOffset } = this.#state;
    const bytes = loan.bytes.subarray(start, end);
    const { release } = loan;
    return { kind: "batches", bytes, logStartOffset, highWatermark, lastStableOffset, abortedTransactions, release };
  }

  #nothing(): ReadOutcome {
    const { logStartOffset, highWatermark, lastStableOffset } = this.#state;
    return {
      kind: "batches",
      bytes: NO_BYTES,
      logStartOffset,
      highWatermark,
      lastStableOffset,
      abortedTransactions: NO_RANGES,
      release: () => {},
    };
  }

  #failed(request: ReadRequest, error: unknown): ReadOutcome {
    if (!(error instanceof DiskError)) throw error;
    const state = this.#state;
    if (state.phase === "closed") return refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER);
    // The segment was removed while it was being read.
    if (request.offset < state.logStartOffset) return refuse(ErrorCode.OFFSET_OUT_OF_RANGE);
    // Its leader before was still removing what it had merged: the next takeover sees where the records are now.
    if (error.kind === "not-found") state.stall("io", "a segment is gone", error);
    state.logger.warn("read failed", { folder: state.folder, offset: request.offset, error: String(error) });
    return refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  }
}

/** A place in a segment's file where a batch begins. */
interface Place {
  readonly position: number;
  /** How far behind the place the wanted batch may begin. */
  readonly slackBytes: number;
  /** Last offset of the batch there, as an index says; {@link NOT_SAID} where none does. */
  readonly lastOffset: number;
}

const NOT_SAID = -1;
const NO_JUMP = { jumpTo: 0, jumpLastOffset: NOT_SAID };

function at(position: number): Place {
  return { position, slackBytes: 0, lastOffset: NOT_SAID };
}

/** Whether the bytes show the batch that an index named, so that the index can be trusted. */
function bearsOut(place: Place, bytes: Uint8Array, length: number): boolean {
  if (place.lastOffset === NOT_SAID) return true;
  return length >= HEADER_BYTES && isPlausibleHeader(bytes, 0) && lastOffset(bytes) === place.lastOffset;
}

function isKnownCorrupt(segment: Segment, offset: number): boolean {
  return segment.corruptRanges.some((range) => offset >= range.firstOffset && offset < range.endOffset);
}

function refuse(errorCode: ErrorCode): ReadOutcome {
  return { kind: "refused", errorCode };
}
