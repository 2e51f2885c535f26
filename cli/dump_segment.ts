/**
 * `kaas admin dump-segment FILE`: the batches of one segment file, in file order, and with `--records` what is in them.
 * Reads the file as it is at that moment and changes nothing. Bytes that are no valid batch are shown with their place
 * and reason, and make the command fail; a batch that the file cuts short at its end does not: a broker may be writing.
 */

import { Command } from "@commander-js/extra-typings";
import { DiskError } from "../lib/disk/disk.ts";
import { realDisk } from "../lib/disk/real_disk.ts";
import { sizeInBytes } from "../lib/records/batch.ts";
import { RecordsFault } from "../lib/records/fault.ts";
import { type BatchRecord, recordsOf } from "../lib/records/record.ts";
import { walkSegmentFile } from "../lib/storage/segment_walk.ts";
import { type BatchFacts, batchFacts } from "./batch_facts.ts";
import type { CommandContext, EndWith } from "./command_context.ts";
import { CommandFailure, exitCode } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

export function dumpSegmentCommand({ terminal, giveUp }: CommandContext, endWith: EndWith) {
  return new Command("dump-segment")
    .description("Print the batches of a segment file, and its records with --records.")
    .argument("<FILE>", "a .log file of a partition")
    .option("--records", "print the records of each batch too")
    .option("--json", "print one JSON object a line instead of text")
    .action(async (path, options) => {
      await giveUp("env", "net", "write", "sys");
      const dump = new Dump(terminal, options.json === true, options.records === true);
      try {
        const range = { minOffset: 0, endOffset: Infinity };
        await walkSegmentFile(
          realDisk,
          path,
          range,
          (bytes, start, position) => dump.batch(bytes.subarray(start, start + sizeInBytes(bytes, start)), position),
          (damage) => dump.damage(damage),
        );
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        throw new CommandFailure(`cannot read ${path}: ${error.kind}`);
      }
      if (dump.failed) endWith(exitCode.failure);
    });
}

/** Longest key, value or header shown in text; JSON shows all of it. */
const SHOWN_BYTES = 120;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

class Dump {
  failed = false;

  constructor(
    private readonly terminal: Terminal,
    private readonly json: boolean,
    private readonly withRecords: boolean,
  ) {}

  batch(bytes: Uint8Array, position: number): void {
    const facts = batchFacts(bytes, position);
    const records = this.withRecords ? recordsOf(bytes) : [];
    const fault = records instanceof RecordsFault ? records.message : null;
    if (fault !== null) this.failed = true;
    const list = records instanceof RecordsFault ? [] : records;
    if (this.json) {
      const contents = fault !== null ? { fault } : this.withRecords ? { records: list.map(recordJson) } : {};
      this.terminal.out(`${JSON.stringify({ ...facts, ...contents })}\n`);
      return;
    }
    this.terminal.out(`${batchLine(facts)}\n`);
    if (fault !== null) this.terminal.out(`  records cannot be read: ${fault}\n`);
    for (const record of list) this.terminal.out(`  ${recordLine(record)}\n`);
  }

  damage(damage: { position: number; bytes: number; kind: string; reason: string }): void {
    if (damage.kind !== "tail") this.failed = true;
    const { position, bytes, kind, reason } = damage;
    if (this.json) this.terminal.out(`${JSON.stringify({ position, sizeBytes: bytes, damage: kind, reason })}\n`);
    else this.terminal.out(`position ${position}  ${bytes} bytes are no valid batch (${kind}): ${reason}\n`);
  }
}

function batchLine(facts: BatchFacts): string {
  const words = [
    `position ${facts.position}`,
    `offsets ${facts.baseOffset}–${facts.lastOffset}`,
    `${facts.recordsCount} records`,
    `${facts.sizeBytes} bytes`,
    `epoch ${facts.leaderEpoch}`,
    `${facts.timestampType} ${timeText(facts.baseTimestamp)} to ${timeText(facts.maxTimestamp)}`,
    facts.compression,
  ];
  if (facts.producerId >= 0) {
    words.push(`producer ${facts.producerId} epoch ${facts.producerEpoch} sequence ${facts.baseSequence}`);
  }
  if (facts.isTransactional) words.push("transactional");
  if (facts.isControl) words.push(facts.marker === null ? "control" : `${facts.marker} marker`);
  if (facts.hasDeleteHorizon) words.push("delete horizon");
  return words.join("  ");
}

function timeText(ms: number): string {
  if (ms < 0) return String(ms);
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? `${ms} ms` : time.toISOString();
}

function recordLine({ offset, timestamp, key, value, headers }: BatchRecord): string {
  const shown = headers.map((header) => `${JSON.stringify(header.key)}: ${bytesText(header.value)}`);
  return `offset ${offset}  ${timeText(timestamp)}  key ${bytesText(key)}  value ${bytesText(value)}` +
    (shown.length === 0 ? "" : `  headers {${shown.join(", ")}}`);
}

/** Text in quotes where the bytes are text, else hexadecimal digits; cut short. */
function bytesText(bytes: Uint8Array | null): string {
  if (bytes === null) return "null";
  const shown = bytes.subarray(0, SHOWN_BYTES);
  const rest = bytes.length > SHOWN_BYTES ? `… (${bytes.length} bytes)` : "";
  const text = textOf(bytes);
  if (text !== null) return JSON.stringify(rest === "" ? text : text.slice(0, SHOWN_BYTES)) + rest;
  return `0x${Array.from(shown, (byte) => byte.toString(16).padStart(2, "0")).join("")}${rest}`;
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

function recordJson({ offset, timestamp, key, value, headers }: BatchRecord): unknown {
  return {
    offset,
    timestamp,
    key: bytesJson(key),
    value: bytesJson(value),
    headers: headers.map((header) => ({ key: header.key, value: bytesJson(header.value) })),
  };
}

/** Text as itself; bytes that are no text as `{"base64": …}`. */
function bytesJson(bytes: Uint8Array | null): unknown {
  if (bytes === null) return null;
  const text = textOf(bytes);
  return text ?? { base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) };
}
