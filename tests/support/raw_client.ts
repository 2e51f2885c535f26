/**
 * A Kafka client of the plainest kind for tests of the broker: one connection, every byte under the test's control.
 * Requests and replies are values of lib/protocol's messages; whole frames and bare bytes can be sent as well.
 *
 *     using client = await RawClient.connect(port);
 *     const reply = await client.call(metadataRequest, metadataResponse, 12, { topics: null, … });
 */

import { decode, encode } from "../../lib/protocol/codec.ts";
import { requestHeaderVersion, responseHeaderVersion, writeRequestHeader } from "../../lib/protocol/header.ts";
import type { Message } from "../../lib/protocol/schema.ts";
import { Writer } from "../../lib/protocol/writer.ts";

/** A reply with the number of the request it answers. */
export interface NumberedReply<Value> {
  readonly correlationId: number;
  readonly body: Value;
}

/** See the file's head. */
export class RawClient {
  #nextCorrelationId = 1;
  #buffer = new Uint8Array(64 * 1024);
  #start = 0;
  #end = 0;

  private constructor(readonly connection: Deno.TcpConn, public clientId: string | null) {}

  static async connect(port: number, { hostname = "127.0.0.1", clientId = "raw-client" as string | null } = {}) {
    const connection = await Deno.connect({ hostname, port });
    connection.setNoDelay(true);
    return new RawClient(connection, clientId);
  }

  /** Sends a request and gives its correlation id. */
  async send<Input>(request: Message<unknown, Input>, version: number, value: Input): Promise<number> {
    const correlationId = this.#nextCorrelationId++;
    await this.sendBytes(requestFrame(request, version, value, { correlationId, clientId: this.clientId }));
    return correlationId;
  }

  /** Sends bytes as they are. */
  async sendBytes(bytes: Uint8Array): Promise<void> {
    for (let sent = 0; sent < bytes.length;) sent += await this.connection.write(bytes.subarray(sent));
  }

  /** The next reply on this connection, which must be one to `response` in `version`. */
  async receive<Value>(response: Message<Value, unknown>, version: number): Promise<NumberedReply<Value>> {
    const frame = await this.receiveFrame();
    if (frame === null) throw new Error(`the broker closed the connection instead of sending ${response.name}`);
    const correlationId = new DataView(frame.buffer, frame.byteOffset).getInt32(0);
    const headerBytes = responseHeaderVersion(response, version) === 1 ? 5 : 4;
    return { correlationId, body: decode(response, version, frame, headerBytes) };
  }

  /** Sends a request and gives the reply to it; no other reply may be on its way. */
  async call<Input, Value>(
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    version: number,
    value: Input,
  ): Promise<Value> {
    const sent = await this.send(request, version, value);
    const { correlationId, body } = await this.receive(response, version);
    if (correlationId !== sent) throw new Error(`reply ${correlationId} came where ${sent} was asked for`);
    return body;
  }

  /** The next frame without its length, as a copy; null when the broker has closed the connection. */
  async receiveFrame(): Promise<Uint8Array | null> {
    if (!await this.#have(4)) return null;
    const length = new DataView(this.#buffer.buffer).getInt32(this.#start);
    if (!await this.#have(4 + length)) return null;
    const frame = this.#buffer.slice(this.#start + 4, this.#start + 4 + length);
    this.#start += 4 + length;
    return frame;
  }

  /** Resolves when the broker has closed the connection; frames that arrive before are dropped. */
  async closedByBroker(): Promise<void> {
    while (await this.receiveFrame() !== null);
  }

  close(): void {
    try {
      this.connection.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #have(bytes: number): Promise<boolean> {
    while (this.#end - this.#start < bytes) {
      if (this.#start + bytes > this.#buffer.length) {
        const roomy = bytes > this.#buffer.length ? new Uint8Array(bytes * 2) : this.#buffer;
        roomy.set(this.#buffer.subarray(this.#start, this.#end));
        this.#buffer = roomy;
        this.#end -= this.#start;
        this.#start = 0;
      }
      const read = await this.#read();
      if (read === 0) return false;
      this.#end += read;
    }
    return true;
  }

  async #read(): Promise<number> {
    try {
      return await this.connection.read(this.#buffer.subarray(this.#end)) ?? 0;
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionReset) return 0;
      throw error;
    }
  }
}

/** A request as it travels, its length in front. */
export function requestFrame<Input>(
  request: Message<unknown, Input>,
  version: number,
  value: Input,
  { correlationId, clientId = null }: { readonly correlationId: number; readonly clientId?: string | null },
): Uint8Array {
  const writer = new Writer();
  writer.beginFrame();
  const header = { apiKey: request.apiKey, apiVersion: version, correlationId, clientId };
  writeRequestHeader(writer, header, requestHeaderVersion(request, version));
  encode(request, version, value, writer);
  writer.endFrame();
  return joined(writer.finish());
}

/** Chunks as one piece. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((bytes, chunk) => bytes + chunk.length, 0));
  let position = 0;
  for (const chunk of chunks) {
    whole.set(chunk, position);
    position += chunk.length;
  }
  return whole;
}
