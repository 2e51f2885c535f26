/**
 * From a frame to a reply: finds the handler of (API, version), decodes, runs it, and encodes what it gives.
 *
 * What a client can do wrong stays with that client (Apache Kafka's behaviour):
 * - ApiVersions in a version nobody serves is answered in the layout of version 0 with UNSUPPORTED_VERSION and the own
 *   range; its body is not looked at, and the connection goes on (KIP-511).
 * - Any other unknown API or version, a frame that cannot be read, and {@link CloseConnection} close the connection, with
 *   one line in the log.
 * - Bytes behind a complete body are not looked at: librdkafka's Metadata request for all topics carries some.
 * - A handler that fails is answered with an error code where the response has a place for one at its top; otherwise it
 *   closes the connection too.
 *
 * Knows no sockets: order, memory and bytes in flight are the connection's.
 */

import { ErrorCode, KafkaError } from "../errors.ts";
import type { Logger } from "../observability/logger.ts";
import { decodeFront, encode, MalformedFrame } from "../protocol/codec.ts";
import {
  parseRequestHeader,
  type RequestHeader,
  type RequestHeaderVersion,
  requestHeaderVersion,
  responseHeaderVersion,
  writeResponseHeader,
} from "../protocol/header.ts";
import { apiVersionsRequest, unsupportedApiVersions } from "../protocol/messages/api_versions.ts";
import { type AnyMessage, defaultOf, isPresent } from "../protocol/schema.ts";
import type { Writer } from "../protocol/writer.ts";
import {
  type AnyHandler,
  CloseConnection,
  type ConnectionState,
  Later,
  type ListenerInfo,
  Releasing,
  type Reply,
  type RequestContext,
} from "./handler.ts";

/** What an exchange knows of the connection it belongs to. */
export interface ExchangeOwner {
  readonly listener: ListenerInfo;
  readonly clientHost: string;
  readonly connectionId: number;
  readonly connectionState: ConnectionState;
  readonly signal: AbortSignal;
  /** Called when an exchange that was left unsettled, or still used its frame, no longer is or does. */
  exchangeMoved(exchange: Exchange): void;
}

/**
 * Where an exchange stands: `pending` waits for its handler, `ready` has a response, `silent` has none to come, `fatal`
 * ends the connection.
 */
export type ExchangeState = "pending" | "ready" | "silent" | "fatal";

/** One request and its reply; the handler sees it as its context. */
export class Exchange implements RequestContext {
  state: ExchangeState = "pending";
  /** Whether the handler still needs the frame, so that no further request may start. */
  usesFrame = false;
  response: unknown = null;
  /** Version in which the response is written. */
  responseVersion: number;
  release: (() => void) | null = null;
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  readonly clientId: string | null;
  readonly bodyOffset: number;

  constructor(readonly owner: ExchangeOwner, readonly handler: AnyHandler, header: RequestHeader) {
    this.apiKey = header.apiKey;
    this.apiVersion = header.apiVersion;
    this.responseVersion = header.apiVersion;
    this.correlationId = header.correlationId;
    this.clientId = header.clientId;
    this.bodyOffset = header.bodyOffset;
  }

  get listener(): ListenerInfo {
    return this.owner.listener;
  }

  get clientHost(): string {
    return this.owner.clientHost;
  }

  get connectionId(): number {
    return this.owner.connectionId;
  }

  get connectionState(): ConnectionState {
    return this.owner.connectionState;
  }

  get signal(): AbortSignal {
    return this.owner.signal;
  }
}

/** See the file's head. */
export class Dispatcher {
  readonly #handlers: (AnyHandler | undefined)[] = [];
  readonly #logger: Logger;

  constructor(handlers: readonly AnyHandler[], logger: Logger) {
    for (const handler of handlers) this.#handlers[handler.request.apiKey] = handler;
    this.#logger = logger;
  }

