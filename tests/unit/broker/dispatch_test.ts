import assert from "node:assert/strict";
import { Dispatcher, type Exchange, type ExchangeOwner } from "../../../lib/broker/dispatch.ts";
import { CloseConnection, later, withRelease } from "../../../lib/broker/handler.ts";
import { ErrorCode, KafkaError } from "../../../lib/errors.ts";
import { decode } from "../../../lib/protocol/codec.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../lib/protocol/messages/api_versions.ts";
import { heartbeatRequest, heartbeatResponse } from "../../../lib/protocol/messages/heartbeat.ts";
import { produceRequest } from "../../../lib/protocol/messages/produce.ts";
import type { Message } from "../../../lib/protocol/schema.ts";
import { Writer } from "../../../lib/protocol/writer.ts";
import { joined, requestFrame } from "../../support/raw_client.ts";
import { beat, heartbeat, loggedLines, produceOf, toyHandlers, type Toys } from "./toy_broker.ts";

/** Where exchanges belong in these tests, and the ones that moved later. */
function owner() {
  const moved: Exchange[] = [];
  const one: ExchangeOwner = {
    listener: { name: "TOY", advertisedHost: "toy.example", advertisedPort: 9092 },
    clientHost: "10.0.0.1",
    connectionId: 5,
    connectionState: { softwareName: null, softwareVersion: null },
    signal: new AbortController().signal,
    exchangeMoved: (exchange) => void moved.push(exchange),
  };
  return { ...one, moved };
}

function setUp(toys: Toys = {}) {
  const { logged, logger } = loggedLines();
  const dispatcher = new Dispatcher(toyHandlers(toys), logger);
  const source = owner();
  /** Opens and runs what a frame asks for. */
  const handle = (frame: Uint8Array): Exchange | null => {
    const exchange = dispatcher.open(frame, source);
    if (exchange?.state === "pending") dispatcher.run(exchange, frame);
    return exchange;
  };
  /** The reply as it travels, its length in front. */
  const reply = (exchange: Exchange): Uint8Array => {
    const writer = new Writer();
    assert.ok(dispatcher.write(exchange, writer), "the reply can be written");
    return joined(writer.finish());
  };
  return { dispatcher, source, logged, handle, reply };
}

/** A request frame without its length. */
function frameOf<Input>(
  request: Message<unknown, Input>,
  version: number,
  value: Input,
  clientId: string | null = "c",
) {
  return requestFrame(request, version, value, { correlationId: 77, clientId }).subarray(4);
}

/** Source fields of every line about the connection of these tests. */
const source = { connection: 5, client: "10.0.0.1", listener: "TOY" };

Deno.test("ApiVersions of a version nobody serves is answered in version 0 with the own range, its body unread", () => {
  const { handle, reply, logged } = setUp();
  for (const version of [99, 5, -1, 0x7fff]) {
    const frame = Uint8Array.of(0, 18, version >> 8 & 255, version & 255, 0, 0, 0, 77, 0, 1, 99, 0xff, 0xfe, 0xfd);
    const exchange = handle(frame)!;
    assert.deepEqual(
      reply(exchange),
      Uint8Array.of(0, 0, 0, 16, 0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, apiVersionsRequest.maxVersion),
    );
  }
  assert.deepEqual(logged, []);
});

Deno.test("ApiVersions has response header 0 in every version, flexible ones included", () => {
  const { handle, reply } = setUp();
  for (let version = 0; version <= apiVersionsRequest.maxVersion; version++) {
    const software = { clientSoftwareName: "test", clientSoftwareVersion: "1.0" };
    const bytes = reply(handle(frameOf(apiVersionsRequest, version, software))!);
    const { errorCode, apiKeys } = decode(apiVersionsResponse, version, bytes, 8);
    assert.equal(errorCode, ErrorCode.NONE);
    assert.deepEqual(apiKeys.map(({ apiKey }) => apiKey), [0, 1, 12, 18]);
  }
});

Deno.test("Other responses have header 1 from their first flexible version on", () => {
  const { handle, reply } = setUp();
  for (let version = heartbeatRequest.minVersion; version <= heartbeatRequest.maxVersion; version++) {
    const bytes = reply(handle(frameOf(heartbeatRequest, version, heartbeat("5")))!);
    const headerBytes = version >= 4 ? 5 : 4;
    assert.equal(new DataView(bytes.buffer).getInt32(4), 77);
    const expected = version >= 1 ? 5 : 0;
    assert.equal(decode(heartbeatResponse, version, bytes, 4 + headerBytes).throttleTimeMs, expected);
  }
});

