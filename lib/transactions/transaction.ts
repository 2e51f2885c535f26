/**
 * What becomes of one transactional id: who may produce under it, what its transaction covers, and how that ends. Pure:
 * no time, no disk, no waiting; the coordinator saves and carries out what changes here.
 *
 *     Empty ──add──▶ Ongoing ──end──▶ PrepareCommit ──complete──▶ CompleteCommit ──add──▶ Ongoing …
 *                       └──end, fence──▶ PrepareAbort ──complete──▶ CompleteAbort
 *
 * Invariants:
 * - once a transaction is prepared its outcome never changes;
 * - epochs of one producer id only rise; where they are used up a new id begins at 0;
 * - nobody but the holder of the present id and epoch changes anything. The holder of the last one is recognised as long
 *   as nobody else has come in between, so that a repeated request gets the answer that was lost (KIP-360, KIP-890).
 *
 * Both protocols are served side by side. In the second (KIP-890) every end raises the epoch, so that what a producer
 * sent late can be told from its next transaction; in the first the epoch stays until a producer initialises anew.
 */

import { ErrorCode, unreachable } from "../errors.ts";

export const transactionStates = [
  "Empty",
  "Ongoing",
  "PrepareCommit",
  "PrepareAbort",
  "CompleteCommit",
  "CompleteAbort",
] as const;
export type TransactionState = (typeof transactionStates)[number];

/** Which protocol a producer speaks: `transaction.version` 0 and 1, or 2. */
export type TransactionProtocol = 1 | 2;

/** Who produces. */
export interface ProducerIdentity {
  readonly producerId: number;
  readonly producerEpoch: number;
}

export const NO_PRODUCER: ProducerIdentity = { producerId: -1, producerEpoch: -1 };

/** What can take part in a transaction: a partition, or what the coordinator's surroundings know by such a name. */
export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface InitRequest {
  /** What the producer was until now (KIP-360); null where it is a new one. */
  readonly expected: ProducerIdentity | null;
  readonly timeoutMs: number;
}

export interface EndRequest extends ProducerIdentity {
  readonly commits: boolean;
  readonly protocol: TransactionProtocol;
}

/** What a request did. `needs-producer-id`: nothing yet; it is to be repeated with a new producer id. */
export type Outcome =
  | { readonly kind: "refused"; readonly errorCode: ErrorCode }
  | { readonly kind: "unchanged" }
  | { readonly kind: "changed" }
  | { readonly kind: "needs-producer-id" };

const UNCHANGED: Outcome = { kind: "unchanged" };
const CHANGED: Outcome = { kind: "changed" };
const NEEDS_PRODUCER_ID: Outcome = { kind: "needs-producer-id" };

/** Epochs are int16; the highest one is never told to a producer, so that its last transaction can still be ended. */
export const LAST_EPOCH = 32766;

/** See the file's head. */
export class Transaction {
  state: TransactionState = "Empty";
  producerId = -1;
  producerEpoch = -1;
  /** The id before this one, where the epochs of that were used up; −1 otherwise. */
  previousProducerId = -1;
  /** The id that the producer has from the end of the prepared transaction on; −1 where it keeps its own. */
  nextProducerId = -1;
  /** The epoch before this one, as long as whoever had it is the producer of now; −1 otherwise. */
  lastProducerEpoch = -1;
  timeoutMs = 0;
  /** Wall-clock ms; −1 where no transaction has begun since the producer initialised. */
  startedAtMs = -1;
  /** Wall-clock ms of the last change. */
  updatedAtMs = 0;
  readonly partitions = new Map<string, Set<number>>();

  constructor(readonly transactionalId: string) {}

  /** Whether the outcome is decided and not carried out yet. */
  get isPrepared(): boolean {
    return this.state === "PrepareCommit" || this.state === "PrepareAbort";
  }

  /** Who produces under this id once what is prepared has been carried out. */
  get identity(): ProducerIdentity {
    if (this.nextProducerId >= 0) return { producerId: this.nextProducerId, producerEpoch: 0 };
    return { producerId: this.producerId, producerEpoch: this.producerEpoch };
  }

  /** What takes part. */
  participants(): TopicPartition[] {
    const places: TopicPartition[] = [];
    for (const [topic, indexes] of this.partitions) {
      for (const partition of indexes) places.push({ topic, partition });
    }
    return places;
  }

