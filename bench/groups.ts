/**
 * What consumer groups cost, kaas and Apache Kafka in the same run on the same disk, an acknowledgement meaning "on the
 * disk" in both:
 *
 *     deno run -A bench/groups.ts [--seconds N] [--rounds N] [--only heartbeats|commits|rebalance] [--without-kafka]
 *
 * - heartbeats: 10,000 members, each every 3 seconds, and the CPU time of the broker's process;
 * - commits: offset commits per second of many groups, each with one commit under way;
 * - rebalance: 100 members of one group join again, the leader hands out 1,000 partitions, everybody gets its part; from
 *   the first JoinGroup to the last SyncGroup.
 *
 * The members are connections that speak the protocol and do nothing else, so that the broker is what takes the time.
 */

import { parseArgs } from "node:util";
import { ErrorCode, errorName } from "../lib/errors.ts";
import { createTopicsRequest, createTopicsResponse } from "../lib/protocol/messages/create_topics.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../lib/protocol/messages/find_coordinator.ts";
import { heartbeatRequest, heartbeatResponse } from "../lib/protocol/messages/heartbeat.ts";
import { joinGroupRequest, joinGroupResponse } from "../lib/protocol/messages/join_group.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../lib/protocol/messages/offset_commit.ts";
import { syncGroupRequest, syncGroupResponse } from "../lib/protocol/messages/sync_group.ts";
import type { ValueOf } from "../lib/protocol/schema.ts";
import { commitOf, joinOf } from "../tests/support/group_requests.ts";
import { RawClient } from "../tests/support/raw_client.ts";
import { Brokers, kaasCommand, type MeasuredBroker } from "./brokers.ts";
import { findTools, median, MissingTools } from "./tools.ts";

const HEARTBEAT_EVERY_MS = 3_000;
const SESSION_MS = 1_800_000;
const BEATING_GROUPS = 10;
const MEMBERS_OF_EACH = 1_000;
/** So many members beat at once, and then the next. */
const BEATS_AT_ONCE = 100;
const COMMITTING_GROUPS = 500;
const CONNECTIONS = 50;
const REBALANCING_MEMBERS = 100;
const REBALANCED_PARTITIONS = 1_000;
const TOPIC = "bench";
const MS_PER_TICK = 10;

interface Options {
  readonly seconds: number;
  readonly rounds: number;
}

type Measure = (broker: MeasuredBroker, options: Options) => Promise<Readonly<Record<string, number>>>;

const measures: Readonly<Record<string, Measure>> = { heartbeats, commits, rebalance };

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      seconds: { type: "string", default: "15" },
      rounds: { type: "string", default: "3" },
      only: { type: "string" },
      "without-kafka": { type: "boolean", default: false },
    },
  });
  const options = { seconds: Number(values.seconds), rounds: Number(values.rounds) };
  const names = Object.keys(measures).filter((name) => values.only === undefined || name === values.only);
  const isAlone = values["without-kafka"];
  const brokers = await Brokers.open(isAlone ? { kafka: "" } : await findTools());
  try {
    // Groups are made one after the other: a short first round saves time. And a thousand clients connect at once.
    const settings = ["group.initial.rebalance.delay.ms=1000", "socket.listen.backlog.size=2000"];
    const all = [
      ...isAlone ? [] : [await brokers.kafka("kafka-fsync", "fsync", settings)],
      await brokers.kaas("kaas", kaasCommand(), settings),
    ];
    for (const broker of all) await prepare(broker);
    console.log(`Medians of ${options.rounds} rounds after a warm-up round, brokers in turn.\n`);
    console.log("| load | broker | figure | median | min | max |\n|---|---|---|---|---|---|");
    for (const name of names) {
      const figures = new Map<string, number[]>();
      for (let round = 0; round <= options.rounds; round++) {
        for (const broker of all) {
          const measured = await measures[name](broker, options);
          // Round 0 warms up.
          if (round === 0) continue;
          for (const [figure, value] of Object.entries(measured)) {
            const key = `${name} | ${broker.name} | ${figure}`;
            figures.set(key, [...figures.get(key) ?? [], value]);
          }
        }
      }
      for (const [key, found] of figures) {
        const cells = [median(found), Math.min(...found), Math.max(...found)].map((value) => rounded(value));
        console.log(`| ${key} | ${cells.join(" | ")} |`);
      }
    }
  } finally {
    for (const { clients } of beating.values()) close(clients);
    await brokers.stop();
  }
}

function rounded(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(3);
}

