/**
 * One address on which clients are accepted. Binding and serving are two steps: the port is known, and clients may
 * queue up at it, before the broker can answer them.
 *
 * A failing accept never ends the listener: where the process is out of file descriptors, say, it tries again at growing
 * intervals, and connections that end meanwhile make room.
 */

import { type Clock, sleep } from "../clock.ts";
import type { Logger } from "../observability/logger.ts";
import type { ConnectionRegistry } from "./connection_registry.ts";
import type { ListenerInfo } from "./handler.ts";

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1000;
/** Failures of accepting are logged at most this often. */
const COMPLAINT_EVERY_MS = 10_000;

/** Where to listen, and what clients are told. */
export interface ListenerAddress {
  readonly name: string;
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly advertisedHost: string;
  /** Null for the port that is bound. */
  readonly advertisedPort: number | null;
}

/** What accepting needs of a bound socket. */
export type Acceptor = Pick<Deno.TcpListener, "accept" | "close" | "addr">;

/** See the file's head. */
export class BrokerListener {
  readonly info: ListenerInfo;
  /** The address that is bound. */
  readonly hostname: string;
  readonly port: number;
  readonly #acceptor: Acceptor;
  readonly #stop = new AbortController();

  /** `acceptor` is bound to what `address` says. */
  constructor(address: ListenerAddress, acceptor: Acceptor) {
    this.#acceptor = acceptor;
    this.hostname = address.hostname;
    this.port = acceptor.addr.port;
    this.info = {
      name: address.name,
      advertisedHost: address.advertisedHost,
      advertisedPort: address.advertisedPort ?? this.port,
    };
  }

  /**
   * Binds the address. `backlog` is how many clients may wait to be accepted (socket.listen.backlog.size).
   *
   * @throws {Deno.errors.AddrInUse} and others of the system's, where it cannot be bound.
   */
  static bind(address: ListenerAddress, backlog?: number): BrokerListener {
    const { hostname, port } = address;
    return new BrokerListener(address, Deno.listen({ hostname, port, tcpBacklog: backlog }));
  }

  /** Accepts clients until {@link close}; resolves then. */
  async serve(registry: ConnectionRegistry, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    const { signal } = this.#stop;
    let pauseMs = 0;
    let complainedAtMs = -Infinity;
    while (!signal.aborted) {
      let socket: Deno.TcpConn;
      try {
        socket = await this.#acceptor.accept();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Deno.errors.ConnectionAborted || error instanceof Deno.errors.ConnectionReset) continue;
        if (clock.monotonicMs() >= complainedAtMs + COMPLAINT_EVERY_MS) {
          complainedAtMs = clock.monotonicMs();
          logger.error("connections cannot be accepted", { listener: this.info.name, error });
        }
        pauseMs = Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
        await sleep(clock, pauseMs, signal).catch(() => {});
        continue;
      }
      pauseMs = 0;
      this.#admit(socket, registry);
    }
  }

  /** Accepts no further client; connections go on. */
  close(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#acceptor.close();
  }

  #admit(socket: Deno.TcpConn, registry: ConnectionRegistry): void {
    try {
      socket.setNoDelay(true);
      socket.setKeepAlive(true);
    } catch {
      // The client is gone already; the connection's first read finds out.
    }
    registry.admit(socket, { listener: this.info, clientHost: hostOf(socket.remoteAddr) });
  }
}

/** The address without its port; an IPv4 address that came in over IPv6 as IPv4. */
function hostOf({ hostname }: Deno.NetAddr): string {
  return hostname.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/, "");
}
