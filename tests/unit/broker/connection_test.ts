import assert from "node:assert/strict";
import { LAST_REPLIES_MS, MAX_UNANSWERED, MAX_UNWRITTEN_BYTES } from "../../../lib/broker/connection.ts";
import { CloseConnection, later, withRelease } from "../../../lib/broker/handler.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../lib/protocol/messages/api_versions.ts";
import { fetchRequest, fetchResponse } from "../../../lib/protocol/messages/fetch.ts";
import { heartbeatRequest, heartbeatResponse } from "../../../lib/protocol/messages/heartbeat.ts";
import { produceRequest } from "../../../lib/protocol/messages/produce.ts";
import { until } from "../../support/broker_process.ts";
import { joined, type RawClient, requestFrame } from "../../support/raw_client.ts";
import {
  beat,
  fetched,
  fetchOf,
  heartbeat,
  type HeartbeatResponse,
  produceOf,
  software,
  type ToyBroker,
  toyBroker,
} from "./toy_broker.ts";

const HEARTBEAT_VERSION = 4;
const FETCH_VERSION = 12;

function heartbeatFrame(number: number): Uint8Array {
  return requestFrame(heartbeatRequest, HEARTBEAT_VERSION, heartbeat(`${number}`), { correlationId: number });
}

async function receiveBeat(client: RawClient): Promise<number> {
  const { body, correlationId } = await client.receive(heartbeatResponse, HEARTBEAT_VERSION);
  assert.equal(body.throttleTimeMs, correlationId, "the reply is that of its request");
  return correlationId;
}

async function receiveBeats(client: RawClient, count: number): Promise<number[]> {
  const beats: number[] = [];
  while (beats.length < count) beats.push(await receiveBeat(client));
  return beats;
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}

/** Whether the broker still serves a client that comes now. */
async function assertServes(broker: ToyBroker): Promise<void> {
  const client = await broker.connect();
  const { errorCode } = await client.call(apiVersionsRequest, apiVersionsResponse, 0, software);
  assert.equal(errorCode, 0);
  client.close();
}

/** Replies that the test gives out when it wants, by the number of their request. */
function promises() {
  const all = new Map<number, PromiseWithResolvers<HeartbeatResponse>>();
  const of = (number: number) => {
    const one = all.get(number) ?? Promise.withResolvers<HeartbeatResponse>();
    all.set(number, one);
    return one;
  };
  return { of, resolve: (number: number) => of(number).resolve(beat(number)) };
}

Deno.test("Replies leave in the order of their requests, whatever order they become ready in", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const client = await broker.connect();
  await client.sendBytes(joined(upTo(5).map(heartbeatFrame)));
  await until(() => broker.handled.length === 5, "all requests to be handled before one is answered");
  for (const number of [3, 5, 2, 4]) replies.resolve(number);
  await assertServes(broker);
  assert.equal(broker.services.counters.sentBytes, await apiVersionsBytes(), "nothing overtakes the first reply");
  replies.resolve(1);
  assert.deepEqual(await receiveBeats(client, 5), [1, 2, 3, 4, 5]);
});

/** Size of the reply that {@link assertServes} gets. */
async function apiVersionsBytes(): Promise<number> {
  await using broker = toyBroker();
  await assertServes(broker);
  return broker.services.counters.sentBytes;
}

Deno.test("Thousands of pipelined requests are answered in order, on every one of several connections", async () => {
  await using broker = toyBroker({
    heartbeat: (request) => Number(request.groupId) % 7 === 0 ? later(Promise.resolve(beat(request))) : beat(request),
  });
  await Promise.all(
    upTo(5).map(async () => {
      const client = await broker.connect();
      const [, received] = await Promise.all([
        client.sendBytes(joined(upTo(3000).map(heartbeatFrame))),
        receiveBeats(client, 3000),
      ]);
      assert.deepEqual(received, upTo(3000));
    }),
  );
});

Deno.test("Requests that come byte by byte are answered", async () => {
  await using broker = toyBroker();
  const client = await broker.connect();
  for (const byte of joined(upTo(3).map(heartbeatFrame))) await client.sendBytes(Uint8Array.of(byte));
  assert.deepEqual(await receiveBeats(client, 3), [1, 2, 3]);
});

