/**
 * What the commands that talk to brokers have in common: where the cluster is, how long to wait, and how results are
 * shown.
 */

import { type Command, InvalidArgumentError } from "@commander-js/extra-typings";
import { ClusterClient, type HostAndPort } from "../client/cluster_client.ts";
import type { CommandContext } from "../command_context.ts";
import { UsageError } from "../exit.ts";
import { type Column, textTable } from "../text_table.ts";

/** What every command of this kind is given. */
export interface ConnectedOptions {
  readonly bootstrap?: string | undefined;
  readonly timeout?: number | undefined;
  readonly json?: true | undefined;
}

const DEFAULT_BOOTSTRAP = "localhost:9092";
const DEFAULT_TIMEOUT_S = 15;

/** The command with `--bootstrap`, `--timeout` and `--json`. */
export function connected<Args extends unknown[], Opts extends Record<string, unknown>>(command: Command<Args, Opts>) {
  return command
    .option(
      "--bootstrap <HOST:PORT>",
      `broker to ask, or several with commas (default: ${DEFAULT_BOOTSTRAP}; environment: KAAS_BOOTSTRAP)`,
    )
    .option("--timeout <SECONDS>", `how long to wait for an answer (default: ${DEFAULT_TIMEOUT_S})`, positiveNumber)
    .option("--json", "print JSON instead of tables");
}

/** Runs `run` with a client of the cluster that the options name. */
export async function withCluster<T>(
  { environment, giveUp }: CommandContext,
  options: ConnectedOptions,
  run: (client: ClusterClient) => Promise<T>,
): Promise<T> {
  const given = options.bootstrap ?? (environment.KAAS_BOOTSTRAP || DEFAULT_BOOTSTRAP);
  const place = options.bootstrap === undefined && environment.KAAS_BOOTSTRAP ? "KAAS_BOOTSTRAP" : "--bootstrap";
  const bootstrap = given.split(",").map((text) => hostAndPort(text.trim(), place));
  await giveUp("env", "write", "sys");
  const client = new ClusterClient({ bootstrap, timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_S) * 1000 });
  try {
    return await run(client);
  } finally {
    client.close();
  }
}

/** Says a result: as JSON where that was asked for, else as `text` has it. */
export function say<T>(
  { terminal }: CommandContext,
  options: ConnectedOptions,
  result: T,
  text: (result: T) => string,
) {
  terminal.out(options.json === true ? `${JSON.stringify(result, null, 2)}\n` : text(result));
}

/** A table of columns by title; those whose titles begin with `#` hold numbers and go to the right. */
export function table(titles: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const columns: Column[] = titles.map((title) =>
    title.startsWith("#") ? { title: title.slice(1), align: "right" } : { title, align: "left" }
  );
  return textTable(columns, rows.map((row) => row.map((cell) => cell === null ? "-" : String(cell))));
}

/** `1 topic`, `2 topics`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Puts values of a repeatable option into a list. */
export function collect(value: string, previous: string[] | undefined): string[] {
  return [...previous ?? [], value];
}

/** The parser of an option that takes an integer of at least `min`. */
export function integerFrom(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isSafeInteger(value) && value >= min) return value;
    throw new InvalidArgumentError(`Expected an integer of at least ${min}.`);
  };
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("Expected a number of seconds, such as 30.");
}

function hostAndPort(text: string, place: string): HostAndPort {
  const match = /^(?:\[([0-9A-Fa-f:.%]+)\]|([^[\]:\s]+))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3] ?? 9092);
  if (match === null || port > 65535) {
    throw new UsageError([
      `${place}: ${JSON.stringify(text)} is not accepted, expected HOST:PORT, such as localhost:9092`,
    ]);
  }
  return { host: match[1] ?? match[2], port };
}
