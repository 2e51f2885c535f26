/** kcat against the broker. */

import assert from "node:assert/strict";
import { type BrokerProcess, brokersAreOwned, startBroker } from "../support/broker_process.ts";
import { kcat, readWithKcat } from "../support/kcat.ts";
import { clientCommand } from "../support/toolchain.ts";

let broker: BrokerProcess;
const installed = clientCommand("kcat") !== null;
const run = Math.random().toString(36).slice(2, 8);
const topicOf = (name: string) => `kcat-${name}-${run}`;

if (installed) {
  Deno.test.beforeAll(async () => {
    broker = await startBroker();
  });
  Deno.test.afterAll(() => broker.stop());
}

function test(name: string, fn: () => Promise<void>, ignore = false): void {
  Deno.test({ name, fn, ignore: ignore || !installed, sanitizeOps: false, sanitizeResources: false });
}

async function execute(args: string[], input = ""): Promise<string> {
  const { success, stdout, stderr } = await kcat(broker.bootstrap, args, new TextEncoder().encode(input));
  assert.ok(success, stderr);
  return new TextDecoder().decode(stdout);
}

function write(topic: string, lines: string[], ...args: string[]): Promise<string> {
  return execute(["-P", "-t", topic, "-p", "0", "-K", ":", "-Z", ...args], lines.join("\n") + "\n");
}

for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"]) {
  test(`kcat writes with compression ${codec} and reads the same`, async () => {
    const topic = topicOf(codec);
    const lines = ["key:value", "nothing:", `long:${"abc".repeat(1_000)}`];
    await write(topic, lines, "-z", codec, "-X", "linger.ms=50");
    const records = await readWithKcat(broker.bootstrap, topic, 3);
    assert.deepEqual(
      records.map(({ offset, key, value }) => [offset, key && atob(key), value && atob(value)]),
      [[0, "key", "value"], [1, "nothing", null], [2, "long", "abc".repeat(1_000)]],
    );
  });
}

test("kcat writes and reads headers", async () => {
  const topic = topicOf("headers");
  await write(topic, ["k:v"], "-H", "first=1", "-H", "second=2", "-H", "first=3");
  const printed = await execute(["-C", "-q", "-t", topic, "-o", "beginning", "-e", "-f", "%h"]);
  assert.equal(printed, "first=1,second=2,first=3");
});

test("kcat reads from an offset, from before the end, and by time", async () => {
  const topic = topicOf("places");
  await write(topic, ["a:1", "b:2", "c:3"]);
  const keys = (from: string) => execute(["-C", "-q", "-t", topic, "-p", "0", "-o", from, "-e", "-f", "%k"]);
  assert.equal(await keys("1"), "bc");
  assert.equal(await keys("-1"), "c");
  assert.equal(await keys("s@1000"), "abc");
  assert.equal(await execute(["-Q", "-t", `${topic}:0:1000`]), `${topic} [0] offset 0\n`);
});

test("kcat lists brokers and topics", async () => {
  const topic = topicOf("list");
  await write(topic, ["a:1"]);
  const listed = JSON.parse(await execute(["-L", "-J"]));
  assert.deepEqual(listed.brokers.map(({ name }: { name: string }) => name), [broker.bootstrap]);
  const found = listed.topics.find((one: { topic: string }) => one.topic === topic);
  assert.deepEqual(found.partitions.map(({ partition }: { partition: number }) => partition), [0]);
  assert.equal(listed.controllerid, listed.brokers[0].id);
});

test("kcat reads after a kill of the broker what was written before it", async () => {
  const topic = topicOf("killed");
  await write(topic, ["a:1", "b:2"], "-X", "acks=all");
  await broker.kill();
  await broker.restart();
  await write(topic, ["c:3"]);
  assert.equal(await execute(["-C", "-q", "-t", topic, "-o", "beginning", "-e", "-f", "%o%k "]), "0a 1b 2c ");
}, !brokersAreOwned);