Deno.test("Null and empty client ids are taken as they are, in header versions 1 and 2", () => {
  const { handle } = setUp();
  for (const version of [0, 4]) {
    for (const clientId of [null, "", "ä client"]) {
      const exchange = handle(frameOf(heartbeatRequest, version, heartbeat("1"), clientId))!;
      assert.equal(exchange.clientId, clientId);
      assert.equal(exchange.state, "ready");
    }
  }
});

Deno.test("An unknown API closes the connection and is logged with its number, version and client id", () => {
  const { handle, logged } = setUp();
  const frame = Uint8Array.of(3, 232, 0, 2, 0, 0, 0, 1, 0, 1, 99);
  assert.equal(handle(frame), null);
  const fields = { api: 1000, version: 2, clientId: "c", ...source };
  assert.deepEqual(logged.map(withoutTime), [{ level: "warn", message: "connection closed: unknown API", ...fields }]);
});

Deno.test("An unsupported version closes the connection and is logged with its API, version and client id", () => {
  const { handle, logged } = setUp();
  for (const version of [-1, heartbeatRequest.maxVersion + 1]) {
    const frame = Uint8Array.of(0, 12, version >> 8 & 255, version & 255, 0, 0, 0, 1, 0, 1, 99);
    assert.equal(handle(frame), null);
    const fields = { api: "Heartbeat", version, clientId: "c", ...source };
    assert.deepEqual(withoutTime(logged.pop()!), {
      level: "warn",
      message: "connection closed: unsupported version",
      ...fields,
    });
  }
  assert.deepEqual(logged, []);
});

Deno.test("A frame that breaks off in its header closes the connection, at whatever byte", () => {
  const { handle, logged } = setUp();
  const whole = frameOf(heartbeatRequest, 4, heartbeat("1"), "client");
  for (let bytes = 0; bytes < 17; bytes++) {
    assert.equal(handle(whole.subarray(0, bytes)), null, `${bytes} bytes`);
    assert.equal(logged.pop()?.message, "connection closed: malformed request header");
  }
  assert.deepEqual(logged, []);
});

Deno.test("Bytes behind a complete body are not looked at, as librdkafka's Metadata requests need it", () => {
  const { handle, logged } = setUp();
  const whole = frameOf(heartbeatRequest, 4, heartbeat("1"), "client");
  assert.equal(handle(joined([whole, Uint8Array.of(1, 0, 0)]))?.state, "ready");
  assert.deepEqual(logged, []);
});

Deno.test("A body that breaks off ends the connection and is logged once", () => {
  const { handle, logged } = setUp();
  const whole = frameOf(heartbeatRequest, 4, heartbeat("1"), "client");
  const headerBytes = 17;
  for (let bytes = headerBytes; bytes < whole.length; bytes++) {
    assert.equal(handle(whole.subarray(0, bytes))?.state, "fatal", `${bytes} bytes`);
    const { level, api, version, clientId, connection } = logged.pop()!;
    assert.deepEqual({ level, api, version, clientId, connection }, {
      level: "warn",
      api: "Heartbeat",
      version: 4,
      clientId: "client",
      connection: 5,
    });
  }
  assert.deepEqual(logged, []);
});

Deno.test("A handler that fails is answered with UNKNOWN_SERVER_ERROR in the asked version, and logged", async () => {
  const failures: Toys["heartbeat"][] = [
    () => {
      throw new TypeError("a bug");
    },
    () => Promise.reject(new TypeError("a bug")),
    () => later(Promise.reject(new TypeError("a bug"))),
  ];
  for (const fail of failures) {
    for (const version of [0, 4]) {
      const { handle, reply, logged } = setUp({ heartbeat: fail });
      const exchange = handle(frameOf(heartbeatRequest, version, heartbeat("1")))!;
      await settled(exchange);
      const bytes = reply(exchange);
      const { errorCode } = decode(heartbeatResponse, version, bytes, version === 4 ? 9 : 8);
      assert.equal(errorCode, ErrorCode.UNKNOWN_SERVER_ERROR);
      assert.deepEqual(logged.map(({ level, error }) => ({ level, error })), [
        { level: "error", error: "TypeError: a bug" },
      ]);
    }
  }
});

Deno.test("A failure of a request whose response has no error code at its top ends the connection", () => {
  const { handle, logged } = setUp({
    produce: () => {
      throw new TypeError("a bug");
    },
  });
  assert.equal(handle(frameOf(produceRequest, 9, produceOf(1, 10)))?.state, "fatal");
  assert.equal(logged.length, 1);
});

