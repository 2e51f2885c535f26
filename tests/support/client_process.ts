/**
 * A real Kafka client as a process: a small program in the client's own language (tests/clients/<client>/) that reads
 * one JSON command a line from stdin, runs commands concurrently, and prints JSON lines:
 *
 *   → {"id": 1, "op": "produce", …}
 *   ← {"id": 1, "event": "progress", "acked": 200}      any number of events
 *   ← {"id": 1, "result": {…}}                          or one end: a result …
 *   ← {"id": 1, "error": {"code": 10, "name": "…", "message": "…"}}    … or an error; code is the broker's, or null
 *
 * The bootstrap address is the program's last argument. Every command makes and closes its own clients. The commands
 * are the methods of `ClientProcess`; a client without some (kafkajs reads back no topic id) leaves them out or fails.
 */

import type { Part } from "./toolchain.ts";
import { clientCommand } from "./toolchain.ts";

export type Codec = "none" | "gzip" | "snappy" | "lz4" | "zstd";
export const codecs: readonly Codec[] = ["none", "gzip", "snappy", "lz4", "zstd"];

/** Bytes are base64, null is null. */
export interface SentRecord {
  readonly partition?: number;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers?: readonly (readonly [name: string, value: string | null])[];
  /** Milliseconds; the client's clock where it is left out. */
  readonly timestamp?: number;
}

export interface ReadRecord {
  readonly offset: number;
  /** Null from clients older than record timestamps. */
  readonly timestamp: number | null;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly [name: string, value: string | null])[];
}

export interface ProduceCommand {
  readonly topic: string;
  readonly records?: readonly SentRecord[];
  /** Instead of records: keys `prefix-0`, `prefix-1`, …, values of that length, dealt to the partitions in turn. */
  readonly generate?: {
    readonly count: number;
    readonly prefix: string;
    readonly valueBytes?: number;
    readonly partitions?: number;
  };
  readonly compression?: Codec;
  readonly acks?: 0 | 1 | -1;
  readonly idempotent?: boolean;
  readonly lingerMs?: number;
  readonly batchBytes?: number;
  /** The client's own limit, where it has one. */
  readonly maxRequestBytes?: number;
  readonly timeoutMs?: number;
  /** Settings by the client's own names, where it takes such. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** An offset, an end of the log, or the first record that is at least as young. */
export type Start = number | "earliest" | "latest" | { readonly timestamp: number };

export interface ConsumeCommand {
  readonly topic: string;
  readonly partition?: number;
  readonly from: Start;
  /** Ends the command when so many records were read; without it, the timeout does. */
  readonly count?: number;
  readonly timeoutMs?: number;
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly maxWaitMs?: number;
  /** An event for each record. */
  readonly stream?: boolean;
  readonly config?: Readonly<Record<string, unknown>>;
}

export interface OffsetCommand {
  readonly topic: string;
  readonly partition?: number;
  /** A number is a timestamp in milliseconds. */
  readonly at: "earliest" | "latest" | "maxTimestamp" | number;
}

/** A member of a group; it reads until it is stopped. Events: assigned, revoked, lost, records, committed, warning. */
export interface MemberCommand {
  readonly groupId: string;
  readonly topics?: readonly string[];
  readonly pattern?: string;
  readonly clientId?: string;
  readonly protocol?: "classic" | "consumer";
  /**
   * Of the classic protocol: range, roundrobin, sticky, cooperative-sticky (franz-go: several, with commas, the one liked
   * best first); of the newer: uniform, range.
   */
  readonly strategy?: string;
  readonly instanceId?: string;
  readonly sessionTimeoutMs?: number;
  readonly heartbeatMs?: number;
  readonly rebalanceTimeoutMs?: number;
  readonly metadataMaxAgeMs?: number;
  /** After each batch of records (default), by the client itself from time to time, or never. */
  readonly commit?: "each" | "auto" | "none";
  readonly config?: Readonly<Record<string, unknown>>;
}

/** One transaction of a `transact` command. */
export interface TransactionSpec extends Pick<ProduceCommand, "topic" | "records" | "generate"> {
  /** Commits without it. */
  readonly end?: "commit" | "abort";
  /** Tells "held" when everything is written, and ends when the command is stopped. */
  readonly hold?: boolean;
}

/** A transactional producer; events: held, ended. */
export interface TransactCommand {
  readonly transactionalId: string;
  readonly transactionTimeoutMs?: number;
  readonly transactions: readonly TransactionSpec[];
  readonly config?: Readonly<Record<string, unknown>>;
}

/**
 * Copies a topic into another, record by record to the same partition, with its group's offsets in the transactions,
 * until it is stopped. Events: progress (records committed so far), aborted, warning.
 */
export interface CopyCommand {
  readonly transactionalId: string;
  readonly groupId: string;
  readonly topic: string;
  readonly output: string;
  /** At most so many records a transaction. */
  readonly batch?: number;
  /** Aborts each such transaction instead, and does it again. */
  readonly abortEvery?: number;
  readonly transactionTimeoutMs?: number;
  readonly sessionTimeoutMs?: number;
  readonly protocol?: MemberCommand["protocol"];
}

export type ClientEvent =
  | { readonly event: "progress"; readonly acked: number }
  | { readonly event: "positioned" | "record"; readonly offset: number }
  | {
    readonly event: "assigned" | "revoked" | "lost";
    /** When, in ms since 1970 on this machine; of Go clients only. */
    readonly at?: number;
    readonly partitions: readonly (readonly [topic: string, partition: number])[];
  }
  | {
    readonly event: "records";
    readonly records: readonly (readonly [topic: string, partition: number, offset: number, key: string])[];
  }
  | { readonly event: "committed" | "held" | "ended" | "aborted" }
  | { readonly event: "warning"; readonly message: string };

/** What a client says went wrong. */
export class ClientError extends Error {
  /** The broker's error code; null where the client failed by itself. */
  readonly code: number | null;

