/**
 * The edge of transactions: keeps them, saves each change before it is answered, carries out what was decided, and lets
 * time end what nobody ends.
 *
 * Invariants:
 * - nothing is answered before it is durable; changes are in the journal in the order in which they happened in memory;
 * - nothing may be written to a place for a transaction before it is durable that the place takes part;
 * - a decision is carried out only when it is durable, and then whatever happens: in every place, durably, before the
 *   transaction counts as complete. What a crash interrupts is done again: a place where it was done is left as it is;
 * - while the state is read every request is refused with COORDINATOR_LOAD_IN_PROGRESS, and once the journal has failed
 *   with COORDINATOR_NOT_AVAILABLE.
 *
 * That a transaction is complete needs no durability of its own before the producer is told: whoever reads an older state
 * finds the markers in place, and the producer's next transaction is behind it in the journal.
 */

import { type Clock, sleep, type Timer } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import { Journal, type JournalEntry, type JournalOptions } from "../journal/journal.ts";
import type { EndTransactionMarker } from "../records/control.ts";
import {
  type EndRequest,
  type InitRequest,
  NO_PRODUCER,
  type Outcome,
  type ProducerIdentity,
  type TopicPartition,
  Transaction,
} from "./transaction.ts";
import { readTransaction, transactionEntry, transactionRemoval } from "./transaction_store.ts";

/** Settings, asked each time they are needed. */
export interface TransactionSettings {
  readonly maxTimeoutMs: number;
  /** Longest time between two looks for transactions that outlived their timeout. */
  readonly timeoutIntervalMs: number;
  readonly idExpirationMs: number;
  readonly idExpiryIntervalMs: number;
}

/** Where decisions are carried out. */
export interface Surroundings {
  /** A producer id that nobody has or had; null where none can be had now. */
  newProducerId(): Promise<number | null>;
  /**
   * Ends the transaction in some places; asked again, it changes nothing where it has. Resolves with one code a place: NONE
   * when that is durable, or the place is no more; with anything else it is tried again.
   */
  endPlaces(places: readonly TopicPartition[], marker: EndTransactionMarker): Promise<ErrorCode[]>;
}

export interface TransactionCoordinatorOptions {
  readonly journal: JournalOptions;
  /** Resolves when the journal's folder is there and nobody else in this process uses it. */
  readonly ready?: Promise<void>;
  readonly clock: Clock;
  readonly surroundings: Surroundings;
  settings(): TransactionSettings;
  /** Called when the state cannot be read, an entry of it makes no sense, or a decision cannot be carried out yet. */
  onProblem(problem: string, error: unknown): void;
}

/** An answer that carries the producer's present id and epoch. */
export interface IdentityReply extends ProducerIdentity {
  readonly errorCode: ErrorCode;
}

interface Kept {
  readonly transaction: Transaction;
  /** The last saving that is under way; never rejects: the code says how it ended. */
  saving: Promise<ErrorCode> | null;
  /** What takes part, but not durably yet. */
  readonly unsaved: Set<string>;
  /** Set while a decision is carried out. */
  finishing: Promise<void> | null;
  /** When the ongoing transaction is aborted, on the monotonic clock. */
  deadlineMs: number;
}

/** How long a producer waits to be told that its transaction has ended, which is certain once that is decided. */
const END_PATIENCE_MS = 1000;
/** Time until a decision that could not be carried out is tried again: at first, and at most. */
const RETRY_MS = 50;
const MAX_RETRY_MS = 2000;
/** Shortest time between two looks for transactions that outlived their timeout. */
const MIN_LOOK_MS = 20;
/** No timer takes a longer delay. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** See the file's head. */
export class TransactionCoordinator {
  readonly #options: Omit<TransactionCoordinatorOptions, "journal">;
  readonly #coordinatorEpoch: number;
  readonly #kept = new Map<string, Kept>();
  readonly #stopping = new AbortController();
  #journal: Journal | null = null;
  #refusal: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
  #timeoutTimer: Timer | null = null;
  #nextLookMs = Infinity;
  #expiryTimer: Timer | null = null;
  /** Resolves when the state has been read, or could not be. */
  readonly loaded: Promise<void>;