Deno.test("A KafkaError is answered with its code and not logged", () => {
  const { handle, reply, logged } = setUp({
    heartbeat: () => {
      throw new KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE);
    },
  });
  const bytes = reply(handle(frameOf(heartbeatRequest, 4, heartbeat("1")))!);
  assert.equal(decode(heartbeatResponse, 4, bytes, 9).errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.deepEqual(logged, []);
});

Deno.test("CloseConnection ends the connection and its reason is logged", () => {
  const { handle, logged } = setUp({
    produce: () => {
      throw new CloseConnection("acks=0 failed", ErrorCode.NOT_LEADER_OR_FOLLOWER);
    },
  });
  assert.equal(handle(frameOf(produceRequest, 9, produceOf(0, 10)))?.state, "fatal");
  assert.deepEqual(logged.map(({ level, error }) => ({ level, error })), [
    { level: "info", error: "acks=0 failed (NOT_LEADER_OR_FOLLOWER)" },
  ]);
});

Deno.test("A reply that cannot be encoded leaves nothing behind and becomes UNKNOWN_SERVER_ERROR", () => {
  const { handle, reply, logged } = setUp({ heartbeat: () => ({}) as never });
  const exchange = handle(frameOf(heartbeatRequest, 4, heartbeat("1")))!;
  exchange.response = { throttleTimeMs: 0, errorCode: Symbol("no number") };
  const bytes = reply(exchange);
  assert.equal(new DataView(bytes.buffer).getInt32(0), bytes.length - 4);
  assert.equal(decode(heartbeatResponse, 4, bytes, 9).errorCode, ErrorCode.UNKNOWN_SERVER_ERROR);
  assert.equal(logged.length, 1);
});

Deno.test("A plain promise keeps the frame until it settles, a later reply gives it back at once", async () => {
  const waiting = Promise.withResolvers<ReturnType<typeof beat>>();
  const plain = setUp({ heartbeat: () => waiting.promise });
  const kept = plain.handle(frameOf(heartbeatRequest, 4, heartbeat("1")))!;
  const pipelined = setUp({ heartbeat: () => later(waiting.promise) });
  const given = pipelined.handle(frameOf(heartbeatRequest, 4, heartbeat("1")))!;
  assert.deepEqual([kept.usesFrame, kept.state], [true, "pending"]);
  assert.deepEqual([given.usesFrame, given.state], [false, "pending"]);
  waiting.resolve(beat(3));
  await settled(kept);
  await settled(given);
  assert.deepEqual([kept.usesFrame, kept.state], [false, "ready"]);
  assert.deepEqual(plain.source.moved, [kept]);
  assert.deepEqual(pipelined.source.moved, [given]);
});

Deno.test("Replies come through promises and conditions in any order around each other", async () => {
  const released: string[] = [];
  const reply = () => withRelease(beat(9), () => released.push("released"));
  const heartbeats: Toys["heartbeat"][] = [
    reply,
    () => later(Promise.resolve(reply())),
    () => Promise.resolve(reply()),
    () => Promise.resolve(later(Promise.resolve(reply()))),
  ];
  for (const handle of heartbeats) {
    const toy = setUp({ heartbeat: handle });
    const exchange = toy.handle(frameOf(heartbeatRequest, 4, heartbeat("1")))!;
    await settled(exchange);
    assert.equal(decode(heartbeatResponse, 4, toy.reply(exchange), 9).throttleTimeMs, 9);
    exchange.release?.();
  }
  assert.deepEqual(released, Array(heartbeats.length).fill("released"));
});

Deno.test("A handler sees who asks, on which listener", () => {
  let seen: unknown;
  const { handle } = setUp({
    heartbeat(request, context) {
      const { apiKey, apiVersion, correlationId, clientId, clientHost, connectionId, listener } = context;
      seen = {
        apiKey,
        apiVersion,
        correlationId,
        clientId,
        clientHost,
        connectionId,
        listener: listener.advertisedHost,
      };
      return beat(request);
    },
  });
  handle(frameOf(heartbeatRequest, 3, heartbeat("1")));
  assert.deepEqual(seen, {
    apiKey: 12,
    apiVersion: 3,
    correlationId: 77,
    clientId: "c",
    clientHost: "10.0.0.1",
    connectionId: 5,
    listener: "toy.example",
  });
});

function withoutTime(line: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { time: _, ...rest } = line;
  return rest;
}

/** Resolves when the exchange is no longer pending. */
async function settled(exchange: Exchange): Promise<void> {
  for (let turn = 0; exchange.state === "pending"; turn++) {
    assert.ok(turn < 100, "the exchange does not settle");
    await Promise.resolve();
  }
}
