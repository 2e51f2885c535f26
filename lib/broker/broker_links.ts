/**
 * Requests from this broker to others. One connection each, made when it is needed, made anew when it has ended; a broker
 * that does not answer in time is taken for gone, and its connection is closed.
 */

import type { Clock } from "../clock.ts";
import type { InputOf, Message, ValueOf } from "../protocol/schema.ts";
import { ConnectionToBroker } from "./connection_to_broker.ts";

export interface BrokerLinksOptions {
  readonly clock: Clock;
  /** How the others know this broker. */
  readonly clientId: string;
  /** Where a live broker can be reached; null where that is not known. */
  addressOf(nodeId: number): { readonly host: string; readonly port: number } | null;
}

/** How long a reply may take. */
const PATIENCE_MS = 5000;

/** See the file's head. */
export class BrokerLinks {
  readonly #links = new Map<number, { readonly where: string; readonly opening: Promise<ConnectionToBroker | null> }>();
  #isClosed = false;

  constructor(private readonly options: BrokerLinksOptions) {}

  /** Resolves with the reply, or with null where none can be had: whether the request was carried out is not known then. */
  async call<Request extends Message<unknown, unknown>, Response extends Message<unknown, unknown>>(
    nodeId: number,
    request: Request,
    response: Response,
    version: number,
    input: InputOf<Request>,
  ): Promise<ValueOf<Response> | null> {
    const calling = this.#linkTo(nodeId).then((link) => link?.call(request, response, version, input) ?? null);
    return await new Promise((resolve) => {
      const timer = this.options.clock.schedule(PATIENCE_MS, () => {
        this.#drop(nodeId);
        resolve(null);
      });
      calling.catch(() => null).then((reply) => {
        timer.cancel();
        resolve(reply);
      });
    });
  }

  /** Ends all connections; whoever waits gets nothing. */
  close(): void {
    this.#isClosed = true;
    for (const nodeId of [...this.#links.keys()]) this.#drop(nodeId);
  }

  async #linkTo(nodeId: number): Promise<ConnectionToBroker | null> {
    const address = this.options.addressOf(nodeId);
    if (address === null || this.#isClosed) return null;
    const where = `${address.host}:${address.port}`;
    const present = this.#links.get(nodeId);
    if (present !== undefined) {
      const link = await present.opening;
      if (link !== null && !link.isClosed && present.where === where) return link;
      if (this.#links.get(nodeId) === present) this.#drop(nodeId);
    }
    let link = this.#links.get(nodeId);
    if (link === undefined) {
      link = { where, opening: ConnectionToBroker.open(address, this.options.clientId).catch(() => null) };
      this.#links.set(nodeId, link);
    }
    return await link.opening;
  }

  #drop(nodeId: number): void {
    const link = this.#links.get(nodeId);
    this.#links.delete(nodeId);
    void link?.opening.then((connection) => connection?.close());
  }
}