  /** Begins to read the state. */
  constructor(options: TransactionCoordinatorOptions);
  /** Without a journal it keeps nothing: every request is refused with NOT_COORDINATOR. */
  constructor(options: Omit<TransactionCoordinatorOptions, "journal">);
  constructor(options: Omit<TransactionCoordinatorOptions, "journal"> & Partial<TransactionCoordinatorOptions>) {
    this.#options = options;
    this.#coordinatorEpoch = options.journal?.epoch ?? -1;
    if (options.journal === undefined) this.#refusal = ErrorCode.NOT_COORDINATOR;
    this.loaded = options.journal === undefined ? Promise.resolve() : this.#load(options.journal);
  }

  /** NONE when requests are served. */
  get availability(): ErrorCode {
    if (this.#refusal !== ErrorCode.NONE) return this.#refusal;
    return this.#journal?.failure == null ? ErrorCode.NONE : ErrorCode.COORDINATOR_NOT_AVAILABLE;
  }

  /** Saves what was changed, and serves no more. What is being carried out is finished by whoever comes next. */
  async stop(): Promise<void> {
    await this.loaded;
    this.#refusal = ErrorCode.NOT_COORDINATOR;
    this.#stopping.abort();
    this.#timeoutTimer?.cancel();
    this.#expiryTimer?.cancel();
    await Promise.all(Array.from(this.#kept.values(), ({ finishing }) => finishing));
    await this.#journal?.close();
  }

  /** InitProducerId for a transactional id. */
  async init(transactionalId: string, request: InitRequest): Promise<IdentityReply> {
    const { maxTimeoutMs } = this.#options.settings();
    const isInvalid = request.timeoutMs <= 0 || request.timeoutMs > maxTimeoutMs;
    const refusal = this.availability || (isInvalid ? ErrorCode.INVALID_TRANSACTION_TIMEOUT : ErrorCode.NONE);
    if (refusal !== ErrorCode.NONE) return refusedIdentity(refusal);
    const outcome = await this.#withProducerId((freshId) => {
      let kept = this.#kept.get(transactionalId);
      if (kept === undefined) {
        if (freshId === null) return { kind: "needs-producer-id" };
        kept = this.#keep(new Transaction(transactionalId));
      }
      const { transaction } = kept;
      if (transaction.state === "Ongoing" && transaction.mayInit(request)) {
        this.#fence(kept, request.expected);
        return CONCURRENT;
      }
      return transaction.init(request, freshId, this.#options.clock.wallMs());
    });
    const kept = this.#kept.get(transactionalId);
    if (typeof outcome === "number") return refusedIdentity(outcome);
    if (outcome.kind === "refused" || kept === undefined) {
      // An abort that was begun here is certain before anybody builds on it.
      const saved = await kept?.saving ?? ErrorCode.NONE;
      return refusedIdentity(outcome.kind === "refused" ? saved || outcome.errorCode : saved);
    }
    if (outcome.kind === "changed") this.#save(kept);
    return await this.#identityReply(kept);
  }

  /**
   * Takes places into the producer's transaction, and begins one if need be. Resolves when that is durable; at once where
   * it is already.
   */
  add(
    transactionalId: string,
    producer: ProducerIdentity,
    places: readonly TopicPartition[],
  ): ErrorCode | Promise<ErrorCode> {
    const kept = this.#kept.get(transactionalId);
    const refusal = this.#refusalFor(transactionalId, kept);
    if (refusal !== ErrorCode.NONE || kept === undefined) return refusal;
    const { clock } = this.#options;
    const { transaction } = kept;
    const wasOngoing = transaction.state === "Ongoing";
    const outcome = transaction.add(producer, places, clock.wallMs());
    if (outcome.kind === "refused") return outcome.errorCode;
    if (outcome.kind === "unchanged") return kept.saving ?? ErrorCode.NONE;
    if (!wasOngoing) this.#expect(kept, clock.monotonicMs() + transaction.timeoutMs);
    return this.#saveAdded(kept, places);
  }

  /** Why nothing may be written for the transaction to these now; NONE if it may. */
  verify(transactionalId: string, producer: ProducerIdentity, places: readonly TopicPartition[]): ErrorCode {
    const kept = this.#kept.get(transactionalId);
    const refusal = this.#refusalFor(transactionalId, kept);
    if (refusal !== ErrorCode.NONE || kept === undefined) return refusal;
    const verdict = kept.transaction.verify(producer, places);
    if (verdict !== ErrorCode.NONE || kept.unsaved.size === 0) return verdict;
    return places.some((place) => kept.unsaved.has(keyOf(place))) ? ErrorCode.CONCURRENT_TRANSACTIONS : ErrorCode.NONE;
  }

  /**
   * EndTxn. Resolves when the transaction has ended everywhere or, where that takes longer, when it is certain that it
   * will, with what the producer is from then on.
   */
  async end(transactionalId: string, request: EndRequest): Promise<IdentityReply> {
    const known = this.#refusalFor(transactionalId, this.#kept.get(transactionalId));
    if (known !== ErrorCode.NONE) return refusedIdentity(known);
    const { clock } = this.#options;
    const outcome = await this.#withProducerId((freshId) => {
      const kept = this.#kept.get(transactionalId);
      if (kept === undefined) return { kind: "refused", errorCode: ErrorCode.INVALID_PRODUCER_ID_MAPPING };
      return kept.transaction.end(request, freshId, clock.wallMs());
    });
    const kept = this.#kept.get(transactionalId);
    if (typeof outcome === "number") return refusedIdentity(outcome);
    if (outcome.kind === "refused" || kept === undefined) {
      return refusedIdentity(outcome.kind === "refused" ? outcome.errorCode : ErrorCode.INVALID_PRODUCER_ID_MAPPING);
    }
    if (outcome.kind === "changed") {
      kept.deadlineMs = Infinity;
      this.#save(kept);
      if (kept.transaction.isPrepared) {
        const identity = kept.transaction.identity;
        const saving = kept.saving;
        this.#finish(kept);
        const errorCode = await saving ?? ErrorCode.NONE;
        if (errorCode !== ErrorCode.NONE) return refusedIdentity(errorCode);
        await this.#patiently(kept.finishing);
        return { errorCode, ...identity };
      }
    }
    return await this.#identityReply(kept);
  }

