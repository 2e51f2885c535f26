import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";
import { planListeners } from "../../../lib/broker/listener_plan.ts";

const plan = (given: Parameters<typeof BrokerConfig.of>[0]) => planListeners(BrokerConfig.of(given), "node-0");

Deno.test("A listener is advertised as it is unless it says otherwise", () => {
  assert.deepEqual(
    plan({ listeners: "IN://10.0.0.1:9092,OUT://[::1]:0", "advertised.listeners": "OUT://kaas.example:19093" }),
    [
      { name: "IN", hostname: "10.0.0.1", port: 9092, advertisedHost: "10.0.0.1", advertisedPort: null },
      { name: "OUT", hostname: "::1", port: 0, advertisedHost: "kaas.example", advertisedPort: 19093 },
    ],
  );
});

Deno.test("A listener on all addresses is known to clients by the host's name", () => {
  assert.deepEqual(plan({ listeners: "PLAINTEXT://:9092" }), [
    { name: "PLAINTEXT", hostname: "0.0.0.0", port: 9092, advertisedHost: "node-0", advertisedPort: null },
  ]);
});

Deno.test("What no client could use is a problem that names the setting", () => {
  const cases: [Parameters<typeof BrokerConfig.of>[0], RegExp][] = [
    [{ listeners: "" }, /^listeners: expected at least one NAME:\/\/HOST:PORT$/],
    [{ listeners: "A://h:1,A://h:2" }, /^listeners: A is there twice/],
    [{ listeners: "A://h:1,B://h:1" }, /^listeners: A and B both name h:1$/],
    [{ listeners: "A://h:65536" }, /^listeners: port 65536 of A is not accepted, expected 0 to 65535$/],
    [{ listeners: "SASL_SSL://h:1" }, /^listeners: SASL_SSL asks for SASL_SSL .* only PLAINTEXT is served$/],
    [{ "advertised.listeners": "B://h:1" }, /^advertised\.listeners: no listener is named B, expected PLAINTEXT$/],
    [
      { "advertised.listeners": "PLAINTEXT://0.0.0.0:1" },
      /^advertised\.listeners: clients cannot connect to PLAINTEXT:\/\/0\.0\.0\.0/,
    ],
  ];
  for (const [given, expected] of cases) {
    const plans = plan(given);
    assert.ok("problems" in plans, JSON.stringify(given));
    assert.match(plans.problems.join("\n"), expected);
  }
});

Deno.test("Two listeners may both take any free port", () => {
  assert.equal((plan({ listeners: "A://h:0,B://h:0" }) as unknown[]).length, 2);
});
