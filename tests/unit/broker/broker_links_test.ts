import assert from "node:assert/strict";
import { BrokerLinks } from "../../../lib/broker/broker_links.ts";
import { heartbeatRequest, heartbeatResponse } from "../../../lib/protocol/messages/heartbeat.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";
import { beat, heartbeat, toyBroker, type Toys } from "./toy_broker.ts";

function linksTo(port: () => number | null, clock = new SimulatedClock()) {
  const links = new BrokerLinks({
    clock,
    clientId: "kaas-1",
    addressOf: () => port() === null ? null : { host: "127.0.0.1", port: port()! },
  });
  const ask = async (text: string) =>
    (await links.call(2, heartbeatRequest, heartbeatResponse, 4, heartbeat(text)))?.throttleTimeMs ?? null;
  return { links, ask, clock };
}

Deno.test("requests to another broker go over one connection, and each gets its own reply", async () => {
  await using toy = toyBroker();
  const { links, ask } = linksTo(() => toy.port);
  assert.deepEqual(await Promise.all(["1", "2", "3"].map(ask)), [1, 2, 3]);
  assert.equal(await ask("4"), 4);
  assert.equal(toy.services.counters.connectionsAccepted, 1);
  assert.equal(toy.handled[0].clientId, "kaas-1");
  links.close();
});

Deno.test("a connection that has ended is made anew", async () => {
  await using toy = toyBroker();
  const { links, ask } = linksTo(() => toy.port);
  assert.equal(await ask("1"), 1);
  toy.latest().close("the test wants it");
  let answer = await ask("2");
  if (answer === null) answer = await ask("2");
  assert.equal(answer, 2);
  links.close();
});

Deno.test("a broker that is unknown, or does not listen, gives nothing", async () => {
  const { links, ask } = linksTo(() => null);
  assert.equal(await ask("1"), null);
  links.close();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const nobody = linksTo(() => port);
  assert.equal(await nobody.ask("1"), null);
  nobody.links.close();
});

Deno.test("a broker that does not answer in time gives nothing, and the next request gets a new connection", async () => {
  const silent: Toys = { heartbeat: (request) => request.groupId === "never" ? new Promise(() => {}) : beat(request) };
  await using toy = toyBroker(silent);
  const { links, ask, clock } = linksTo(() => toy.port);
  const waiting = ask("never");
  while (toy.handled.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  clock.advance(5_000);
  assert.equal(await waiting, null);
  assert.equal(await ask("6"), 6);
  assert.equal(toy.services.counters.connectionsAccepted, 2);
  links.close();
});

Deno.test("closing the links ends what waits", async () => {
  await using toy = toyBroker({ heartbeat: () => new Promise(() => {}) });
  const { links, ask } = linksTo(() => toy.port);
  const waiting = ask("never");
  while (toy.handled.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  links.close();
  assert.equal(await waiting, null);
  assert.equal(await ask("1"), null);
});