Deno.test("A request of many megabytes is handed over whole", async () => {
  const sizes: number[] = [];
  await using broker = toyBroker({
    produce({ topicData }) {
      const { records } = topicData[0].partitionData[0];
      assert.ok(records!.every((byte) => byte === 1));
      sizes.push(records!.length);
      return null;
    },
  });
  const client = await broker.connect();
  for (const bytes of [10, 5_000_000, 70_000, 12_000_000]) await client.send(produceRequest, 9, produceOf(0, bytes));
  await until(() => sizes.length === 4, "all four requests");
  assert.deepEqual(sizes, [10, 5_000_000, 70_000, 12_000_000]);
});

Deno.test("Large record bytes arrive unchanged among small replies", async () => {
  await using broker = toyBroker({ fetch: ({ maxBytes }) => fetched(maxBytes) });
  const client = await broker.connect();
  const sizes = [100, 9000, 40_000, 3_000_000, 0, 70_000];
  for (const bytes of sizes) {
    await client.sendBytes(heartbeatFrame(1));
    await client.send(fetchRequest, FETCH_VERSION, fetchOf(bytes));
  }
  for (const bytes of sizes) {
    await receiveBeat(client);
    const { body } = await client.receive(fetchResponse, FETCH_VERSION);
    const { records } = body.responses[0].partitions[0];
    assert.equal(records!.length, bytes);
    assert.ok(records!.every((byte) => byte === (bytes & 255)));
  }
});

Deno.test("A request whose handler keeps the frame holds up the next one, and its frame stays as it is", async () => {
  const waiting = Promise.withResolvers<void>();
  const seen: number[][] = [];
  await using broker = toyBroker({
    async produce({ topicData }) {
      const { records } = topicData[0].partitionData[0];
      await waiting.promise;
      seen.push([records!.length, records!.findIndex((byte) => byte !== 1)]);
      return null;
    },
  });
  const client = await broker.connect();
  for (const bytes of [1000, 400_000]) await client.send(produceRequest, 9, produceOf(0, bytes));
  await client.sendBytes(heartbeatFrame(7));
  await until(() => broker.handled.length === 1, "the first request");
  await assertServes(broker);
  assert.deepEqual(broker.handled.map(({ apiKey }) => apiKey), [0, 18]);
  waiting.resolve();
  assert.equal(await receiveBeat(client), 7);
  assert.deepEqual(seen, [[1000, -1], [400_000, -1]]);
});

Deno.test("A request without a reply leaves no gap in the order", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const client = await broker.connect();
  await client.sendBytes(heartbeatFrame(1));
  await client.send(produceRequest, 9, produceOf(0, 10));
  await client.sendBytes(heartbeatFrame(2));
  await until(() => broker.handled.length === 3, "all requests");
  replies.resolve(2);
  replies.resolve(1);
  assert.deepEqual(await receiveBeats(client, 2), [1, 2]);
});

Deno.test("A request with a large reply waits until every earlier reply has left; others go on behind it", async () => {
  const replies = promises();
  let unreleased = 0;
  let most = 0;
  await using broker = toyBroker({
    heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise),
    fetch() {
      most = Math.max(most, ++unreleased);
      return later(Promise.resolve(withRelease(fetched(2_000_000), () => unreleased--)));
    },
  });
  const client = await broker.connect();
  await client.sendBytes(heartbeatFrame(1));
  for (let count = 0; count < 10; count++) await client.send(fetchRequest, FETCH_VERSION, fetchOf(1));
  await client.sendBytes(heartbeatFrame(2));
  await assertServes(broker);
  assert.deepEqual(broker.handled.map(({ apiKey }) => apiKey), [12, 18], "no fetch starts yet");
  replies.resolve(1);
  replies.resolve(2);
  assert.equal(await receiveBeat(client), 1);
  for (let count = 0; count < 10; count++) {
    const { body } = await client.receive(fetchResponse, FETCH_VERSION);
    assert.equal(body.responses[0].partitions[0].records!.length, 2_000_000);
  }
  assert.equal(await receiveBeat(client), 2);
  assert.equal(most, 1);
  assert.equal(unreleased, 0);
});

