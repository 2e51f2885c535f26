/**
 * Groups of the consumer protocol as Kafka's own client and tools meet them: members of the classic protocol go over to
 * it while they consume, and back; the tools tell what is.
 */

import assert from "node:assert/strict";
import { type BrokerProcess, startBroker, until } from "../support/broker_process.ts";
import { ClientProcess, type MemberCommand, type Running } from "../support/client_process.ts";
import { createTopic } from "../support/client_suite.ts";
import { ownedPartitions, recordsOf } from "../support/group_members.ts";
import { tool } from "../support/kafka_tools.ts";
import { isServed } from "../support/served_apis.ts";
import { clientCommand } from "../support/toolchain.ts";

const PARTITIONS = 6;
const run = Math.random().toString(36).slice(2, 8);
const isMissing = !isServed("consumer_group_heartbeat") ||
  (["kafka-clients-4.3", "kafka-tools", "franz-go"] as const).some((part) => clientCommand(part) === null);
const fastHeartbeats = {
  "group.initial.rebalance.delay.ms": "0",
  "group.consumer.min.heartbeat.interval.ms": "200",
  "group.consumer.heartbeat.interval.ms": "300",
};

type Member = Running<unknown>;

/** The members of one group, and whether two of them ever had one partition. */
class Group {
  readonly #members: Member[] = [];
  readonly #running = new Set<Member>();
  readonly shared = new Set<string>();

  constructor(readonly client: ClientProcess, readonly groupId: string, readonly topic: string) {}

  start(kind: Pick<MemberCommand, "protocol" | "strategy">): Member {
    const member = this.client.member({
      ...kind,
      groupId: this.groupId,
      topics: [this.topic],
      commit: "auto",
      heartbeatMs: 300,
      config: { "auto.commit.interval.ms": "100" },
    });
    this.#members.push(member);
    this.#running.add(member);
    // All members are in one process, so what they tell comes in the order in which it happened.
    member.until(({ event }) => {
      if (event === "assigned") this.#audit();
      return false;
    }).catch(() => {});
    return member;
  }

  async stop(member: Member): Promise<void> {
    await this.client.stopMember(member);
    this.#running.delete(member);
  }

