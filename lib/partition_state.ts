/**
 * What a partition is, from nothing but the names and sizes of the files in its folder. Pure; opens nothing, imports
 * nothing. Broker, controller and admin all read a partition by these rules.
 *
 *     <leader epoch, 8 hex>-<base offset, 20 decimal>.log   record batches; .index .timeindex .txnindex of the same stem
 *     <stem>.log.cut-<leader epoch>                         what a takeover cut off and kept aside
 *     manifest.json  producer-state.snapshot  recovery-checkpoint.json  cleaner-checkpoint.json
 *     .<name>.<writer>-<n>.tmp                              a replacement that was being written
 *
 * Names are taken strictly: anything else is foreign, reported and never guessed at.
 *
 * Rules, in which lie the invariants of the live segments (in order: base offsets rise strictly, epochs never fall):
 * - a segment whose base offset is at or past that of a segment with a higher epoch is dead: a deposed leader made it,
 *   or it was empty when it was replaced;
 * - a live segment ends where the next live one begins. What it holds at or past that offset does not count.
 */

/** Leader epochs travel as int32. */
const MAX_EPOCH = 0x7fff_ffff;

/** The file kinds that a segment has. */
export const SEGMENT_SUFFIXES = ["log", "index", "timeindex", "txnindex"] as const;
export type SegmentSuffix = (typeof SEGMENT_SUFFIXES)[number];

/** Names of the small state files beside the segments. */
export const SIDE_FILES = [
  "manifest.json",
  "producer-state.snapshot",
  "recovery-checkpoint.json",
  "cleaner-checkpoint.json",
] as const;
export type SideFileName = (typeof SIDE_FILES)[number];

/** Bytes of one entry of an index file; such a file holds whole entries only. */
export const INDEX_ENTRY_BYTES = { index: 8, timeindex: 12 } as const;

/** A segment's identity. */
export interface SegmentName {
  readonly epoch: number;
  readonly baseOffset: number;
}

/** One file of a folder; `size` in bytes. */
export interface NamedFile {
  readonly name: string;
  readonly size: number;
}

/** One segment, by the names and sizes of its files. */
export interface SegmentState extends SegmentName {
  /** Name of its files without the suffix. */
  readonly stem: string;
  readonly live: boolean;
  /** Exclusive: where the next live segment begins; null for the last one, which ends where its batches do. */
  readonly endOffset: number | null;
  /** What ends it: the next segment of its own leader, or the first of a later one; null for the last and the dead. */
  readonly endedBy: "roll" | "takeover" | null;
  readonly logBytes: number;
  /** Null where there is no such file. */
  readonly indexBytes: number | null;
  readonly timeIndexBytes: number | null;
  readonly abortedIndexBytes: number | null;
}

/** A partition, by its folder's names and sizes. */
export interface PartitionState {
  /** By base offset, then epoch; live and dead ones. */
  readonly segments: readonly SegmentState[];
  /** The live ones, in log order. */
  readonly live: readonly SegmentState[];
  /** Highest epoch of any segment; −1 when there is none. The manifest may know a higher one. */
  readonly epoch: number;
  /** The small state files that are there. */
  readonly sideFiles: readonly NamedFile[];
  /** Index files without a .log file. */
  readonly orphans: readonly NamedFile[];
  /** What takeovers kept aside. */
  readonly cutAside: readonly NamedFile[];
  /** Replacements that were never finished, or are being written now. */
  readonly temporaries: readonly NamedFile[];
  /** Names that are none of kaas's. */
  readonly foreign: readonly string[];
}

/** The common part of a segment's file names. */
export function segmentStem(epoch: number, baseOffset: number): string {
  return `${epoch.toString(16).padStart(8, "0")}-${baseOffset.toString().padStart(20, "0")}`;
}

/** The segment and kind that a file name stands for; null for any other name. */
export function parseSegmentFileName(name: string): (SegmentName & { readonly suffix: SegmentSuffix }) | null {
  const match = /^([0-9a-f]{8})-([0-9]{20})\.(log|index|timeindex|txnindex)$/.exec(name);
  if (match === null) return null;
  const epoch = parseInt(match[1], 16);
  const baseOffset = Number(match[2]);
  if (epoch > MAX_EPOCH || !Number.isSafeInteger(baseOffset)) return null;
  return { epoch, baseOffset, suffix: match[3] as SegmentSuffix };
}

/** Whether a name is that of a replacement under way, or of one that a crash left unfinished. */
export function isTemporaryName(name: string): boolean {
  return /^\..*\.[0-9a-zA-Z]+-[0-9a-z]+\.tmp$/.test(name);
}

