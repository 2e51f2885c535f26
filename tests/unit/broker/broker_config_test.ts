import assert from "node:assert/strict";
import { BrokerConfig } from "../../../lib/broker/broker_config.ts";

Deno.test("BrokerConfig.parse() returns every problem, each naming its setting", () => {
  const outcome = BrokerConfig.parse([["num.partitions", "0"], ["no.such.thing", "1"], ["log.retention.ms", "5"]]);
  assert.ok(!(outcome instanceof BrokerConfig));
  assert.equal(outcome.problems.length, 2);
  assert.match(outcome.problems[0], /num\.partitions.*at least 1/);
  assert.match(outcome.problems[1], /no\.such\.thing/);
});

Deno.test("the strongest layer that has a setting gives its value", () => {
  const config = BrokerConfig.of({ "log.retention.ms": 1000 });
  assert.equal(config.get("log.retention.ms"), 1000);
  config.replaceAltered("dynamic-default", new Map([["log.retention.ms", 2000]]));
  assert.equal(config.get("log.retention.ms"), 2000);
  config.replaceAltered("dynamic-broker", new Map([["log.retention.ms", 3000]]));
  assert.equal(config.get("log.retention.ms"), 3000);
  assert.deepEqual(config.layersOf("log.retention.ms").map(({ layer, value }) => [layer, value]), [
    ["dynamic-broker", 3000],
    ["dynamic-default", 2000],
    ["static", 1000],
  ]);
  config.replaceAltered("dynamic-broker", new Map());
  assert.equal(config.get("log.retention.ms"), 2000);
});

Deno.test("a setting that nothing sets has its default", () => {
  const config = BrokerConfig.of();
  assert.equal(config.get("num.partitions"), 1);
  assert.equal(config.get("log.retention.ms"), null);
  assert.equal(config.text("log.retention.ms"), null);
  assert.deepEqual(config.layersOf("log.retention.ms"), []);
});

Deno.test("listeners hear which settings an alteration changed, and nothing when it changed none", () => {
  const config = BrokerConfig.of();
  const heard: string[][] = [];
  config.onChange((changed) => heard.push([...changed]));
  config.replaceAltered(
    "dynamic-default",
    new Map<"max.connections" | "log.segment.bytes", number>([["max.connections", 5]]),
  );
  config.replaceAltered("dynamic-default", new Map([["max.connections", 5]]));
  config.replaceAltered("dynamic-default", new Map());
  assert.deepEqual(heard, [["max.connections"], ["max.connections"]]);
});
