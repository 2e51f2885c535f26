/**
 * The admin client: knows the brokers of a cluster, and takes each request to the one that must answer it.
 *
 * What may be tried again (a broker that is gone, a leader or coordinator that is moving) is, until the time is over. What
 * is refused for good is an error that names the code.
 */

import { ErrorCode, errorName, isRetriable } from "../../lib/errors.ts";
import { findCoordinatorRequest, findCoordinatorResponse } from "../../lib/protocol/messages/find_coordinator.ts";
import { metadataRequest, metadataResponse } from "../../lib/protocol/messages/metadata.ts";
import { type Message, type ValueOf, ZERO_UUID } from "../../lib/protocol/schema.ts";
import { CommandFailure } from "../exit.ts";
import { Connection, ConnectionFailure } from "./connection.ts";

export type Metadata = ValueOf<typeof metadataResponse>;
export type TopicMetadata = Metadata["topics"][number];

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** A broker's refusal. */
export class Refused extends CommandFailure {
  constructor(what: string, readonly errorCode: number, message: string | null = null) {
    super(`${what}: ${message ?? sentences[errorCode] ?? errorName(errorCode)}`);
  }
}

const sentences: Readonly<Record<number, string>> = {
  [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]: "there is no such topic or partition",
  [ErrorCode.GROUP_ID_NOT_FOUND]: "there is no such group",
  [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]: "there is no such transactional id",
  [ErrorCode.NON_EMPTY_GROUP]: "the group has members; stop them first",
  [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]: "members of the group consume this topic; stop them first",
  [ErrorCode.UNKNOWN_MEMBER_ID]: "the group has members; stop them first",
  [ErrorCode.OFFSET_OUT_OF_RANGE]: "the offset is not in the log",
  [ErrorCode.POLICY_VIOLATION]: "the topic's settings forbid it",
};

const RETRY_PAUSE_MS = 100;

/** See the file's head. Close it after use. */
export class ClusterClient {
  readonly #bootstrap: readonly HostAndPort[];
  readonly #timeoutMs: number;
  readonly #connections = new Map<string, Connection>();
  #metadata: Metadata | null = null;

  constructor({ bootstrap, timeoutMs }: { readonly bootstrap: readonly HostAndPort[]; readonly timeoutMs: number }) {
    this.#bootstrap = bootstrap;
    this.#timeoutMs = timeoutMs;
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }

