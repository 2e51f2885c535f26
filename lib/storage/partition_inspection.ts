/**
 * What can be said about a partition from the names and sizes of its files and from its small JSON files, and what a
 * takeover would do about it. Opens no .log and no index, changes nothing, and is right while a broker leads the
 * partition: what it shows was so at one moment.
 */

import type { Disk } from "../disk/disk.ts";
import { type PartitionState, segmentStem } from "../partition_state.ts";
import { MANIFEST_NAME, readManifest } from "./manifest.ts";
import { readPartitionFolder } from "./partition_folder.ts";
import { CHECKPOINT_NAME, readCheckpoint } from "./recovery_checkpoint.ts";
import type { SideFile } from "./side_file.ts";

/** One segment as its names tell it. */
export interface InspectedSegment {
  /** File name without its ending. */
  readonly stem: string;
  readonly epoch: number;
  readonly baseOffset: number;
  /** Exclusive; where the next live segment begins. Null for the active segment (only reading it would tell) and dead ones. */
  readonly endOffset: number | null;
  /** `active`: appended to. `dead`: overtaken by a segment of a higher epoch; never served. */
  readonly state: "sealed" | "active" | "dead";
  readonly logBytes: number;
  /** Null: there is no such file. */
  readonly indexBytes: number | null;
  readonly timeIndexBytes: number | null;
}

export interface PartitionInspection {
  readonly folder: string;
  /** The highest epoch that manifest or segments show; null when nothing does. */
  readonly epoch: number | null;
  readonly segments: readonly InspectedSegment[];
  /** Names that belong to no partition. They are left alone. */
  readonly foreign: readonly string[];
  /** Index files without their segment, what takeovers cut off and kept, and replacements that were never finished. */
  readonly leftovers: readonly string[];
  readonly liveBytes: number;
  readonly deadBytes: number;
  /** From the manifest, or where the first live segment begins, whichever is later. */
  readonly logStartOffset: number;
  /** From the manifest; null when it says nothing. */
  readonly highWatermark: number | null;
  /** From which byte on of which segment a takeover would check; null without a checkpoint. */
  readonly checkpoint: { readonly segmentBase: number; readonly position: number } | null;
  /** What does not fit together, a sentence each. */
  readonly findings: readonly string[];
  /** What a takeover would do, in its order, a sentence each. */
  readonly takeover: readonly string[];
}

/** Looks at the partition in `folder`. @throws {DiskError} when the folder or a side file cannot be read */
export async function inspectPartition(disk: Disk, folder: string): Promise<PartitionInspection> {
  const { state } = await readPartitionFolder(disk, folder);
  const manifestFile = await readManifest(disk, folder);
  const checkpointFile = await readCheckpoint(disk, folder);
  const manifest = manifestFile.kind === "present" ? manifestFile.value : null;
  const checkpoint = checkpointFile.kind === "present" ? checkpointFile.value : null;
  const segments = inspectedSegments(state);
  const live = segments.filter((segment) => segment.state !== "dead");
  const epochs = [...segments.map((segment) => segment.epoch), ...(manifest === null ? [] : [manifest.epoch])];
  const facts = {
    folder,
    epoch: epochs.length === 0 ? null : Math.max(...epochs),
    segments,
    foreign: state.foreign,
    leftovers: [...state.orphans, ...state.cutAside, ...state.temporaries].map((file) => file.name),
    liveBytes: sum(live),
    deadBytes: sum(segments) - sum(live),
    logStartOffset: Math.max(manifest?.logStartOffset ?? 0, live[0]?.baseOffset ?? 0),
    highWatermark: manifest?.highWatermark ?? null,
    checkpoint: checkpoint === null ? null : { segmentBase: checkpoint.segmentBase, position: checkpoint.position },
  };
  const sideFiles = [
    ...sideFileFindings(MANIFEST_NAME, manifestFile),
    ...sideFileFindings(CHECKPOINT_NAME, checkpointFile),
  ];
  return {
    ...facts,
    findings: [...sideFiles, ...segmentFindings(facts, manifest?.logStartOffset ?? 0)],
    takeover: takeoverPlan(facts),
  };
}

type Facts = Omit<PartitionInspection, "findings" | "takeover">;

function inspectedSegments({ segments, live }: PartitionState): InspectedSegment[] {
  return segments.map((segment) => ({
    stem: segment.stem,
    epoch: segment.epoch,
    baseOffset: segment.baseOffset,
    endOffset: segment.endOffset,
    state: !segment.live ? "dead" : segment === live.at(-1) ? "active" : "sealed",
    logBytes: segment.logBytes,
    indexBytes: segment.indexBytes,
    timeIndexBytes: segment.timeIndexBytes,
  }));
}

