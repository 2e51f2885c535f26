/**
 * The next assignment, from what is and what was: a pure function.
 *
 * Invariants:
 * - a partition's leader epoch rises by exactly one with each change of its leader or of its leader's session, and stays
 *   otherwise; a partition that no assignment knows gets an epoch above the highest one in its segment names;
 * - a live broker is relieved of a partition only after it said that it has closed it, and a partition with segments that
 *   no assignment knows is given to nobody while some broker may lead it;
 * - nothing moves that need not: leaders stay where they are unless their broker died, drains, or has two partitions more
 *   than another one, or somebody chose another broker for them by hand;
 * - without a live broker nothing changes at all.
 */
import { type Assignment, type PartitionAssignment, partitionKey } from "./assignment.ts";
import type { BrokerFacts } from "./broker_record.ts";

/** A broker as the planner needs it. */
export interface PlannedBroker {
  /** Its name in the assignment. */
  readonly id: string;
  readonly alive: boolean;
  readonly draining: boolean;
  /** Epoch of its session. */
  readonly tenure: number;
  readonly given: BrokerFacts["given"];
  /** How many changes of topics it has told of. */
  readonly changes: number;
}

/** A topic, or a kind of coordinator, as it is on the volume. */
export interface PlannedTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitionCount: number;
  readonly revision: number;
}

export interface PlanInput {
  readonly previous: Assignment | null;
  readonly topics: readonly PlannedTopic[];
  /** Kinds of coordinators with their numbers of shards. */
  readonly coordinators: readonly { readonly name: string; readonly partitionCount: number }[];
  readonly brokers: readonly PlannedBroker[];
  readonly controller: { readonly name: string; readonly epoch: number };
  readonly wallMs: number;
  /** Highest epoch among the segment names of a partition that no assignment knows, or that has stalled; -1 for none. */
  epochOnDisk(topic: string, partition: number): number;
  /** Whether some broker may lead a partition that no assignment knows; it is then left alone if it has segments. */
  mayBeLed(): boolean;
  /** Broker that somebody chose for a partition, until that is in the assignment; undefined where nobody did. */
  wanted(topic: string, partition: number): string | undefined;
  /** How many partitions may be on the move at a time. */
  readonly movesAtOnce: number;
}

/** The assignment that should follow `previous`; null where that can stay. */
export function planAssignment(input: PlanInput): Assignment | null {
  const { previous, brokers, controller } = input;
  if (!brokers.some(({ alive }) => alive)) return null;
  // Partitions and each kind of coordinator are spread apart from each other.
  const groups = [
    { topics: input.topics, held: previous?.partitions ?? [] },
    ...input.coordinators.map((kind) => ({
      topics: [kind],
      held: (previous?.coordinators ?? []).filter(({ topic }) => topic === kind.name),
    })),
  ].map(({ topics, held }) => {
    const plan = new Plan(input, held);
    return { plan, entries: plan.all(topics) };
  });
  let room = input.movesAtOnce - groups.flatMap(({ entries }) => entries.filter(isMoving)).length;
  const [partitions, ...coordinators] = groups.map(({ plan, entries }) => {
    const next = plan.withMoves(entries, room);
    room -= next.filter(isMoving).length - entries.filter(isMoving).length;
    return next;
  });
  const time = new Date(input.wallMs).toISOString();
  const next: Assignment = {
    ...previous,
    controllerEpoch: controller.epoch,
    assignmentVersion: (previous?.assignmentVersion ?? 0) + 1,
    generatedAt: time,
    controller: controller.name,
    brokers: brokers.map(({ id, alive, draining, tenure, changes }) => ({
      id,
      health: alive ? (draining ? "draining" : "alive") : "dead",
      lastSeen: time,
      tenure,
      changes,
    })),
    partitions,
    topics: input.topics.map(({ name, topicId, revision }) => ({ name, topicId, revision })),
    coordinators: coordinators.flat(),
  };
  return previous !== null && isSame(previous, next) ? null : next;
}

function isMoving({ moveTo }: PartitionAssignment): boolean {
  return moveTo !== undefined;
}