Deno.test("At most so many requests of a connection are unanswered", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const client = await broker.connect();
  await client.sendBytes(joined(upTo(3 * MAX_UNANSWERED).map(heartbeatFrame)));
  await until(() => broker.handled.length === MAX_UNANSWERED, "as many requests as may start");
  await assertServes(broker);
  assert.equal(broker.handled.length, MAX_UNANSWERED + 1);
  for (const number of upTo(3 * MAX_UNANSWERED)) replies.resolve(number);
  assert.deepEqual(await receiveBeats(client, 3 * MAX_UNANSWERED), upTo(3 * MAX_UNANSWERED));
});

Deno.test("A client that does not read its replies holds bounded memory and holds up nobody else", async () => {
  const replyBytes = 200_000;
  const requests = 1000;
  let unreleased = 0;
  await using broker = toyBroker({
    heartbeat: (request) => beat(request),
    produce: () => null,
    fetch() {
      unreleased++;
      return withRelease(fetched(replyBytes), () => unreleased--);
    },
  });
  const client = await broker.connect();
  const connection = broker.latest();
  const sending = client.sendBytes(
    joined(
      upTo(requests).map((number) => requestFrame(fetchRequest, FETCH_VERSION, fetchOf(1), { correlationId: number })),
    ),
  );
  await until(() => connection.heldBytes.replies > 0 && connection.heldBytes.requests > 0, "replies to pile up");
  for (let round = 0; round < 20; round++) {
    await assertServes(broker);
    assert.ok(connection.heldBytes.replies <= MAX_UNWRITTEN_BYTES + 2 * replyBytes);
    assert.ok(connection.heldBytes.requests <= 200_000);
    assert.ok(unreleased <= 2);
  }
  const fetches = broker.handled.filter(({ apiKey }) => apiKey === 1).length;
  assert.ok(fetches < requests / 2, `${fetches} requests were handled for a client that reads nothing`);
  for (const number of upTo(requests)) {
    assert.equal((await client.receive(fetchResponse, FETCH_VERSION)).correlationId, number);
  }
  await sending;
  assert.equal(unreleased, 0);
});

Deno.test("Small replies that nobody reads stop the reading of requests as well", async () => {
  await using broker = toyBroker({ heartbeat: () => beat(0) });
  const client = await broker.connect();
  const connection = broker.latest();
  const burst = joined(upTo(2000).map(heartbeatFrame));
  let sent = 0;
  let isOver = false;
  const sending = (async () => {
    while (!isOver) sent += await client.connection.write(burst);
  })().catch(() => {});
  let before = -1;
  // Two looks at the same number, with another client served in between, mean that nothing moves any more.
  await until(async () => {
    const same = sent > 0 && sent === before;
    before = sent;
    await assertServes(broker);
    return same;
  }, "the client to be stopped");
  assert.ok(connection.heldBytes.replies <= MAX_UNWRITTEN_BYTES + 10_000);
  assert.ok(connection.heldBytes.requests <= 200_000);
  isOver = true;
  client.close();
  await sending;
});

Deno.test("A malformed request closes its connection alone, after the replies to those before it", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const bystander = await broker.connect();
  const client = await broker.connect();
  const malformed = heartbeatFrame(3);
  malformed[malformed.length - 1] = 200;
  await client.sendBytes(joined([heartbeatFrame(1), heartbeatFrame(2), malformed, heartbeatFrame(4)]));
  await until(() => broker.logged.length === 1, "a line in the log");
  replies.resolve(2);
  replies.resolve(1);
  assert.deepEqual(await receiveBeats(client, 2), [1, 2]);
  assert.equal(await client.receiveFrame(), null);
  await until(() => broker.registry.connections.size === 1, "the connection to be gone");
  assert.deepEqual(broker.handled.map(({ correlationId }) => correlationId), [1, 2]);
  assert.equal(broker.logged.length, 1);
  assert.equal(broker.logged[0].api, "Heartbeat");
  await bystander.sendBytes(heartbeatFrame(8));
  replies.resolve(8);
  assert.equal(await receiveBeat(bystander), 8);
});

