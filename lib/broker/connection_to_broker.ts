/**
 * A connection to another broker, for the few requests that brokers have for one another. Requests are sent as they come;
 * replies are told apart by their correlation ids. Whatever goes wrong ends the connection, and with it every request
 * that waits.
 */

import { decode, encode } from "../protocol/codec.ts";
import { requestHeaderVersion, responseHeaderVersion, writeRequestHeader } from "../protocol/header.ts";
import type { AnyMessage, InputOf, Message, ValueOf } from "../protocol/schema.ts";
import { Writer } from "../protocol/writer.ts";

/** No reply between brokers comes near this. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

interface Waiting {
  readonly response: AnyMessage;
  readonly version: number;
  settle(value: unknown): void;
}

/** See the file's head. */
export class ConnectionToBroker {
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  #sending: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(private readonly socket: Deno.TcpConn, private readonly clientId: string) {
    void this.#receive();
  }

  /** Connects. @throws {Error} when nobody listens there */
  static async open(address: { readonly host: string; readonly port: number }, clientId: string) {
    const socket = await Deno.connect({ hostname: address.host, port: address.port });
    socket.setNoDelay(true);
    return new ConnectionToBroker(socket, clientId);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves with the reply, or with null when the connection ends before it comes. */
  call<Request extends Message<unknown, unknown>, Response extends Message<unknown, unknown>>(
    request: Request,
    response: Response,
    version: number,
    input: InputOf<Request>,
  ): Promise<ValueOf<Response> | null> {
    if (this.#isClosed) return Promise.resolve(null);
    const correlationId = this.#nextId = (this.#nextId + 1) & 0x7fff_ffff;
    const writer = new Writer();
    writer.beginFrame();
    const { apiKey } = request;
    const header = { apiKey, apiVersion: version, correlationId, clientId: this.clientId };
    writeRequestHeader(writer, header, requestHeaderVersion(request, version));
    encode(request, version, input, writer);
    writer.endFrame();
    const chunks = writer.finish();
    return new Promise((resolve) => {
      const settle = (value: unknown) => resolve(value as ValueOf<Response> | null);
      this.#waiting.set(correlationId, { response, version, settle });
      this.#sending = this.#sending.then(() => this.#send(chunks)).catch(() => this.close());
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.socket.close();
    for (const { settle } of this.#waiting.values()) settle(null);
    this.#waiting.clear();
  }

  async #send(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      for (let sent = 0; sent < chunk.length;) sent += await this.socket.write(chunk.subarray(sent));
    }
  }

  async #receive(): Promise<void> {
    try {
      while (!this.#isClosed) {
        const length = await this.#read(4);
        if (length === null) break;
        const bytes = new DataView(length.buffer).getInt32(0);
        if (bytes < 4 || bytes > MAX_REPLY_BYTES) break;
        const frame = await this.#read(bytes);
        if (frame === null || !this.#take(frame)) break;
      }
    } catch {
      // The other broker is gone, or closed this connection.
    }
    this.close();
  }

  /** Answers false for a frame that nobody waits for, or that cannot be read. */
  #take(frame: Uint8Array): boolean {
    const correlationId = new DataView(frame.buffer).getInt32(0);
    const waiting = this.#waiting.get(correlationId);
    if (waiting === undefined) return false;
    const { response, version, settle } = waiting;
    const value = decode(response, version, frame, responseHeaderVersion(response, version) === 1 ? 5 : 4);
    this.#waiting.delete(correlationId);
    settle(value);
    return true;
  }

  async #read(count: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const bytes = new Uint8Array(count);
    for (let have = 0; have < count;) {
      const read = await this.socket.read(bytes.subarray(have));
      if (read === null) return null;
      have += read;
    }
    return bytes;
  }
}
