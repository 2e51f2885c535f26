/**
 * Clients of one classic group that do anything at any time, also with ids and generations of before, and a reference
 * that knows what must hold whatever they do:
 *
 * - a generation has one leader, one protocol and one assignment, and each member gets its own part of it or nothing;
 * - generations only go up; a restart may only fall back to the last one that was assigned;
 * - each JoinGroup and SyncGroup is answered within the longest rebalance time-out;
 * - who is heard of within its session stays, unless a round ended without it; who is silent for longer goes;
 * - who left or was fenced is never taken for a member again; an instance is held by one member;
 * - what was committed is there, also after a crash, and nothing else is;
 * - when everybody has gone, the group is empty.
 */

import assert from "node:assert/strict";
import { ErrorCode, errorName } from "../../lib/errors.ts";
import type { JoinReply, SyncReply } from "../../lib/groups/replies.ts";
import { type Asked, GroupWorld, type Membership } from "../support/group_world.ts";
import type { SeededRandom } from "./seeded_random.ts";

const GROUP = "g";
const CLIENTS = 6;
const PARTITIONS = 3;
const MAX_SIZE = 4;
const LONGEST_REBALANCE_MS = 30_000;
const { NONE } = ErrorCode;
const text = new TextDecoder();

/** Protocols that clients come with: most can agree. */
const PROTOCOLS: readonly Readonly<Record<string, string>>[] = [
  { range: "a" },
  { range: "b", sticky: "b" },
  { sticky: "c", range: "c" },
  { range: "d", only: "d" },
  { sticky: "e" },
];

interface Client {
  readonly instance: string | null;
  readonly sessionMs: number;
  id: string;
  generation: number;
  /** What it was told as leader. */
  toAssign: JoinReply["members"];
  join: Waiting<JoinReply> | null;
  sync: Waiting<SyncReply> | null;
}

interface Waiting<Reply> {
  readonly asked: Asked<Reply>;
  readonly sinceMs: number;
  readonly as: Membership;
}

interface Generation {
  readonly leader: string;
  readonly protocol: string;
  /** What tells the leader's assignment from any other; null until somebody got a part. */
  assignment: string | null;
  isAssigned: boolean;
}

/** When a member was last heard of, at the earliest and at the latest. */
interface Heard {
  readonly fromMs: number;
  readonly toMs: number;
}

/** See the file's head. */
export class GroupModel {
  readonly #clients: Client[];
  readonly #generations = new Map<number, Generation>();
  readonly #owners = new Map<string, string>();
  readonly #gone = new Set<string>();
  readonly #heard = new Map<string, Heard>();
  /** Time-outs that a member was joined with, by whichever client. */
  readonly #sessions = new Map<string, number[]>();
  readonly #synced = new Set<string>();
  readonly #committed = new Map<number, number>();
  #highest = 0;
  /** Who made each assignment. */
  readonly #assigners: string[] = [];
  readonly history: string[] = [];