Deno.test("A length beyond the limit closes the connection at once, without a reply and with one line", async () => {
  for (
    const start of [new TextEncoder().encode("GET "), Uint8Array.of(0x06, 0x40, 0, 1), Uint8Array.of(0xff, 0, 0, 0)]
  ) {
    await using broker = toyBroker();
    const client = await broker.connect();
    await client.sendBytes(start);
    assert.equal(await client.receiveFrame(), null);
    const claimedBytes = new DataView(start.buffer).getInt32(0);
    assert.deepEqual(broker.logged.map((line) => line.claimedBytes), [claimedBytes]);
    await assertServes(broker);
  }
});

Deno.test("The limit of a length is the setting's", async () => {
  await using broker = toyBroker({}, { maxRequestBytes: 1000 });
  const [most, more] = [await broker.connect(), await broker.connect()];
  const request = (bytes: number) => {
    const empty = requestFrame(heartbeatRequest, 0, heartbeat(""), { correlationId: 0 });
    return requestFrame(heartbeatRequest, 0, heartbeat("0".repeat(bytes + 4 - empty.length)), { correlationId: 0 });
  };
  await most.sendBytes(request(1000));
  assert.equal((await most.receive(heartbeatResponse, 0)).correlationId, 0);
  await more.sendBytes(request(1001));
  assert.equal(await more.receiveFrame(), null);
});

Deno.test("An acks=0 request that fails closes the connection after the replies before it", async () => {
  await using broker = toyBroker({
    produce() {
      throw new CloseConnection("acks=0 failed");
    },
  });
  const client = await broker.connect();
  await client.sendBytes(heartbeatFrame(1));
  await client.send(produceRequest, 9, produceOf(0, 10));
  await client.sendBytes(heartbeatFrame(2));
  assert.equal(await receiveBeat(client), 1);
  assert.equal(await client.receiveFrame(), null);
});

Deno.test("A later reply that cannot be given closes the connection, and nothing behind it is sent", async () => {
  const fatal = Promise.withResolvers<never>();
  let released = 0;
  await using broker = toyBroker({
    produce: () => later(fatal.promise),
    heartbeat: (request) => withRelease(beat(request), () => released++),
  });
  const client = await broker.connect();
  await client.sendBytes(heartbeatFrame(1));
  await client.send(produceRequest, 9, produceOf(1, 10));
  await client.sendBytes(joined([heartbeatFrame(2), heartbeatFrame(3)]));
  await until(() => broker.handled.length === 4, "all requests");
  fatal.reject(new CloseConnection("it did not work"));
  assert.equal(await receiveBeat(client), 1);
  assert.equal(await client.receiveFrame(), null);
  await until(() => released === 3, "everything to be released");
});

Deno.test("A client that hangs up during a long poll aborts its signal", async () => {
  const signals: AbortSignal[] = [];
  await using broker = toyBroker({
    fetch: (_, { signal }) =>
      later(
        new Promise((resolve) => {
          signals.push(signal);
          signal.addEventListener("abort", () => resolve(fetched(0)));
        }),
      ),
  });
  const client = await broker.connect();
  await client.send(fetchRequest, FETCH_VERSION, fetchOf(1));
  await until(() => signals.length === 1, "the long poll");
  assert.equal(signals[0].aborted, false);
  client.close();
  await until(() => signals[0].aborted, "the signal");
  await until(() => broker.registry.connections.size === 0, "the connection to be gone");
});

Deno.test("A client that hangs up is noticed while a handler keeps its frame", async () => {
  const signals: AbortSignal[] = [];
  await using broker = toyBroker({
    heartbeat: (request, { signal }) =>
      new Promise((resolve) => {
        signals.push(signal);
        if (signal.aborted) resolve(beat(request));
        signal.addEventListener("abort", () => resolve(beat(request)));
      }),
  });
  const client = await broker.connect();
  await client.sendBytes(joined([heartbeatFrame(1), heartbeatFrame(2)]));
  await until(() => signals.length === 1, "the first request");
  client.close();
  await until(() => signals[0].aborted, "the signal");
  await until(() => broker.registry.connections.size === 0, "the connection to be gone");
});

Deno.test("A client that closes only its sending half gets the replies to all it sent", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const client = await broker.connect();
  await client.sendBytes(joined(upTo(3 * MAX_UNANSWERED).map(heartbeatFrame)));
  await client.connection.closeWrite();
  for (const number of upTo(3 * MAX_UNANSWERED)) replies.resolve(number);
  assert.deepEqual(await receiveBeats(client, 3 * MAX_UNANSWERED), upTo(3 * MAX_UNANSWERED));
  assert.equal(await client.receiveFrame(), null);
});

