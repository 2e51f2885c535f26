import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { connectionLimitsOf } from "../../../lib/broker/connection_registry.ts";
import { later } from "../../../lib/broker/handler.ts";
import { heartbeatRequest, heartbeatResponse } from "../../../lib/protocol/messages/heartbeat.ts";
import { until } from "../../support/broker_process.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { beat, heartbeat, type HeartbeatResponse, type ToyBroker, toyBroker } from "./toy_broker.ts";

async function isServed(client: RawClient): Promise<boolean> {
  await client.send(heartbeatRequest, 4, heartbeat("1"));
  return await client.receiveFrame() !== null;
}

async function left(broker: ToyBroker, connections: number): Promise<void> {
  await until(() => broker.registry.connections.size === connections, `${connections} connections to be left`);
}

Deno.test("A connection beyond max.connections is closed as it arrives, until another one ends", async () => {
  await using broker = toyBroker({}, { limits: { maxConnections: () => 2 } });
  const [first, second] = [await broker.connect(), await broker.connect()];
  for (let count = 0; count < 3; count++) assert.equal(await (await broker.connect()).receiveFrame(), null);
  assert.ok(await isServed(first));
  assert.ok(await isServed(second));
  first.close();
  await left(broker, 1);
  assert.ok(await isServed(await broker.connect()));
  assert.deepEqual(broker.services.counters.connectionsRefused, 3);
  assert.deepEqual(broker.logged.map(({ setting, limit }) => ({ setting, limit })), [
    { setting: "max.connections", limit: 2 },
  ]);
});

Deno.test("A connection beyond its address's limit is closed as it arrives", async () => {
  await using broker = toyBroker({}, { limits: { maxConnectionsOf: (host) => host === "127.0.0.1" ? 1 : 0 } });
  const first = await broker.connect();
  assert.equal(await (await broker.connect()).receiveFrame(), null);
  assert.ok(await isServed(first));
  first.close();
  await left(broker, 0);
  assert.ok(await isServed(await broker.connect()));
});

Deno.test("Limits come from the settings, an address's own count before the general one", () => {
  const config = BrokerConfig.of({
    "max.connections": 7,
    "max.connections.per.ip": 3,
    "max.connections.per.ip.overrides": "10.0.0.1:5,10.0.0.2:0",
    "connections.max.idle.ms": 1234,
  });
  const limits = connectionLimitsOf(config);
  assert.equal(limits.maxConnections(), 7);
  assert.equal(limits.maxIdleMs(), 1234);
  const hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "0.0.0.1"];
  assert.deepEqual(hosts.map((host) => limits.maxConnectionsOf(host)), [5, 0, 3, 3]);
  config.replaceAltered("dynamic-default", new Map([["max.connections.per.ip", 4]]));
  assert.equal(limits.maxConnectionsOf("10.0.0.3"), 4);
});

Deno.test("An idle connection is closed after its time, one that sends meanwhile is not", async () => {
  await using broker = toyBroker({}, { limits: { maxIdleMs: () => 600_000 } });
  const [idle, busy] = [await broker.connect(), await broker.connect()];
  broker.clock.advance(599_000);
  assert.ok(await isServed(busy));
  broker.clock.advance(11_000);
  assert.equal(await idle.receiveFrame(), null);
  await left(broker, 1);
  assert.ok(await isServed(busy));
});

Deno.test("A connection that waits for a reply is not idle; it is once the reply has left", async () => {
  const reply = Promise.withResolvers<HeartbeatResponse>();
  await using broker = toyBroker({ heartbeat: () => later(reply.promise) }, { limits: { maxIdleMs: () => 1000 } });
  const client = await broker.connect();
  await client.send(heartbeatRequest, 4, heartbeat("1"));
  await until(() => broker.handled.length === 1, "the request");
  broker.clock.advance(100_000);
  assert.equal(broker.registry.connections.size, 1);
  reply.resolve(beat(1));
  assert.equal((await client.receive(heartbeatResponse, 4)).correlationId, 1);
  await until(() => broker.latest().heldBytes.replies === 0, "the reply to have left");
  broker.clock.advance(2000);
  await left(broker, 0);
});

Deno.test("Without an idle limit no connection is closed for being idle", async () => {
  await using broker = toyBroker({}, { limits: { maxIdleMs: () => -1 } });
  const client = await broker.connect();
  broker.clock.advance(1_000_000_000);
  assert.ok(await isServed(client));
});

Deno.test("Finishing closes connections that owe nothing at once, the others when their time is over", async () => {
  await using broker = toyBroker({ heartbeat: () => later(new Promise(() => {})) });
  const [idle, waiting] = [await broker.connect(), await broker.connect()];
  await waiting.send(heartbeatRequest, 4, heartbeat("1"));
  await until(() => broker.handled.length === 1, "the request");
  const finished = broker.registry.finish(3000);
  assert.equal(await idle.receiveFrame(), null);
  await left(broker, 1);
  broker.clock.advance(3000);
  await finished;
  assert.equal(await waiting.receiveFrame(), null);
});