  /** All transactional ids. To be asked only while {@link availability} is NONE. */
  *list(): Iterable<Transaction> {
    for (const { transaction } of this.#kept.values()) yield transaction;
  }

  /** The transaction of an id, or undefined. To be asked only while {@link availability} is NONE. */
  describe(transactionalId: string): Transaction | undefined {
    return this.#kept.get(transactionalId)?.transaction;
  }

  /** No transaction reaches into a topic that is no more, nor into the next one of its name. */
  async topicDeleted(topic: string): Promise<void> {
    await this.loaded;
    for (const { transaction } of this.#kept.values()) transaction.partitions.delete(topic);
  }

  /** Forgets ids that were not used for long. Resolves when that is durable, or cannot be. */
  async expire(): Promise<void> {
    if (this.availability !== ErrorCode.NONE || this.#journal === null) return;
    const nowMs = this.#options.clock.wallMs();
    const { idExpirationMs } = this.#options.settings();
    const removals: JournalEntry[] = [];
    for (const [id, kept] of this.#kept) {
      if (kept.saving !== null || kept.finishing !== null) continue;
      if (!kept.transaction.isExpired(nowMs, idExpirationMs)) continue;
      this.#kept.delete(id);
      removals.push(transactionRemoval(id));
    }
    // Who initialises such an id meanwhile is behind its removal in the journal.
    await this.#journal.append(removals).catch(() => {});
  }

  #refusalFor(transactionalId: string, kept: Kept | undefined): ErrorCode {
    if (transactionalId === "") return ErrorCode.INVALID_REQUEST;
    if (this.availability !== ErrorCode.NONE) return this.availability;
    return kept === undefined ? ErrorCode.INVALID_PRODUCER_ID_MAPPING : ErrorCode.NONE;
  }

  /** Does `attempt`, again with a new producer id where it wants one. */
  async #withProducerId(attempt: (freshId: number | null) => Outcome): Promise<Outcome | ErrorCode> {
    const outcome = attempt(null);
    if (outcome.kind !== "needs-producer-id") return outcome;
    const freshId = await this.#options.surroundings.newProducerId();
    if (freshId === null) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    return this.availability || attempt(freshId);
  }

  async #identityReply(kept: Kept): Promise<IdentityReply> {
    const identity = kept.transaction.identity;
    const errorCode = await kept.saving ?? ErrorCode.NONE;
    return errorCode === ErrorCode.NONE ? { errorCode, ...identity } : refusedIdentity(errorCode);
  }

