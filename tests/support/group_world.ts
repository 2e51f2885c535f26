/**
 * A group coordinator whose time and disk belong to the test, and members that ask it for things.
 *
 * What is asked is an {@link Asked}: whether it has been answered by now is part of what tests are about. Time moves by
 * {@link GroupWorld.pass} only, and everything that the disk does is over when that, or `settle`, has returned.
 */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { GroupCoordinator, type GroupSettings, type OffsetToCommit } from "../../lib/groups/coordinator.ts";
import type { TopicFacts, TopicView } from "../../lib/groups/topic_view.ts";
import type { JoinReply, SyncReply } from "../../lib/groups/replies.ts";
import { SeededRandom } from "../simulation/seeded_random.ts";
import { SimulatedClock } from "../simulation/simulated_clock.ts";
import { SimulatedDisk } from "../simulation/simulated_disk.ts";

const utf8 = new TextEncoder();
const text = new TextDecoder();

export const NO_DELAY: GroupSettings = {
  minSessionTimeoutMs: 6_000,
  maxSessionTimeoutMs: 1_800_000,
  maxSize: 2 ** 31 - 1,
  initialDelayMs: 0,
  offsetMetadataMaxBytes: 4096,
  offsetRetentionMs: 7 * 86_400_000,
  expiryIntervalMs: 600_000,
  consumer: {
    isServed: true,
    assignors: ["uniform", "range"],
    assignmentIntervalMs: 1000,
    sessionTimeoutMs: 45_000,
    heartbeatIntervalMs: 5000,
    maxSize: 2 ** 31 - 1,
    migrationPolicy: "bidirectional",
  },
};

/** Topics that a test makes up. */
export class ToyTopics implements TopicView {
  readonly #topics = new Map<string, TopicFacts>();
  version = 0;

  /** Makes a topic, or gives one more partitions. */
  set(name: string, partitionCount: number): TopicFacts {
    const id = (++this.version).toString(16).padStart(12, "0");
    const topicId = this.#topics.get(name)?.topicId ?? `00000000-0000-4000-8000-${id}`;
    const facts = { name, topicId, partitionCount };
    this.#topics.set(name, facts);
    return facts;
  }

  delete(name: string): void {
    this.version++;
    this.#topics.delete(name);
  }

  byName(name: string): TopicFacts | undefined {
    return this.#topics.get(name);
  }

