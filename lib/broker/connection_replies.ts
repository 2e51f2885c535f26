/**
 * The replies of one connection, from the handler's answer to the bytes that are written.
 *
 *     waiting   handled or being handled, in the order of the requests; the first one is pending
 *     gathered  encoded into the next batch
 *     leaving   the batch that is being written
 *
 * Invariants:
 * - Replies enter a batch in the order of their requests, and none after one that is fatal.
 * - What a reply holds is released exactly once: when its batch has left, or when the connection is gone.
 */

import { assert } from "../errors.ts";
import { Writer } from "../protocol/writer.ts";
import type { Dispatcher, Exchange } from "./dispatch.ts";

/** Chunks that together fit this many bytes are copied together: that costs less than one more write. */
const JOINED_BYTES = 64 * 1024;
/** A writer whose buffer has grown beyond this is not used again. */
const KEPT_WRITER_BYTES = 256 * 1024;
const KEPT_BATCHES = 32;

/** Replies that are written together. */
export class ReplyBatch {
  readonly writer = new Writer();
  readonly releases: (() => void)[] = [];
  /** How many replies it holds. */
  count = 0;
  #joined: Uint8Array | null = null;

  /** The bytes in as few pieces as pays; valid until the batch is used again. */
  *pieces(): Generator<Uint8Array, void, undefined> {
    const chunks = this.writer.finish();
    for (let first = 0; first < chunks.length;) {
      let bytes = chunks[first].length;
      let next = first + 1;
      while (next < chunks.length && bytes + chunks[next].length <= JOINED_BYTES) bytes += chunks[next++].length;
      yield next === first + 1 ? chunks[first] : this.#join(chunks, first, next, bytes);
      first = next;
    }
  }

  #join(chunks: readonly Uint8Array[], first: number, end: number, bytes: number): Uint8Array {
    const joined = this.#joined ??= new Uint8Array(JOINED_BYTES);
    let position = 0;
    for (let index = first; index < end; index++) {
      joined.set(chunks[index], position);
      position += chunks[index].length;
    }
    return joined.subarray(0, bytes);
  }
}

/** Batches that wait for use, shared by all connections of a process: a connection with nothing to say holds none. */
export class ReplyBatches {
  readonly #free: ReplyBatch[] = [];

  take(): ReplyBatch {
    return this.#free.pop() ?? new ReplyBatch();
  }

  /** Takes back a batch whose pieces nobody looks at any more. */
  give(batch: ReplyBatch): void {
    assert(batch.releases.length === 0, "a batch with unreleased replies is given back");
    if (this.#free.length >= KEPT_BATCHES || batch.writer.bytes.length > KEPT_WRITER_BYTES) return;
    batch.writer.reset();
    batch.count = 0;
    this.#free.push(batch);
  }
}

/** See the file's head. */
export class ReplyQueue {
  readonly #dispatcher: Dispatcher;
  readonly #batches: ReplyBatches;
  #waiting: Exchange[] = [];
  #head = 0;
  #gathered: ReplyBatch | null = null;
  #leaving: ReplyBatch | null = null;
  #ended = false;

  constructor(dispatcher: Dispatcher, batches: ReplyBatches) {
    this.#dispatcher = dispatcher;
    this.#batches = batches;
  }

  /** Requests whose replies have not left. */
  get unanswered(): number {
    return this.#waiting.length - this.#head + (this.#gathered?.count ?? 0) + (this.#leaving?.count ?? 0);
  }

  /** Bytes that are encoded and have not left. */
  get unwrittenBytes(): number {
    return (this.#gathered?.writer.byteLength ?? 0) + (this.#leaving?.writer.byteLength ?? 0);
  }

  /** Whether a handler still owes an answer. */
  get isPending(): boolean {
    return this.#waiting.length > this.#head;
  }

  /** Whether there is something to write that is not being written. */
  get hasGathered(): boolean {
    return this.#gathered !== null;
  }

  /** Whether everything has left. */
  get isEmpty(): boolean {
    return !this.isPending && this.#gathered === null && this.#leaving === null;
  }

  /** Whether a fatal reply has come to the front: nothing may follow what is gathered. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Puts an exchange behind all others. */
  add(exchange: Exchange): void {
    if (this.#ended) dispose(exchange);
    else if (exchange.state === "pending" || this.isPending) this.#waiting.push(exchange);
    else this.#gather(exchange);
  }

  /** Encodes what is ready at the front. */
  drain(): void {
    while (this.isPending && this.#waiting[this.#head].state !== "pending") this.#gather(this.#waiting[this.#head++]);
    if (this.#head === this.#waiting.length || this.#head > 1000) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  /** The batch to be written now; null when there is none. The one before must have been {@link left}. */
  take(): ReplyBatch | null {
    assert(this.#leaving === null, "a batch is being written already");
    this.#leaving = this.#gathered;
    this.#gathered = null;
    return this.#leaving;
  }

  /** Ends the batch that {@link take} gave: it was written, or the connection is gone. */
  left(): void {
    const batch = this.#leaving;
    this.#leaving = null;
    if (batch !== null) this.#dismiss(batch);
  }

  /** Drops all that is not being written; what is still pending is released when it comes. */
  discard(): void {
    this.#ended = true;
    const waiting = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    for (const exchange of waiting) dispose(exchange);
    if (this.#gathered !== null) this.#dismiss(this.#gathered);
    this.#gathered = null;
  }

  #gather(exchange: Exchange): void {
    if (this.#ended) return dispose(exchange);
    if (exchange.state === "ready") {
      const batch = this.#gathered ??= this.#batches.take();
      if (this.#dispatcher.write(exchange, batch.writer)) {
        batch.count++;
        if (exchange.release !== null) batch.releases.push(exchange.release);
        exchange.release = null;
        return;
      }
      if (batch.count === 0) {
        this.#gathered = null;
        this.#batches.give(batch);
      }
      dispose(exchange);
    } else if (exchange.state === "silent") {
      return;
    }
    this.#ended = true;
    for (let index = this.#head; index < this.#waiting.length; index++) dispose(this.#waiting[index]);
    this.#head = this.#waiting.length;
  }

  #dismiss(batch: ReplyBatch): void {
    for (const release of batch.releases) release();
    batch.releases.length = 0;
    this.#batches.give(batch);
  }
}

/** Releases what a reply that will not leave holds. */
export function dispose(exchange: Exchange): void {
  const { release } = exchange;
  exchange.release = null;
  release?.();
}