/** The name that a takeover keeps the cut part of a segment under. */
export function cutAsideName(logFileName: string, leaderEpoch: number): string {
  return `${logFileName}.cut-${leaderEpoch}`;
}

/** Reads a partition's state off its folder's files, given in any order. */
export function partitionStateOf(files: Iterable<NamedFile>): PartitionState {
  const bySegment = new Map<string, SegmentFiles>();
  const kept = { sideFiles: [] as NamedFile[], cutAside: [] as NamedFile[], temporaries: [] as NamedFile[] };
  const foreign: string[] = [];
  for (const file of files) {
    const parsed = parseSegmentFileName(file.name);
    if (parsed !== null) {
      const stem = file.name.slice(0, file.name.indexOf("."));
      let segment = bySegment.get(stem);
      if (segment === undefined) bySegment.set(stem, segment = { name: parsed, stem, files: new Map() });
      segment.files.set(parsed.suffix, file);
    } else if ((SIDE_FILES as readonly string[]).includes(file.name)) kept.sideFiles.push(file);
    else if (isCutAside(file.name)) kept.cutAside.push(file);
    else if (isTemporaryName(file.name)) kept.temporaries.push(file);
    else foreign.push(file.name);
  }
  const all = [...bySegment.values()];
  const segments = judge(all.filter((segment) => segment.files.has("log")));
  const orphans = all.filter((segment) => !segment.files.has("log")).flatMap((segment) => [...segment.files.values()]);
  return {
    segments,
    live: segments.filter((segment) => segment.live),
    epoch: segments.reduce((highest, segment) => Math.max(highest, segment.epoch), -1),
    sideFiles: kept.sideFiles.sort(byName),
    orphans: orphans.sort(byName),
    cutAside: kept.cutAside.sort(byName),
    temporaries: kept.temporaries.sort(byName),
    foreign: foreign.sort(),
  };
}

interface SegmentFiles {
  readonly name: SegmentName;
  readonly stem: string;
  readonly files: Map<SegmentSuffix, NamedFile>;
}

/** Sorts segments and decides which are live: those in front of which no higher epoch begins. */
function judge(found: SegmentFiles[]): SegmentState[] {
  found.sort((a, b) => a.name.baseOffset - b.name.baseOffset || a.name.epoch - b.name.epoch);
  const dead = new Set<SegmentFiles>();
  let highest = -1; // epoch of the segments in front
  for (let i = 0; i < found.length; i++) {
    const { epoch, baseOffset } = found[i].name;
    const replaced = found[i + 1]?.name.baseOffset === baseOffset;
    if (epoch < highest || replaced) dead.add(found[i]);
    highest = Math.max(highest, epoch);
  }
  const next = new Map<SegmentFiles, SegmentName>();
  let behind: SegmentFiles | null = null;
  for (const segment of found.toReversed()) {
    if (dead.has(segment)) continue;
    if (behind !== null) next.set(segment, behind.name);
    behind = segment;
  }
  return found.map((segment) => describe(segment, !dead.has(segment), next.get(segment)));
}

function describe(segment: SegmentFiles, live: boolean, next: SegmentName | undefined): SegmentState {
  const { name: { epoch, baseOffset }, stem, files } = segment;
  return {
    epoch,
    baseOffset,
    stem,
    live,
    endOffset: next?.baseOffset ?? null,
    endedBy: next === undefined ? null : next.epoch > epoch ? "takeover" : "roll",
    logBytes: files.get("log")!.size,
    indexBytes: files.get("index")?.size ?? null,
    timeIndexBytes: files.get("timeindex")?.size ?? null,
    abortedIndexBytes: files.get("txnindex")?.size ?? null,
  };
}

function isCutAside(name: string): boolean {
  const match = /^(.+\.log)\.cut-(0|[1-9][0-9]*)$/.exec(name);
  return match !== null && parseSegmentFileName(match[1]) !== null;
}

function byName(a: NamedFile, b: NamedFile): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** The topic and partition of `topic/partition`, read from the right (a topic may hold slashes); null for other text. */
export function parsePartitionKey(key: string): { readonly topic: string; readonly partition: number } | null {
  const match = /^(.+)\/(0|[1-9][0-9]{0,9})$/s.exec(key);
  if (match === null) return null;
  const partition = Number(match[2]);
  return partition > 0x7fff_ffff ? null : { topic: match[1], partition };
}