  private constructor(readonly world: GroupWorld, readonly random: SeededRandom) {
    this.#clients = Array.from({ length: CLIENTS }, (_, index) => ({
      // The last two are one static member that was started twice.
      instance: index === 3 ? "i" : index > 3 ? "j" : null,
      sessionMs: [60_000, 8_000, 6_000, 60_000, 9_000, 9_000][index],
      id: "",
      generation: -1,
      toAssign: [],
      join: null,
      sync: null,
    }));
  }

  static async start(random: SeededRandom): Promise<GroupModel> {
    const settings = { maxSize: MAX_SIZE, initialDelayMs: random.pick([0, 3_000]), expiryIntervalMs: 2 ** 40 };
    return new GroupModel(await GroupWorld.start({ settings, seed: random.below(2 ** 31) }), random);
  }

  /** One client does something, or time passes, or the broker's machine stops. */
  async step(): Promise<void> {
    const { random } = this;
    const client = random.pick(this.#clients);
    const what = random.below(100);
    if (what < 30) await this.#join(client);
    else if (what < 50) await this.#sync(client);
    else if (what < 62) this.#beat(client);
    else if (what < 66) await this.#leave(client);
    else if (what < 74) await this.#commit(client);
    else if (what < 99) await this.#pass(random.chance(0.2) ? random.below(40_000) : random.below(3_000));
    else await this.#crash();
    this.#look();
  }

  /** All clients fall silent; in the end the group must be empty. */
  async end(): Promise<void> {
    for (let round = 0; round < 100; round++) await this.#pass(10_000);
    for (const { join, sync } of this.#clients) assert.ok(join === null && sync === null);
    assert.ok([undefined, "Empty"].includes(this.world.stateOf(GROUP)), this.world.stateOf(GROUP));
    await this.world.stop();
    assert.equal(this.world.disk.openHandles, 0);
  }

  get #nowMs(): number {
    return this.world.clock.monotonicMs();
  }

  #note(client: Client | null, what: string): void {
    this.history.push(`${this.#nowMs} ${client === null ? "-" : this.#clients.indexOf(client)} ${what}`);
  }

  /** Mostly what the client knows; sometimes what it should have forgotten, or never knew. */
  #membershipOf({ id, generation, instance }: Client): Membership {
    const { random } = this;
    return {
      id: random.chance(0.06) ? random.pick(["", "stranger", ...this.#owners.keys()]) : id,
      generation: random.chance(0.06) ? generation + random.between(-1, 1) : generation,
      instance: random.chance(0.04) ? random.pick([null, "i", "j", "k"]) : instance,
    };
  }

  async #join(client: Client): Promise<void> {
    const { random, world } = this;
    const known = this.#membershipOf(client);
    const as = random.chance(0.1) ? { ...known, id: "" } : known;
    const needsKnownId = random.chance(0.7);
    this.#note(client, `joins as ${as.id || "new"} ${as.instance ?? ""}`);
    const asked = await world.join(GROUP, {
      ...as,
      needsKnownId,
      protocols: random.chance(0.9) ? PROTOCOLS[random.below(3)] : random.pick(PROTOCOLS),
      sessionMs: client.sessionMs,
      rebalanceMs: random.between(5_000, LONGEST_REBALANCE_MS),
      knowsSkipAssignment: random.chance(0.5),
    });
    const waiting = { asked, sinceMs: this.#nowMs, as };
    if (as.id !== "") this.#sessions.set(as.id, [...this.#sessions.get(as.id) ?? [], client.sessionMs]);
    if (client.join !== null) this.#settleJoin(client, client.join);
    // The client does not wait for an older request any more: what is left unanswered of it must still be answered.
    if (client.join !== null) this.#abandoned.push(client.join);
    client.join = waiting;
    this.#settleAll(this.#nowMs);
  }

  #abandoned: Waiting<unknown>[] = [];

  async #sync(client: Client): Promise<void> {
    const as = this.#membershipOf(client);
    // Who does not lead may assign as well: it must not count.
    const others = [...this.#owners].map(([memberId, groupInstanceId]) => ({ memberId, groupInstanceId }));
    const toAssign = client.toAssign.length > 0 ? client.toAssign : others;
    const mark = `${as.generation}|${this.#assigners.push(as.id) - 1}`;
    const parts = toAssign.filter(() => this.random.chance(0.95)).map(({ memberId, groupInstanceId }) => [
      memberId,
      `${mark}|${groupInstanceId ?? memberId}`,
    ]);
    this.#note(client, `syncs as ${as.id || "nobody"} of ${as.generation} and assigns ${mark}`);
    const assignments = Object.fromEntries([...parts, ["stranger", "all"]]);
    const asked = await this.world.sync(GROUP, as, assignments);
    if (client.sync !== null) this.#abandoned.push(client.sync);
    client.sync = { asked, sinceMs: this.#nowMs, as };
    this.#settleAll(this.#nowMs);
  }

  #beat(client: Client): void {
    const as = this.#membershipOf(client);
    const code = this.world.beat(GROUP, as);
    this.#note(client, `beats as ${as.id || "nobody"} of ${as.generation}: ${errorName(code)}`);
    this.#judge(as, code, client);
  }

  async #leave(client: Client): Promise<void> {
    const as = this.#membershipOf(client);
    const holder = this.world.groups.describe(GROUP)?.members.find((one) => one.groupInstanceId === as.instance);
    const code = await this.world.leave(GROUP, as.id, as.instance);
    this.#note(client, `leaves as ${as.id || "nobody"} ${as.instance ?? ""}: ${errorName(code)}`);
    if (code === NONE) this.#gone.add(as.id || holder!.memberId);
    this.#settleAll(this.#nowMs);
  }

  async #commit(client: Client): Promise<void> {
    const as = this.#membershipOf(client);
    const partition = this.random.below(PARTITIONS);
    const offset = this.random.below(1_000);
    const outcome = await this.world.commit(GROUP, { [partition]: offset }, { as });
    const code = Array.isArray(outcome) ? outcome[0] : outcome;
    this.#note(client, `commits as ${as.id || "nobody"} of ${as.generation}: ${errorName(code)}`);
    if (code === NONE) this.#committed.set(partition, offset);
    if (as.generation >= 0) this.#judge(as, code, client);
  }

  async #pass(ms: number): Promise<void> {
    this.#note(null, `${ms} ms pass`);
    const fromMs = this.#nowMs;
    await this.world.pass(ms);
    this.#settleAll(fromMs);
  }

  async #crash(): Promise<void> {
    this.#note(null, "the machine stops");
    await this.world.crash();
    for (const client of this.#clients) client.join = client.sync = null;
    this.#abandoned = [];
    this.#gone.clear();
    this.#heard.clear();
    // What was not assigned was not saved: its number may come again.
    for (const [generation, { isAssigned }] of this.#generations) {
      if (!isAssigned) this.#generations.delete(generation);
    }
    this.#highest = Math.max(0, ...this.#generations.keys());
  }

  /** Takes the answers that have come since, between then and now. */
  #settleAll(fromMs: number): void {
    const unanswered = this.#abandoned.filter(({ asked }) => asked.isWaiting);
    if (unanswered.length < this.#abandoned.length) {
      // Whoever it was that was answered, its session begins anew.
      for (const [id, heard] of this.#heard) this.#heard.set(id, { ...heard, toMs: this.#nowMs });
    }
    this.#abandoned = unanswered;
    for (const { join } of this.#clients) {
      if (join === null || join.asked.isWaiting) continue;
      const { errorCode, memberId, members } = join.asked.reply;
      const { instance } = join.as;
      // A static member that leaves its instance unsaid is one all the same.
      if (errorCode === NONE && (instance !== null || !this.#owners.has(memberId))) {
        this.#owners.set(memberId, instance ?? memberId);
      }
      for (const member of members) this.#owners.set(member.memberId, member.groupInstanceId ?? member.memberId);
    }
    for (const client of this.#clients) {
      if (client.join !== null) this.#settleJoin(client, client.join, fromMs);
    }
    for (const client of this.#clients) {
      if (client.sync !== null) this.#settleSync(client, client.sync, fromMs);
    }
  }

  #settleJoin(client: Client, { asked, sinceMs }: Waiting<JoinReply>, fromMs = this.#nowMs): void {
    if (asked.isWaiting) return;
    client.join = null;
    const { reply } = asked;
    const { errorCode, memberId, generationId, leader, members } = reply;
    this.#note(client, `is told ${errorName(errorCode)} ${memberId} of ${generationId}, leader ${leader}`);
    if (errorCode === ErrorCode.MEMBER_ID_REQUIRED) client.id = memberId;
    else if (errorCode === ErrorCode.UNKNOWN_MEMBER_ID || errorCode === ErrorCode.FENCED_INSTANCE_ID) client.id = "";
    if (errorCode === ErrorCode.UNKNOWN_MEMBER_ID && sinceMs < this.#nowMs) this.#checkGone(memberId);
    if (errorCode !== NONE) return;
    assert.ok(!this.#gone.has(memberId), `${memberId} had gone`);
    const known = this.#generations.get(generationId);
    assert.ok(generationId >= this.#highest, `generation ${generationId} after ${this.#highest}`);
    if (known === undefined) {
      assert.ok(generationId > this.#highest || this.#highest === 0);
      this.#generations.set(generationId, {
        leader,
        protocol: reply.protocolName!,
        assignment: null,
        isAssigned: false,
      });
    } else {
      assert.equal(this.#ownerOf(leader), this.#ownerOf(known.leader), `leader of ${generationId}`);
      assert.equal(reply.protocolName, known.protocol);
    }
    this.#highest = generationId;
    if (leader === memberId) assert.ok(members.some((member) => member.memberId === memberId));
    else assert.deepEqual(members, []);
    this.#sessions.set(memberId, [...this.#sessions.get(memberId) ?? [], client.sessionMs]);
    Object.assign(client, { id: memberId, generation: generationId, toAssign: reply.skipAssignment ? [] : members });
    this.#heard.set(memberId, { fromMs, toMs: this.#nowMs });
    if (known?.isAssigned !== true) this.#synced.delete(memberId);
  }

  #settleSync(client: Client, { asked, as, sinceMs }: Waiting<SyncReply>, fromMs: number): void {
    if (asked.isWaiting) return;
    client.sync = null;
    const { errorCode, assignment } = asked.reply;
    const part = text.decode(assignment);
    this.#note(client, `gets ${errorName(errorCode)} "${part}" as ${as.id} of ${as.generation}`);
    const before = this.#heard.get(as.id);
    if (errorCode === ErrorCode.REBALANCE_IN_PROGRESS && before !== undefined) {
      // Who had waited has its whole session from here; who was refused at once has what was left.
      this.#heard.set(as.id, { ...before, toMs: this.#nowMs });
    }
    if (errorCode === ErrorCode.UNKNOWN_MEMBER_ID && sinceMs < this.#nowMs) this.#checkGone(as.id);
    if (errorCode !== NONE) return assert.equal(part, "");
    assert.ok(!this.#gone.has(as.id) || fromMs < this.#nowMs, `${as.id} had gone`);
    this.#heard.set(as.id, { fromMs, toMs: this.#nowMs });
    this.#synced.add(as.id);
    const generation = this.#generations.get(as.generation);
    assert.ok(generation !== undefined, `nobody was told of ${as.generation}`);
    generation.isAssigned = true;
    if (part === "") return;
    const [number, mark, owner] = part.split("|");
    assert.equal(Number(number), as.generation, "an assignment of another generation");
    assert.equal(owner, this.#ownerOf(as.id), "somebody else's part");
    assert.equal(this.#ownerOf(this.#assigners[Number(mark)]), this.#ownerOf(generation.leader), "who assigned leads");
    generation.assignment ??= mark;
    assert.equal(mark, generation.assignment, "two assignments of one generation");
  }

  /** Who waits is not dropped, but when it leaves or has its place taken. */
  #checkGone(memberId: string): void {
    assert.ok(this.#gone.has(memberId), `${memberId} was dropped while it waited`);
  }

  /** What an answer to a heartbeat or commit says about the membership. */
  #judge({ id, generation, instance }: Membership, code: ErrorCode, client: Client): void {
    const heard = this.#heard.get(id);
    const waits = (one: Waiting<unknown> | null) => one !== null && one.as.id === id;
    const isSilent = this.#abandoned.length === 0 &&
      !this.#clients.some(({ join, sync }) => waits(join) || waits(sync));
    const sessions = this.#sessions.get(id) ?? [client.sessionMs];
    if (code === NONE || code === ErrorCode.REBALANCE_IN_PROGRESS) {
      assert.ok(!this.#gone.has(id), `${id} had gone`);
      const isOwn = id === client.id && isSilent && heard !== undefined;
      if (isOwn) assert.ok(this.#nowMs < heard.toMs + Math.max(...sessions), `the session of ${id} had ended`);
      this.#heard.set(id, { fromMs: this.#nowMs, toMs: this.#nowMs });
    }
    if (code === ErrorCode.FENCED_INSTANCE_ID && this.#ownerOf(id) === instance) this.#gone.add(id);
    const isCurrent = generation === this.#highest && this.#synced.has(id) && this.#ownerOf(id) === (instance ?? id);
    if (code !== ErrorCode.UNKNOWN_MEMBER_ID || heard === undefined || !isCurrent || this.#gone.has(id)) return;
    if (id !== client.id || instance !== client.instance) return;
    const isOver = this.world.stateOf(GROUP) === "Empty";
    assert.ok(isOver || this.#nowMs >= heard.fromMs + Math.min(...sessions), `${id} was heard of at ${heard.fromMs}`);
  }

  #ownerOf(memberId: string): string {
    return this.#owners.get(memberId) ?? memberId;
  }

  /** What can be seen from outside at any time. */
  #look(): void {
    const described = this.world.groups.describe(GROUP);
    const members = described?.members ?? [];
    // A round may end without anybody, and without anybody being told.
    if (described?.state !== "Stable") this.#synced.clear();
    // While a round is joined, those who joined count; static members keep their place when they are away.
    const counted = members.filter(({ groupInstanceId }) => groupInstanceId === null).length;
    assert.ok(counted <= MAX_SIZE || described?.state === "PreparingRebalance", `${counted} members`);
    for (const { memberId } of members) assert.ok(!this.#gone.has(memberId), `${memberId} had gone`);
    const instances = members.flatMap(({ groupInstanceId }) => groupInstanceId ?? []);
    assert.equal(new Set(instances).size, instances.length, "an instance twice");
    for (let partition = 0; partition < PARTITIONS; partition++) {
      assert.equal(
        this.world.committed(GROUP, partition),
        this.#committed.get(partition) ?? null,
        `offset of ${partition}`,
      );
    }
    const waiting = [...this.#abandoned, ...this.#clients.flatMap(({ join, sync }) => [join ?? [], sync ?? []].flat())];
    for (const { asked, sinceMs } of waiting) {
      const isLate = asked.isWaiting && this.#nowMs >= sinceMs + LONGEST_REBALANCE_MS;
      assert.ok(!isLate, `asked at ${sinceMs}, not answered at ${this.#nowMs}`);
    }
  }
}