  readonly #headerVersionOf = (apiKey: number, apiVersion: number): RequestHeaderVersion => {
    const handler = this.#handlers[apiKey];
    // An ApiVersions of the future may have a header that nobody knows yet; of the one known only the front is read.
    if (handler === undefined || !handler.request.hasVersion(apiVersion)) return 1;
    return requestHeaderVersion(handler.request, apiVersion);
  };

  /** Opens the exchange that a frame asks for; null where it cannot be answered, which is then in the log. */
  open(frame: Uint8Array, owner: ExchangeOwner): Exchange | null {
    let header: RequestHeader;
    try {
      header = parseRequestHeader(frame, this.#headerVersionOf);
    } catch (error) {
      if (!(error instanceof MalformedFrame)) throw error;
      this.#logger.warn("connection closed: malformed request header", {
        ...(frame.length >= 4 ? frontOf(frame) : {}),
        ...sourceOf(owner),
        error: error.message,
      });
      return null;
    }
    const handler = this.#handlers[header.apiKey];
    if (handler === undefined) {
      this.#refuse("connection closed: unknown API", header, owner);
      return null;
    }
    const exchange = new Exchange(owner, handler, header);
    if (handler.request.hasVersion(header.apiVersion)) return exchange;
    if (header.apiKey !== apiVersionsRequest.apiKey) {
      this.#refuse("connection closed: unsupported version", header, owner, handler.request);
      return null;
    }
    exchange.responseVersion = 0;
    exchange.response = unsupportedApiVersions(handler.request);
    exchange.state = "ready";
    return exchange;
  }

  /** Runs the handler of an exchange that {@link open} left pending. */
  run(exchange: Exchange, frame: Uint8Array): void {
    const { handler } = exchange;
    let request: unknown;
    try {
      request = decodeFront(handler.request, exchange.apiVersion, frame, exchange.bodyOffset);
    } catch (error) {
      if (!(error instanceof MalformedFrame)) return this.#fail(exchange, error);
      this.#refuse("connection closed: malformed request", exchange, exchange.owner, handler.request, error.message);
      exchange.state = "fatal";
      return;
    }
    let outcome: Reply<unknown> | Promise<Reply<unknown>>;
    try {
      outcome = handler.handle(request, exchange);
    } catch (error) {
      return this.#fail(exchange, error);
    }
    if (outcome instanceof Promise) {
      exchange.usesFrame = true;
      this.#await(exchange, outcome);
    } else {
      this.#take(exchange, outcome);
    }
  }

  /** Writes the frame of a ready exchange's reply. Answers false where that cannot be done; then nothing is written. */
  write(exchange: Exchange, writer: Writer): boolean {
    if (this.#tryWrite(exchange, writer)) return true;
    return this.#answerError(exchange, ErrorCode.UNKNOWN_SERVER_ERROR) && this.#tryWrite(exchange, writer);
  }

  #tryWrite(exchange: Exchange, writer: Writer): boolean {
    const { handler: { response }, responseVersion } = exchange;
    writer.beginFrame();
    try {
      writeResponseHeader(writer, exchange.correlationId, responseHeaderVersion(response, responseVersion));
      encode(response, responseVersion, exchange.response, writer);
      writer.endFrame();
      return true;
    } catch (error) {
      writer.abandonFrame();
      this.#logger.error("a reply could not be encoded", { ...described(exchange), error });
      return false;
    }
  }

  #take(exchange: Exchange, reply: Reply<unknown>): void {
    if (reply instanceof Later) {
      this.#await(exchange, reply.reply);
    } else if (reply === null) {
      exchange.state = "silent";
    } else if (reply instanceof Releasing) {
      exchange.release = reply.release;
      exchange.response = reply.response;
      exchange.state = "ready";
    } else {
      exchange.response = reply;
      exchange.state = "ready";
    }
  }

  #await(exchange: Exchange, reply: Promise<Reply<unknown>>): void {
    reply.then((settled) => {
      exchange.usesFrame = false;
      this.#take(exchange, settled);
      exchange.owner.exchangeMoved(exchange);
    }, (error) => {
      exchange.usesFrame = false;
      this.#fail(exchange, error);
      exchange.owner.exchangeMoved(exchange);
    });
  }

  #fail(exchange: Exchange, error: unknown): void {
    if (error instanceof CloseConnection) {
      this.#logger.info("connection closed", { ...described(exchange), error: error.message });
      exchange.state = "fatal";
      return;
    }
    const known = error instanceof KafkaError;
    if (!known) this.#logger.error("a request handler failed", { ...described(exchange), error });
    this.#answerError(exchange, known ? error.code : ErrorCode.UNKNOWN_SERVER_ERROR);
  }

  /** Makes the reply one of nothing but an error code. Answers false, and ends the connection, where none has room. */
  #answerError(exchange: Exchange, errorCode: ErrorCode): boolean {
    const response = errorResponse(exchange.handler.response, exchange.responseVersion, errorCode);
    exchange.response = response;
    exchange.state = response === null ? "fatal" : "ready";
    return response !== null;
  }

  #refuse(
    message: string,
    request: { readonly apiKey: number; readonly apiVersion: number; readonly clientId: string | null },
    owner: ExchangeOwner,
    schema?: AnyMessage,
    error?: string,
  ): void {
    this.#logger.warn(message, {
      api: schema === undefined ? request.apiKey : apiName(schema),
      version: request.apiVersion,
      clientId: request.clientId,
      ...sourceOf(owner),
      error,
    });
  }
}

/** A response that carries an error code at its top and defaults elsewhere; null where it has no such place. */
function errorResponse(response: AnyMessage, version: number, errorCode: ErrorCode): Record<string, unknown> | null {
  const top = response.members.find(({ name }) => name === "errorCode");
  if (top === undefined || !isPresent(top.spec, version)) return null;
  const values = Object.fromEntries(response.members.map(({ name, spec }) => [name, defaultOf(spec)]));
  values.errorCode = errorCode;
  return values;
}

function described(exchange: Exchange): Record<string, unknown> {
  const { handler: { request }, apiVersion, clientId, owner } = exchange;
  return { api: apiName(request), version: apiVersion, clientId, ...sourceOf(owner) };
}

function sourceOf({ connectionId, clientHost, listener }: ExchangeOwner): Record<string, unknown> {
  return { connection: connectionId, client: clientHost, listener: listener.name };
}

/** API and version of a frame whose header breaks off behind them. */
function frontOf(frame: Uint8Array): Record<string, unknown> {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  return { api: view.getInt16(0), version: view.getInt16(2) };
}

function apiName({ name }: AnyMessage): string {
  return name.replace(/Request$/, "");
}