  /**
   * InitProducerId: makes the caller the one producer. CONCURRENT_TRANSACTIONS while a transaction has to end first; an
   * ongoing one is then to be aborted by {@link fence}, if {@link mayInit} says so.
   * @param freshId a new producer id, or null until one is needed
   */
  init(request: InitRequest, freshId: number | null, nowMs: number): Outcome {
    if (!this.mayInit(request)) return refused(ErrorCode.PRODUCER_FENCED);
    switch (this.state) {
      case "Ongoing":
      case "PrepareCommit":
      case "PrepareAbort":
        return refused(ErrorCode.CONCURRENT_TRANSACTIONS);
      case "Empty":
      case "CompleteCommit":
      case "CompleteAbort":
        return this.#init(request, freshId, nowMs);
      default:
        return unreachable(this.state);
    }
  }

  /** Whether the one that initialises may: a new producer always, an old one unless another came after it. */
  mayInit({ expected }: InitRequest): boolean {
    if (expected === null || this.producerId < 0) return true;
    if (this.#isPresent(expected)) return true;
    return this.state !== "Ongoing" && this.#isLast(expected);
  }

  #init({ expected, timeoutMs }: InitRequest, freshId: number | null, nowMs: number): Outcome {
    const isPresent = expected !== null && this.#isPresent(expected);
    // The answer to this very request was lost: the producer has what it asked for.
    if (expected !== null && !isPresent && this.#isLast(expected)) return UNCHANGED;
    if (this.producerId < 0 || this.producerEpoch >= LAST_EPOCH) {
      if (freshId === null) return NEEDS_PRODUCER_ID;
      this.previousProducerId = this.producerId;
      this.lastProducerEpoch = isPresent ? this.producerEpoch : -1;
      this.producerId = freshId;
      this.producerEpoch = 0;
    } else {
      this.lastProducerEpoch = isPresent ? this.producerEpoch : -1;
      this.producerEpoch++;
    }
    this.state = "Empty";
    this.timeoutMs = timeoutMs;
    this.startedAtMs = -1;
    this.updatedAtMs = nowMs;
    return CHANGED;
  }

  /**
   * AddPartitionsToTxn, AddOffsetsToTxn, and what adds by itself under the second protocol: begins a transaction where
   * there is none.
   */
  add(producer: ProducerIdentity, places: readonly TopicPartition[], nowMs: number): Outcome {
    const refusal = this.#refusalFor(producer);
    if (refusal !== ErrorCode.NONE) return refused(refusal);
    if (this.isPrepared) return refused(ErrorCode.CONCURRENT_TRANSACTIONS);
    if (this.#isOngoingIn(places)) return UNCHANGED;
    if (this.state !== "Ongoing") {
      this.state = "Ongoing";
      this.startedAtMs = nowMs;
    }
    for (const { topic, partition } of places) {
      const indexes = this.partitions.get(topic);
      if (indexes === undefined) this.partitions.set(topic, new Set([partition]));
      else indexes.add(partition);
    }
    this.updatedAtMs = nowMs;
    return CHANGED;
  }

  /** Why a producer may not write to these now; NONE if it may. TRANSACTION_ABORTABLE for what was never added. */
  verify(producer: ProducerIdentity, places: readonly TopicPartition[]): ErrorCode {
    const refusal = this.#refusalFor(producer);
    if (refusal !== ErrorCode.NONE) return refusal;
    if (this.isPrepared) return ErrorCode.CONCURRENT_TRANSACTIONS;
    return this.#isOngoingIn(places) ? ErrorCode.NONE : ErrorCode.TRANSACTION_ABORTABLE;
  }

  /**
   * EndTxn. The same end asked for again is `unchanged` once it is carried out; the other one, and an end of nothing, is
   * INVALID_TXN_STATE. Under the second protocol aborting nothing raises the epoch all the same.
   * @param freshId a new producer id, or null until one is needed
   */
  end(request: EndRequest, freshId: number | null, nowMs: number): Outcome {
    const { commits, protocol } = request;
    const isRepeat = protocol === 2 && this.#isRepeatedEnd(request);
    if (!isRepeat) {
      const refusal = this.#refusalFor(request);
      if (refusal !== ErrorCode.NONE) return refused(refusal);
    }
    switch (this.state) {
      case "Ongoing":
        return isRepeat ? refused(ErrorCode.PRODUCER_FENCED) : this.#prepare(request, freshId, nowMs);
      case "PrepareCommit":
      case "PrepareAbort": {
        // Whoever names the epoch that was just decided on means its next transaction, which has to wait for this one.
        if (protocol === 2 && !isRepeat) return refused(ErrorCode.CONCURRENT_TRANSACTIONS);
        const isSame = commits === (this.state === "PrepareCommit");
        return refused(isSame ? ErrorCode.CONCURRENT_TRANSACTIONS : ErrorCode.INVALID_TXN_STATE);
      }
      case "CompleteCommit":
      case "CompleteAbort": {
        const isSame = commits === (this.state === "CompleteCommit");
        if (protocol === 1 || isRepeat) return isSame ? UNCHANGED : refused(ErrorCode.INVALID_TXN_STATE);
        return commits ? refused(ErrorCode.INVALID_TXN_STATE) : this.#abortNothing(freshId, nowMs);
      }
      case "Empty":
        if (isRepeat) return refused(ErrorCode.PRODUCER_FENCED);
        if (commits || protocol === 1) return refused(ErrorCode.INVALID_TXN_STATE);
        return this.#abortNothing(freshId, nowMs);
      default:
        return unreachable(this.state);
    }
  }

  /**
   * Aborts the ongoing transaction against its producer's will, which loses its epoch by that.
   * @param successor the producer that asks for it where it is the same one: it stays recognised
   */
  fence(successor: ProducerIdentity | null, nowMs: number): void {
    this.lastProducerEpoch = successor !== null && this.#isPresent(successor) ? this.producerEpoch : -1;
    this.producerEpoch++;
    this.state = "PrepareAbort";
    this.updatedAtMs = nowMs;
  }

  /** What was prepared has been carried out everywhere. */
  complete(nowMs: number): void {
    this.state = this.state === "PrepareCommit" ? "CompleteCommit" : "CompleteAbort";
    if (this.nextProducerId >= 0) {
      this.previousProducerId = this.producerId;
      this.producerId = this.nextProducerId;
      this.producerEpoch = 0;
      this.nextProducerId = -1;
    }
    this.partitions.clear();
    this.updatedAtMs = nowMs;
  }

  /** Whether nothing has happened here for so long that the id may be forgotten. */
  isExpired(nowMs: number, expirationMs: number): boolean {
    return this.state !== "Ongoing" && !this.isPrepared && nowMs - this.updatedAtMs >= expirationMs;
  }

  #prepare({ commits, protocol }: EndRequest, freshId: number | null, nowMs: number): Outcome {
    if (protocol === 2) {
      if (this.producerEpoch >= LAST_EPOCH) {
        if (freshId === null) return NEEDS_PRODUCER_ID;
        this.nextProducerId = freshId;
      }
      this.lastProducerEpoch = this.producerEpoch;
      this.producerEpoch++;
    }
    this.state = commits ? "PrepareCommit" : "PrepareAbort";
    this.updatedAtMs = nowMs;
    return CHANGED;
  }

  #abortNothing(freshId: number | null, nowMs: number): Outcome {
    const isUsedUp = this.producerEpoch >= LAST_EPOCH;
    if (isUsedUp && freshId === null) return NEEDS_PRODUCER_ID;
    this.lastProducerEpoch = this.producerEpoch;
    if (isUsedUp && freshId !== null) {
      this.previousProducerId = this.producerId;
      this.producerId = freshId;
      this.producerEpoch = 0;
    } else this.producerEpoch++;
    this.state = "CompleteAbort";
    this.startedAtMs = nowMs;
    this.updatedAtMs = nowMs;
    return CHANGED;
  }

