/**
 * Groups whose members, or whose broker, are killed, stopped and restarted while they consume. In each, every record is
 * read, no partition has two owners at a time by the members' own words, and what was committed stays committed.
 *
 * Every member is a process of its own, so that it can be killed. They are franz-go's where nothing else is said.
 */

import assert from "node:assert/strict";
import { type BrokerProcess, brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { ClientProcess, type MemberCommand, type Running } from "../support/client_process.ts";
import { createTopic } from "../support/client_suite.ts";
import {
  anyEvent,
  committedBy,
  type MemberHistory,
  ownedPartitions,
  ownedTwice,
  recordsOf,
} from "../support/group_members.ts";
import { isServed } from "../support/served_apis.ts";
import { clientCommand, type Part } from "../support/toolchain.ts";

const PARTITIONS = 6;
const ignore = !brokersAreOwned || clientCommand("franz-go") === null || !isServed("join_group");

let broker: BrokerProcess;
let writer: ClientProcess;

if (!ignore) {
  Deno.test.beforeAll(async () => {
    const settings = { "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000" };
    broker = await startBroker({ settings });
    writer = ClientProcess.start("franz-go", broker.bootstrap)!;
  });

  Deno.test.afterAll(async () => {
    await writer.close();
    await broker.stop();
  });
}

/** A group and its topic, for one test. */
class Group {
  readonly members: Member[] = [];
  #batches = 0;
  #written = 0;

  private constructor(readonly topic: string) {}

  static async create(topic: string): Promise<Group> {
    await createTopic(writer, topic, PARTITIONS);
    return new Group(topic);
  }

  get id(): string {
    return `of-${this.topic}`;
  }

  start(kind: Partial<MemberCommand> & { readonly part?: Part } = {}): Member {
    const { part = "franz-go", ...command } = kind;
    const client = ClientProcess.start(part, broker.bootstrap)!;
    const running = client.member({
      groupId: this.id,
      topics: [this.topic],
      commit: "each",
      heartbeatMs: 300,
      sessionTimeoutMs: 2_000,
      ...command,
    });
    const member = new Member(client, running);
    this.members.push(member);
    return member;
  }

  async write(count = 60): Promise<void> {
    const prefix = `batch-${this.#batches++}`;
    this.#written += count;
    await writer.produce({
      topic: this.topic,
      generate: { count, prefix, partitions: PARTITIONS },
      acks: -1,
      idempotent: true,
    });
  }

  /** Waits until the members together have read all that was written. */
  async readAll(): Promise<void> {
    const read = () => new Set(this.members.flatMap(({ events }) => recordsOf(events).map(({ key }) => key))).size;
    await this.#until(() => read() >= this.#written, () => `${read()} of ${this.#written} records`);
    assert.equal(read(), this.#written);
  }

  /** Waits until these members share all partitions, each having some. */
  async sharedBy(...members: Member[]): Promise<void> {
    const counts = () => members.map(({ events }) => ownedPartitions(events).length);
    const isShared = () => counts().every((count) => count > 0) && counts().reduce((a, b) => a + b) === PARTITIONS;
    await this.#until(isShared, () => `partitions ${counts()}`);
  }

  /** The committed offset of each partition, as the broker tells. */
  async committed(): Promise<number[]> {
    const asked = Array.from(
      { length: PARTITIONS },
      (_, partition) => writer.committed({ groupId: this.id, topic: this.topic, partition }),
    );
    return (await Promise.all(asked)).map(({ offset }) => offset ?? 0);
  }

  /** Whether each partition's committed offset is its end, no less and no more. */
  async isAllCommitted(): Promise<boolean> {
    return (await this.committed()).every((offset) => offset === this.#written / PARTITIONS);
  }

  async allCommitted(): Promise<void> {
    await until(() => this.isAllCommitted(), "all offsets to be committed");
  }

  /** Members leave, and the group has committed all that was written. */
  async end(): Promise<void> {
    for (const member of this.members) await member.leave();
    assert.deepEqual(ownedTwice(this.members), []);
    assert.deepEqual(await this.committed(), Array(PARTITIONS).fill(this.#written / PARTITIONS));
  }

  async close(): Promise<void> {
    for (const { client } of this.members) await client.close();
  }

  async #until(condition: () => boolean, seen: () => string): Promise<void> {
    await anyEvent(this.members.map(({ running }) => running), condition, seen);
  }
}

class Member implements MemberHistory {
  cutAtMs: number | undefined;
  #isOver = false;

  constructor(readonly client: ClientProcess, readonly running: Running<unknown>) {}

  get events() {
    return this.running.events;
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    this.cutAtMs = Date.now();
    await this.client.close();
  }

  async leave(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.client.stopMember(this.running);
  }

  /** How often it was told about partitions. */
  get changes(): number {
    return this.events.filter(({ event }) => event === "assigned" || event === "revoked" || event === "lost").length;
  }
}

function chaos(name: string, run: (group: Group) => Promise<void>): void {
  Deno.test({
    name,
    ignore,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      const group = await Group.create(name.replaceAll(/[^a-z]+/g, "-").slice(0, 60));
      try {
        await run(group);
        await group.end();
      } finally {
        await group.close();
      }
    },
  });
}

chaos("the broker is killed while a group consumes: it goes on from all that was acknowledged", async (group) => {
  const members = Array.from(
    { length: 3 },
    () => group.start({ strategy: "cooperative-sticky", sessionTimeoutMs: 6_000 }),
  );
  await group.sharedBy(...members);
  for (let round = 0; round < 3; round++) {
    const writing = group.write(600);
    await members[round].running.until(({ event }) => event === "committed");
    await broker.kill();
    // What arrives after the kill was acknowledged before it.
    const acknowledged = new Map<string, number>();
    for (const { events } of members) {
      for (const [partition, offset] of committedBy(events)) {
        acknowledged.set(partition, Math.max(offset, acknowledged.get(partition) ?? 0));
      }
    }
    await broker.restart();
    const committed = await group.committed();
    for (const [partition, offset] of acknowledged) {
      const found = committed[Number(partition.split("/")[1])];
      assert.ok(found >= offset, `${partition}: ${found} is committed, ${offset} was acknowledged`);
    }
    await writing;
    await group.readAll();
  }
});

chaos("a member is killed: the others take over what it had when its session is over", async (group) => {
  const members = Array.from({ length: 3 }, () => group.start({ strategy: "range" }));
  await group.sharedBy(...members);
  await group.write();
  await group.readAll();
  await members[0].kill();
  await group.write();
  await group.sharedBy(members[1], members[2]);
  await group.readAll();
});

chaos("a member is held up for longer than its session: it is out, and joins again when it goes on", async (group) => {
  const [held, ...others] = Array.from({ length: 3 }, () => group.start({ strategy: "cooperative-sticky" }));
  await group.sharedBy(held, ...others);
  await group.write();
  await group.readAll();
  held.cutAtMs = Date.now();
  held.client.signal("SIGSTOP");
  await group.write();
  await group.sharedBy(...others);
  await group.readAll();
  await group.allCommitted();
  const before = held.changes;
  held.client.signal("SIGCONT");
  await held.running.until(() => held.changes > before + 1);
  await group.sharedBy(held, ...others);
  assert.equal(await group.isAllCommitted(), true, "what it had read before counts no more");
  await group.write();
  await group.readAll();
});

chaos("static members are killed and come back within their session: nobody else notices", async (group) => {
  const start = (index: number) =>
    group.start({ instanceId: `instance-${index}`, sessionTimeoutMs: 20_000, strategy: "range" });
  const members = [0, 1, 2].map(start);
  await group.sharedBy(...members);
  await group.write();
  await group.readAll();
  for (const index of [0, 1, 2]) {
    const changes = members.map((member) => member.changes);
    const owned = ownedPartitions(members[index].events);
    await members[index].kill();
    members[index] = start(index);
    await members[index].running.until(({ event }) => event === "assigned");
    assert.deepEqual(ownedPartitions(members[index].events), owned);
    await group.write();
    await group.readAll();
    for (const other of [0, 1, 2].filter((one) => one !== index)) {
      assert.equal(members[other].changes, changes[other], `member ${other} while member ${index} was restarted`);
    }
  }
});

for (const strategy of ["range", "cooperative-sticky"]) {
  chaos(`all members are restarted one after the other, ${strategy}`, async (group) => {
    const members = Array.from({ length: 3 }, () => group.start({ strategy }));
    await group.sharedBy(...members);
    for (const index of members.keys()) {
      await group.write();
      await members[index].leave();
      await members[index].client.close();
      members[index] = group.start({ strategy });
      await group.sharedBy(...members);
      await group.readAll();
    }
    const keys = group.members.flatMap(({ events }) => recordsOf(events).map(({ key }) => key));
    assert.equal(keys.length, new Set(keys).size, "each hand-over followed a commit: nothing is read twice");
  });
}

chaos("members of several clients with several assignors agree on the one that all know", async (group) => {
  const parts: Part[] = ["sarama", "kafka-clients-4.3"];
  const members = [
    group.start({ strategy: "roundrobin,range" }),
    group.start({ strategy: "sticky,range,roundrobin" }),
    ...parts.filter((part) => clientCommand(part) !== null).map((part) => group.start({ part, strategy: "range" })),
  ];
  await group.sharedBy(...members);
  await group.write();
  await group.readAll();
  await members[1].leave();
  await group.sharedBy(...members.filter((_, index) => index !== 1));
  await group.write();
  await group.readAll();
});

Deno.test("a partition with two owners is noticed, and one that is handed over is not", () => {
  const told = (event: "assigned" | "revoked", at: number) => ({ event, at, partitions: [["t", 0] as const] });
  const before = { events: [told("assigned", 1), told("revoked", 5)] };
  assert.deepEqual(ownedTwice([before, { events: [told("assigned", 5)] }]), []);
  assert.equal(ownedTwice([before, { events: [told("assigned", 4)] }]).length, 1);
  assert.equal(ownedTwice([{ events: [told("assigned", 1)] }, { events: [told("assigned", 9)] }]).length, 1);
  assert.deepEqual(ownedTwice([{ events: [told("assigned", 1)], cutAtMs: 8 }, { events: [told("assigned", 9)] }]), []);
});
