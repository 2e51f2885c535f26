/**
 * What one partition was told and what it said, and the rules that everything it shows later is held against:
 *
 * - each acknowledged batch at or above the log's start is there once, at its offset, byte for byte;
 * - offsets are contiguous, and every batch is one that was appended, at the offset that its append gave it;
 * - what was ever below the high watermark never changes, so nothing takes the place of something acknowledged;
 * - nothing that a deposed leader appended after its successor had taken over is ever seen;
 * - high watermark and log start never fall; log start ≤ last stable offset ≤ high watermark ≤ log end.
 *
 * A broken rule throws {@link Violation}.
 */

import { baseOffset, nextOffset, sizeInBytes } from "../../lib/records/batch.ts";

/** A rule was broken. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** A sequence of an idempotent producer. */
export interface Produced {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly isTransactional: boolean;
  readonly records: number;
}

/** One batch that a log took. */
export interface Sent {
  /** As it lies in the log, offset and leader epoch included. */
  readonly bytes: Uint8Array;
  readonly baseOffset: number;
  readonly nextOffset: number;
  readonly produced: Produced | null;
  /** Appended through a log that had been superseded by then. */
  readonly fenced: boolean;
  acknowledged: boolean;
}

/** How a batch came to be appended. */
export interface Appending {
  readonly fenced: boolean;
  readonly produced: Produced | null;
  /** The log refused it, but may hold it all the same. */
  readonly refused?: boolean;
}

export interface Offsets {
  readonly logStartOffset: number;
  readonly lastStableOffset: number;
  readonly highWatermark: number;
  readonly logEndOffset: number;
}

export class History {
  /** Everything that was ever appended, by base offset. */
  readonly #sent = new Map<number, Sent[]>();
  /** What has been below the high watermark, from the partition's first batch on. */
  #committed: Sent[] = [];
  /** What the present leader took since, in order. */
  #uncommitted: Sent[] = [];
  #highWatermark = 0;
  #logStartOffset = 0;
  acknowledgedBatches = 0;

  /** The highest that was seen. */
  get highWatermark(): number {
    return this.#highWatermark;
  }

  get logStartOffset(): number {
    return this.#logStartOffset;
  }

  /** All batches that have been below the high watermark, in order; those that were deleted since, too. */
  get committed(): readonly Sent[] {
    return this.#committed;
  }

  /** A log took a batch; its bytes are copied. One that is equal to a refused one in all bytes is the same batch. */
  appended(batch: Uint8Array, { fenced, produced, refused = false }: Appending): Sent {
    const known = this.#sent.get(baseOffset(batch))?.find((sent) => isEqual(sent.bytes, batch));
    const sent: Sent = known ?? {
      bytes: batch.slice(),
      baseOffset: baseOffset(batch),
      nextOffset: nextOffset(batch),
      acknowledged: false,
      fenced,
      produced,
    };
    if (!refused && !fenced) this.#uncommitted.push(sent);
    const there = this.#sent.get(sent.baseOffset);
    if (there === undefined) this.#sent.set(sent.baseOffset, [sent]);
    else if (known === undefined) there.push(sent);
    return sent;
  }

  /** The appends of one sequence that no deposed leader made, oldest first. */
  appendsOf(produced: Produced): Sent[] {
    return [...this.#sent.values()].flat().filter((sent) => sent.produced === produced && !sent.fenced);
  }

  acknowledged(sent: Sent): void {
    if (!sent.acknowledged) this.acknowledgedBatches++;
    sent.acknowledged = true;
  }

  /** Holds offsets that the leader tells against those it, or a leader before it, told. */
  observe(offsets: Offsets): void {
    const { logStartOffset, lastStableOffset, highWatermark, logEndOffset } = offsets;
    const ordered = logStartOffset <= lastStableOffset && lastStableOffset <= highWatermark &&
      highWatermark <= logEndOffset;
    demand(ordered, `offsets out of order: ${JSON.stringify(offsets)}`);
    demand(highWatermark >= this.#highWatermark, `high watermark fell from ${this.#highWatermark} to ${highWatermark}`);
    demand(logStartOffset >= this.#logStartOffset, `log start fell from ${this.#logStartOffset} to ${logStartOffset}`);
    this.#highWatermark = highWatermark;
    this.#logStartOffset = logStartOffset;
    this.commit(highWatermark);
  }

  /** The leader's high watermark has reached an offset. */
  commit(highWatermark: number): void {
    while (this.#uncommitted.length > 0 && this.#uncommitted[0].nextOffset <= highWatermark) {
      this.#committed.push(this.#uncommitted.shift()!);
    }
  }

  /** Holds batches that a leader gave out below its high watermark against what was appended. */
  given(batches: readonly Uint8Array[]): void {
    for (const bytes of batches) this.#identifyOne(bytes);
  }

  /** Durability was relaxed, and another leader begins: what is left may be less than was told. */
  forgetDurability(): void {
    this.#highWatermark = 0;
    this.#committed = [];
    for (const sent of [...this.#sent.values()].flat()) sent.acknowledged = false;
  }

  /** Holds the whole log, as it was read from its start to its end, against all rules. */
  check(log: readonly Uint8Array[], offsets: Offsets): void {
    this.#uncommitted = [];
    this.observe(offsets);
    const found = this.#identify(log, offsets);
    const at = new Map(found.map((sent) => [sent.baseOffset, sent]));
    for (const sent of this.#committed) {
      if (sent.nextOffset <= offsets.logStartOffset) continue;
      demand(at.get(sent.baseOffset) === sent, `${describe(sent)} was below the high watermark, now it is not there`);
    }
    for (const sent of [...this.#sent.values()].flat()) {
      if (!sent.acknowledged || sent.nextOffset <= offsets.logStartOffset) continue;
      demand(at.get(sent.baseOffset) === sent, `${describe(sent)} was acknowledged, now it is not there`);
    }
    const firstFound = found[0]?.baseOffset ?? offsets.logEndOffset;
    this.#committed = [...this.#committed.filter((sent) => sent.nextOffset <= firstFound), ...found];
  }

  /** Which append each batch of a log is from. */
  #identify(log: readonly Uint8Array[], { logStartOffset, logEndOffset }: Offsets): Sent[] {
    let expected = -1;
    const found: Sent[] = [];
    for (const bytes of log) {
      const base = baseOffset(bytes);
      if (expected === -1) demand(base <= logStartOffset, `the log starts at ${base}, not at ${logStartOffset}`);
      else demand(base === expected, `a batch at offset ${base} follows where ${expected} was due`);
      const sent = this.#identifyOne(bytes);
      expected = sent.nextOffset;
      found.push(sent);
    }
    const end = expected === -1 ? logStartOffset : expected;
    demand(end === logEndOffset, `the batches end at ${end}, the log at ${logEndOffset}`);
    return found;
  }

  #identifyOne(bytes: Uint8Array): Sent {
    const base = baseOffset(bytes);
    const sent = this.#sent.get(base)?.find((known) => isEqual(known.bytes, bytes));
    demand(sent !== undefined, `nobody appended the batch of ${sizeInBytes(bytes)} bytes at offset ${base}`);
    demand(!sent.fenced, `${describe(sent)} is from a deposed leader`);
    return sent;
  }
}

export function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Violation(message);
}

function describe(sent: Sent): string {
  return `the batch of offsets ${sent.baseOffset} to ${sent.nextOffset - 1}`;
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, i) => byte === b[i]);
}