  #keep(transaction: Transaction): Kept {
    const kept: Kept = { transaction, saving: null, unsaved: new Set(), finishing: null, deadlineMs: Infinity };
    this.#kept.set(transaction.transactionalId, kept);
    return kept;
  }

  #save(kept: Kept): void {
    if (this.#journal === null) return;
    const saving = this.#journal.append([transactionEntry(kept.transaction)]).then(
      () => ErrorCode.NONE,
      () => ErrorCode.COORDINATOR_NOT_AVAILABLE,
    );
    kept.saving = saving;
    void saving.then(() => {
      if (kept.saving === saving) kept.saving = null;
    });
  }

  async #saveAdded(kept: Kept, places: readonly TopicPartition[]): Promise<ErrorCode> {
    const keys = places.map(keyOf);
    for (const key of keys) kept.unsaved.add(key);
    this.#save(kept);
    const errorCode = await kept.saving ?? ErrorCode.NONE;
    if (errorCode === ErrorCode.NONE) { for (const key of keys) kept.unsaved.delete(key); }
    return errorCode;
  }

  #fence(kept: Kept, successor: ProducerIdentity | null): void {
    kept.transaction.fence(successor, this.#options.clock.wallMs());
    kept.deadlineMs = Infinity;
    this.#save(kept);
    this.#finish(kept);
  }

  #finish(kept: Kept): void {
    const finishing = this.#carryOut(kept).finally(() => {
      if (kept.finishing === finishing) kept.finishing = null;
    });
    kept.finishing = finishing;
  }

  /** Carries a durable decision out, again and again until all of it is done. */
  async #carryOut(kept: Kept): Promise<void> {
    if ((await kept.saving ?? ErrorCode.NONE) !== ErrorCode.NONE) return;
    const { clock, surroundings, onProblem } = this.#options;
    const { transaction } = kept;
    const { producerId, producerEpoch, transactionalId } = transaction;
    const commits = transaction.state === "PrepareCommit";
    const marker: EndTransactionMarker = {
      result: commits ? "commit" : "abort",
      producerId,
      producerEpoch,
      coordinatorEpoch: this.#coordinatorEpoch,
    };
    let places = transaction.participants();
    let delayMs = RETRY_MS;
    for (;;) {
      const codes = places.length === 0 ? [] : await surroundings.endPlaces(places, marker);
      const problem = codes.find((code) => code !== ErrorCode.NONE);
      if (problem === undefined) break;
      if (delayMs === RETRY_MS && !this.#stopping.signal.aborted) {
        onProblem(`the transaction of ${transactionalId} cannot be ended everywhere yet`, problem);
      }
      places = places.filter((_, at) => codes[at] !== ErrorCode.NONE);
      try {
        await sleep(clock, delayMs, this.#stopping.signal);
      } catch {
        return;
      }
      delayMs = Math.min(2 * delayMs, MAX_RETRY_MS);
    }
    if (this.#journal?.failure != null) return;
    transaction.complete(clock.wallMs());
    this.#save(kept);
  }

  /** Waits, but not for ever. */
  #patiently(finishing: Promise<void> | null): Promise<void> {
    if (finishing === null) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.schedule(END_PATIENCE_MS, resolve);
      void finishing.finally(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  async #load(options: JournalOptions): Promise<void> {
    try {
      await this.#options.ready;
      const journal = await Journal.open(options);
      for (const entry of journal.entries()) {
        const transaction = this.#read(entry);
        if (transaction !== null) this.#keep(transaction);
      }
      this.#journal = journal;
      this.#refusal = ErrorCode.NONE;
      for (const kept of this.#kept.values()) this.#resume(kept);
      this.#scheduleLook();
      this.#scheduleExpiry();
    } catch (error) {
      this.#refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE;
      this.#options.onProblem("transactions cannot be served: their state cannot be read", error);
    }
  }

  #read(entry: JournalEntry): Transaction | null {
    try {
      return readTransaction(entry);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#options.onProblem("an entry of the transactions' state makes no sense and is passed over", error);
      return null;
    }
  }

  /** Goes on where the last owner was interrupted. */
  #resume(kept: Kept): void {
    const { transaction } = kept;
    if (transaction.isPrepared) return this.#finish(kept);
    if (transaction.state !== "Ongoing") return;
    const { clock } = this.#options;
    const elapsedMs = Math.max(0, clock.wallMs() - transaction.startedAtMs);
    kept.deadlineMs = clock.monotonicMs() + Math.max(0, transaction.timeoutMs - elapsedMs);
  }

  /** Sees to it that somebody looks when the transaction has outlived its timeout. */
  #expect(kept: Kept, deadlineMs: number): void {
    kept.deadlineMs = deadlineMs;
    if (deadlineMs < this.#nextLookMs) this.#scheduleLook(deadlineMs);
  }

  #scheduleLook(earliestMs = Infinity): void {
    const { clock, settings } = this.#options;
    const nowMs = clock.monotonicMs();
    for (const { deadlineMs } of this.#kept.values()) earliestMs = Math.min(earliestMs, deadlineMs);
    const delayMs = Math.max(MIN_LOOK_MS, Math.min(earliestMs - nowMs, settings().timeoutIntervalMs, MAX_DELAY_MS));
    this.#timeoutTimer?.cancel();
    this.#nextLookMs = nowMs + delayMs;
    this.#timeoutTimer = clock.schedule(Math.ceil(delayMs), () => {
      this.#abortTimedOut();
      if (this.#refusal === ErrorCode.NONE) this.#scheduleLook();
    });
  }

  #abortTimedOut(): void {
    if (this.availability !== ErrorCode.NONE) return;
    const nowMs = this.#options.clock.monotonicMs();
    for (const kept of this.#kept.values()) {
      if (kept.deadlineMs <= nowMs && kept.transaction.state === "Ongoing") this.#fence(kept, null);
    }
  }

  #scheduleExpiry(): void {
    const delayMs = Math.min(this.#options.settings().idExpiryIntervalMs, MAX_DELAY_MS);
    this.#expiryTimer = this.#options.clock.schedule(delayMs, () => {
      void this.expire().finally(() => {
        if (this.#refusal === ErrorCode.NONE) this.#scheduleExpiry();
      });
    });
  }
}

const CONCURRENT: Outcome = { kind: "refused", errorCode: ErrorCode.CONCURRENT_TRANSACTIONS };

function refusedIdentity(errorCode: ErrorCode): IdentityReply {
  return { errorCode, ...NO_PRODUCER };
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
