/**
 * The group members of every client: the programs with which groups are tested. Each client's members share a topic,
 * hand over what a leaving one had, and go on where the group had committed.
 */

import assert from "node:assert/strict";
import { type BrokerProcess, startBroker } from "../support/broker_process.ts";
import { ClientProcess, type MemberCommand, type Running } from "../support/client_process.ts";
import { createTopic } from "../support/client_suite.ts";
import { anyEvent, ownedPartitions, recordsOf } from "../support/group_members.ts";
import { isServed } from "../support/served_apis.ts";
import { clientCommand, type Part } from "../support/toolchain.ts";

type Kind = Pick<MemberCommand, "protocol" | "strategy">;

const kinds: [Part, Kind[]][] = [
  ["kafka-clients-4.3", [
    ...["range", "roundrobin", "sticky", "cooperative-sticky"].map((strategy) => ({ strategy })),
    ...["uniform", "range"].map((strategy) => ({ protocol: "consumer" as const, strategy })),
  ]],
  ["kafka-clients-2.0", [{ strategy: "range" }, { strategy: "roundrobin" }, { strategy: "sticky" }]],
  ["kafka-clients-0.10", [{ strategy: "range" }]],
  ["kafka-clients-0.9", [{ strategy: "roundrobin" }]],
  ["confluent", [
    ...["range", "roundrobin", "cooperative-sticky"].map((strategy) => ({ strategy })),
    { protocol: "consumer", strategy: "uniform" },
  ]],
  ["franz-go", [
    ...["range", "sticky", "cooperative-sticky"].map((strategy) => ({ strategy })),
    { protocol: "consumer", strategy: "uniform" },
  ]],
  ["sarama", ["range", "roundrobin", "sticky"].map((strategy) => ({ strategy }))],
  ["kafkajs", [{ strategy: "roundrobin" }]],
  ["platformatic", [
    ...["roundrobin", "cooperative-sticky"].map((strategy) => ({ strategy })),
    { protocol: "consumer" as const },
  ]],
];

/** Rebalances take as long as members take to hear of them. */
const fastGroups = {
  "group.initial.rebalance.delay.ms": "0",
  "group.consumer.min.heartbeat.interval.ms": "200",
  "group.consumer.heartbeat.interval.ms": "300",
};

let broker: BrokerProcess;
const processes = new Map<Part, ClientProcess>();
const run = Math.random().toString(36).slice(2, 8);

function processOf(part: Part): ClientProcess {
  if (!processes.has(part)) processes.set(part, ClientProcess.start(part, broker.bootstrap)!);
  return processes.get(part)!;
}

if (isServed("join_group")) {
  Deno.test.beforeAll(async () => {
    broker = await startBroker({ settings: fastGroups });
  });

  Deno.test.afterAll(async () => {
    for (const process of processes.values()) await process.close();
    await broker.stop();
  });
}

for (const [part, variants] of kinds) {
  for (const kind of variants) {
    const how = [kind.protocol ?? "classic", kind.strategy].filter(Boolean).join(", ");
    Deno.test({
      name: `${part} members (${how}) share a topic, hand it over and resume`,
      ignore: clientCommand(part) === null || clientCommand("franz-go") === null ||
        !isServed(kind.protocol === "consumer" ? "consumer_group_heartbeat" : "join_group"),
      sanitizeOps: false,
      sanitizeResources: false,
      fn: () => shareHandOverAndResume(part, kind),
    });
  }
}

async function shareHandOverAndResume(part: Part, kind: Kind): Promise<void> {
  const topic = `group-${part}-${how(kind)}-${run}`;
  const groupId = `of-${topic}`;
  const writer = processOf("franz-go");
  await createTopic(writer, topic, 4);
  const write = (prefix: string) => writer.produce({ topic, generate: { count: 40, prefix, partitions: 4 }, acks: -1 });
  await write("first");
  const command = { ...kind, groupId, topics: [topic], commit: "each" as const, heartbeatMs: 300 };
  const client = processOf(part);

  const one = client.member(command);
  await settled([one], 40);
  assert.equal(ownedPartitions(one.events).length, 4);
  const two = client.member(command);
  await shared([one, two]);
  await write("second");
  await settled([one, two], 80);

  await client.stopMember(one);
  assert.deepEqual(ownedPartitions(one.events), [], "a member that left has nothing");
  await owns(two, 4);
  await write("third");
  await settled([one, two], 120);
  await client.stopMember(two);

  // Nothing was read twice, since every hand-over followed a commit; but one client also hands out, after a hand-over,
  // what it had fetched before.
  const keys = [one, two].flatMap((member) => recordsOf(member.events).map(({ key }) => key));
  if (part !== "platformatic") assert.equal(keys.length, new Set(keys).size);
  for (let partition = 0; partition < 4; partition++) {
    assert.equal((await client.committed({ groupId, topic, partition })).offset, 30, `committed of ${partition}`);
  }
}

function how(kind: Kind): string {
  return `${kind.protocol ?? "classic"}-${kind.strategy ?? "any"}`;
}

type Member = Running<unknown>;

/** Waits until the members together read so many different records. */
async function settled(members: readonly Member[], count: number): Promise<void> {
  const read = () => new Set(members.flatMap(({ events }) => recordsOf(events).map(({ key }) => key))).size;
  await anyEvent(members, () => read() >= count, () => `${read()} of ${count} records`);
}

/** Waits until two members have half of the partitions each. */
async function shared(members: readonly Member[]): Promise<void> {
  const counts = () => members.map(({ events }) => ownedPartitions(events).length);
  await anyEvent(members, () => counts().every((count) => count === 2), () => `partitions ${counts()}`);
}

async function owns(member: Member, count: number): Promise<void> {
  const owned = () => ownedPartitions(member.events).length;
  await anyEvent([member], () => owned() === count, () => `${owned()} partitions`);
}