  /** Whether this end was already asked for, and answered with the epoch of now. */
  #isRepeatedEnd(producer: ProducerIdentity): boolean {
    return !this.#isPresent(producer) && this.#isLast(producer);
  }

  #refusalFor({ producerId, producerEpoch }: ProducerIdentity): ErrorCode {
    if (producerId !== this.producerId) {
      // Its new id is decided on, and holds from the end of what is prepared on.
      const isNext = producerId === this.nextProducerId && producerId >= 0 && producerEpoch === 0;
      return isNext ? ErrorCode.CONCURRENT_TRANSACTIONS : ErrorCode.INVALID_PRODUCER_ID_MAPPING;
    }
    return producerEpoch === this.producerEpoch ? ErrorCode.NONE : ErrorCode.PRODUCER_FENCED;
  }

  #isPresent({ producerId, producerEpoch }: ProducerIdentity): boolean {
    return producerId === this.producerId && producerEpoch === this.producerEpoch;
  }

  /** Whether this was the producer of now before its epoch was raised, or before its epochs were used up. */
  #isLast({ producerId, producerEpoch }: ProducerIdentity): boolean {
    if (producerEpoch < 0 || producerEpoch !== this.lastProducerEpoch) return false;
    return producerId === this.producerId
      ? producerEpoch + 1 === this.producerEpoch
      : producerId === this.previousProducerId && producerEpoch >= LAST_EPOCH && this.producerEpoch === 0;
  }

  #isOngoingIn(places: readonly TopicPartition[]): boolean {
    return this.state === "Ongoing" &&
      places.every(({ topic, partition }) => this.partitions.get(topic)?.has(partition) === true);
  }
}

function refused(errorCode: ErrorCode): Outcome {
  return { kind: "refused", errorCode };
}
