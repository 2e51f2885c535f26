/**
 * Fetch (0–18): reads batches from several partitions, waiting for them if asked to.
 *
 * Versions: 0–3 get message sets of magic 0 and 1; 3 has a limit over all partitions; 4 isolation levels; 7 sessions
 * (KIP-227); 9 leader epochs; 10 zstd; 12 diverging epochs; 13 topic ids; 16 addresses of current leaders.
 *
 * kaas has no followers: a request that names a replica is served like a consumer's.
 */
import { ErrorCode } from "../../errors.ts";
import { fetchRequest, fetchResponse } from "../../protocol/messages/fetch.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type FetchPartition, type FetchSession, sessionKey, type SessionOutcome } from "../fetch_session.ts";
import { type FetchReading, type FetchTerms, type PartitionRead, readPartitions } from "../fetch_reading.ts";
import { type WaitedFor, waitForBytes } from "../fetch_wait.ts";
import { CONNECTION_ENDS, type Handler, later, type Reply, type RequestContext, withRelease } from "../handler.ts";
import { nodeEndpoints } from "../leader_hint.ts";

type FetchRequest = ValueOf<typeof fetchRequest>;
type FetchResponse = InputOf<typeof fetchResponse>;
type TopicReply = FetchResponse["responses"][number];
type PartitionReply = TopicReply["partitions"][number];
type Session = Exclude<SessionOutcome, { kind: "refused" }>;

const READ_COMMITTED = 1;

/** Serves Fetch. */
export function fetchHandler(broker: Broker): Handler<FetchRequest, FetchResponse> {
  return {
    request: fetchRequest,
    response: fetchResponse,
    largeReplies: true,
    handle(request, context) {
      const { sessionId, sessionEpoch } = request;
      const wanted = wantedOf(request);
      const outcome = broker.fetchSessions.open(
        sessionId,
        sessionEpoch,
        wanted,
        forgottenOf(request),
        broker.clock.monotonicMs(),
      );
      if (outcome.kind === "refused") return replyOf(outcome.errorCode, 0, []);
      const fetching = new Fetching(broker, request, context, outcome, wanted);
      const reading = fetching.read();
      if (reading instanceof Promise) return later(reading.then((settled) => fetching.finish(settled)));
      return fetching.isEnough(reading) ? fetching.reply(reading) : later(fetching.finish(reading));
    },
  };
}

/** One Fetch request. */
class Fetching {
  readonly #deadlineMs: number;
  readonly #terms: FetchTerms;
  readonly #wanted: readonly FetchPartition[];

