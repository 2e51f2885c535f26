/**
 * Group commit: one sync at a time, and everything that was appended while it ran shares the next one.
 *
 * Invariants: a waiter is answered only after a sync that began after its append has returned; the durable offset is
 * moved before its waiters are answered; after a failed sync there is never another one.
 */

import { ErrorCode } from "../errors.ts";

/** The log as group commit sees it. */
export interface CommitTarget {
  /** Where the log ends now. */
  readonly logEndOffset: number;
  /** Makes everything that was appended before this call durable; may move the durable offset in steps. Never rejects. */
  commit(): Promise<ErrorCode>;
}

interface Round {
  readonly promise: Promise<ErrorCode>;
  readonly settle: (code: ErrorCode) => void;
}

const DONE: Promise<ErrorCode> = Promise.resolve(ErrorCode.NONE);

export class GroupCommit {
  readonly #target: CommitTarget;
  #durableOffset: number;
  /** The round that is running, and what it will make durable. */
  #current: Round | null = null;
  #currentEnd = 0;
  /** The round that will begin when the running one has ended. */
  #next: Round | null = null;
  #loop: Promise<void> | null = null;
  #failure: ErrorCode | null = null;

  constructor(target: CommitTarget, durableOffset: number) {
    this.#target = target;
    this.#durableOffset = durableOffset;
  }

  /** Asks for a round that covers everything appended so far; nobody needs to wait for it. */
  request(): void {
    if (this.#failure !== null || this.#isCovered(this.#target.logEndOffset)) return;
    void this.round();
  }

  /** Resolves with NONE when everything below `endOffset` is durable, or with the code of the failure. */
  durable(endOffset: number): Promise<ErrorCode> {
    if (endOffset <= this.#durableOffset) return DONE;
    if (this.#failure !== null) return Promise.resolve(this.#failure);
    if (this.#current !== null && endOffset <= this.#currentEnd) return this.#current.promise;
    return this.round();
  }

  /** Runs a round that begins after this call, even if everything is durable already. */
  round(): Promise<ErrorCode> {
    if (this.#failure !== null) return Promise.resolve(this.#failure);
    const next = this.#next ??= newRound();
    this.#loop ??= this.#run();
    return next.promise;
  }

  /** Answers everybody who waits, and everybody to come, with `code`: nothing more will become durable. */
  fail(code: ErrorCode): void {
    this.#failure ??= code;
    this.#current?.settle(code);
    this.#next?.settle(code);
    this.#next = null;
  }

  /** Resolves when no round is running or due. */
  async idle(): Promise<void> {
    while (this.#loop !== null) await this.#loop;
  }

  #isCovered(endOffset: number): boolean {
    return endOffset <= this.#durableOffset || (this.#current !== null && endOffset <= this.#currentEnd);
  }

  async #run(): Promise<void> {
    while (this.#next !== null) {
      const round = this.#next;
      this.#next = null;
      this.#current = round;
      this.#currentEnd = this.#target.logEndOffset;
      const code = await this.#target.commit();
      if (code === ErrorCode.NONE) this.#durableOffset = Math.max(this.#durableOffset, this.#currentEnd);
      else this.fail(code);
      this.#current = null;
      round.settle(code);
    }
    this.#loop = null;
  }
}

function newRound(): Round {
  let settle!: (code: ErrorCode) => void;
  const promise = new Promise<ErrorCode>((resolve) => settle = resolve);
  return { promise, settle };
}
