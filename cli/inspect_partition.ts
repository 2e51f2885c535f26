/**
 * `kaas admin inspect-partition`: what a partition's folder holds and what a takeover would make of it. It opens no .log
 * and no index unless `--verify` asks for it, changes nothing, and may run while a broker leads the partition.
 */

import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../lib/clock.ts";
import { DiskError } from "../lib/disk/disk.ts";
import { realDisk } from "../lib/disk/real_disk.ts";
import { errorText } from "../lib/observability/logger.ts";
import { parsePartitionKey } from "../lib/partition_state.ts";
import { inspectPartition, type PartitionInspection } from "../lib/storage/partition_inspection.ts";
import { type PartitionVerification, verifyPartition } from "../lib/storage/partition_verification.ts";
import type { CommandContext, EndWith } from "./command_context.ts";
import { CommandFailure, exitCode, UsageError } from "./exit.ts";
import { ProgressBar } from "./progress_bar.ts";
import type { Terminal } from "./terminal.ts";
import { sizeText, textTable } from "./text_table.ts";

export function inspectPartitionCommand(context: CommandContext, endWith: EndWith) {
  return new Command("inspect-partition")
    .description("Show segments, offsets and what a takeover would do, from file names and sizes alone.")
    .argument("<PARTITION>", "TOPIC/PARTITION, such as orders/3, or the path of a partition's folder")
    .option("--data <DIR>", "data folder (default: ./data; environment: KAAS_DATA)")
    .option("--verify", "open the segments too and check every batch")
    .option("--json", "print one JSON object instead of tables")
    .addHelpText("after", "\nExits with 1 when --verify finds corruption.")
    .action(async (partition, options) => {
      const { terminal, environment, giveUp } = context;
      const dataFolder = options.data ?? (environment.KAAS_DATA || undefined);
      await giveUp("env", "net", "write", "sys");
      try {
        const inspection = await inspectPartition(realDisk, await folderOf(partition, dataFolder));
        const verification = options.verify === true ? await verifyWithProgress(inspection, terminal) : null;
        if (options.json === true) sayJson(terminal, inspection, verification);
        else sayText(terminal, inspection, verification);
        if (verification?.damages.some((damage) => damage.isCorruption)) endWith(exitCode.failure);
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        throw new CommandFailure(errorText(error));
      }
    });
}

/** The folder of the partition that the argument names: in the data folder, or itself. */
async function folderOf(partition: string, dataFolder: string | undefined): Promise<string> {
  const key = parsePartitionKey(partition);
  const candidates: string[] = [];
  if (key !== null && !partition.startsWith("/")) {
    candidates.push(`${dataFolder ?? "data"}/${key.topic}/${key.partition}`);
  }
  if (dataFolder === undefined || /^\.{0,2}\//.test(partition)) candidates.push(partition.replace(/(.)\/+$/, "$1"));
  for (const folder of candidates) {
    try {
      if ((await realDisk.stat(folder)).isFolder) return folder;
    } catch (error) {
      if (!(error instanceof DiskError) || error.kind !== "not-found") throw error;
    }
  }
  if (candidates.length === 0) {
    throw new UsageError([`${JSON.stringify(partition)} is not accepted, expected TOPIC/PARTITION, such as orders/3`]);
  }
  throw new CommandFailure(`no partition at ${candidates.join(" nor at ")}`);
}

async function verifyWithProgress(inspection: PartitionInspection, terminal: Terminal): Promise<PartitionVerification> {
  const bar = new ProgressBar(terminal, systemClock, inspection.liveBytes);
  try {
    return await verifyPartition(realDisk, inspection, (bytes, segment) => bar.advance(bytes, `${segment.stem}.log`));
  } finally {
    bar.end();
  }
}

function sayJson(
  terminal: Terminal,
  inspection: PartitionInspection,
  verification: PartitionVerification | null,
): void {
  const all = verification === null ? inspection : { ...inspection, verification };
  terminal.out(`${JSON.stringify(all, null, terminal.outIsTerminal ? 2 : 0)}\n`);
}

function sayText(
  terminal: Terminal,
  inspection: PartitionInspection,
  verification: PartitionVerification | null,
): void {
  const live = inspection.segments.filter((segment) => segment.state !== "dead").length;
  const lines = [
    `folder          ${inspection.folder}`,
    `epoch           ${inspection.epoch ?? "none"}`,
    `segments        ${live} live (${sizeText(inspection.liveBytes)}), ` +
    `${inspection.segments.length - live} dead (${sizeText(inspection.deadBytes)}), ` +
    `${inspection.foreign.length} foreign names`,
    `log start       ${inspection.logStartOffset}`,
    `high watermark  ${inspection.highWatermark ?? "not known"} (manifest)`,
    "",
  ];
  terminal.out(lines.map((line) => `${line}\n`).join(""));
  terminal.out(segmentTable(inspection));
  saySection(terminal, "foreign names", inspection.foreign);
  saySection(terminal, "leftovers", inspection.leftovers);
  saySection(terminal, "findings", inspection.findings);
  saySection(terminal, "a takeover would", inspection.takeover);
  if (verification !== null) sayVerification(terminal, verification);
}

function segmentTable({ segments }: PartitionInspection): string {
  const left = (title: string) => ({ title, align: "left" as const });
  const right = (title: string) => ({ title, align: "right" as const });
  return textTable(
    [
      left("segment"),
      left("state"),
      right("epoch"),
      right("base"),
      right("end"),
      right("log"),
      right("index"),
      right("timeindex"),
    ],
    segments.map((segment) => [
      segment.stem,
      segment.state,
      String(segment.epoch),
      String(segment.baseOffset),
      segment.endOffset === null ? "–" : String(segment.endOffset),
      String(segment.logBytes),
      segment.indexBytes === null ? "missing" : String(segment.indexBytes),
      segment.timeIndexBytes === null ? "missing" : String(segment.timeIndexBytes),
    ]),
  );
}

function saySection(terminal: Terminal, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  terminal.out(`\n${title}\n${lines.map((line) => `  ${line}\n`).join("")}`);
}

function sayVerification(terminal: Terminal, verification: PartitionVerification): void {
  const { batches, records, bytes, logEndOffset, damages, gaps, vanished } = verification;
  saySection(terminal, "verification", [
    `valid: ${batches} batches, ${records} records, ${bytes} bytes; the log ends at offset ${logEndOffset}`,
    ...gaps.map((gap) => `offsets ${gap.firstOffset} to ${gap.endOffset - 1} are in no batch`),
    ...vanished.map((stem) => `${stem} was removed meanwhile`),
    ...damages.map((damage) =>
      `${damage.isCorruption ? "CORRUPT" : "unfinished write"}: ${damage.segment}.log at byte ${damage.position}, ` +
      `${damage.bytes} bytes, offset ${damage.expectedOffset}: ${damage.reason}`
    ),
    damages.some((damage) => damage.isCorruption) ? "corruption was found" : "no corruption was found",
  ]);
}
