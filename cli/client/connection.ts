/**
 * One connection of the admin client to a broker: requests one after the other, each in the highest version that both
 * sides know.
 */

import { decode, encode } from "../../lib/protocol/codec.ts";
import { requestHeaderVersion, responseHeaderVersion, writeRequestHeader } from "../../lib/protocol/header.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../lib/protocol/messages/api_versions.ts";
import { offsetCommitRequest } from "../../lib/protocol/messages/offset_commit.ts";
import { offsetFetchRequest } from "../../lib/protocol/messages/offset_fetch.ts";
import type { Message } from "../../lib/protocol/schema.ts";
import { Writer } from "../../lib/protocol/writer.ts";

/** What a request came to nothing by: the network, the time, or a broker that speaks something else. */
export class ConnectionFailure extends Error {
  override readonly name = "ConnectionFailure";
}

/** The versions of APIs that a broker serves, by API key. */
type ServedVersions = ReadonlyMap<number, { readonly minVersion: number; readonly maxVersion: number }>;

/** Highest versions that name topics by their names, as people do; later ones name them by their ids. */
const byName: Readonly<Record<number, number>> = { [offsetCommitRequest.apiKey]: 9, [offsetFetchRequest.apiKey]: 9 };
const CLIENT_ID = "kaas-admin";
const LENGTH_BYTES = 4;
/** No reply to these requests is larger; a broker that says so is none. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;

/** See the file's head. */
export class Connection {
  #nextCorrelationId = 1;
  #served: ServedVersions = new Map();
  #closed = false;

  private constructor(private readonly socket: Deno.TcpConn, readonly address: string) {}

  /** Connects, and asks what the broker serves. @throws {ConnectionFailure} */
  static async open(host: string, port: number, timeoutMs: number): Promise<Connection> {
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    let socket: Deno.TcpConn;
    try {
      socket = await within(timeoutMs, Deno.connect({ hostname: host, port }), (late) => late.close());
    } catch (error) {
      throw new ConnectionFailure(`cannot reach ${address}: ${reason(error)}`);
    }
    const connection = new Connection(socket, address);
    const own = { clientSoftwareName: CLIENT_ID, clientSoftwareVersion: "1" };
    const { errorCode, apiKeys } = await connection.#exchange(
      apiVersionsRequest,
      apiVersionsResponse,
      0,
      own,
      timeoutMs,
    );
    if (errorCode !== 0) throw new ConnectionFailure(`${address} does not say which versions it serves (${errorCode})`);
    connection.#served = new Map(apiKeys.map(({ apiKey, ...versions }) => [apiKey, versions]));
    return connection;
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** Whether the broker serves the API at all. */
  serves(request: Message<unknown, unknown>): boolean {
    return this.#versionOf(request) !== null;
  }

  /** Sends a request and resolves to its reply. @throws {ConnectionFailure} after which the connection is closed */
  call<Input, Value>(
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    value: Input,
    timeoutMs: number,
  ): Promise<Value> {
    const version = this.#versionOf(request as Message<unknown, unknown>);
    if (version === null) {
      throw new ConnectionFailure(`${this.address} does not serve ${request.name.replace(/Request$/, "")}`);
    }
    return this.#exchange(request, response, version, value, timeoutMs);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.socket.close();
  }

  #versionOf(request: Message<unknown, unknown>): number | null {
    const served = this.#served.get(request.apiKey);
    if (served === undefined) return null;
    const version = Math.min(served.maxVersion, byName[request.apiKey] ?? request.maxVersion);
    return version >= Math.max(served.minVersion, request.minVersion) ? version : null;
  }

  async #exchange<Input, Value>(
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    version: number,
    value: Input,
    timeoutMs: number,
  ): Promise<Value> {
    const correlationId = this.#nextCorrelationId++;
    const writer = new Writer();
    writer.beginFrame();
    const header = { apiKey: request.apiKey, apiVersion: version, correlationId, clientId: CLIENT_ID };
    writeRequestHeader(writer, header, requestHeaderVersion(request, version));
    encode(request, version, value, writer);
    writer.endFrame();
    try {
      const frame = await within(timeoutMs, this.#roundTrip(writer.finish(), correlationId));
      return decode(response, version, frame, responseHeaderVersion(response, version) === 1 ? 5 : 4);
    } catch (error) {
      this.close();
      if (error instanceof ConnectionFailure) throw error;
      throw new ConnectionFailure(`${request.name} to ${this.address} failed: ${reason(error)}`);
    }
  }

  async #roundTrip(chunks: readonly Uint8Array[], correlationId: number): Promise<Uint8Array> {
    for (const chunk of chunks) {
      for (let sent = 0; sent < chunk.length;) sent += await this.socket.write(chunk.subarray(sent));
    }
    const length = new DataView((await this.#read(LENGTH_BYTES)).buffer).getInt32(0);
    if (length < 4 || length > MAX_REPLY_BYTES) throw new ConnectionFailure(`${this.address} is no Kafka broker`);
    const frame = await this.#read(length);
    const answered = new DataView(frame.buffer).getInt32(0);
    if (answered !== correlationId) throw new ConnectionFailure(`${this.address} answers out of order`);
    return frame;
  }

  async #read(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    for (let filled = 0; filled < length;) {
      const read = await this.socket.read(bytes.subarray(filled));
      if (read === null) throw new ConnectionFailure(`${this.address} closed the connection`);
      filled += read;
    }
    return bytes;
  }
}

/** What `promise` comes to, if it does in time; what comes too late is handed to `tooLate`. */
async function within<T>(timeoutMs: number, promise: Promise<T>, tooLate: (value: T) => void = () => {}): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      isOver = true;
      reject(new Error(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  promise.then((value) => isOver && tooLate(value), () => {});
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

function reason(error: unknown): string {
  if (error instanceof Deno.errors.ConnectionRefused) return "connection refused";
  return error instanceof Error ? error.message : String(error);
}
