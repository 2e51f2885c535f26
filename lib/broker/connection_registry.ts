/**
 * All connections of a process: admits them within the limits, closes those that are idle for too long, and ends them
 * together.
 */

import type { Timer } from "../clock.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { Connection, type ConnectionServices, type Socket } from "./connection.ts";
import type { ListenerInfo } from "./handler.ts";

/** Limits as they are now; they may change while the broker runs. */
export interface ConnectionLimits {
  /** Connections at a time (max.connections). */
  maxConnections(): number;
  /** Connections from one address at a time (max.connections.per.ip and its overrides). */
  maxConnectionsOf(clientHost: string): number;
  /** Longest idleness in ms (connections.max.idle.ms); negative for no limit. */
  maxIdleMs(): number;
}

/** The limits that the settings name. */
export function connectionLimitsOf(config: Pick<BrokerConfig, "get">): ConnectionLimits {
  return {
    maxConnections: () => config.get("max.connections"),
    maxIdleMs: () => config.get("connections.max.idle.ms"),
    maxConnectionsOf: (clientHost) =>
      countFor(clientHost, config.get("max.connections.per.ip.overrides") ?? "") ??
        config.get("max.connections.per.ip"),
  };
}

/** The count that `HOST:COUNT,HOST:COUNT` names for a host. */
function countFor(clientHost: string, overrides: string): number | null {
  if (overrides === "") return null;
  for (const pair of overrides.split(",")) {
    const colon = pair.lastIndexOf(":");
    const count = Number(pair.slice(colon + 1));
    if (pair.slice(0, colon).trim() === clientHost && Number.isInteger(count) && count >= 0) return count;
  }
  return null;
}

/** See the file's head. */
export class ConnectionRegistry {
  readonly #services: ConnectionServices;
  readonly #limits: ConnectionLimits;
  readonly #connections = new Set<Connection>();
  readonly #countByHost = new Map<string, number>();
  #nextId = 1;
  #sweep: Timer | null = null;
  /** Limits that were logged as reached, and not yet as free again. */
  readonly #reached = new Set<string>();

  constructor(services: ConnectionServices, limits: ConnectionLimits) {
    this.#services = services;
    this.#limits = limits;
  }

  /** The open connections. */
  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  /** Serves a socket as a connection, or closes it where a limit is reached. */
  admit(
    socket: Socket,
    { listener, clientHost }: { readonly listener: ListenerInfo; readonly clientHost: string },
  ): void {
    const { counters } = this.#services;
    if (this.#isRefused(clientHost)) {
      counters.connectionsRefused++;
      socket.close();
      return;
    }
    counters.connectionsAccepted++;
    const connection = new Connection(socket, { connectionId: this.#nextId++, listener, clientHost }, this.#services);
    this.#connections.add(connection);
    this.#countByHost.set(clientHost, (this.#countByHost.get(clientHost) ?? 0) + 1);
    if (this.#sweep === null) this.#scheduleSweep();
    connection.serve().then(() => this.#remove(connection));
  }

  /** Ends all connections: each as soon as the replies it owes have left, at the latest in `withinMs`. */
  async finish(withinMs: number): Promise<void> {
    const closed = [...this.#connections].map((connection) => {
      connection.finish(withinMs);
      return connection.closed;
    });
    await Promise.all(closed);
  }

  #isRefused(clientHost: string): boolean {
    const ofHost = this.#countByHost.get(clientHost) ?? 0;
    return this.#isReached("max.connections", this.#connections.size, this.#limits.maxConnections(), clientHost) ||
      this.#isReached("max.connections.per.ip", ofHost, this.#limits.maxConnectionsOf(clientHost), clientHost);
  }

  /** Logs once when a limit is reached, not for each connection that it refuses. */
  #isReached(setting: string, present: number, limit: number, clientHost: string): boolean {
    const topic = setting === "max.connections" ? setting : `${setting} ${clientHost}`;
    if (present < limit) {
      this.#reached.delete(topic);
      return false;
    }
    if (!this.#reached.has(topic)) {
      this.#reached.add(topic);
      this.#services.logger.warn("connections are refused: a limit is reached", { setting, limit, client: clientHost });
    }
    return true;
  }

  #remove(connection: Connection): void {
    const { clientHost } = connection;
    this.#connections.delete(connection);
    const left = (this.#countByHost.get(clientHost) ?? 1) - 1;
    if (left === 0) {
      this.#countByHost.delete(clientHost);
      this.#reached.delete(`max.connections.per.ip ${clientHost}`);
    } else {
      this.#countByHost.set(clientHost, left);
    }
    if (this.#connections.size > 0) return;
    this.#sweep?.cancel();
    this.#sweep = null;
  }

  #scheduleSweep(): void {
    const maxIdleMs = this.#limits.maxIdleMs();
    const everyMs = maxIdleMs < 0 ? 10_000 : Math.min(Math.max(maxIdleMs / 10, 50), 10_000);
    this.#sweep = this.#services.clock.schedule(everyMs, () => {
      this.#closeIdle();
      this.#scheduleSweep();
    });
  }

  #closeIdle(): void {
    const maxIdleMs = this.#limits.maxIdleMs();
    if (maxIdleMs < 0) return;
    const since = this.#services.clock.monotonicMs() - maxIdleMs;
    for (const connection of this.#connections) {
      const { idleSinceMs } = connection;
      if (idleSinceMs !== null && idleSinceMs <= since) connection.close("idle for too long");
    }
  }
}
