/**
 * One client's connection: reads frames, starts their requests in order, writes the replies in the same order.
 *
 * Phases:
 *
 *     open       requests are read and started
 *     ended      the client sends no more (it hung up, or closed its half): what has come is still handled and answered
 *     finishing  no further request is started; replies that are owed are written, for a bounded time
 *     closed     the socket is gone
 *
 * A read is always under way, also while requests wait, so that a client that hangs up is noticed; only a connection
 * whose buffer is full of requests that may not start yet stops reading. Each request that may not start, each reply
 * that its client does not take, costs this connection alone: see the limits below.
 *
 * Invariants:
 * - At most {@link MAX_UNANSWERED} requests are unanswered; with {@link MAX_UNWRITTEN_BYTES} of replies unwritten none is
 *   started. One whose replies may be large starts only when no other is owed.
 * - One write is under way at a time; all that became ready meanwhile leaves with the next.
 */

import type { Clock, Timer } from "../clock.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { FrameBuffers } from "./connection_buffers.ts";
import { dispose, ReplyBatches, ReplyQueue } from "./connection_replies.ts";
import type { Dispatcher, Exchange, ExchangeOwner } from "./dispatch.ts";
import { FrameReader } from "./frame_reader.ts";
import { CONNECTION_ENDS, type ConnectionState, type ListenerInfo } from "./handler.ts";

/** Requests of one connection that may be unanswered at a time. */
export const MAX_UNANSWERED = 100;
/** Bytes of encoded replies from which on a connection starts no further request. */
export const MAX_UNWRITTEN_BYTES = 1 << 20;
/** How long replies may still take after the client's end was seen, or after a request that closes the connection. */
export const LAST_REPLIES_MS = 5000;

/** What a connection needs of its socket. */
export type Socket = Pick<Deno.Conn, "read" | "write" | "close">;

/** What all connections of a process share. */
export interface ConnectionServices {
  readonly dispatcher: Dispatcher;
  readonly buffers: FrameBuffers;
  readonly batches: ReplyBatches;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counters: NetworkCounters;
  /** Greatest length of a request frame (socket.request.max.bytes). */
  readonly maxRequestBytes: number;
}

/** Counts since the start of the process. */
export interface NetworkCounters {
  connectionsAccepted: number;
  /** Closed as they arrived, because of a limit. */
  connectionsRefused: number;
  requests: number;
  receivedBytes: number;
  sentBytes: number;
}

/** Services with buffers and counters of their own. */
export function connectionServices(
  given: Pick<ConnectionServices, "dispatcher" | "clock" | "logger" | "maxRequestBytes">,
): ConnectionServices {
  return {
    ...given,
    buffers: new FrameBuffers(),
    batches: new ReplyBatches(),
    counters: { connectionsAccepted: 0, connectionsRefused: 0, requests: 0, receivedBytes: 0, sentBytes: 0 },
  };
}

/** Who is at the other end, and where they came in. */
export interface ConnectionOrigin {
  readonly connectionId: number;
  readonly listener: ListenerInfo;
  readonly clientHost: string;
}

/** See the file's head. */
export class Connection implements ExchangeOwner {
  readonly connectionId: number;
  readonly listener: ListenerInfo;
  readonly clientHost: string;
  readonly connectionState: ConnectionState = { softwareName: null, softwareVersion: null };
  readonly #socket: Socket;
  readonly #services: ConnectionServices;
  readonly #reader: FrameReader;
  readonly #replies: ReplyQueue;
  readonly #closed = Promise.withResolvers<void>();
  #phase: "open" | "ended" | "finishing" | "closed" = "open";
  #abort: AbortController | null = null;
  /** A request that has been read and waits until all other replies have left; its frame is in use. */
  #parked: { readonly exchange: Exchange; readonly frame: Uint8Array } | null = null;
  /** The request whose handler keeps the frame, so that no other may start. */
  #holder: Exchange | null = null;
  #writing = false;
  #advanceQueued = false;
  #resumeReading: (() => void) | null = null;
  #deadline: Timer | null = null;
  #lastActivityMs: number;