  constructor(error: { code: number | null; name: string; message: string }) {
    super(`${error.name}: ${error.message}`);
    this.name = "ClientError";
    this.code = error.code;
  }
}

/** A command that takes longer has lost its way: the client ignored its own time-outs. */
const longestCommandMs = 150_000;

/** A command that runs: its events as they come, and its end. */
export interface Running<Result> {
  readonly id: number;
  readonly result: Promise<Result>;
  /** Resolves at the first event, past or future, that `wanted` accepts; rejects if the command ends without it. */
  until(wanted: (event: ClientEvent) => boolean): Promise<ClientEvent>;
  readonly events: readonly ClientEvent[];
}

interface Waiting {
  readonly events: ClientEvent[];
  readonly watchers: Set<() => void>;
  ended: boolean;
  settle(line: { result?: unknown; error?: { code: number | null; name: string; message: string } }): void;
}

export class ClientProcess {
  readonly part: Part;
  readonly pid: number;
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #finished: Promise<unknown>;
  readonly #errors: string[] = [];
  #nextId = 1;

  /** Null where the client is not installed. */
  static start(part: Part, bootstrap: string): ClientProcess | null {
    const command = clientCommand(part);
    return command === null ? null : new ClientProcess(part, [...command, bootstrap]);
  }

  private constructor(part: Part, [program, ...args]: string[]) {
    this.part = part;
    this.#child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped", stderr: "piped" }).spawn();
    this.pid = this.#child.pid;
    this.#stdin = this.#child.stdin.getWriter();
    this.#finished = Promise.all([this.#readLines(), this.#readErrors(), this.#child.status]);
  }

  produce(command: ProduceCommand): Promise<{ acked: [partition: number, offset: number][] }> {
    return this.start<{ acked: [number, number][] }>("produce", command).result;
  }

  consume(command: ConsumeCommand): Promise<{ records: ReadRecord[]; position: number }> {
    return this.start<{ records: ReadRecord[]; position: number }>("consume", command).result;
  }

  /** Reads `count` records with text keys; what is returned is less to carry than `consume` returns. */
  async consumeKeys(command: ConsumeCommand): Promise<{ offset: number; key: string }[]> {
    const read = this.start<{ records: [number, string][] }>("consume", { ...command, keysOnly: true });
    return (await read.result).records.map(([offset, key]) => ({ offset, key }));
  }

  /**
   * Reads all partitions of a topic from their beginning with one consumer. Progress events tell how many records came.
   * Not every client's program has it.
   */
  consumeTopic(
    command: { topic: string; partitions: number; count: number; timeoutMs?: number },
  ): Running<{ records: [partition: number, offset: number, key: string][] }> {
    return this.start("consumeTopic", command);
  }

  offset(command: OffsetCommand): Promise<{ offset: number | null; timestamp: number | null }> {
    return this.start<{ offset: number | null; timestamp: number | null }>("offset", command).result;
  }

  createTopic(topic: string, partitions = 1, configs: Record<string, string> = {}): Promise<unknown> {
    return this.start("createTopic", { topic, partitions, configs }).result;
  }

  deleteTopic(topic: string): Promise<unknown> {
    return this.start("deleteTopic", { topic }).result;
  }

