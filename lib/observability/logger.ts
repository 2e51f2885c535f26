/**
 * Structured logging: an event in plain words and fields beside it. On a terminal a line reads
 * `12:04:05.123 INFO  listening  name=PLAINTEXT port=9092`; everywhere else it is one JSON object a line, with `time`
 * (RFC 3339, UTC), `level`, `message` and the fields.
 *
 * Invariants: one event is one line, whatever its fields hold; logging never throws and never stops the broker: a line
 * that the output does not take is dropped, and the next line that gets through says how many were.
 */

import type { Clock } from "../clock.ts";

/** Levels from the most talkative to the least. */
export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** What may stand beside a message. An `Error` is written with its causes. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What lib/ sees of logging. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Whether lines of this level are written: spares the making of costly fields. */
  writes(level: LogLevel): boolean;
  /** A logger that adds these fields to every line. */
  with(fields: LogFields): Logger;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly clock: Pick<Clock, "wallMs">;
  /** Takes one whole line with its end; may throw. */
  readonly write: (line: string) => void;
}

/** A logger that hands each line to `options.write`. */
export function createLogger(options: LoggerOptions): Logger {
  const sink: Sink = { ...options, least: logLevels.indexOf(options.level), dropped: 0 };
  return loggerOn(sink, {});
}

/** A logger that writes nothing. */
export const silentLogger: Logger = createLogger({
  level: "error",
  format: "json",
  clock: { wallMs: () => 0 },
  write: () => {},
});

interface Sink extends LoggerOptions {
  readonly least: number;
  dropped: number;
}

function loggerOn(sink: Sink, base: LogFields): Logger {
  const at = (level: LogLevel) => {
    const rank = logLevels.indexOf(level);
    return (message: string, fields?: LogFields) => {
      if (rank >= sink.least) emit(sink, level, message, { ...base, ...fields });
    };
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    writes: (level) => logLevels.indexOf(level) >= sink.least,
    with: (fields) => loggerOn(sink, { ...base, ...fields }),
  };
}

function emit(sink: Sink, level: LogLevel, message: string, fields: LogFields): void {
  try {
    if (sink.dropped > 0) {
      sink.write(lineOf(sink, "warn", "log lines were dropped: the output did not take them", { lines: sink.dropped }));
      sink.dropped = 0;
    }
    sink.write(lineOf(sink, level, message, fields));
  } catch {
    sink.dropped++;
  }
}

function lineOf(sink: Sink, level: LogLevel, message: string, fields: LogFields): string {
  const time = new Date(sink.clock.wallMs()).toISOString();
  if (sink.format === "json") {
    const entry: Record<string, unknown> = { time, level, message };
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined) entry[key in entry ? `${key}_` : key] = plain(value);
    }
    return `${oneLine(JSON.stringify(entry))}\n`;
  }
  let line = `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${oneLine(message)}`;
  let gap = "  ";
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    line += `${gap}${key}=${fieldText(value)}`;
    gap = " ";
  }
  return `${line}\n`;
}

/** A value as JSON can hold it: errors with their causes as text, big integers as digits, cycles as words. */
function plain(value: unknown): unknown {
  if (value instanceof Error) return errorText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  try {
    return JSON.parse(JSON.stringify(value, (_, part) => part instanceof Error ? errorText(part) : bigText(part)));
  } catch {
    return String(value);
  }
}

function bigText(part: unknown): unknown {
  return typeof part === "bigint" ? part.toString() : part;
}

/** Name and message of an error and of everything that caused it. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at !== undefined && at !== null && depth < 8; depth++) {
    parts.push(at instanceof Error ? `${at.name}: ${at.message}` : String(at));
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(", caused by ");
}

/** Text that needs no quotes stands as it is; anything else as JSON, so that control characters are escaped. */
function fieldText(value: unknown): string {
  const simple = plain(value);
  if (typeof simple !== "string") return oneLine(JSON.stringify(simple) ?? String(simple));
  return /^[^\s"=\p{C}]+$/u.test(simple) ? simple : oneLine(JSON.stringify(simple));
}

/** Escapes what some reader takes for an end of line, as JSON would write it. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