  owned(): number[] {
    return [...this.#running].map(({ events }) => ownedPartitions(events).length);
  }

  read(): Set<string> {
    return new Set(this.#members.flatMap(({ events }) => recordsOf(events).map(({ key }) => key)));
  }

  async isShared(): Promise<void> {
    const least = Math.floor(PARTITIONS / this.#running.size);
    const isFair = () => {
      const counts = this.owned();
      return counts.reduce((sum, count) => sum + count, 0) === PARTITIONS && counts.every((count) => count >= least);
    };
    await until(isFair, `${PARTITIONS} partitions to be shared by ${this.#running.size}`).catch((error) => {
      const told = [...this.#running].map(({ events }) => events.filter(({ event }) => event !== "records").slice(-8));
      throw new Error(JSON.stringify({ owned: this.owned(), told }), { cause: error });
    });
  }

  #audit(): void {
    const owned = [...this.#running].flatMap(({ events }) => ownedPartitions(events));
    for (const place of owned.filter((one, at) => owned.indexOf(one) !== at)) this.shared.add(place);
  }
}

async function withBroker(fn: (broker: BrokerProcess, client: ClientProcess, writer: ClientProcess) => Promise<void>) {
  const broker = await startBroker({ settings: fastHeartbeats });
  const client = ClientProcess.start("kafka-clients-4.3", broker.bootstrap)!;
  const writer = ClientProcess.start("franz-go", broker.bootstrap)!;
  try {
    await fn(broker, client, writer);
  } finally {
    await client.close();
    await writer.close();
    await broker.stop();
  }
}

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, ignore: isMissing, sanitizeOps: false, sanitizeResources: false });
}

for (const strategy of ["cooperative-sticky", "range"]) {
  test(`members of the classic protocol (${strategy}) go over to the consumer protocol, and back, while they consume`, () =>
    withBroker(async (broker, client, writer) => {
      const topic = `migrating-${strategy}-${run}`;
      await createTopic(writer, topic, PARTITIONS);
      const written = writing(writer, topic);
      const groupId = `of-${topic}`;
      const group = new Group(client, groupId, topic);
      const typeNow = async () => /^\S+\s+(\S+)/m.exec(await groupLine(broker, groupId))?.[1];

      const classic = { strategy };
      const consumer = { protocol: "consumer" as const };
      const old = [group.start(classic), group.start(classic)];
      await group.isShared();
      assert.equal(await typeNow(), "Classic");

      const first = group.start(consumer);
      await group.isShared();
      assert.equal(await typeNow(), "Consumer");
      await group.stop(old[0]);
      const second = group.start(consumer);
      await group.stop(old[1]);
      await group.isShared();

      const back = group.start(classic);
      await group.isShared();
      await group.stop(first);
      const last = group.start(classic);
      await group.isShared();
      assert.equal(await typeNow(), "Consumer");
      await group.stop(second);
      await group.isShared();
      assert.equal(await typeNow(), "Classic");

      const keys = await written.end();
      await until(() => group.read().size === keys, `${keys} records to be read`);
      await group.stop(back);
      await group.stop(last);
      assert.deepEqual([...group.shared], [], "partitions that two members had at one time");
    }));
}

test("kafka-consumer-groups and kafka-groups tell of a group of the consumer protocol", () =>
  withBroker(async (broker, client, writer) => {
    const topic = `told-${run}`;
    const groupId = `of-${topic}`;
    await createTopic(writer, topic, PARTITIONS);
    await writer.produce({ topic, generate: { count: 60, prefix: "k", partitions: PARTITIONS }, acks: -1 });
    const members = [0, 1].map((at) =>
      client.member({ groupId, topics: [topic], protocol: "consumer", clientId: `client-${at}`, commit: "each" })
    );
    const described = async (...options: string[]) =>
      (await consumerGroups(broker, "--describe", "--group", groupId, ...options)).trim().split(/\n+/)
        .map((line) => line.trim().split(/\s+/));
    const isStable = async () => (await described("--state")).some((line) => line.includes("Stable"));
    await until(
      async () => members.every(({ events }) => ownedPartitions(events).length === 3) && await isStable(),
      "the group to be stable",
    );

    const [stateHeads, state] = await described("--state", "--verbose");
    const valueOf = (head: string) => state[stateHeads.indexOf(head) + 1];
    assert.ok(stateHeads.includes("GROUP-EPOCH"), stateHeads.join());
    assert.ok(state.includes("uniform") && state.includes("Stable") && state.at(-1) === "2", state.join());
    assert.equal(valueOf("GROUP-EPOCH"), valueOf("TARGET-ASSIGNMENT-EPOCH"));

    const [, ...rows] = await described("--members", "--verbose");
    assert.equal(rows.length, 2);
    for (const row of rows) {
      assert.match(row.join(" "), new RegExp(`/127\\.0\\.0\\.1 client-[01] 3 .*${topic}:\\d,\\d,\\d`));
    }

    const offsets = async () => (await described()).slice(1);
    const areCommitted = async () => (await offsets()).every((row) => row[3] === "10" && row[5] === "0");
    await until(areCommitted, "all to be committed");
    assert.equal((await offsets()).length, PARTITIONS);

    assert.match(await consumerGroups(broker, "--list", "--type", "consumer"), new RegExp(groupId));
    assert.doesNotMatch(await consumerGroups(broker, "--list", "--type", "classic"), new RegExp(groupId));
    assert.match(await groupLine(broker, groupId), /Consumer\s+consumer/);

    for (const member of members) await client.stopMember(member);
    assert.match(await consumerGroups(broker, "--delete", "--group", groupId), /successful/);
    assert.doesNotMatch(await consumerGroups(broker, "--list"), new RegExp(groupId));
  }));

function consumerGroups(broker: BrokerProcess, ...args: string[]): Promise<string> {
  return tool("kafka-consumer-groups", ["--bootstrap-server", broker.bootstrap, ...args]);
}

/** What kafka-groups says of a group: name, type, protocol. */
async function groupLine(broker: BrokerProcess, groupId: string): Promise<string> {
  const printed = await tool("kafka-groups", ["--bootstrap-server", broker.bootstrap, "--list"]);
  return printed.split("\n").find((line) => line.startsWith(groupId)) ?? "";
}

/** Writes records until it is told to end; then says how many. */
function writing(writer: ClientProcess, topic: string): { end(): Promise<number> } {
  let isOver = false;
  const writes = (async () => {
    let batch = 0;
    while (!isOver) {
      const generate = { count: 20, prefix: `b${batch++}`, partitions: PARTITIONS };
      await writer.produce({ topic, generate, acks: -1, lingerMs: 50 });
    }
    return batch * 20;
  })();
  // Whoever waits for the end is told what went wrong.
  writes.catch(() => {});
  return {
    end() {
      isOver = true;
      return writes;
    },
  };
}
