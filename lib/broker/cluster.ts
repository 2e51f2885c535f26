/**
 * The cluster as this broker knows it: who is alive, who leads what, who keeps which coordinators' state. What clients
 * are told of other brokers all comes from here.
 */
import { type Clock, sleep } from "../clock.ts";
import type { BrokerRecord } from "../cluster/broker_record.ts";
import type { LeaseWatch } from "../cluster/lease_watch.ts";
import type { Leadership, Place } from "./leadership.ts";
import type { BrokerAddress } from "./topic_metadata.ts";

/** A broker that somebody chose by hand to lead a partition. */
export interface ChosenLeader {
  readonly topic: string;
  readonly partition: number;
  readonly nodeId: number;
}

/** See the file's head. */
export interface Cluster {
  /** The live brokers that have a listener of that name, by the address that it advertises. */
  addresses(listener: string): BrokerAddress[];
  /** Node ids of the live brokers, rising. */
  nodeIds(): number[];
  isAlive(nodeId: number): boolean;
  /** The broker that leads a partition; null where that is not known. */
  placeOf(topic: string, partition: number): Place | null;
  /** Chooses leaders by hand; durable when it resolves, carried out later. */
  chooseLeaders(chosen: readonly ChosenLeader[]): Promise<void>;
  /** Whether `condition` comes to hold within `timeoutMs`, looked at with every change of the assignment. */
  eventually(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** The broker that keeps a shard of coordinators' state; null where that is not known. */
  coordinatorOf(kind: string, shard: number): number | null;
  /** The broker to which clients take requests that change the cluster. */
  readonly controllerId: number;
}

/** The cluster as the leases and the assignment on the volume tell it. */
export class VolumeCluster implements Cluster {
  #alive: readonly BrokerRecord[] = [];
  #aliveIds: ReadonlySet<number> = new Set();
  #looks = -1;

  constructor(
    private readonly nodeId: number,
    private readonly brokers: LeaseWatch<BrokerRecord>,
    private readonly leadership: Leadership,
    private readonly clock: Clock,
  ) {}

  addresses(listener: string): BrokerAddress[] {
    const addresses: BrokerAddress[] = [];
    for (const { nodeId, listeners, rack } of this.#look()) {
      const own = listeners.find(({ name }) => name === listener);
      if (own !== undefined) addresses.push({ nodeId, host: own.host, port: own.port, rack });
    }
    return addresses;
  }

  nodeIds(): number[] {
    return this.#look().map(({ nodeId }) => nodeId);
  }

  isAlive(nodeId: number): boolean {
    this.#look();
    return nodeId === this.nodeId || this.#aliveIds.has(nodeId);
  }

  placeOf(topic: string, partition: number): Place | null {
    return this.leadership.placeOf(topic, partition);
  }

  async chooseLeaders(chosen: readonly ChosenLeader[]): Promise<void> {
    await this.leadership.chooseLeaders(chosen);
  }

  async eventually(condition: () => boolean, timeoutMs: number): Promise<boolean> {
    const deadline = this.clock.monotonicMs() + timeoutMs;
    while (!condition()) {
      const leftMs = deadline - this.clock.monotonicMs();
      if (leftMs <= 0) return false;
      await Promise.race([this.leadership.nextChange(), sleep(this.clock, leftMs)]);
    }
    return true;
  }

  coordinatorOf(kind: string, shard: number): number | null {
    return this.leadership.coordinatorOf(kind, shard);
  }

  get controllerId(): number {
    const { controllerId } = this.leadership;
    if (controllerId >= 0 && this.isAlive(controllerId)) return controllerId;
    return this.nodeIds()[0] ?? this.nodeId;
  }

  /** A broker that asks is alive, whatever it has seen of itself. */
  #look(): readonly BrokerRecord[] {
    if (this.#looks === this.brokers.looks) return this.#alive;
    this.#looks = this.brokers.looks;
    this.#alive = this.brokers.sightings()
      .filter(({ record, alive }) => alive || record.nodeId === this.nodeId)
      .map(({ record }) => record)
      .sort((a, b) => a.nodeId - b.nodeId);
    this.#aliveIds = new Set(this.#alive.map(({ nodeId }) => nodeId));
    return this.#alive;
  }
}
