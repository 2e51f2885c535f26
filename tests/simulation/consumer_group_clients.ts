/**
 * Clients of a group as real ones behave, of the consumer protocol and of the classic one: what they have at each moment
 * is what the invariant of groups is about. A client acts when it is told to, one request at a time.
 */

import assert from "node:assert/strict";
import { ErrorCode, errorName } from "../../lib/errors.ts";
import { readAssignment, readSubscription, writeAssignment } from "../../lib/groups/consumer_protocol.ts";
import type { HeartbeatReply } from "../../lib/groups/consumer_replies.ts";
import type { JoinReply, SyncReply } from "../../lib/groups/replies.ts";
import { PartitionsBuilder } from "../../lib/groups/topic_partitions.ts";
import { Asked, type GroupWorld, subscriptionTo } from "../support/group_world.ts";
import type { SeededRandom } from "./seeded_random.ts";

export const GROUP = "g";

export interface ModelClient {
  readonly name: string;
  id: string;
  /** Partitions that it reads now, as `topic/partition`. */
  readonly has: Set<string>;
  /** A process that is stopped for a while, and may be taken for gone. */
  isFrozen: boolean;
  /** A process that has ended, or has been told to end. */
  isOver: boolean;
  act(): Promise<void>;
  leave(): Promise<void>;
}

/** A member of the consumer protocol. */
export class ConsumerClient implements ModelClient {
  readonly has = new Set<string>();
  isFrozen = false;
  isOver = false;
  #isCalm = false;
  id: string;
  #epoch = 0;
  #wanted: Set<string> | null = null;
  #hasNews = false;
  /** Whether the answer to the last heartbeat has not come: all is said again. */
  #isUnsure = false;

  constructor(
    readonly name: string,
    readonly world: GroupWorld,
    readonly random: SeededRandom,
    readonly instance: string | null,
    readonly log: (line: string) => void,
  ) {
    this.id = random.uuid();
  }

  async act(): Promise<void> {
    if (this.#wanted !== null && this.random.chance(0.7)) this.#apply(this.#wanted);
    const isFull = this.#epoch === 0 || this.#isUnsure;
    const byPattern = this.#isCalm || this.random.chance(0.5);
    const reply = new Asked<HeartbeatReply>(Promise.resolve(this.world.groups.consumerHeartbeat(GROUP, {
      memberId: this.id,
      memberEpoch: this.#epoch,
      instanceId: this.instance,
      rackId: null,
      clientId: this.name,
      clientHost: "/127.0.0.1",
      rebalanceTimeoutMs: isFull ? 60_000 : -1,
      topicNames: isFull ? byPattern ? [] : [...this.world.topics.names()] : null,
      regex: isFull ? byPattern ? "t.*" : "" : null,
      assignor: isFull && this.random.chance(0.3) ? "range" : null,
      owned: isFull || this.#hasNews ? this.#owned() : null,
    }, 1)));
    const fate = this.#isCalm ? 1 : this.random.next();
    if (fate < 0.02) await this.world.crash();
    else await this.world.settle();
    if (fate < 0.1) {
      this.log(`${this.name} hears no answer`);
      this.#isUnsure = true;
      return;
    }
    this.#take(reply.reply);
  }

  /** From now on every answer comes, and the subscription is to all topics, whichever come. */
  calmDown(): void {
    this.#isCalm = true;
    this.#isUnsure = true;
  }

  async leave(): Promise<void> {
    const memberEpoch = this.instance !== null && this.random.chance(0.7) ? -2 : -1;
    this.log(`${this.name} leaves with ${memberEpoch}`);
    this.has.clear();
    this.isOver = true;
    this.world.groups.consumerHeartbeat(GROUP, {
      ...GOODBYE,
      memberId: this.id,
      memberEpoch,
      instanceId: this.instance,
    }, 1);
    await this.world.settle();
  }

  #owned() {
    const owned = new PartitionsBuilder();
    for (const place of this.has) {
      const [topic, partition] = place.split("/");
      const facts = this.world.topics.byName(topic);
      if (facts !== undefined) owned.add(facts.topicId, Number(partition));
    }
    return owned.build();
  }