  byId(topicId: string): TopicFacts | undefined {
    return [...this.#topics.values()].find((topic) => topic.topicId === topicId);
  }

  names(): Iterable<string> {
    return [...this.#topics.keys()].filter((name) => !name.startsWith("__"));
  }
}

/** A request that may still wait. */
export class Asked<Reply> {
  #reply: Reply | undefined;

  constructor(promise: Promise<Reply>) {
    promise.then((reply) => this.#reply = reply);
  }

  get isWaiting(): boolean {
    return this.#reply === undefined;
  }

  /** The answer, which must have come. */
  get reply(): Reply {
    assert.ok(this.#reply !== undefined, "it has not been answered");
    return this.#reply;
  }
}

export interface JoinOptions {
  readonly id?: string;
  readonly instance?: string | null;
  readonly type?: string;
  /** Metadata by protocol, in the order of preference. */
  readonly protocols?: Readonly<Record<string, string | Uint8Array>>;
  readonly sessionMs?: number;
  readonly rebalanceMs?: number;
  readonly needsKnownId?: boolean;
  readonly knowsSkipAssignment?: boolean;
  readonly clientId?: string;
}

/** What a member knows of its membership. */
export interface Membership {
  readonly id: string;
  readonly instance: string | null;
  readonly generation: number;
}

export interface GroupWorldOptions {
  readonly settings?: Partial<GroupSettings>;
  readonly seed?: number;
  readonly disk?: SimulatedDisk;
}

/** See the file's head. */
export class GroupWorld {
  settings: GroupSettings;
  readonly problems: string[] = [];
  readonly topics = new ToyTopics();
  #epoch = 1;

  private constructor(
    readonly clock: SimulatedClock,
    public disk: SimulatedDisk,
    settings: Partial<GroupSettings>,
    readonly random: SeededRandom,
  ) {
    this.settings = { ...NO_DELAY, ...settings };
    this.groups = this.#coordinator();
  }

  groups: GroupCoordinator;

  /** A coordinator that has read its (empty) state. */
  static async start({ settings = {}, seed = 1, disk }: GroupWorldOptions = {}): Promise<GroupWorld> {
    const random = new SeededRandom(seed);
    const usedDisk = disk ?? new SimulatedDisk({ random: random.fork() });
    if (disk === undefined) {
      await usedDisk.makeFolder("data");
      await usedDisk.syncFolder("");
    }
    const world = new GroupWorld(new SimulatedClock(), usedDisk, settings, random);
    await world.groups.loaded;
    return world;
  }

  #coordinator(): GroupCoordinator {
    return new GroupCoordinator({
      journal: { disk: this.disk, folder: "data/groups", epoch: this.#epoch },
      clock: this.clock,
      random: this.random.fork(),
      topics: this.topics,
      settings: () => this.settings,
      onProblem: (problem) => this.problems.push(problem),
    });
  }

  /** The machine stops, and starts again. */
  async crash(): Promise<void> {
    const old = this.groups;
    this.disk.crash();
    await this.disk.settle();
    this.disk = this.disk.restart();
    this.#epoch++;
    this.groups = this.#coordinator();
    await this.groups.loaded;
    await old.stop();
  }

  /** Lets time pass, in one piece; what becomes due happens at its time. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.settle();
  }

  async settle(): Promise<void> {
    await this.disk.settle();
  }

  async stop(): Promise<void> {
    await this.groups.stop();
  }

  /** Asks to join; resolves when all that follows at once has happened. */
  async join(groupId: string, options: JoinOptions = {}): Promise<Asked<JoinReply>> {
    const protocols = Object.entries(options.protocols ?? { range: "any" });
    const asked = new Asked(this.groups.join(groupId, {
      memberId: options.id ?? "",
      protocolType: options.type ?? "consumer",
      needsKnownId: options.needsKnownId ?? false,
      knowsSkipAssignment: options.knowsSkipAssignment ?? true,
      facts: {
        instanceId: options.instance ?? null,
        clientId: options.clientId ?? "client",
        clientHost: "/127.0.0.1",
        sessionTimeoutMs: options.sessionMs ?? 10_000,
        rebalanceTimeoutMs: options.rebalanceMs ?? 60_000,
        protocols: protocols.map(([name, said]) => ({
          name,
          metadata: typeof said === "string" ? utf8.encode(said) : said,
        })),
      },
    }));
    await this.settle();
    return asked;
  }

  /** Asks for the assignment; the leader gives one, by member id. */
  async sync(
    groupId: string,
    { id, instance, generation }: Membership,
    assignments: Readonly<Record<string, string>> = {},
    protocol: { readonly type?: string | null; readonly name?: string | null } = {},
  ): Promise<Asked<SyncReply>> {
    const asked = new Asked(this.groups.sync(groupId, {
      memberId: id,
      instanceId: instance,
      generationId: generation,
      protocolType: protocol.type ?? null,
      protocolName: protocol.name ?? null,
      assignments: Object.entries(assignments).map(([memberId, assignment]) => ({
        memberId,
        assignment: utf8.encode(assignment),
      })),
    }));
    await this.settle();
    return asked;
  }

  beat(groupId: string, { id, instance, generation }: Membership): ErrorCode {
    return this.groups.heartbeat(groupId, id, instance, generation);
  }

  /** Leaves, and gives the code for this one member. */
  async leave(groupId: string, id: string, instance: string | null = null): Promise<ErrorCode> {
    const outcome = this.groups.leave(groupId, [{ memberId: id, groupInstanceId: instance }]);
    await this.settle();
    return Array.isArray(outcome) ? outcome[0] : outcome;
  }

  /** Commits offsets of topic "t" by partition, as a member or, without one, as nobody's. */
  async commit(
    groupId: string,
    offsets: Readonly<Record<number, number>>,
    options: { readonly as?: Membership; readonly topic?: string; readonly retentionMs?: number } = {},
  ): Promise<ErrorCode | ErrorCode[]> {
    return await this.groups.commit({
      groupId,
      memberId: options.as?.id ?? "",
      instanceId: options.as?.instance ?? null,
      generationId: options.as?.generation ?? -1,
      retentionMs: options.retentionMs ?? -1,
      offsets: Object.entries(offsets).map(([partition, offset]) =>
        offsetOf(Number(partition), offset, options.topic ?? "t")
      ),
    });
  }

  /** The committed offset, or null. */
  committed(groupId: string, partition = 0, topic = "t"): number | null {
    return this.groups.offsetsOf(groupId)?.get(topic, partition)?.offset ?? null;
  }

  stateOf(groupId: string): string | undefined {
    return this.groups.describe(groupId)?.state;
  }

  /**
   * Makes a stable group of new members, each with an assignment of `<its number>`. The first one leads.
   * @param members one set of join options for each
   */
  async stable(groupId: string, members: readonly JoinOptions[]): Promise<Membership[]> {
    const { initialDelayMs } = this.settings;
    // Without a delay the first one would be a generation of its own.
    this.settings = { ...this.settings, initialDelayMs: initialDelayMs || 3000 };
    const joins: Asked<JoinReply>[] = [];
    for (const options of members) joins.push(await this.join(groupId, options));
    await this.pass(this.settings.initialDelayMs * 3);
    this.settings = { ...this.settings, initialDelayMs };
    const joined = joins.map(({ reply }, at) => membershipOf(reply, members[at].instance));
    const parts = Object.fromEntries(joined.map(({ id }, at) => [id, String(at)]));
    const syncs: Asked<SyncReply>[] = [];
    for (const [at, member] of joined.entries()) {
      syncs.push(await this.sync(groupId, member, joins[at].reply.leader === member.id ? parts : {}));
    }
    assert.deepEqual(syncs.map(({ reply }) => text.decode(reply.assignment)), joined.map((_, at) => String(at)));
    assert.equal(this.stateOf(groupId), "Stable");
    return joined;
  }
}

export function membershipOf(reply: JoinReply, instance: string | null = null): Membership {
  assert.equal(reply.errorCode, ErrorCode.NONE);
  return { id: reply.memberId, instance, generation: reply.generationId };
}

export function offsetOf(partition: number, offset: number, topic = "t", metadata = ""): OffsetToCommit {
  return { topic, partition, offset, leaderEpoch: -1, metadata };
}

/** What a consumer says when it subscribes to topics (version 0). */
export function subscriptionTo(...topics: string[]): Uint8Array {
  const names = topics.map((topic) => utf8.encode(topic));
  const bytes = new Uint8Array(6 + names.reduce((sum, name) => sum + 2 + name.length, 0) + 4);
  const view = new DataView(bytes.buffer);
  view.setInt32(2, names.length);
  let at = 6;
  for (const name of names) {
    view.setInt16(at, name.length);
    bytes.set(name, at + 2);
    at += 2 + name.length;
  }
  view.setInt32(at, -1);
  return bytes;
}

export function assignmentIn(reply: SyncReply): string {
  assert.equal(reply.errorCode, ErrorCode.NONE);
  return text.decode(reply.assignment);
}

/** Runs `test` with a world of its own. */
export async function withGroups(
  test: (world: GroupWorld) => Promise<void>,
  options: GroupWorldOptions = {},
): Promise<void> {
  const world = await GroupWorld.start(options);
  try {
    await test(world);
  } finally {
    await world.stop();
  }
}
