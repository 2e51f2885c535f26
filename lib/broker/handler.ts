/**
 * What a request handler is: the message it takes, the message it gives, and one function between them. Dispatch,
 * ApiVersions and the README's table of APIs all come from the list of handlers.
 *
 * The contract between a handler and its connection:
 * - Requests of one connection are handled in their order. The next one starts when `handle` has returned, or, where it
 *   returned a plain promise, when that has settled. A handler whose order is fixed before its reply is known returns
 *   {@link later}: the connection goes on, and the reply takes its place in the order when it is there.
 * - The frame, and so every `records` field, is valid until then. What a handler keeps it copies.
 * - Replies leave in the order of the requests, whatever order they become known in.
 */

import { type ErrorCode, errorName } from "../errors.ts";
import type { Message } from "../protocol/schema.ts";

/** A listener as clients are told of it. */
export interface ListenerInfo {
  readonly name: string;
  readonly advertisedHost: string;
  readonly advertisedPort: number;
}

/** What a connection remembers from one request to the next. */
export interface ConnectionState {
  /** From ApiVersions 3 on (KIP-511); null until the client has said it. */
  softwareName: string | null;
  softwareVersion: string | null;
}

/** A request's circumstances. */
export interface RequestContext {
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  readonly clientId: string | null;
  readonly listener: ListenerInfo;
  /** The client's address, without its port. */
  readonly clientHost: string;
  /** Unique among the connections of this process. */
  readonly connectionId: number;
  readonly connectionState: ConnectionState;
  /**
   * Aborted when nothing should be waited for any more: the client has hung up and wants no reply, or, by the reason
   * {@link CONNECTION_ENDS}, it still gets one if that comes soon.
   */
  readonly signal: AbortSignal;
}

/** Why a request's signal is aborted when this broker closes the connection as soon as the replies have left. */
export const CONNECTION_ENDS = "the connection ends";

/** See the file's head. `Req` is what decoding the request yields, `Res` what encoding the response takes. */
export interface Handler<Req, Res> {
  readonly request: Message<Req, unknown>;
  readonly response: Message<unknown, Res>;
  /**
   * Whether one reply may hold many megabytes. Such a request starts only when every earlier reply of its connection is
   * written, so that a connection holds one of them at most.
   */
  readonly largeReplies?: boolean;
  /**
   * Answers a request, null for a request that has no reply.
   *
   * @throws CloseConnection where the protocol leaves no other answer.
   * @throws KafkaError to answer with its code where the response has a place for one.
   */
  handle(request: Req, context: RequestContext): Reply<Res> | Promise<Reply<Res>>;
}

/** A handler of whatever messages. */
// deno-lint-ignore no-explicit-any
export type AnyHandler = Handler<any, any>;

/** An answer: the response, null for none, or either with conditions. */
export type Reply<Res> = Res | null | Later<Res> | Releasing<Res>;

/** A reply that comes later, while further requests of the connection are handled. Made by {@link later}. */
export class Later<Res> {
  constructor(readonly reply: Promise<Reply<Res>>) {}
}

/** A response that holds something until it is written. Made by {@link withRelease}. */
export class Releasing<Res> {
  constructor(readonly response: Res, readonly release: () => void) {}
}

/** Fixes the order of the request now, ends the use of its frame, and answers when `reply` settles. */
export function later<Res>(reply: Promise<Reply<Res>>): Later<Res> {
  return new Later(reply);
}

/**
 * Calls `release` once when the connection needs `response` no longer: its bytes are with the system, or the connection
 * is gone.
 */
export function withRelease<Res>(response: Res, release: () => void): Releasing<Res> {
  return new Releasing(response, release);
}

/** Thrown by a handler to close the connection without an answer; earlier requests are still answered. */
export class CloseConnection extends Error {
  override readonly name = "CloseConnection";

  /** `reason` goes into the log; `errorCode` is the refusal behind it, where there is one. */
  constructor(reason: string, errorCode?: ErrorCode) {
    super(errorCode === undefined ? reason : `${reason} (${errorName(errorCode)})`);
  }
}
