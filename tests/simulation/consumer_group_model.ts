/**
 * A group whose members come, go, freeze, lose answers, and speak either protocol, while topics change and the broker
 * crashes. What must hold: no partition is read by two members of the group at any time, nobody who behaves is thrown
 * out, and when all is quiet every partition is read by one.
 */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { GroupWorld } from "../support/group_world.ts";
import { ClassicClient, ConsumerClient, GROUP, type ModelClient } from "./consumer_group_clients.ts";
import type { SeededRandom } from "./seeded_random.ts";

const MAX_CLIENTS = 5;
const MAX_TOPICS = 3;
const SETTLED_TICKS = 120;

/** See the file's head. */
export class ConsumerGroupModel {
  readonly history: string[] = [];
  #clients: ModelClient[] = [];
  #made = 0;
  #topicsMade = 0;
  readonly #isCooperative: boolean;
  readonly #mixes: boolean;

  private constructor(readonly world: GroupWorld, readonly random: SeededRandom) {
    this.#isCooperative = random.chance(0.5);
    this.#mixes = random.chance(0.6);
  }

  static async start(random: SeededRandom): Promise<ConsumerGroupModel> {
    const model = new ConsumerGroupModel(await GroupWorld.start({ seed: random.below(2 ** 31) }), random);
    model.#makeTopic();
    return model;
  }

  /** Something happens, everybody who runs does something, and a second or three go by. */
  async tick(): Promise<void> {
    await this.#happen();
    await this.#everybodyActs();
    await this.#pass(this.random.between(500, 3000));
  }

  /** Nothing happens any more: all partitions find their readers. */
  async end(): Promise<void> {
    for (const client of this.#clients) {
      client.isFrozen = false;
      if (client instanceof ClassicClient) client.mustJoin = true;
      else if (client instanceof ConsumerClient) client.calmDown();
    }
    for (let tick = 0; tick < SETTLED_TICKS; tick++) {
      await this.#everybodyActs();
      await this.#pass(1000);
    }
    const places = [...this.world.topics.names()].flatMap((name) =>
      Array.from({ length: this.world.topics.byName(name)!.partitionCount }, (_, at) => `${name}/${at}`)
    );
    const running = this.#clients.filter(({ isOver }) => !isOver);
    const read = running.flatMap(({ has }) => [...has]).filter((place) => places.includes(place));
    assert.deepEqual(read.sort(), running.length === 0 ? [] : places.sort());
    const sizes = running.map(({ has }) => has.size);
    if (running.every((client) => client instanceof ConsumerClient)) {
      assert.ok(running.length === 0 || this.#phase() === "Stable", String(this.#phase()));
    }
    this.#say(`at last ${sizes}`);
    for (const client of running) await client.leave();
    await this.#pass(60_000);
    assert.ok([undefined, "Empty"].includes(this.#phase()), String(this.#phase()));
    assert.deepEqual(this.world.problems, []);
    await this.world.stop();
  }

  async #happen(): Promise<void> {
    const { random } = this;
    const client = this.#clients.length === 0 ? null : random.pick(this.#clients);
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        if (this.#clients.length < MAX_CLIENTS) this.#startClient();
        return;
      case 3:
        if (client !== null && !client.isFrozen) await client.leave();
        return;
      case 4:
        if (client !== null) this.#freeze(client, !client.isFrozen);
        return;
      case 5:
        // A process that is killed says nothing.
        if (client !== null && random.chance(0.3)) this.#kill(client);
        return;
      case 6:
        if (this.#topicCount() < MAX_TOPICS) this.#makeTopic();
        return;
      case 7:
        this.#changeTopic();
        return;
      case 8:
        if (random.chance(0.2)) await this.#pass(random.between(20_000, 50_000));
        return;
      case 9:
        if (random.chance(0.3)) await this.#crash();
        return;
      default:
    }
  }

  #startClient(): void {
    const name = `c${this.#made++}`;
    const log = (line: string) => this.#say(line);
    if (this.#mixes && this.random.chance(0.5)) {
      this.#clients.push(new ClassicClient(name, this.world, this.#isCooperative, log));
    } else {
      const instances = ["i", "j"].filter((one) =>
        !this.#clients.some((other) => other instanceof ConsumerClient && other.instance === one)
      );
      const instance = instances.length > 0 && this.random.chance(0.4) ? this.random.pick(instances) : null;
      this.#clients.push(new ConsumerClient(name, this.world, this.random, instance, log));
    }
    this.#say(`${name} starts`);
  }

  #freeze(client: ModelClient, isFrozen: boolean): void {
    this.#say(`${client.name} ${isFrozen ? "freezes" : "wakes"}`);
    client.isFrozen = isFrozen;
    if (client instanceof ConsumerClient) client.wasAway = true;
  }

  #kill(client: ModelClient): void {
    this.#say(`${client.name} is killed`);
    client.has.clear();
    client.isOver = true;
  }

