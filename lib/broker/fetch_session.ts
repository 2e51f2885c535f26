/**
 * Incremental fetch sessions (KIP-227): which partitions a client fetches and what it was last told about each, so that
 * a request names only what changed and a reply only what is new.
 *
 * Invariants: an id that is not in the cache is refused (70), a wrong epoch is refused (71), never echoed. The cache is
 * bounded in sessions (`max.incremental.fetch.session.cache.slots`) and in partitions; the session unused for longest
 * makes room, once it has been idle for {@link EVICTION_MS}, or when the newcomer is larger.
 */
import { ErrorCode } from "../errors.ts";

/** What a client wants of one partition. Offsets are record offsets, `maxBytes` bytes. */
export interface FetchPartition {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  fetchOffset: number;
  maxBytes: number;
  currentLeaderEpoch: number;
  lastFetchedEpoch: number;
  logStartOffset: number;
  /** What the last reply of the session said; -1 before the first. */
  sentHighWatermark: number;
  sentLogStartOffset: number;
}

const EVICTION_MS = 120_000;
/** Partitions that all sessions together may hold; some 200 bytes each. */
const MAX_HELD_PARTITIONS = 250_000;
const FINAL_EPOCH = -1;
const INITIAL_EPOCH = 0;
const MAX_EPOCH = 0x7fff_ffff;

/** One client's session. Partition order is the order in which replies are filled. */
export class FetchSession {
  /** The epoch that the next request must carry. */
  epoch = 1;
  lastUsedMs: number;
  readonly partitions = new Map<string, FetchPartition>();

  constructor(readonly id: number, nowMs: number) {
    this.lastUsedMs = nowMs;
  }

  /** Moves a partition behind the others: what was served last comes last (fairness under a byte limit). */
  rotate(key: string): void {
    const partition = this.partitions.get(key);
    if (partition === undefined) return;
    this.partitions.delete(key);
    this.partitions.set(key, partition);
  }
}

/** What a request's session id and epoch mean. `full` without a session: answer everything, session id 0. */
export type SessionOutcome =
  | { readonly kind: "full"; readonly session: FetchSession | null }
  | { readonly kind: "incremental"; readonly session: FetchSession }
  | { readonly kind: "refused"; readonly errorCode: ErrorCode };

/** Key of a partition in a session; names and ids never meet in one session version. */
export function sessionKey(
  p: { readonly topic: string; readonly topicId: string; readonly partition: number },
): string {
  return `${p.topic}\0${p.topicId}\0${p.partition}`;
}

/** All sessions of a broker. */
export class FetchSessionCache {
  /** In order of use: the first was unused for longest. */
  readonly #sessions = new Map<number, FetchSession>();
  #heldPartitions = 0;
  #nextId: number;

  /** @param seed a number in [0, 1): where the ids begin, so that those of an earlier process are unknown here */
  constructor(private readonly maxSessions: number, seed: number) {
    this.#nextId = 1 + Math.floor(seed * 0x7000_0000);
  }

  /** Sessions that are held now. */
  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Applies the session part of a Fetch request.
   * @param requested the partitions that the request names
   * @param forgotten keys ({@link sessionKey}) to drop from the session
   */
  open(
    sessionId: number,
    epoch: number,
    requested: readonly FetchPartition[],
    forgotten: readonly string[],
    nowMs: number,
  ): SessionOutcome {
    if (epoch === FINAL_EPOCH) {
      this.#close(sessionId);
      return { kind: "full", session: null };
    }
    if (epoch === INITIAL_EPOCH) {
      this.#close(sessionId);
      return { kind: "full", session: this.#create(requested, nowMs) };
    }
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return { kind: "refused", errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND };
    if (session.epoch !== epoch) return { kind: "refused", errorCode: ErrorCode.INVALID_FETCH_SESSION_EPOCH };
    this.#touch(session, nowMs);
    const before = session.partitions.size;
    for (const key of forgotten) session.partitions.delete(key);
    for (const wanted of requested) {
      const key = sessionKey(wanted);
      const held = session.partitions.get(key);
      if (held === undefined) {
        session.partitions.set(key, wanted);
      } else {
        held.fetchOffset = wanted.fetchOffset;
        held.maxBytes = wanted.maxBytes;
        held.currentLeaderEpoch = wanted.currentLeaderEpoch;
        held.lastFetchedEpoch = wanted.lastFetchedEpoch;
        held.logStartOffset = wanted.logStartOffset;
      }
    }
    session.epoch = epoch === MAX_EPOCH ? 1 : epoch + 1;
    this.#heldPartitions += session.partitions.size - before;
    if (session.partitions.size === 0) {
      this.#close(sessionId);
      return { kind: "full", session: null };
    }
    if (this.#heldPartitions > MAX_HELD_PARTITIONS) {
      this.#close(sessionId);
      return { kind: "refused", errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND };
    }
    return { kind: "incremental", session };
  }

  #create(requested: readonly FetchPartition[], nowMs: number): FetchSession | null {
    if (requested.length === 0 || this.maxSessions === 0) return null;
    if (this.#heldPartitions + requested.length > MAX_HELD_PARTITIONS) return null;
    if (this.#sessions.size >= this.maxSessions && !this.#evict(requested.length, nowMs)) return null;
    const session = new FetchSession(this.#nextId, nowMs);
    this.#nextId = this.#nextId === 0x7fff_ffff ? 1 : this.#nextId + 1;
    for (const partition of requested) session.partitions.set(sessionKey(partition), partition);
    this.#heldPartitions += session.partitions.size;
    this.#sessions.set(session.id, session);
    return session;
  }

  #close(id: number): void {
    this.#heldPartitions -= this.#sessions.get(id)?.partitions.size ?? 0;
    this.#sessions.delete(id);
  }

  #evict(newcomerPartitions: number, nowMs: number): boolean {
    const [oldest] = this.#sessions.values();
    if (nowMs - oldest.lastUsedMs < EVICTION_MS && oldest.partitions.size >= newcomerPartitions) return false;
    this.#close(oldest.id);
    return true;
  }

  #touch(session: FetchSession, nowMs: number): void {
    session.lastUsedMs = nowMs;
    this.#sessions.delete(session.id);
    this.#sessions.set(session.id, session);
  }
}