class Plan {
  readonly #brokers: ReadonlyMap<string, PlannedBroker>;
  readonly #eligible: readonly string[];
  readonly #load: Map<string, number>;
  readonly #given = new Map<string, "closed" | "stalled">();
  readonly #tenures = new Map<string, number>();

  constructor(private readonly input: PlanInput, private readonly held: readonly PartitionAssignment[]) {
    const { brokers, previous } = input;
    this.#brokers = new Map(brokers.map((broker) => [broker.id, broker]));
    const alive = brokers.filter((broker) => broker.alive);
    const staying = alive.filter(({ draining }) => !draining);
    this.#eligible = (staying.length > 0 ? staying : alive).map(({ id }) => id);
    this.#load = new Map(alive.map(({ id }) => [id, 0]));
    for (const { id, given } of alive) {
      for (const one of given) this.#given.set(`${id} ${partitionKey(one)}@${one.epoch}`, one.why);
    }
    for (const { id, tenure } of previous?.brokers ?? []) if (tenure !== undefined) this.#tenures.set(id, tenure);
    for (const { broker, moveTo } of held) this.#count(moveTo ?? broker, 1);
  }

  /** The entries of all partitions of `topics`, in their order. */
  all(
    topics: readonly { readonly name: string; readonly partitionCount: number; readonly topicId?: string }[],
  ): PartitionAssignment[] {
    const before = new Map(this.held.map((entry) => [partitionKey(entry), entry]));
    const ids = new Map(this.input.previous?.topics?.map(({ name, topicId }) => [name, topicId]));
    const entries: PartitionAssignment[] = [];
    for (const { name, partitionCount, topicId } of topics) {
      const isAnother = topicId !== undefined && ids.has(name) && ids.get(name) !== topicId;
      for (let partition = 0; partition < partitionCount; partition++) {
        const key = `${name}/${partition}`;
        const entry = before.get(key);
        before.delete(key);
        if (entry !== undefined && isAnother) this.#count(entry.moveTo ?? entry.broker, -1);
        if (entry !== undefined && !isAnother) entries.push(this.#next(entry));
        else if (this.input.epochOnDisk(name, partition) < 0 || !this.input.mayBeLed()) {
          entries.push(this.#first(name, partition));
        }
      }
    }
    for (const gone of before.values()) this.#count(gone.moveTo ?? gone.broker, -1);
    return entries;
  }

  /** The entries with up to `room` moves begun where brokers drain or the load is uneven. */
  withMoves(entries: PartitionAssignment[], room: number): PartitionAssignment[] {
    if (room <= 0 || this.#eligible.length === 0) return entries;
    const next = [...entries];
    const isDraining = (id: string) => this.#brokers.get(id)?.draining === true && !this.#eligible.includes(id);
    for (let at = 0; at < next.length && room > 0; at++) {
      const entry = next[at];
      if (entry.moveTo !== undefined || !isDraining(entry.broker)) continue;
      next[at] = this.#moved(entry, this.#leastLoaded());
      room--;
    }
    for (let at = 0; at < next.length && room > 0; at++) {
      const entry = next[at];
      const preferred = this.#usable(entry.preferred);
      if (entry.moveTo !== undefined || preferred === undefined || preferred === entry.broker) continue;
      next[at] = this.#moved(entry, preferred);
      room--;
    }
    for (let at = 0; at < next.length && room > 0; at++) {
      const entry = next[at];
      if (entry.moveTo !== undefined || isDraining(entry.broker) || entry.preferred === entry.broker) continue;
      const target = this.#leastLoaded();
      if (this.#loadOf(entry.broker) - this.#loadOf(target) < 2) continue;
      next[at] = this.#moved(entry, target);
      room--;
    }
    return next;
  }

  #moved(entry: PartitionAssignment, target: string): PartitionAssignment {
    this.#count(entry.broker, -1);
    this.#count(target, 1);
    return { ...entry, moveTo: target };
  }

  #first(topic: string, partition: number): PartitionAssignment {
    const wanted = this.input.wanted(topic, partition);
    const broker = wanted !== undefined && this.#eligible.includes(wanted) ? wanted : this.#leastLoaded();
    this.#count(broker, 1);
    const epoch = this.input.epochOnDisk(topic, partition) + 1;
    return { topic, partition, broker, epoch, role: "leader", ...(wanted === undefined ? {} : { preferred: wanted }) };
  }

  #next(before: PartitionAssignment): PartitionAssignment {
    const wanted = this.input.wanted(before.topic, before.partition);
    const entry = wanted === undefined || wanted === before.preferred ? before : this.#preferring(before, wanted);
    const { broker, moveTo } = entry;
    const owner = this.#brokers.get(broker);
    if (owner === undefined || !owner.alive) return this.#to(this.#usable(moveTo), entry);
    if (this.#tenures.get(broker) !== owner.tenure) {
      return this.#to(owner.draining ? this.#usable(moveTo) : this.#usable(moveTo) ?? broker, entry);
    }
    const given = this.#given.get(`${broker} ${partitionKey(entry)}@${entry.epoch}`);
    if (given === "closed") return this.#to(this.#usable(moveTo) ?? (owner.draining ? undefined : broker), entry);
    if (given === "stalled") {
      // The assignment may be older than the segments: one that was restored, say.
      const onDisk = this.input.epochOnDisk(entry.topic, entry.partition);
      return this.#to(this.#usable(moveTo) ?? this.#other(broker), entry, onDisk);
    }
    if (moveTo !== undefined && this.#usable(moveTo) === undefined) {
      this.#count(moveTo, -1);
      this.#count(broker, 1);
      const { moveTo: _, ...staying } = entry;
      return staying;
    }
    return entry;
  }

  /** The entry with another preference; a move that was under way for the former one is called off. */
  #preferring({ moveTo, ...entry }: PartitionAssignment, preferred: string): PartitionAssignment {
    if (moveTo !== undefined) {
      this.#count(moveTo, -1);
      this.#count(entry.broker, 1);
    }
    return { ...entry, preferred };
  }

