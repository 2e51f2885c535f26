/** Kafka's own command-line tools against the broker. */

import assert from "node:assert/strict";
import { brokerIsKaas, type BrokerProcess, brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { type KafkaTool, runTool, tool } from "../support/kafka_tools.ts";
import { isServed } from "../support/served_apis.ts";
import { clientCommand } from "../support/toolchain.ts";

let broker: BrokerProcess;
const run = Math.random().toString(36).slice(2, 8);
const topicOf = (name: string) => `tools-${name}-${run}`;

if (clientCommand("kafka-tools") !== null) {
  Deno.test.beforeAll(async () => {
    broker = await startBroker();
  });
  Deno.test.afterAll(() => broker.stop());
}

function test(name: string, fn: () => Promise<void>, ignore = false): void {
  Deno.test({
    name,
    fn,
    ignore: ignore || clientCommand("kafka-tools") === null,
    sanitizeOps: false,
    sanitizeResources: false,
  });
}

/** Runs a tool that talks with the broker. */
function at(name: KafkaTool, args: string[], input?: string): Promise<string> {
  const address = ["--bootstrap-server", broker.bootstrap];
  // Of this one, the address belongs to the subcommand.
  return tool(name, name === "kafka-cluster" ? [...args, ...address] : [...address, ...args], input);
}

async function createTopic(name: string, ...args: string[]): Promise<string> {
  const topic = topicOf(name);
  const printed = await at("kafka-topics", ["--create", "--topic", topic, ...args]);
  assert.match(printed, new RegExp(`Created topic ${topic}`));
  const listed = async () => (await at("kafka-topics", ["--list"])).includes(topic);
  if (!brokerIsKaas) await until(listed, `topic ${topic} to be listed`);
  return topic;
}

/** Lines `key TAB value`. */
function writeLines(topic: string, lines: string[], ...args: string[]): Promise<string> {
  const properties = ["--reader-property", "parse.key=true", "--reader-property", "null.marker=NULL"];
  return at("kafka-console-producer", ["--topic", topic, ...properties, ...args], lines.join("\n") + "\n");
}

async function readLines(topic: string, from: string, count: number, ...args: string[]): Promise<string[]> {
  const properties = ["partition", "offset", "key"].flatMap((field) => ["--formatter-property", `print.${field}=true`]);
  const printed = await at("kafka-console-consumer", [
    ...["--topic", topic, "--partition", "0", "--offset", from, "--max-messages", String(count)],
    ...["--timeout-ms", "20000", ...properties, ...args],
  ]);
  return printed.trimEnd().split("\n");
}

test("kafka-topics creates, describes, extends, lists and deletes a topic", async () => {
  const topic = await createTopic("life", "--partitions", "3", "--config", "retention.ms=3600000");
  const described = await at("kafka-topics", ["--describe", "--topic", topic]);
  assert.match(described, /PartitionCount: 3\s+ReplicationFactor: 1\s+Configs:.*retention\.ms=3600000/);
  assert.match(described, /Partition: 2\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+/);
  await at("kafka-topics", ["--alter", "--topic", topic, "--partitions", "5"]);
  assert.match(await at("kafka-topics", ["--describe", "--topic", topic]), /PartitionCount: 5/);
  assert.ok((await at("kafka-topics", ["--list"])).split("\n").includes(topic));
  await at("kafka-topics", ["--delete", "--topic", topic]);
  assert.ok(!(await at("kafka-topics", ["--list"])).split("\n").includes(topic));
});

test("kafka-topics says why a topic cannot be created, extended or described", async () => {
  const topic = await createTopic("refused");
  const attempt = async (...args: string[]) => {
    const { code, stdout, stderr } = await runTool("kafka-topics", ["--bootstrap-server", broker.bootstrap, ...args]);
    assert.notEqual(code, 0);
    return stdout + stderr;
  };
  assert.match(await attempt("--create", "--topic", topic), /already exists/);
  assert.match(await attempt("--alter", "--topic", topic, "--partitions", "1"), /has 1 partition/);
  assert.match(
    await attempt("--create", "--topic", topicOf("bad"), "--config", "cleanup.policy=sometimes"),
    /cleanup\.policy|InvalidConfigurationException/,
  );
  assert.match(await attempt("--describe", "--topic", topicOf("unknown")), /does not exist/);
});

test("kafka-console-producer and kafka-console-consumer carry keys, nulls and offsets", async () => {
  const topic = await createTopic("console");
  for (const codec of ["none", "zstd"]) {
    await writeLines(topic, [`${codec}\tvalue`, `${codec}-null\tNULL`], "--compression-codec", codec);
  }
  assert.deepEqual(await readLines(topic, "earliest", 4), [
    "Partition:0\tOffset:0\tnone\tvalue",
    "Partition:0\tOffset:1\tnone-null\tnull",
    "Partition:0\tOffset:2\tzstd\tvalue",
    "Partition:0\tOffset:3\tzstd-null\tnull",
  ]);
  assert.deepEqual(await readLines(topic, "1", 2), [
    "Partition:0\tOffset:1\tnone-null\tnull",
    "Partition:0\tOffset:2\tzstd\tvalue",
  ]);
});

test("kafka-console-producer creates the topic it writes to", async () => {
  const topic = topicOf("automatic");
  await writeLines(topic, ["k\tv"]);
  assert.deepEqual(await readLines(topic, "earliest", 1), ["Partition:0\tOffset:0\tk\tv"]);
});

test("kafka-get-offsets tells earliest, latest, youngest and by time", async () => {
  const topic = await createTopic("offsets");
  const before = Date.now();
  await writeLines(topic, ["a\t1", "b\t2", "c\t3"]);
  const offset = async (time: string) =>
    (await at("kafka-get-offsets", ["--topic-partitions", `${topic}:0`, "--time", time])).trim();
  assert.equal(await offset("latest"), `${topic}:0:3`);
  assert.equal(await offset("earliest"), `${topic}:0:0`);
  assert.match(await offset("max-timestamp"), new RegExp(`^${topic}:0:[012]$`));
  assert.equal(await offset(String(before)), `${topic}:0:0`);
  // What has no answer is printed with no offset.
  assert.match(await offset(String(Date.now() + 3_600_000)), new RegExp(`^(${topic}:0:)?$`));
});

test("kafka-configs shows and changes settings of a topic", async () => {
  const topic = await createTopic("configs");
  const entity = ["--entity-type", "topics", "--entity-name", topic];
  const describe = (...args: string[]) => at("kafka-configs", ["--describe", ...entity, ...args]);
  assert.match(
    await describe("--all"),
    /cleanup\.policy=delete sensitive=false synonyms=\{.*DEFAULT_CONFIG:log\.cleanup/,
  );
  await at("kafka-configs", [
    "--alter",
    ...entity,
    "--add-config",
    "retention.ms=1234567,cleanup.policy=[compact,delete]",
  ]);
  const changed = await describe();
  assert.match(changed, /retention\.ms=1234567 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=1234567/);
  assert.match(changed, /cleanup\.policy=compact,delete/);
  await at("kafka-configs", ["--alter", ...entity, "--delete-config", "retention.ms"]);
  assert.doesNotMatch(await describe(), /retention\.ms=/);
  const wrong = await runTool("kafka-configs", [
    ...["--bootstrap-server", broker.bootstrap, "--alter", ...entity, "--add-config", "segment.bytes=none"],
  ]);
  assert.match(wrong.stdout + wrong.stderr, /segment\.bytes/);
  assert.notEqual(wrong.code, 0);
});

test("kafka-configs shows the settings of a broker", async () => {
  const id = await brokerId();
  const printed = await at("kafka-configs", ["--describe", "--all", "--entity-type", "brokers", "--entity-name", id]);
  assert.match(printed, /log\.retention\.ms=/);
  assert.match(printed, /listeners=.*READ_ONLY|listeners=/);
});

async function brokerId(): Promise<string> {
  const endpoints = await at("kafka-cluster", ["list-endpoints"]);
  return endpoints.trim().split("\n").at(-1)!.split(/\s+/)[0];
}

test("kafka-cluster tells the cluster's id and its brokers", async () => {
  assert.match(await at("kafka-cluster", ["cluster-id"]), /Cluster ID: \S{5,}/);
  const endpoints = await at("kafka-cluster", ["list-endpoints"]);
  const [, host, port] = endpoints.trim().split("\n").at(-1)!.split(/\s+/);
  assert.equal(`${host}:${port}`, broker.bootstrap);
});

test("kafka-broker-api-versions lists what is served, and nothing it does not know", async () => {
  const printed = await at("kafka-broker-api-versions", []);
  assert.ok(printed.startsWith(broker.bootstrap));
  for (const api of ["Produce(0)", "Fetch(1)", "ListOffsets(2)", "Metadata(3)", "ApiVersions(18)"]) {
    assert.match(printed, new RegExp(`${api.replace(/[()]/g, "\\$&")}: \\d+`));
  }
  assert.doesNotMatch(printed, /UNKNOWN\(/);
});

test("kafka-features describes the features that the cluster has agreed on", async () => {
  const lines = (await at("kafka-features", ["describe"])).split("\n").filter((line) => line !== "");
  const form = /^Feature: \S+\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+\s+FinalizedVersionLevel: \S+/;
  for (const line of lines) assert.match(line, form);
});

test("kafka-log-dirs tells the size of each partition", async () => {
  const topic = await createTopic("dirs", "--partitions", "2");
  await writeLines(topic, ["a\t1"]);
  const printed = await at("kafka-log-dirs", ["--describe", "--topic-list", topic]);
  const { brokers } = JSON.parse(printed.trim().split("\n").at(-1)!);
  const partitions: { partition: string; size: number }[] = brokers[0].logDirs[0].partitions;
  assert.deepEqual(partitions.map(({ partition }) => partition).sort(), [`${topic}-0`, `${topic}-1`]);
  assert.ok(partitions.reduce((sum, { size }) => sum + size, 0) > 0);
});

test("kafka-delete-records moves the start of the log", async () => {
  const topic = await createTopic("delete");
  await writeLines(topic, ["a\t1", "b\t2", "c\t3", "d\t4"]);
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(
      file,
      JSON.stringify({ version: 1, partitions: [{ topic, partition: 0, offset: 3 }] }),
    );
    assert.match(await at("kafka-delete-records", ["--offset-json-file", file]), /low_watermark: 3/);
  } finally {
    await Deno.remove(file);
  }
  const earliest = await at("kafka-get-offsets", ["--topic-partitions", `${topic}:0`, "--time", "earliest"]);
  assert.equal(earliest.trim(), `${topic}:0:3`);
  assert.deepEqual(await readLines(topic, "earliest", 1), ["Partition:0\tOffset:3\td\t4"]);
});

test("kafka-producer-perf-test writes what it counts", async () => {
  const topic = await createTopic("performance");
  const printed = await at("kafka-producer-perf-test", [
    ...["--topic", topic, "--num-records", "20000", "--record-size", "200", "--throughput", "-1"],
    ...["--command-property", "compression.type=lz4"],
  ]);
  assert.match(printed, /20000 records sent/);
  const latest = await at("kafka-get-offsets", ["--topic-partitions", `${topic}:0`, "--time", "latest"]);
  assert.equal(latest.trim(), `${topic}:0:20000`);
});

test("kafka-transactions describes the producers of a partition", async () => {
  const topic = await createTopic("producers");
  // Of its own accord the producer is idempotent.
  await writeLines(topic, ["a\t1", "b\t2"]);
  const printed = await at("kafka-transactions", ["describe-producers", "--topic", topic, "--partition", "0"]);
  const [heading, row] = printed.trim().split("\n").map((line) => line.trim().split(/\s+/));
  const fieldOf = (name: string) => row[heading.indexOf(name)];
  assert.match(fieldOf("ProducerId"), /^\d+$/);
  assert.equal(fieldOf("ProducerEpoch"), "0");
  assert.match(fieldOf("LastSequence"), /^[01]$/);
  assert.equal(fieldOf("CurrentTransactionStartOffset"), "None");
});

test("kafka-e2e-latency sees each of its records come back", async () => {
  const topic = await createTopic("latency");
  const printed = await at("kafka-e2e-latency", [
    ...["--topic", topic, "--num-records", "200", "--producer-acks", "all", "--record-size", "100"],
  ]);
  assert.match(printed, /Avg latency: \d/);
}, !isServed("offset_commit"));

test("kafka-consumer-perf-test reads by group what kafka-producer-perf-test wrote", async () => {
  const topic = await createTopic("perf", "--partitions", "3");
  await at("kafka-producer-perf-test", [
    ...["--topic", topic, "--num-records", "20000", "--record-size", "200", "--throughput", "-1"],
  ]);
  const printed = await at("kafka-consumer-perf-test", ["--topic", topic, "--num-records", "20000"]);
  const [heading, row] = printed.trim().split("\n").slice(-2).map((line) => line.split(", "));
  assert.equal(row[heading.indexOf("data.consumed.in.nMsg")], "20000");
}, !isServed("join_group"));

test("kafka-dump-log reads a segment, whose batches are as Kafka writes them", async () => {
  const topic = await createTopic("dump");
  await writeLines(topic, ["a\t1", "b\t2"], "--compression-codec", "gzip");
  await writeLines(topic, ["c\t3"]);
  const folder = `${broker.dataFolder}/${topic}/0`;
  const segments = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name.endsWith(".log")).sort();
  const copies = await Deno.makeTempDir();
  try {
    // The tool takes the base offset from the name, which in Kafka is nothing else.
    const file = `${copies}/${segments.at(-1)!.split("-")[1]}`;
    await Deno.copyFile(`${folder}/${segments.at(-1)}`, file);
    const printed = await tool("kafka-dump-log", ["--files", file, "--print-data-log", "--deep-iteration"]);
    assert.match(printed, /baseOffset: 0 lastOffset: 1 count: 2 .*compresscodec: gzip .*isvalid: true/);
    assert.match(printed, /baseOffset: 2 lastOffset: 2 count: 1 .*compresscodec: none .*isvalid: true/);
    assert.match(printed, /offset: 2 .*key: c payload: 3/);
    assert.doesNotMatch(printed, /isvalid: false|mismatch/i);
  } finally {
    await Deno.remove(copies, { recursive: true });
  }
}, !(brokerIsKaas && brokersAreOwned));