  /** Not every client tells the topic id. */
  describeTopic(topic: string): Promise<{ partitions: number; topicId?: string }> {
    return this.start<{ partitions: number; topicId?: string }>("describeTopic", { topic }).result;
  }

  async topicConfig(topic: string, name: string): Promise<string> {
    return (await this.start<{ value: string }>("topicConfig", { topic, name }).result).value;
  }

  async listTopics(): Promise<string[]> {
    return (await this.start<{ topics: string[] }>("listTopics", {}).result).topics;
  }

  member(command: MemberCommand): Running<unknown> {
    return this.start("member", command);
  }

  transact(command: TransactCommand): Running<unknown> {
    return this.start("transact", command);
  }

  copy(command: CopyCommand): Running<{ copied: number }> {
    return this.start("copy", command);
  }

  /** Lets a command end that runs until it is told to. */
  async stop<Result>(running: Running<Result>): Promise<Result> {
    await this.start("stop", { target: running.id }).result;
    return await running.result;
  }

  /** Ends a member: it leaves its group as its client does when it is closed. */
  async stopMember(member: Running<unknown>): Promise<void> {
    await this.start("stop", { target: member.id }).result;
    await member.result;
  }

  /** The committed offset of a group; with `commitOffset`, commits first. */
  committed(
    command: { groupId: string; topic: string; partition?: number; commitOffset?: number; metadata?: string },
  ): Promise<{ offset: number | null; metadata: string | null }> {
    return this.start<{ offset: number | null; metadata: string | null }>("committed", command).result;
  }

  /** Starts a command. */
  start<Result>(op: string, fields: object): Running<Result> {
    const id = this.#nextId++;
    const events: ClientEvent[] = [];
    const watchers = new Set<() => void>();
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    // Whoever waits for an event only must not be hit by the end as an unhandled rejection.
    promise.catch(() => {});
    const timer = op === "member" ? undefined : setTimeout(() => this.#giveUp(op), longestCommandMs);
    const waiting: Waiting = {
      events,
      watchers,
      ended: false,
      settle: (line) => {
        clearTimeout(timer);
        waiting.ended = true;
        if (line.error) reject(new ClientError(line.error));
        else resolve(line.result as Result);
      },
    };
    this.#waiting.set(id, waiting);
    const line = JSON.stringify({ id, op, ...fields }) + "\n";
    this.#stdin.write(new TextEncoder().encode(line)).catch(() => {});
    return { id, events, result: promise, until: (wanted) => waitForEvent(waiting, wanted, promise) };
  }

  /** Ends the process, and with it every command, each with an error that says why. */
  #giveUp(op: string): void {
    this.#errors.push(`The command ${op} did not end within ${longestCommandMs} ms.`);
    this.signal("SIGKILL");
  }

  /** SIGSTOP and SIGCONT pause and resume; SIGKILL ends without a farewell to the broker. */
  signal(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Ends the process, whatever it is doing, and waits for that. */
  async close(): Promise<void> {
    await this.#stdin.close().catch(() => {});
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It ended by itself.
    }
    await this.#finished;
  }

  async #readLines(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (line !== "") this.#receive(line);
    }
    for (const waiting of this.#waiting.values()) {
      const said = this.#errors.join("").trim();
      waiting.settle({ error: { code: null, name: "ProcessEnded", message: `${this.part} ended. ${said}` } });
      for (const wake of waiting.watchers) wake();
    }
    this.#waiting.clear();
  }

  #receive(text: string): void {
    const line = JSON.parse(text);
    const waiting = this.#waiting.get(line.id);
    if (!waiting) throw new Error(`${this.part} answers a command that does not run: ${text}`);
    if (line.event === undefined) {
      this.#waiting.delete(line.id);
      waiting.settle(line);
    } else {
      waiting.events.push(line);
    }
    for (const wake of waiting.watchers) wake();
  }

  async #readErrors(): Promise<void> {
    const show = Deno.env.get("KAAS_TEST_TRACE") !== undefined;
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#errors.push(text);
      if (this.#errors.length > 100) this.#errors.shift();
      if (show) console.error(`${this.part}: ${text}`);
    }
  }
}

async function waitForEvent(
  waiting: Waiting,
  wanted: (event: ClientEvent) => boolean,
  end: Promise<unknown>,
): Promise<ClientEvent> {
  for (let seen = 0;;) {
    for (; seen < waiting.events.length; seen++) {
      if (wanted(waiting.events[seen])) return waiting.events[seen];
    }
    if (waiting.ended) {
      await end;
      throw new Error("the command ended without the event that was waited for");
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.watchers.add(resolve);
    await promise;
    waiting.watchers.delete(resolve);
  }
}