  #take({ errorCode, memberEpoch, assignment }: HeartbeatReply): void {
    switch (errorCode) {
      case ErrorCode.NONE:
        this.#epoch = memberEpoch;
        this.#isUnsure = false;
        this.#hasNews = false;
        if (assignment !== null) {
          const places = [...assignment].flatMap(([topicId, partitions]) => {
            const name = this.world.topics.byId(topicId)?.name;
            return name === undefined ? [] : [...partitions].map((partition) => `${name}/${partition}`);
          });
          this.log(`${this.name} in ${memberEpoch} is assigned ${places}`);
          this.#wanted = new Set(places);
          if (this.random.chance(0.5)) this.#apply(this.#wanted);
        }
        return;
      case ErrorCode.FENCED_MEMBER_EPOCH:
      case ErrorCode.UNKNOWN_MEMBER_ID:
        assert.ok(this.wasAway || this.#isUnsure, `${this.name} is thrown out: ${errorName(errorCode)}`);
        this.log(`${this.name} is thrown out`);
        this.has.clear();
        this.#wanted = null;
        this.#epoch = 0;
        this.#isUnsure = false;
        this.wasAway = false;
        return;
      case ErrorCode.UNRELEASED_INSTANCE_ID:
        assert.ok(this.instance !== null && this.#epoch === 0);
        return;
      case ErrorCode.FENCED_INSTANCE_ID:
        assert.ok(this.instance !== null);
        this.has.clear();
        this.isOver = true;
        return;
      case ErrorCode.GROUP_ID_NOT_FOUND:
        assert.ok(this.wasAway, "a group is forgotten only when it has been empty for long");
        this.has.clear();
        this.isOver = true;
        return;
      default:
        assert.fail(`${this.name} gets ${errorName(errorCode)}`);
    }
  }

  /** Whether it was frozen since it joined: then it may have been taken for gone. */
  wasAway = false;

  /** Gives up first, takes then. */
  #apply(wanted: Set<string>): void {
    for (const place of this.has) if (!wanted.has(place)) this.has.delete(place);
    for (const place of wanted) this.has.add(place);
    this.#wanted = null;
    this.#hasNews = true;
  }
}

const GOODBYE = {
  rackId: null,
  clientId: "",
  clientHost: "",
  rebalanceTimeoutMs: -1,
  topicNames: null,
  regex: null,
  assignor: null,
  owned: null,
};

/** A member of the classic protocol, whose assignor is cooperative or not. */
export class ClassicClient implements ModelClient {
  readonly has = new Set<string>();
  isFrozen = false;
  isOver = false;
  id = "";
  mustJoin = true;
  #generation = -1;
  #join: Asked<JoinReply> | null = null;
  #sync: Asked<SyncReply> | null = null;

  constructor(
    readonly name: string,
    readonly world: GroupWorld,
    readonly isCooperative: boolean,
    readonly log: (line: string) => void,
  ) {}