function sum(segments: readonly InspectedSegment[]): number {
  return segments.reduce((bytes, segment) => bytes + segment.logBytes, 0);
}

function sideFileFindings(name: string, file: SideFile<unknown>): string[] {
  if (file.kind === "present") return [];
  return [file.kind === "damaged" ? `${name} is damaged: ${file.why}` : `${name} is missing`];
}

function segmentFindings(facts: Facts, manifestStart: number): string[] {
  const findings: string[] = [];
  const live = facts.segments.filter((segment) => segment.state !== "dead");
  const [first] = live;
  const active = live.at(-1);
  if (first === undefined || active === undefined) {
    findings.push("there is no live segment");
    return findings;
  }
  if (first.baseOffset > manifestStart) {
    findings.push(`gap: offsets ${manifestStart} to ${first.baseOffset - 1} are in no segment`);
  }
  for (const segment of live) {
    if (segment.endOffset !== null && segment.logBytes === 0 && segment.endOffset > segment.baseOffset) {
      findings.push(`gap: offsets ${segment.baseOffset} to ${segment.endOffset - 1}: segment ${segment.stem} is empty`);
    }
    if (segment.endOffset !== null && segment.logBytes > 0 && segment.indexBytes === null) {
      findings.push(`segment ${segment.stem} has no index`);
    }
  }
  if (facts.highWatermark !== null && facts.highWatermark < active.baseOffset) {
    findings.push(
      `the manifest is older than the segments: high watermark ${facts.highWatermark}, active segment at ${active.baseOffset}`,
    );
  }
  const { checkpoint } = facts;
  if (checkpoint !== null) {
    const named = live.find((segment) => segment.baseOffset === checkpoint.segmentBase);
    if (named === undefined) findings.push(`the checkpoint names segment ${checkpoint.segmentBase}, which is not live`);
    else if (named.logBytes < checkpoint.position) {
      findings.push(
        `the checkpoint says ${checkpoint.position} bytes of ${named.stem} are good, it has ${named.logBytes}`,
      );
    }
  }
  return findings;
}

/** The steps of a takeover as far as names and sizes decide them. */
function takeoverPlan(facts: Facts): string[] {
  const live = facts.segments.filter((segment) => segment.state !== "dead");
  const active = live.at(-1);
  const epoch = (facts.epoch ?? -1) + 1;
  const steps: string[] = [];
  const from = scanStart(live, facts.checkpoint);
  const scanned = live.slice(from.segment).reduce((bytes, { logBytes }) => bytes + logBytes, 0) - from.position;
  if (scanned > 0) {
    steps.push(
      `check ${scanned} bytes from byte ${from.position} of ${live[from.segment].stem} on, and cut a torn tail`,
    );
  } else steps.push("check nothing: the checkpoint stands at the end");
  if (active === undefined) steps.push(`begin a segment of epoch ${epoch} or higher`);
  else if (active.logBytes === 0) {
    const stem = segmentStem(epoch, active.baseOffset);
    steps.push(`begin ${stem} (epoch ${epoch} or higher) in place of the empty ${active.stem}`);
  } else steps.push(`seal ${active.stem} and begin a segment of epoch ${epoch} or higher at the log's end`);
  const below = live.filter((segment) => segment.endOffset !== null && segment.endOffset <= facts.logStartOffset);
  if (below.length > 0) steps.push(`remove ${below.length} segments below the log's start`);
  const dead = facts.segments.filter((segment) => segment.state === "dead");
  if (dead.length > 0) steps.push(`remove dead segments: ${dead.map((segment) => segment.stem).join(", ")}`);
  if (facts.foreign.length > 0) steps.push(`leave foreign names alone: ${facts.foreign.length}`);
  return steps;
}

function scanStart(
  live: readonly InspectedSegment[],
  checkpoint: PartitionInspection["checkpoint"],
): { segment: number; position: number } {
  if (checkpoint === null) return { segment: 0, position: 0 };
  const segment = live.findLastIndex(({ baseOffset }) => baseOffset <= checkpoint.segmentBase);
  if (segment === -1) return { segment: 0, position: 0 };
  const { baseOffset, logBytes } = live[segment];
  const fits = baseOffset === checkpoint.segmentBase && checkpoint.position <= logBytes;
  return { segment, position: fits ? checkpoint.position : 0 };
}
