/**
 * Where a broker listens and what clients are told, worked out from its settings. Pure: nothing is bound here.
 *
 * Invariants of a plan: every listener has a name of its own; every advertised address belongs to a listener and can be
 * connected to from elsewhere (never a wildcard); an advertised port 0 is the one that turns out to be bound.
 */

import type { BrokerConfig } from "./broker_config.ts";
import { listenerPattern } from "./config_definitions_broker.ts";
import type { ListenerAddress } from "./listener.ts";

/**
 * The listeners that `listeners`, `advertised.listeners` and `listener.security.protocol.map` ask for. A listener on all
 * addresses that advertises none is known to clients by `hostname`.
 */
export function planListeners(config: BrokerConfig, hostname: string): ListenerAddress[] | { problems: string[] } {
  const problems: string[] = [];
  const listeners = endpointsOf("listeners", config.get("listeners"), problems);
  const advertised = endpointsOf("advertised.listeners", config.get("advertised.listeners") ?? [], problems);
  if (listeners.size === 0) problems.push("listeners: expected at least one NAME://HOST:PORT");
  const bound = new Map<string, string>();
  for (const [name, { host, port }] of listeners) {
    const address = `${host}:${port}`;
    if (port !== 0 && bound.has(address)) {
      problems.push(`listeners: ${bound.get(address)} and ${name} both name ${address}`);
    }
    bound.set(address, name);
    const protocol = protocolOf(name, config.get("listener.security.protocol.map"));
    if (protocol !== "PLAINTEXT") {
      problems.push(
        `listeners: ${name} asks for ${protocol} (by listener.security.protocol.map), but only PLAINTEXT is served`,
      );
    }
  }
  for (const [name, { host }] of advertised) {
    if (!listeners.has(name)) {
      problems.push(
        `advertised.listeners: no listener is named ${name}, expected ${[...listeners.keys()].join(" or ")}`,
      );
    }
    if (isWildcard(host)) {
      problems.push(`advertised.listeners: clients cannot connect to ${name}://${host}, expected a name or an address`);
    }
  }
  if (problems.length > 0) return { problems };
  return [...listeners].map(([name, { host, port }]) => {
    const told = advertised.get(name);
    return {
      name,
      hostname: host === "" ? "0.0.0.0" : host,
      port,
      advertisedHost: told?.host ?? (isWildcard(host) ? hostname : host),
      advertisedPort: told === undefined || told.port === 0 ? null : told.port,
    };
  });
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

function endpointsOf(setting: string, entries: readonly string[], problems: string[]): Map<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>();
  for (const entry of entries) {
    const match = listenerPattern.exec(entry);
    if (match === null) {
      problems.push(`${setting}: ${JSON.stringify(entry)} is not accepted, expected NAME://HOST:PORT`);
      continue;
    }
    const [, name, host, port] = match;
    if (Number(port) > 65535) problems.push(`${setting}: port ${port} of ${name} is not accepted, expected 0 to 65535`);
    if (endpoints.has(name)) problems.push(`${setting}: ${name} is there twice, expected a name of its own for each`);
    endpoints.set(name, { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) });
  }
  return endpoints;
}

/** A name that the map lacks is plain text: names of one's own need no map here. */
function protocolOf(name: string, map: string): string {
  for (const pair of map.split(",")) {
    const [listener, protocol] = pair.split(":").map((part) => part.trim());
    if (listener === name && protocol) return protocol.toUpperCase();
  }
  return "PLAINTEXT";
}

function isWildcard(host: string): boolean {
  return host === "" || host === "0.0.0.0" || host === "::";
}