async function prepare({ port }: MeasuredBroker): Promise<void> {
  using client = await RawClient.connect(port);
  const topics = [{
    name: TOPIC,
    numPartitions: REBALANCED_PARTITIONS,
    replicationFactor: 1,
    assignments: [],
    configs: [],
  }];
  const created = await client.call(createTopicsRequest, createTopicsResponse, 5, { topics });
  expect(created.topics[0].errorCode, "CreateTopics");
}

function expect(errorCode: number, what: string): void {
  if (errorCode !== ErrorCode.NONE) throw new Error(`${what}: ${errorName(errorCode as ErrorCode)}`);
}

let groups = 0;

/** A group nobody has used, whose coordinator is ready: Kafka makes and loads a topic for that first. */
async function newGroup(client: RawClient): Promise<string> {
  const groupId = `bench-${++groups}`;
  for (;;) {
    const found = await client.call(findCoordinatorRequest, findCoordinatorResponse, 2, {
      key: groupId,
      keyType: 0,
      coordinatorKeys: [],
    });
    const probe = { groupId, memberId: "nobody", generationId: 1 };
    const { errorCode } = await client.call(heartbeatRequest, heartbeatResponse, 1, probe);
    if (found.errorCode === ErrorCode.NONE && errorCode === ErrorCode.UNKNOWN_MEMBER_ID) return groupId;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

interface Joined {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
}

/** Lets one member per connection join, and gives everybody an assignment. */
async function joinAll(
  clients: readonly RawClient[],
  groupId: string,
  { memberIds = [] as readonly string[], said = "", assignmentBytes = 0 } = {},
): Promise<Joined[]> {
  const metadata = subscription(said);
  await Promise.all(
    clients.map((client, index) =>
      client.send(
        joinGroupRequest,
        3,
        joinOf(groupId, { metadata, memberId: memberIds[index] ?? "", sessionTimeoutMs: SESSION_MS }),
      )
    ),
  );
  const replies = await Promise.all(clients.map(async (client) => (await client.receive(joinGroupResponse, 3)).body));
  for (const { errorCode } of replies) expect(errorCode, "JoinGroup");
  const leads = ({ memberId, leader }: ValueOf<typeof joinGroupResponse>) => memberId === leader;
  const assignments = replies.find(leads)!.members.map(({ memberId }) => ({
    memberId,
    assignment: new Uint8Array(assignmentBytes),
  }));
  const codes = await Promise.all(clients.map(async (client, index) => {
    const { memberId, generationId } = replies[index];
    const request = { groupId, memberId, generationId, assignments: leads(replies[index]) ? assignments : [] };
    return (await client.call(syncGroupRequest, syncGroupResponse, 2, request)).errorCode;
  }));
  for (const code of codes) expect(code, "SyncGroup");
  return replies.map(({ memberId, generationId }) => ({ groupId, memberId, generationId }));
}

/** What a consumer says: version 1, one topic, some bytes of its own. */
function subscription(said: string): Uint8Array {
  const text = new TextEncoder();
  const [topic, own] = [text.encode(TOPIC), text.encode(said)];
  const bytes = new Uint8Array(2 + 4 + 2 + topic.length + 4 + own.length + 4);
  const view = new DataView(bytes.buffer);
  view.setInt16(0, 1);
  view.setInt32(2, 1);
  view.setInt16(6, topic.length);
  bytes.set(topic, 8);
  view.setInt32(8 + topic.length, own.length);
  bytes.set(own, 12 + topic.length);
  return bytes;
}

interface Beating {
  readonly clients: readonly RawClient[];
  readonly groups: readonly (readonly Joined[])[];
}

/** Made once for each broker, since making them takes a while; they stay, silent, while another broker has its turn. */
const beating = new Map<string, Beating>();

async function beatingMembers(broker: MeasuredBroker): Promise<Beating> {
  const present = beating.get(broker.name);
  if (present !== undefined) return present;
  const clients = await connect(broker, MEMBERS_OF_EACH);
  const groups: Joined[][] = [];
  for (let group = 0; group < BEATING_GROUPS; group++) groups.push(await joinAll(clients, await newGroup(clients[0])));
  const made = { clients, groups };
  beating.set(broker.name, made);
  return made;
}

async function heartbeats(broker: MeasuredBroker, { seconds }: Options) {
  const { clients, groups } = await beatingMembers(broker);
  const cpuMs = cpuClock(broker);
  const startMs = performance.now();
  let sent = 0;
  const latencies: number[] = [];
  const turns = BEATING_GROUPS * MEMBERS_OF_EACH / BEATS_AT_ONCE;
  const perGroup = MEMBERS_OF_EACH / BEATS_AT_ONCE;
  // Some members after the others, over and over: spread evenly over the three seconds.
  for (let turn = 0; performance.now() - startMs < seconds * 1000; turn++) {
    const waitMs = startMs + turn * HEARTBEAT_EVERY_MS / turns - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const members = groups[Math.floor(turn % turns / perGroup)];
    const first = turn % perGroup * BEATS_AT_ONCE;
    const sentMs = performance.now();
    await Promise.all(
      clients.slice(first, first + BEATS_AT_ONCE).map(async (client, index) => {
        const { errorCode } = await client.call(heartbeatRequest, heartbeatResponse, 1, members[first + index]);
        expect(errorCode, "Heartbeat");
      }),
    );
    latencies.push(performance.now() - sentMs);
    sent += BEATS_AT_ONCE;
  }
  const elapsedMs = performance.now() - startMs;
  return {
    "beats/s": sent / elapsedMs * 1000,
    "CPU of one core, %": cpuMs() / elapsedMs * 100,
    "100 beats answered, ms": median(latencies),
  };
}

async function commits(broker: MeasuredBroker, { seconds }: Options) {
  const clients = await connect(broker, CONNECTIONS);
  try {
    const names: string[] = [];
    for (let group = 0; group < COMMITTING_GROUPS; group++) names.push(await newGroup(clients[0]));
    const cpuMs = cpuClock(broker);
    const startMs = performance.now();
    let count = 0;
    await Promise.all(clients.map(async (client, index) => {
      const own = names.filter((_, group) => group % CONNECTIONS === index);
      let offset = 0;
      const send = (groupId: string) =>
        client.send(offsetCommitRequest, 7, commitOf(groupId, TOPIC, { [offset % 100]: { offset: ++offset } }));
      // Each group has one commit under way; a connection answers in the order in which it was asked.
      for (const groupId of own) await send(groupId);
      for (let next = 0; performance.now() - startMs < seconds * 1000; next++) {
        const { body } = await client.receive(offsetCommitResponse, 7);
        expect(body.topics[0].partitions[0].errorCode, "OffsetCommit");
        count++;
        await send(own[next % own.length]);
      }
    }));
    const elapsedMs = performance.now() - startMs;
    return { "commits/s": count / elapsedMs * 1000, "CPU µs per commit": cpuMs() * 1000 / count };
  } finally {
    close(clients);
  }
}

async function rebalance(broker: MeasuredBroker, { seconds }: Options) {
  const clients = await connect(broker, REBALANCING_MEMBERS);
  try {
    const groupId = await newGroup(clients[0]);
    // An assignment names its partitions by four bytes each, behind version, topic and counts.
    const assignmentBytes = 16 + TOPIC.length + 4 * REBALANCED_PARTITIONS / REBALANCING_MEMBERS;
    let joined = await joinAll(clients, groupId, { assignmentBytes });
    const times: number[] = [];
    const startMs = performance.now();
    for (let round = 1; performance.now() - startMs < seconds * 1000 / 3 || round < 5; round++) {
      const roundMs = performance.now();
      const memberIds = joined.map(({ memberId }) => memberId);
      // What each says has changed, as after a revocation: so nobody is told the generation before.
      joined = await joinAll(clients, groupId, { memberIds, said: `round ${round}`, assignmentBytes });
      times.push(performance.now() - roundMs);
      await new Promise((resolve) => setTimeout(resolve, MS_PER_TICK));
    }
    return { "rebalance, ms": median(times), "slowest, ms": Math.max(...times) };
  } finally {
    close(clients);
  }
}

/** Connections that have been served once, so that none is still to be accepted when it counts. */
async function connect({ port }: MeasuredBroker, count: number): Promise<RawClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => RawClient.connect(port)));
  const probe = { groupId: "probe", memberId: "nobody", generationId: 1 };
  await Promise.all(clients.map((client) => client.call(heartbeatRequest, heartbeatResponse, 1, probe)));
  return clients;
}

function close(clients: readonly RawClient[]): void {
  for (const client of clients) client.close();
}

/** CPU time of a process from now on, in ms, in the steps of the kernel's clock (10 ms). */
function cpuClock({ pid }: MeasuredBroker): () => number {
  const read = () => {
    // Behind the name, which is in parentheses: state is the first field, user and system time are the 12th and 13th.
    const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  };
  const before = read();
  return () => read() - before;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof MissingTools)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