  constructor(
    private readonly broker: Broker,
    private readonly request: FetchRequest,
    private readonly context: RequestContext,
    private readonly session: Session,
    requested: readonly FetchPartition[],
  ) {
    this.#deadlineMs = broker.clock.monotonicMs() + request.maxWaitMs;
    this.#terms = {
      apiVersion: context.apiVersion,
      maxBytes: Math.min(request.maxBytes, broker.config.get("fetch.max.bytes")),
      isolation: request.isolationLevel === READ_COMMITTED ? "readCommitted" : "readUncommitted",
    };
    this.#wanted = session.session === null ? requested : [...session.session.partitions.values()];
  }

  read(): FetchReading | Promise<FetchReading> {
    return readPartitions(this.broker, this.#terms, this.#wanted);
  }

  isEnough(reading: FetchReading): boolean {
    return reading.urgent || reading.bytes >= this.request.minBytes || this.#wanted.length === 0 ||
      this.broker.clock.monotonicMs() >= this.#deadlineMs;
  }

  /** Waits and reads again until there is enough. */
  async finish(first: FetchReading): Promise<Reply<FetchResponse>> {
    let reading = first;
    while (!this.isEnough(reading)) {
      const watched: WaitedFor[] = [];
      for (const { partition, highWatermark } of reading.parts) {
        if (partition !== null) watched.push({ partition, highWatermark });
      }
      const missingBytes = this.request.minBytes - reading.bytes;
      reading.release();
      const end = await waitForBytes(watched, {
        missingBytes,
        patienceMs: Math.max(0, this.#deadlineMs - this.broker.clock.monotonicMs()),
        clock: this.broker.clock,
        signal: this.context.signal,
      });
      if (end === "gone" && this.context.signal.reason !== CONNECTION_ENDS) return replyOf(ErrorCode.NONE, 0, []);
      reading = await this.read();
      if (end !== "bytes") break;
    }
    return this.reply(reading);
  }

  reply(reading: FetchReading): Reply<FetchResponse> {
    const { session } = this.session;
    const parts = this.session.kind === "incremental" ? reading.parts.filter(hasNews) : reading.parts;
    if (session !== null) remember(session, parts);
    const response = replyOf(ErrorCode.NONE, session?.id ?? 0, topicsOf(parts));
    const nodeEndpointsOf = nodeEndpoints(this.broker, this.context, parts);
    return withRelease({ ...response, nodeEndpoints: nodeEndpointsOf }, () => reading.release());
  }
}

function replyOf(errorCode: ErrorCode, sessionId: number, responses: TopicReply[]): FetchResponse {
  return { throttleTimeMs: 0, errorCode, sessionId, responses, nodeEndpoints: [] };
}

/** Whether an incremental reply has to name this partition. */
function hasNews(part: PartitionRead): boolean {
  return part.records.length > 0 || part.errorCode !== ErrorCode.NONE || part.divergingEpoch.endOffset !== -1 ||
    part.highWatermark !== part.wanted.sentHighWatermark || part.logStartOffset !== part.wanted.sentLogStartOffset;
}

/** Notes what the client is told; a partition that fails is told again until it does not. */
function remember(session: FetchSession, parts: readonly PartitionRead[]): void {
  for (const { wanted, highWatermark, logStartOffset, records, errorCode } of parts) {
    wanted.sentHighWatermark = errorCode === ErrorCode.NONE ? highWatermark : -1;
    wanted.sentLogStartOffset = logStartOffset;
    if (records.length > 0) session.rotate(sessionKey(wanted));
  }
}

/** Parts by topic; neighbours of one topic share an entry. */
function topicsOf(parts: readonly PartitionRead[]): TopicReply[] {
  const topics: { topic: string; topicId: string; partitions: PartitionReply[] }[] = [];
  let current: (typeof topics)[number] | null = null;
  for (const part of parts) {
    const { topic, topicId } = part.wanted;
    if (current === null || current.topic !== topic || current.topicId !== topicId) {
      topics.push(current = { topic, topicId, partitions: [] });
    }
    current.partitions.push({
      partitionIndex: part.wanted.partition,
      errorCode: part.errorCode,
      highWatermark: part.highWatermark,
      lastStableOffset: part.lastStableOffset,
      logStartOffset: part.logStartOffset,
      divergingEpoch: part.divergingEpoch,
      currentLeader: part.currentLeader,
      abortedTransactions: part.abortedTransactions,
      preferredReadReplica: -1,
      records: part.records,
    });
  }
  return topics;
}

function wantedOf({ topics }: FetchRequest): FetchPartition[] {
  const wanted: FetchPartition[] = [];
  for (const { topic, topicId, partitions } of topics) {
    for (const { partition, fetchOffset, partitionMaxBytes, ...asked } of partitions) {
      wanted.push({
        topic,
        topicId,
        partition,
        fetchOffset,
        maxBytes: partitionMaxBytes,
        currentLeaderEpoch: asked.currentLeaderEpoch,
        lastFetchedEpoch: asked.lastFetchedEpoch,
        logStartOffset: asked.logStartOffset,
        sentHighWatermark: -1,
        sentLogStartOffset: -1,
      });
    }
  }
  return wanted;
}

function forgottenOf({ forgottenTopicsData }: FetchRequest): string[] {
  const keys: string[] = [];
  for (const { topic, topicId, partitions } of forgottenTopicsData) {
    for (const partition of partitions) keys.push(sessionKey({ topic, topicId, partition }));
  }
  return keys;
}