  async act(): Promise<void> {
    if (this.#join !== null) {
      if (!this.#join.isWaiting) await this.#joined(this.#join.reply);
    } else if (this.#sync !== null) {
      if (!this.#sync.isWaiting) this.#synced(this.#sync.reply);
    } else if (this.mustJoin) await this.#doJoin();
    else this.#beat();
  }

  /** The broker is gone, and with it every answer. */
  disconnected(): void {
    if (this.#join !== null || this.#sync !== null) this.mustJoin = true;
    this.#join = this.#sync = null;
  }

  async leave(): Promise<void> {
    this.log(`${this.name} leaves`);
    this.has.clear();
    this.isOver = true;
    await this.world.leave(GROUP, this.id);
  }

  async #doJoin(): Promise<void> {
    if (!this.isCooperative) this.has.clear();
    this.mustJoin = false;
    const metadata = subscribing([...this.world.topics.names()], this.has);
    const protocols = { [this.isCooperative ? "cooperative" : "eager"]: metadata };
    this.#join = await this.world.join(GROUP, { id: this.id, protocols, needsKnownId: true, sessionMs: 30_000 });
  }

  async #joined(reply: JoinReply): Promise<void> {
    this.#join = null;
    this.log(`${this.name} joins: ${errorName(reply.errorCode)} ${reply.generationId} with ${[...this.has]}`);
    if (reply.errorCode !== ErrorCode.NONE) {
      this.mustJoin = true;
      if (reply.errorCode === ErrorCode.MEMBER_ID_REQUIRED) this.id = reply.memberId;
      else this.#refused(reply.errorCode);
      return;
    }
    this.id = reply.memberId;
    this.#generation = reply.generationId;
    const isLeader = reply.leader === reply.memberId;
    const assignments = isLeader ? this.#assign(reply.members) : [];
    this.#sync = new Asked(this.world.groups.sync(GROUP, {
      memberId: this.id,
      instanceId: null,
      generationId: this.#generation,
      protocolType: null,
      protocolName: null,
      assignments,
    }));
    await this.world.settle();
  }

  #synced({ errorCode, assignment }: SyncReply): void {
    this.#sync = null;
    if (errorCode !== ErrorCode.NONE) return this.#refused(errorCode);
    const given = readAssignment(assignment);
    assert.ok(given !== null);
    const places = new Set(given.flatMap(({ topic, partitions }) => partitions.map((at) => `${topic}/${at}`)));
    this.log(`${this.name} in ${this.#generation} is assigned ${[...places]}`);
    const before = this.has.size;
    for (const place of this.has) if (!places.has(place)) this.has.delete(place);
    if (this.has.size < before) this.mustJoin = true;
    for (const place of places) this.has.add(place);
  }

  #beat(): void {
    const code = this.world.beat(GROUP, { id: this.id, instance: null, generation: this.#generation });
    if (code !== ErrorCode.NONE) this.#refused(code);
  }

  #refused(code: ErrorCode): void {
    this.log(`${this.name} is told ${errorName(code)}`);
    this.mustJoin = true;
    if (code === ErrorCode.REBALANCE_IN_PROGRESS) return;
    this.has.clear();
    if (code === ErrorCode.UNKNOWN_MEMBER_ID) this.id = "";
    else assert.equal(code, ErrorCode.ILLEGAL_GENERATION);
  }

  /** In turn; what another says it has is nobody's until that one has given it up. */
  #assign(members: JoinReply["members"]) {
    const claims = new Map<string, string>();
    for (const { memberId, metadata } of members) {
      for (const { topic, partitions } of readSubscription(metadata)!.owned) {
        for (const partition of partitions) claims.set(`${topic}/${partition}`, memberId);
      }
    }
    const ids = members.map(({ memberId }) => memberId).sort();
    const parts = new Map(ids.map((id) => [id, [] as { topic: string; partitions: number[] }[]]));
    let turn = 0;
    for (const topic of this.world.topics.names()) {
      for (let partition = 0; partition < this.world.topics.byName(topic)!.partitionCount; partition++) {
        const id = ids[turn++ % ids.length];
        const claim = claims.get(`${topic}/${partition}`);
        if (claim === undefined || claim === id) parts.get(id)!.push({ topic, partitions: [partition] });
      }
    }
    return [...parts].map(([memberId, assigned]) => ({ memberId, assignment: writeAssignment(1, assigned) }));
  }
}

/** A subscription (version 1) of a member that has these partitions. */
export function subscribing(topics: readonly string[], has: Iterable<string>): Uint8Array {
  const head = subscriptionTo(...topics);
  new DataView(head.buffer).setInt16(0, 1);
  const owned = [...has].map((place) => {
    const [topic, partition] = place.split("/");
    return { topic, partitions: [Number(partition)] };
  });
  // An assignment holds partitions just as a subscription does, between its version and its user data.
  const partitions = writeAssignment(1, owned).subarray(2, -4);
  const bytes = new Uint8Array(head.length + partitions.length);
  bytes.set(head);
  bytes.set(partitions, head.length);
  return bytes;
}
