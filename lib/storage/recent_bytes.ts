/**
 * Knows which part of each log was written so recently that it is still in the page cache: reading it on the event loop
 * costs a copy, never a wait for the volume. One {@link RecentBytes} counts for all logs of a process; each log keeps a
 * {@link RecentTail} of it. Nothing is copied: the kernel's cache is the memory tail.
 *
 * Recent means: fewer than `maxBytes` were written by this process since, and less than `maxAgeMs` passed.
 */

/** The count of everything appended by this process. */
export class RecentBytes {
  appendedBytes = 0;

  /**
   * @param maxBytes what the page cache surely holds of our own writes
   * @param maxAgeMs how long it surely does
   */
  constructor(readonly maxBytes: number, readonly maxAgeMs: number) {}
}

/** A mark is set each time a log has grown by this much. */
const MARK_BYTES = 256 * 1024;

interface Mark {
  readonly offset: number;
  readonly appendedBytes: number;
  readonly atMs: number;
}

/** The recent end of one log. */
export class RecentTail {
  readonly #all: RecentBytes;
  #marks: Mark[] = [];
  #first = 0;
  #sinceMarkBytes = MARK_BYTES;

  constructor(all: RecentBytes) {
    this.#all = all;
  }

  /** A batch of `bytes` that begins at `offset` is being appended. */
  appended(offset: number, bytes: number, nowMs: number): void {
    const last = this.#marks.length === this.#first ? undefined : this.#marks[this.#marks.length - 1];
    if (this.#sinceMarkBytes >= MARK_BYTES || last === undefined || nowMs - last.atMs > this.#all.maxAgeMs / 4) {
      this.#sinceMarkBytes = 0;
      this.#marks.push({ offset, appendedBytes: this.#all.appendedBytes, atMs: nowMs });
    }
    this.#sinceMarkBytes += bytes;
    this.#all.appendedBytes += bytes;
  }

  /** The offset from which on the log is recent; Infinity when none of it is. */
  startOffset(nowMs: number): number {
    const marks = this.#marks;
    while (this.#first < marks.length) {
      const mark = marks[this.#first];
      const fresh = this.#all.appendedBytes - mark.appendedBytes <= this.#all.maxBytes &&
        nowMs - mark.atMs <= this.#all.maxAgeMs;
      if (fresh) break;
      this.#first++;
    }
    if (this.#first > 64 && this.#first * 2 > marks.length) {
      this.#marks = marks.slice(this.#first);
      this.#first = 0;
    }
    return this.#first < this.#marks.length ? this.#marks[this.#first].offset : Infinity;
  }
}
