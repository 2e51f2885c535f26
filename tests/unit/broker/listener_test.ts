import assert from "node:assert/strict";
import { type Acceptor, BrokerListener } from "../../../lib/broker/listener.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../../lib/protocol/messages/api_versions.ts";
import { RawClient } from "../../support/raw_client.ts";
import { software, toyBroker } from "./toy_broker.ts";

const address = { name: "TOY", hostname: "127.0.0.1", port: 0, advertisedHost: "toy.example", advertisedPort: null };

Deno.test("A listener tells clients its bound port unless another one is advertised", () => {
  const bound = BrokerListener.bind(address);
  assert.deepEqual(bound.info, { name: "TOY", advertisedHost: "toy.example", advertisedPort: bound.port });
  bound.close();
  const told = BrokerListener.bind({ ...address, advertisedPort: 1234 });
  assert.equal(told.info.advertisedPort, 1234);
  told.close();
});

Deno.test("An address in use cannot be bound", () => {
  const first = BrokerListener.bind(address);
  assert.throws(() => BrokerListener.bind({ ...address, port: first.port }), Deno.errors.AddrInUse);
  first.close();
});

Deno.test("Clients that come between binding and serving are served", async () => {
  await using broker = toyBroker();
  const listener = BrokerListener.bind(address);
  const client = await RawClient.connect(listener.port);
  await client.send(apiVersionsRequest, 0, software);
  const serving = listener.serve(broker.registry, broker.services);
  assert.equal((await client.receive(apiVersionsResponse, 0)).body.errorCode, 0);
  listener.close();
  await serving;
  client.close();
});

Deno.test("Connections go on when their listener is closed, and nobody else comes in", async () => {
  await using broker = toyBroker();
  const client = await broker.connect();
  broker.listener.close();
  assert.equal((await client.call(apiVersionsRequest, apiVersionsResponse, 0, software)).errorCode, 0);
  await assert.rejects(RawClient.connect(broker.port), Deno.errors.ConnectionRefused);
});

Deno.test("A failing accept is logged once and tried again at growing intervals", async () => {
  await using broker = toyBroker();
  const { clock } = broker;
  const attempts: number[] = [];
  let fails = true;
  const bound = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const acceptor: Acceptor = {
    addr: bound.addr,
    close: () => bound.close(),
    accept() {
      attempts.push(clock.monotonicMs());
      return fails ? Promise.reject(new Error("Too many open files (os error 24)")) : bound.accept();
    },
  };
  const listener = new BrokerListener(address, acceptor);
  const serving = listener.serve(broker.registry, broker.services);
  for (let step = 0; step < 400; step++) {
    await macrotask();
    clock.advance(10);
  }
  const pauses = attempts.slice(1).map((at, index) => at - attempts[index]);
  assert.deepEqual(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
  fails = false;
  clock.advance(1000);
  const client = await RawClient.connect(listener.port);
  assert.equal((await client.call(apiVersionsRequest, apiVersionsResponse, 0, software)).errorCode, 0);
  assert.deepEqual(broker.logged.map(({ message }) => message), ["connections cannot be accepted"]);
  listener.close();
  await serving;
  client.close();
});

/** Lets everything happen that needs no time. */
function macrotask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