  /** The entry under the next epoch, at `target` or wherever there is most room. */
  #to(target: string | undefined, entry: PartitionAssignment, onDisk = -1): PartitionAssignment {
    this.#count(entry.moveTo ?? entry.broker, -1);
    const broker = target ?? this.#leastLoaded();
    this.#count(broker, 1);
    const { moveTo: _, ...rest } = entry;
    return { ...rest, broker, epoch: Math.max(entry.epoch, onDisk) + 1 };
  }

  #usable(target: string | undefined): string | undefined {
    return target !== undefined && this.#eligible.includes(target) ? target : undefined;
  }

  /** Somebody else than `broker`, who could not lead it; the same one where there is nobody else. */
  #other(broker: string): string {
    const others = this.#eligible.filter((id) => id !== broker);
    return others.length === 0 ? broker : this.#leastLoaded(others);
  }

  #leastLoaded(among: readonly string[] = this.#eligible): string {
    return among.reduce((least, id) => this.#loadOf(id) < this.#loadOf(least) ? id : least);
  }

  #loadOf(id: string): number {
    return this.#load.get(id) ?? 0;
  }

  #count(id: string, change: number): void {
    const load = this.#load.get(id);
    if (load !== undefined) this.#load.set(id, load + change);
  }
}

/** Whether a broker that acts on `a` need not be told of `b`. */
function isSame(a: Assignment, b: Assignment): boolean {
  return a.controllerEpoch === b.controllerEpoch && a.controller === b.controller &&
    sameList(
      a.brokers,
      b.brokers,
      (x, y) => x.id === y.id && x.health === y.health && x.tenure === y.tenure && x.changes === y.changes,
    ) &&
    sameList(a.partitions, b.partitions, sameEntry) &&
    sameList(a.coordinators ?? [], b.coordinators ?? [], sameEntry) &&
    sameList(
      a.topics ?? [],
      b.topics ?? [],
      (x, y) => x.name === y.name && x.topicId === y.topicId && x.revision === y.revision,
    );
}

function sameEntry(a: PartitionAssignment, b: PartitionAssignment): boolean {
  return a === b ||
    (a.topic === b.topic && a.partition === b.partition && a.broker === b.broker && a.epoch === b.epoch &&
      a.moveTo === b.moveTo && a.preferred === b.preferred);
}

function sameList<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((one, at) => same(one, b[at]));
}