Deno.test("Requests without replies are all handled when their client hangs up right after them", async () => {
  let handled = 0;
  await using broker = toyBroker({
    async produce() {
      await Promise.resolve();
      handled++;
      return null;
    },
  });
  const client = await broker.connect();
  const frame = requestFrame(produceRequest, 9, produceOf(0, 5000), { correlationId: 1 });
  await client.sendBytes(joined(Array<Uint8Array>(100).fill(frame)));
  client.close();
  await until(() => handled === 100, "all requests");
});

Deno.test("A reply that never comes holds up the end of a connection for a bounded time", async () => {
  await using broker = toyBroker({ heartbeat: () => later(new Promise(() => {})) });
  const client = await broker.connect();
  const connection = broker.latest();
  await client.sendBytes(heartbeatFrame(1));
  await until(() => broker.handled.length === 1, "the request");
  const { signal } = broker.handled[0];
  await client.connection.closeWrite();
  await until(() => signal.aborted, "the client's end to be seen");
  assert.ok(broker.registry.connections.has(connection));
  broker.clock.advance(LAST_REPLIES_MS);
  await until(() => broker.registry.connections.size === 0, "the connection to be gone");
});

Deno.test("What replies hold is released once, also when the connection dies before they are written", async () => {
  const releases: number[] = [];
  const replies = promises();
  await using broker = toyBroker({
    heartbeat: ({ groupId }) =>
      later(
        replies.of(Number(groupId)).promise.then((reply) => withRelease(reply, () => releases.push(Number(groupId)))),
      ),
  });
  const client = await broker.connect();
  const connection = broker.latest();
  await client.sendBytes(joined(upTo(4).map(heartbeatFrame)));
  await until(() => broker.handled.length === 4, "all requests");
  replies.resolve(1);
  assert.equal(await receiveBeat(client), 1);
  replies.resolve(3);
  connection.close("the test says so");
  replies.resolve(2);
  replies.resolve(4);
  await until(() => releases.length === 4, "everything to be released");
  assert.deepEqual(releases.toSorted(), [1, 2, 3, 4]);
});

Deno.test("A connection that finishes starts nothing more and closes when its replies have left", async () => {
  const replies = promises();
  await using broker = toyBroker({ heartbeat: ({ groupId }) => later(replies.of(Number(groupId)).promise) });
  const client = await broker.connect();
  const connection = broker.latest();
  await client.sendBytes(joined([heartbeatFrame(1), heartbeatFrame(2)]));
  await until(() => broker.handled.length === 2, "both requests");
  connection.finish(1000);
  await client.sendBytes(heartbeatFrame(3));
  replies.resolve(1);
  replies.resolve(2);
  assert.deepEqual(await receiveBeats(client, 2), [1, 2]);
  assert.equal(await client.receiveFrame(), null);
  assert.equal(broker.handled.length, 2);
});

Deno.test("A handler's failure is seen by its request alone", async () => {
  await using broker = toyBroker({
    heartbeat(request) {
      if (request.groupId === "2") throw new TypeError("a bug");
      return beat(request);
    },
  });
  const client = await broker.connect();
  await client.sendBytes(joined(upTo(3).map(heartbeatFrame)));
  assert.equal(await receiveBeat(client), 1);
  const { body } = await client.receive(heartbeatResponse, HEARTBEAT_VERSION);
  assert.equal(body.errorCode, -1);
  assert.equal(await receiveBeat(client), 3);
});

Deno.test("ApiVersions from the future is answered and the connection serves a lower version after it", async () => {
  await using broker = toyBroker();
  const client = await broker.connect();
  await client.sendBytes(Uint8Array.of(0, 0, 0, 12, 0, 18, 0, 99, 0, 0, 0, 5, 0, 0, 1, 2));
  const frame = await client.receiveFrame();
  assert.equal(frame!.length, 16);
  assert.equal((await client.call(apiVersionsRequest, apiVersionsResponse, 0, software)).errorCode, 0);
});