  constructor(socket: Socket, origin: ConnectionOrigin, services: ConnectionServices) {
    this.#socket = socket;
    this.#services = services;
    this.connectionId = origin.connectionId;
    this.listener = origin.listener;
    this.clientHost = origin.clientHost;
    this.#reader = new FrameReader(services.maxRequestBytes, services.buffers);
    this.#replies = new ReplyQueue(services.dispatcher, services.batches);
    this.#lastActivityMs = services.clock.monotonicMs();
  }

  /** See `RequestContext.signal`. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#phase === "ended" || this.#phase === "closed") this.#abort.abort();
      else if (this.#phase === "finishing") this.#abort.abort(CONNECTION_ENDS);
    }
    return this.#abort.signal;
  }

  /** Since when, in monotonic ms, no byte has moved and no handler has owed a reply; null while one does. */
  get idleSinceMs(): number | null {
    return this.#replies.isPending || this.#holder !== null ? null : this.#lastActivityMs;
  }

  /** Bytes of replies that wait for the client, and of memory that holds its requests. */
  get heldBytes(): { readonly replies: number; readonly requests: number } {
    return { replies: this.#replies.unwrittenBytes, requests: this.#reader.heldBytes };
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Serves the client; resolves when the connection is closed. Never rejects. */
  async serve(): Promise<void> {
    try {
      await this.#readAll();
    } catch (error) {
      this.#fail(error);
    }
    await this.#closed.promise;
    this.#reader.dispose();
  }

  /** Starts no further request, and closes when the replies that are owed have left, at the latest in `withinMs`. */
  finish(withinMs: number): void {
    if (this.#phase === "closed") return;
    this.#beginFinishing(withinMs);
    this.#advance();
  }

  /** Closes at once. */
  close(reason: string): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#services.logger.debug("connection closed", {
      connection: this.connectionId,
      client: this.clientHost,
      reason,
    });
    this.#deadline?.cancel();
    this.#socket.close();
    this.#abort?.abort();
    this.#replies.discard();
    this.#resumeReading?.();
    this.#closed.resolve();
  }