  #makeTopic(): void {
    const name = `t${this.#topicsMade++}`;
    this.#say(`topic ${name}`);
    this.world.topics.set(name, this.random.between(1, 4));
  }

  #changeTopic(): void {
    const names = [...this.world.topics.names()];
    if (names.length === 0) return;
    const name = this.random.pick(names);
    this.#say(`topic ${name} changes`);
    if (names.length > 1 && this.random.chance(0.4)) this.world.topics.delete(name);
    else this.world.topics.set(name, this.world.topics.byName(name)!.partitionCount + 1);
  }

  async #crash(): Promise<void> {
    this.#say("crash");
    await this.world.crash();
    this.#disconnect();
  }

  #disconnect(): void {
    for (const client of this.#clients) if (client instanceof ClassicClient) client.disconnected();
  }

  async #everybodyActs(): Promise<void> {
    const before = this.world.groups;
    for (const client of this.#shuffled()) {
      if (client.isFrozen || client.isOver) continue;
      await client.act();
      if (this.world.groups !== before) this.#disconnect();
      this.#check();
    }
    this.#clients = this.#clients.filter(({ isOver }) => !isOver);
  }

  #shuffled(): ModelClient[] {
    const clients = [...this.#clients];
    for (let at = clients.length - 1; at > 0; at--) {
      const other = this.random.below(at + 1);
      [clients[at], clients[other]] = [clients[other], clients[at]];
    }
    return clients;
  }

  async #pass(ms: number): Promise<void> {
    // Long times go by in pieces, in which everybody who runs is heard of.
    for (let left = ms; left > 0; left -= 3000) {
      await this.world.pass(Math.min(left, 3000));
      if (left > 3000) await this.#everybodyActs();
    }
  }

  /** Nothing is read by two members. */
  #check(): void {
    const members = this.#memberIds();
    const readers = new Map<string, ModelClient>();
    for (const client of this.#clients) {
      if (client.isOver || !members.has(client.id)) continue;
      for (const place of client.has) {
        if (this.world.topics.byName(place.split("/")[0]) === undefined) continue;
        const other = readers.get(place);
        assert.ok(other === undefined, `${place} is read by ${other?.name} and ${client.name}`);
        readers.set(place, client);
      }
    }
  }

  #memberIds(): Set<string> {
    const consumers = this.world.groups.describeConsumer(GROUP);
    const members = "errorCode" in consumers ? this.world.groups.describe(GROUP)?.members ?? [] : consumers.members;
    return new Set(members.map(({ memberId }) => memberId));
  }

  #phase(): string | undefined {
    assert.equal(this.world.groups.availability, ErrorCode.NONE);
    return this.world.groups.list().find(({ groupId }) => groupId === GROUP)?.state;
  }

  #topicCount(): number {
    return [...this.world.topics.names()].length;
  }

  #say(line: string): void {
    this.history.push(`${this.world.clock.monotonicMs()} ${line}`);
  }
}
