/**
 * A listener with handlers that a test writes itself, on a real loopback socket: for tests of connections, where what
 * the requests mean does not matter. Time is simulated; what is logged is kept.
 */

import { until } from "../../support/broker_process.ts";
import { RawClient } from "../../support/raw_client.ts";
import { SimulatedClock } from "../../simulation/simulated_clock.ts";
import { type Connection, type ConnectionServices, connectionServices } from "../../../lib/broker/connection.ts";
import { type ConnectionLimits, ConnectionRegistry } from "../../../lib/broker/connection_registry.ts";
import { Dispatcher } from "../../../lib/broker/dispatch.ts";
import type { AnyHandler, Handler, RequestContext } from "../../../lib/broker/handler.ts";
import { apiVersionsHandler } from "../../../lib/broker/handlers/api_versions.ts";
import { BrokerListener } from "../../../lib/broker/listener.ts";
import { createLogger } from "../../../lib/observability/logger.ts";
import { fetchRequest, fetchResponse } from "../../../lib/protocol/messages/fetch.ts";
import { heartbeatRequest, heartbeatResponse } from "../../../lib/protocol/messages/heartbeat.ts";
import { produceRequest, produceResponse } from "../../../lib/protocol/messages/produce.ts";
import { type InputOf, type ValueOf, ZERO_UUID } from "../../../lib/protocol/schema.ts";

export type HeartbeatRequest = ValueOf<typeof heartbeatRequest>;
export type HeartbeatResponse = InputOf<typeof heartbeatResponse>;
type Handle<H> = H extends Handler<infer Req, infer Res> ? Handler<Req, Res>["handle"] : never;

/** What the toys do. Heartbeat stands for any request with a small reply and an error code at its top. */
export interface Toys {
  readonly heartbeat?: Handle<Handler<HeartbeatRequest, HeartbeatResponse>>;
  readonly fetch?: Handle<Handler<ValueOf<typeof fetchRequest>, InputOf<typeof fetchResponse>>>;
  readonly produce?: Handle<Handler<ValueOf<typeof produceRequest>, InputOf<typeof produceResponse>>>;
}

/** One line of the log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface ToyBroker extends AsyncDisposable {
  readonly port: number;
  readonly clock: SimulatedClock;
  readonly registry: ConnectionRegistry;
  readonly listener: BrokerListener;
  readonly services: ConnectionServices;
  readonly logged: LogLine[];
  /** Contexts of the requests that were handled, in order. */
  readonly handled: RequestContext[];
  connect(): Promise<RawClient>;
  /** The connection that was accepted last. */
  latest(): Connection;
}

const noLimits: ConnectionLimits = {
  maxConnections: () => Infinity,
  maxConnectionsOf: () => Infinity,
  maxIdleMs: () => -1,
};

/** Lines of at least `info` that are logged from now on, as a logger and as the list it fills. */
export function loggedLines() {
  const logged: LogLine[] = [];
  const logger = createLogger({
    level: "info",
    format: "json",
    clock: { wallMs: () => 0 },
    write: (line) => logged.push(JSON.parse(line)),
  });
  return { logged, logger };
}

/** The handlers of `toys`, each noting its request in `handled` first, with ApiVersions. */
export function toyHandlers(toys: Toys, handled: RequestContext[] = []): AnyHandler[] {
  const noting = (handler: AnyHandler): AnyHandler => ({
    ...handler,
    handle(request, context) {
      handled.push(context);
      return handler.handle(request, context);
    },
  });
  const handlers = [
    { request: heartbeatRequest, response: heartbeatResponse, handle: toys.heartbeat ?? ((request) => beat(request)) },
    { request: fetchRequest, response: fetchResponse, largeReplies: true, handle: toys.fetch ?? (() => fetched(0)) },
    { request: produceRequest, response: produceResponse, handle: toys.produce ?? (() => null) },
  ] satisfies AnyHandler[];
  return [...handlers, apiVersionsHandler(handlers, [])].map(noting);
}

/** Starts a toy broker; it is gone when it is disposed of. */
export function toyBroker(
  toys: Toys = {},
  { limits = {}, maxRequestBytes = 104_857_600 }: {
    readonly limits?: Partial<ConnectionLimits>;
    readonly maxRequestBytes?: number;
  } = {},
): ToyBroker {
  const clock = new SimulatedClock();
  const { logged, logger } = loggedLines();
  const handled: RequestContext[] = [];
  const dispatcher = new Dispatcher(toyHandlers(toys, handled), logger);
  const services = connectionServices({ dispatcher, clock, logger, maxRequestBytes });
  const registry = new ConnectionRegistry(services, { ...noLimits, ...limits });
  const address = { name: "TOY", hostname: "127.0.0.1", port: 0, advertisedHost: "toy.example", advertisedPort: null };
  const listener = BrokerListener.bind(address);
  const serving = listener.serve(registry, { clock, logger });
  const clients: RawClient[] = [];
  return {
    port: listener.port,
    clock,
    registry,
    listener,
    services,
    logged,
    handled,
    async connect() {
      const before = services.counters.connectionsAccepted + services.counters.connectionsRefused;
      const client = await RawClient.connect(listener.port);
      clients.push(client);
      const { counters } = services;
      await until(
        () => counters.connectionsAccepted + counters.connectionsRefused > before,
        "the client to be accepted",
      );
      return client;
    },
    latest: () => [...registry.connections].at(-1)!,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
      for (const connection of registry.connections) connection.close("the test is over");
      for (const client of clients) client.close();
      await until(() => registry.connections.size === 0, "all connections to be gone");
    },
  };
}

/** A Heartbeat request that carries `text`. */
export function heartbeat(text: string): InputOf<typeof heartbeatRequest> {
  return { groupId: text, generationId: 1, memberId: "m", groupInstanceId: null };
}

/** A Heartbeat reply that carries a number: that of the request's text, where there is one. */
export function beat(request: HeartbeatRequest | number): HeartbeatResponse {
  const number = typeof request === "number" ? request : Number(request.groupId);
  return { throttleTimeMs: Number.isNaN(number) ? 0 : number, errorCode: 0 };
}

/** A Fetch reply with one partition that holds so many record bytes. */
export function fetched(recordBytes: number): InputOf<typeof fetchResponse> {
  const partition = {
    partitionIndex: 0,
    errorCode: 0,
    highWatermark: 0,
    lastStableOffset: 0,
    logStartOffset: 0,
    abortedTransactions: [],
    preferredReadReplica: -1,
    records: new Uint8Array(recordBytes).fill(recordBytes),
  };
  const topic = { topic: "t", topicId: ZERO_UUID, partitions: [partition] };
  return { throttleTimeMs: 0, errorCode: 0, sessionId: 0, responses: [topic] };
}

/** A Fetch request that asks for at most so many bytes. */
export function fetchOf(maxBytes: number): InputOf<typeof fetchRequest> {
  return { maxWaitMs: 0, minBytes: 0, maxBytes, topics: [], forgottenTopicsData: [] };
}

/** A Produce request of one partition. */
export function produceOf(acks: number, recordBytes: number): InputOf<typeof produceRequest> {
  const partitionData = [{ index: 0, records: new Uint8Array(recordBytes).fill(1) }];
  return { transactionalId: null, acks, timeoutMs: 0, topicData: [{ name: "t", topicId: ZERO_UUID, partitionData }] };
}

/** What an ApiVersions request of these tests says. */
export const software = { clientSoftwareName: "toy", clientSoftwareVersion: "1.0" };