  /** See {@link ExchangeOwner}. */
  exchangeMoved(exchange: Exchange): void {
    if (this.#holder === exchange && !exchange.usesFrame) {
      this.#holder = null;
      this.#reader.done();
    }
    if (this.#phase === "closed") return dispose(exchange);
    // Replies that become ready one after the other, as after a sync they all waited for, leave together.
    if (this.#advanceQueued) return;
    this.#advanceQueued = true;
    queueMicrotask(() => {
      this.#advanceQueued = false;
      this.#advance();
    });
  }

  async #readAll(): Promise<void> {
    const { clock, counters } = this.#services;
    let discarded: Uint8Array | null = null;
    while (!this.#isClosed()) {
      const isFinishing = this.#phase === "finishing";
      // Nobody looks at what comes in while finishing; it is read to see the client's end.
      const room = isFinishing ? discarded ??= new Uint8Array(4096) : this.#reader.room();
      if (room === null) {
        await new Promise<void>((resolve) => this.#resumeReading = resolve);
        continue;
      }
      let count: number | null;
      try {
        count = await this.#socket.read(room);
      } catch (error) {
        return this.close(errorText(error));
      }
      if (count === null) return this.#end();
      counters.receivedBytes += count;
      this.#lastActivityMs = clock.monotonicMs();
      if (isFinishing) continue;
      this.#reader.received(count);
      this.#advance();
    }
  }

  /** The client sends no more. */
  #end(): void {
    this.#abort?.abort();
    if (this.#phase !== "open") return;
    this.#phase = "ended";
    this.#closeIn(LAST_REPLIES_MS);
    this.#advance();
  }

  #beginFinishing(withinMs: number): void {
    this.#phase = "finishing";
    this.#abort?.abort(CONNECTION_ENDS);
    if (this.#parked !== null) this.#reader.done();
    this.#parked = null;
    this.#closeIn(withinMs);
  }

  #closeIn(ms: number): void {
    this.#deadline?.cancel();
    this.#deadline = this.#services.clock.schedule(ms, () => this.close("the last replies took too long"));
  }

  /** Does all that can be done now: starts requests, lets replies leave, reads on, closes. */
  #advance(): void {
    if (this.#isClosed()) return;
    try {
      this.#replies.drain();
      while (this.#mayStart() && this.#startNext());
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#phase === "finishing" && this.#holder === null && this.#replies.isEmpty) return this.close("finished");
    if (!this.#writing && this.#replies.hasGathered) void this.#writeAll();
    const resume = this.#resumeReading;
    this.#resumeReading = null;
    resume?.();
  }

  #mayStart(): boolean {
    if (this.#phase !== "open" && this.#phase !== "ended") return false;
    if (this.#replies.hasEnded) {
      this.#beginFinishing(LAST_REPLIES_MS);
      return false;
    }
    return this.#holder === null && this.#replies.unanswered < MAX_UNANSWERED &&
      this.#replies.unwrittenBytes < MAX_UNWRITTEN_BYTES;
  }

  /** Answers false when no further request can be started now. */
  #startNext(): boolean {
    if (this.#parked !== null) return this.#start(this.#parked.exchange, this.#parked.frame);
    const frame = this.#reader.next();
    if (frame === null) {
      if (this.#reader.refusedLength !== null) this.#refuseLength(this.#reader.refusedLength);
      else if (this.#phase === "ended") this.#phase = "finishing";
      return false;
    }
    const exchange = this.#services.dispatcher.open(frame, this);
    if (exchange === null) {
      this.#reader.done();
      this.#beginFinishing(LAST_REPLIES_MS);
      return false;
    }
    this.#services.counters.requests++;
    return this.#start(exchange, frame);
  }

  #start(exchange: Exchange, frame: Uint8Array): boolean {
    if (exchange.state === "pending") {
      if (exchange.handler.largeReplies && !this.#replies.isEmpty) {
        this.#parked ??= { exchange, frame };
        return false;
      }
      this.#parked = null;
      this.#services.dispatcher.run(exchange, frame);
    }
    if (exchange.usesFrame) this.#holder = exchange;
    else this.#reader.done();
    if (exchange.state === "fatal") {
      this.#beginFinishing(LAST_REPLIES_MS);
      return false;
    }
    this.#replies.add(exchange);
    return true;
  }

  #refuseLength(claimedBytes: number): void {
    this.#services.logger.warn("connection closed: a frame of this length is not accepted", {
      claimedBytes,
      allowedBytes: this.#services.maxRequestBytes,
      connection: this.connectionId,
      client: this.clientHost,
      listener: this.listener.name,
    });
    this.#beginFinishing(LAST_REPLIES_MS);
  }

  async #writeAll(): Promise<void> {
    const { clock, counters } = this.#services;
    let batch = this.#replies.take();
    if (batch === null) return;
    this.#writing = true;
    try {
      for (; batch !== null; batch = this.#replies.take()) {
        for (const piece of batch.pieces()) {
          for (let sent = 0; sent < piece.length;) {
            const count = await this.#socket.write(sent === 0 ? piece : piece.subarray(sent));
            sent += count;
            counters.sentBytes += count;
            this.#lastActivityMs = clock.monotonicMs();
          }
        }
        this.#replies.left();
        this.#advance();
      }
      this.#writing = false;
    } catch (error) {
      this.#replies.left();
      this.close(errorText(error));
    }
  }

  /** A bug in kaas must not take other connections along. */
  #fail(error: unknown): void {
    this.#services.logger.error("a connection failed", {
      connection: this.connectionId,
      client: this.clientHost,
      error,
    });
    this.close(errorText(error));
  }

  #isClosed(): boolean {
    return this.#phase === "closed";
  }
}