  /** The brokers, and these topics (or all, with null); a topic that is not there has its error code. */
  async metadata(topics: readonly string[] | null): Promise<Metadata> {
    const metadata = await this.#retrying(async () => {
      const connection = await this.#anyConnection();
      return await connection.call(metadataRequest, metadataResponse, {
        topics: topics === null ? null : topics.map((name) => ({ name, topicId: ZERO_UUID })),
        allowAutoTopicCreation: false,
        includeTopicAuthorizedOperations: false,
      }, this.#timeoutMs);
    });
    return this.#metadata = metadata;
  }

  /** The node ids of all live brokers, rising. */
  async nodeIds(): Promise<number[]> {
    const { brokers } = this.#metadata ?? await this.metadata([]);
    return brokers.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
  }

  /** Asks any broker. */
  any<Input, Value>(request: Message<unknown, Input>, response: Message<Value, unknown>, value: Input): Promise<Value> {
    return this.#retrying(async () => {
      const connection = await this.#anyConnection();
      return await connection.call(request, response, value, this.#timeoutMs);
    });
  }

  /** Asks the broker that takes changes of the cluster. */
  controller<Input, Value>(
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    value: Input,
  ): Promise<Value> {
    return this.#retrying(async () => {
      const { controllerId } = this.#metadata ?? await this.metadata([]);
      const connection = controllerId < 0 ? await this.#anyConnection() : await this.#connectionTo(controllerId);
      return await connection.call(request, response, value, this.#timeoutMs);
    });
  }

  /** Asks one broker by its node id. */
  node<Input, Value>(
    nodeId: number,
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    value: Input,
  ): Promise<Value> {
    return this.#retrying(async () => {
      const connection = await this.#connectionTo(nodeId);
      return await connection.call(request, response, value, this.#timeoutMs);
    });
  }

  /**
   * Asks the coordinator of a group, or of a transactional id; again while `codeOf` its reply says that it is another one,
   * or not ready.
   */
  coordinator<Input, Value>(
    key: string,
    request: Message<unknown, Input>,
    response: Message<Value, unknown>,
    value: Input,
    codeOf: (reply: Value) => number,
    of: "group" | "transactional id" = "group",
  ): Promise<Value> {
    return this.#retrying(async () => {
      const found = await this.any(findCoordinatorRequest, findCoordinatorResponse, {
        key,
        keyType: of === "group" ? 0 : 1,
        coordinatorKeys: [key],
      });
      const { errorCode, errorMessage, host, port } = found.coordinators[0] ?? found;
      if (errorCode !== ErrorCode.NONE) throw new Refused(`coordinator of ${of} ${key}`, errorCode, errorMessage);
      const connection = await this.#connect({ host, port });
      const reply = await connection.call(request, response, value, this.#timeoutMs);
      const code = codeOf(reply);
      if (isMoving(code)) throw new Refused(`${of} ${key}`, code);
      return reply;
    });
  }

  /**
   * Asks each leader for its part of what concerns partitions. `ask` gets a node id and the keys of the partitions that it
   * leads, and answers with an error code for each; those that may move are asked for again.
   */
  async leaders<Key extends { readonly topic: string; readonly partition: number }>(
    keys: readonly Key[],
    ask: (nodeId: number, led: readonly Key[]) => Promise<ReadonlyMap<Key, number>>,
  ): Promise<ReadonlyMap<Key, number>> {
    const outcome = new Map<Key, number>();
    let left = [...keys];
    const deadline = performance.now() + this.#timeoutMs;
    for (;;) {
      const { topics } = await this.metadata([...new Set(left.map(({ topic }) => topic))]);
      const byLeader = Map.groupBy(left, ({ topic, partition }) => {
        const found = topics.find(({ name }) => name === topic);
        return found?.partitions.find(({ partitionIndex }) => partitionIndex === partition)?.leaderId ?? null;
      });
      for (const [nodeId, led] of byLeader) {
        if (nodeId === null) { for (const key of led) outcome.set(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION); }
        else if (nodeId < 0) { for (const key of led) outcome.set(key, ErrorCode.LEADER_NOT_AVAILABLE); }
        else for (const [key, code] of await ask(nodeId, led)) outcome.set(key, code);
      }
      left = left.filter((key) => isMoving(outcome.get(key) ?? ErrorCode.NONE));
      if (left.length === 0 || performance.now() > deadline) return outcome;
      await pause();
    }
  }

  async #anyConnection(): Promise<Connection> {
    const open = [...this.#connections.values()].find(({ isOpen }) => isOpen);
    if (open !== undefined) return open;
    const failures: string[] = [];
    for (const address of this.#bootstrap) {
      try {
        return await this.#connect(address);
      } catch (error) {
        if (!(error instanceof ConnectionFailure)) throw error;
        failures.push(error.message);
      }
    }
    throw new ConnectionFailure(
      `${failures.join("; ")} (is the broker running? --bootstrap HOST:PORT names another one)`,
    );
  }

  async #connectionTo(nodeId: number): Promise<Connection> {
    const { brokers } = this.#metadata ?? await this.metadata([]);
    const broker = brokers.find((one) => one.nodeId === nodeId);
    if (broker === undefined) throw new CommandFailure(`there is no live broker ${nodeId}`);
    try {
      return await this.#connect(broker);
    } catch (error) {
      this.#metadata = null;
      throw error;
    }
  }

  async #connect({ host, port }: HostAndPort): Promise<Connection> {
    const key = `${host}:${port}`;
    const kept = this.#connections.get(key);
    if (kept?.isOpen) return kept;
    const connection = await Connection.open(host, port, this.#timeoutMs);
    this.#connections.set(key, connection);
    return connection;
  }

  /** A broker that cannot be reached at all is not tried for long: that it does not run is the likeliest. */
  async #retrying<T>(run: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#timeoutMs;
    for (let tries = 1;; tries++) {
      try {
        return await run();
      } catch (error) {
        const isPassing = error instanceof Refused ? isMoving(error.errorCode) : error instanceof ConnectionFailure;
        const isHopeless = error instanceof ConnectionFailure && this.#metadata === null && tries >= 2;
        if (!isPassing || isHopeless || performance.now() > deadline) {
          throw error instanceof ConnectionFailure ? new CommandFailure(error.message) : error;
        }
        await pause();
      }
    }
  }
}

function isMoving(code: number): boolean {
  return isRetriable(code) && code !== ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
}
