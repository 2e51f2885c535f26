/**
 * Takeover: from a partition's folder to a log that this broker leads under a given epoch.
 *
 * The durable steps, and what a crash after each leaves, stand in {@link takeOver}; each may be repeated by the next
 * takeover, of this epoch or a higher one, with the same outcome. What only reads is in `recovery_scan.ts`, what decides
 * in `recovery.ts`.
 */

import type { Clock } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode, KafkaError } from "../errors.ts";
import { cutAsideName, isTemporaryName, type PartitionState } from "../partition_state.ts";
import { HEADER_BYTES, maxTimestamp } from "../records/batch.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import type { LogConfig } from "./log_config.ts";
import type { LogParts, StorageLogger } from "./log_state.ts";
import { type Manifest, readManifest, writeManifest } from "./manifest.ts";
import { readPartitionFolder } from "./partition_folder.ts";
import { encodeSnapshot, readSnapshot, writeSnapshot } from "./producer_snapshot.ts";
import { describeDamage, extentOf, type LogExtent, type RecoveryReport } from "./recovery.ts";
import { readCheckpoint, writeCheckpoint } from "./recovery_checkpoint.ts";
import { scanLog, type ScanOutcome } from "./recovery_scan.ts";
import type { StorageResources } from "./resources.ts";
import { Segment } from "./segment.ts";
import { SegmentFile } from "./segment_file.ts";
import type { SideFile } from "./side_file.ts";

/** What a takeover is given. */
export interface Takeover {
  readonly disk: Disk;
  readonly folder: string;
  readonly leaderEpoch: number;
  readonly config: LogConfig;
  readonly clock: Clock;
  readonly logger: StorageLogger;
  readonly resources: StorageResources;
}

/** Bytes copied at a time when a cut tail is kept aside, or bytes are written anew. */
const COPY_BYTES = 1024 * 1024;
/** Bytes at the log's end that a leader may have written and not synced yet. */
const UNDER_WAY_BYTES = 16 * 1024 * 1024;

/**
 * Takes a partition over. When it resolves, everything in the log is durable and the epoch is raised: nothing that a
 * leader of a lower epoch writes from now on is part of the log. Durable, in this order:
 *
 * 1. Damage at the log's end is cut, what may be of use is kept aside. A crash leaves the same damage, or none.
 * 2. What an earlier leader wrote without syncing is synced, names included. A crash leaves an ordinary log of the lower
 *    epoch; one that came after step 3 without this could leave the new segment and take one in front of it.
 * 3. A segment named with this epoch begins where the log ends (one of this epoch is continued). A crash leaves an empty
 *    active segment: the next takeover replaces it. From here on writes of deposed leaders are past their log's end.
 * 4. The manifest carries this epoch, and with its folder's sync the name of step 3 is durable. A crash leaves a log that
 *    was taken over and not written to.
 * 5. Producer snapshot and checkpoint, unless they stand at the log's end already. A crash leaves a longer scan.
 * 6. Segments that are dead, replaced, or below the log's start are removed. A crash leaves some for the next time.
 *
 * @throws {KafkaError} FENCED_LEADER_EPOCH when the volume shows a higher epoch
 * @throws {DiskError} when the volume fails; nothing is open then
 */
export async function takeOver(takeover: Takeover): Promise<{ parts: LogParts; report: RecoveryReport }> {
  const { disk, folder, leaderEpoch, logger } = takeover;
  const notes: string[] = [];
  const { state: found } = await readPartitionFolder(disk, folder);
  const manifest = believed(await readManifest(disk, folder), "manifest", notes);
  refuseIfSuperseded(takeover, found, manifest);
  const segments = segmentsOf(takeover, found);
  const opened = [...segments];
  try {
    const checkpoint = believed(await readCheckpoint(disk, folder), "checkpoint", notes);
    const snapshot = believed(await readSnapshot(disk, folder), "producer snapshot", notes);
    const scan = await scanLog({
      disk,
      segments,
      manifest,
      checkpoint,
      snapshot,
      indexIntervalBytes: takeover.config.indexIntervalBytes,
      nowMs: takeover.clock.wallMs(),
    });
    const kept = segments.slice(0, scan.keptSegments);
    let extent: LogExtent = extentOf({
      data: dataOf(kept),
      lastBaseOffset: segments.at(-1)?.baseOffset ?? 0,
      manifest,
      checkpointHighWatermark: checkpoint?.highWatermark ?? null,
    });
    if (manifest !== null && manifest.highWatermark > extent.logEndOffset) {
      notes.push(`manifest promises offset ${manifest.highWatermark}, the segments end at ${extent.logEndOffset}`);
    }

    await repair(takeover, kept, segments.slice(scan.keptSegments), scan, notes); // step 1
    await syncKept(takeover, kept, scan); // step 2
    const active = await activeSegment(takeover, kept, extent); // step 3
    opened.push(active);
    extent = await withRaisedStart(takeover, extent);
    if (takeover.config.compacts) await fenceCompaction(takeover, kept, found, extent);
    const raised: Manifest = {
      epoch: leaderEpoch,
      highWatermark: extent.logEndOffset,
      logStartOffset: extent.logStartOffset,
      others: manifest?.others ?? {},
    };
    await writeManifest(disk, folder, raised); // step 4
    if (!scan.atCheckpoint) { // step 5
      await writeSideFiles(takeover, kept, active, scan, extent);
    }
    const { live, gone } = partition(kept, active, extent);
    await removeFiles(takeover, gone, found, notes); // step 6
    for (const segment of live) {
      if (segment !== active) segment.file.rest();
    }

    const report = {
      ...extent,
      scannedBytes: scan.scannedBytes,
      damages: scan.damages,
      notes: [...notes, ...scan.notes],
    };
    logReport(logger, folder, report);
    const parts = { ...takeover, ...extent, segments: live, producers: scan.producers, manifest: raised };
    return { parts, report };
  } catch (error) {
    for (const segment of opened) segment.close();
    throw error;
  }
}

/** A side file's content, or null with a note of why it is done without. */
function believed<T>(file: SideFile<T>, name: string, notes: string[]): T | null {
  if (file.kind === "present") return file.value;
  if (file.kind === "damaged") notes.push(`${name} is damaged (${file.why}): done without it`);
  return null;
}

function refuseIfSuperseded({ leaderEpoch }: Takeover, found: PartitionState, manifest: Manifest | null): void {
  const epoch = Math.max(manifest?.epoch ?? -1, found.epoch);
  if (epoch <= leaderEpoch) return;
  throw supersededBy(epoch, leaderEpoch);
}

function supersededBy(epoch: number, leaderEpoch: number): KafkaError {
  return new KafkaError(
    ErrorCode.FENCED_LEADER_EPOCH,
    `cannot take over with epoch ${leaderEpoch}: the volume shows epoch ${epoch}`,
  );
}

/** The live segments as the names tell them; each ends where the next begins. */
function segmentsOf({ disk, folder, resources }: Takeover, found: PartitionState): Segment[] {
  const { live } = found;
  return live.map((name, i) => {
    const extent = { endOffset: name.endOffset ?? Infinity, sizeBytes: name.logBytes };
    const mode = i + 1 === live.length ? "write" : "read";
    const open = (path: string) => SegmentFile.existing(disk, resources.handles, path, mode);
    const segment = new Segment(folder, name, extent, open);
    if (name.abortedIndexBytes === null) segment.aborted = new AbortedTransactions();
    return segment;
  });
}

/** Extent of what the segments hold; null when they hold nothing. */
function dataOf(segments: readonly Segment[]): { startOffset: number; endOffset: number } | null {
  const first = segments.find((segment) => segment.sizeBytes > 0);
  return first === undefined
    ? null
    : { startOffset: first.baseOffset, endOffset: segments[segments.length - 1].endOffset };
}

/**
 * Step 1. Later segments go first: should a crash come in between, the damage is still there to tell why.
 */
async function repair(
  { disk, folder, leaderEpoch, resources }: Takeover,
  kept: readonly Segment[],
  dropped: readonly Segment[],
  scan: ScanOutcome,
  notes: string[],
): Promise<void> {
  for (const segment of dropped.toReversed()) {
    await segment.drain();
    if (segment.sizeBytes > 0) {
      await disk.rename(segment.logPath, cutAsideName(segment.logPath, leaderEpoch));
      notes.push(`${segment.logPath} was kept aside: it follows a damage`);
    }
    await removeSegment(disk, segment, notes);
  }
  const last = kept.at(-1);
  if (scan.cutPosition !== null && last !== undefined) {
    const keepAside = scan.damages.at(-1)?.repair === "cut-aside";
    const file = SegmentFile.existing(disk, resources.handles, last.logPath, "write");
    try {
      if (keepAside) await copyTail(disk, file, scan.cutPosition, cutAsideName(last.logPath, leaderEpoch), notes);
      file.truncateSync(scan.cutPosition);
      await file.sync();
    } finally {
      await file.drain();
    }
  }
  if (dropped.length > 0) await disk.syncFolder(folder);
}

/**
 * Step 2. After a failed sync the next one may succeed without having stored anything, while the bytes still stand in the
 * page cache; and the process that was told of the failure may be gone. So what may not be synced is written anew first:
 * from the checkpoint on, but no more than a leader, which syncs all the time, can have had under way.
 */
async function syncKept(
  { disk, folder, resources }: Takeover,
  kept: readonly Segment[],
  scan: ScanOutcome,
): Promise<void> {
  if (scan.atCheckpoint) return; // everything was synced before that checkpoint was written
  const { firstUnsynced, unsyncedPosition } = scan;
  let restBytes = 0; // of the segments behind
  for (let i = kept.length - 1; i >= firstUnsynced; i--) {
    const segment = kept[i];
    const from = Math.max(i === firstUnsynced ? unsyncedPosition : 0, segment.sizeBytes + restBytes - UNDER_WAY_BYTES);
    restBytes += segment.sizeBytes;
    const file = SegmentFile.existing(disk, resources.handles, segment.logPath, "write");
    try {
      await writeAnew(file, from, segment.sizeBytes);
      await file.sync();
    } finally {
      await file.drain();
    }
  }
  await disk.syncFolder(folder);
}

async function writeAnew(file: SegmentFile, position: number, endPosition: number): Promise<void> {
  file.truncateSync(endPosition);
  const buffer = new Uint8Array(COPY_BYTES);
  for (let at = position; at < endPosition;) {
    const length = await file.read(at, buffer.subarray(0, Math.min(COPY_BYTES, endPosition - at)));
    if (length === 0) throw new DiskError("io", "read", file.path);
    file.writeSync(at, buffer.subarray(0, length));
    at += length;
  }
}

/** Copies what lies at and past `position`; durable when it resolves. A copy that is there already is left alone. */
async function copyTail(disk: Disk, from: SegmentFile, position: number, to: string, notes: string[]): Promise<void> {
  const buffer = new Uint8Array(COPY_BYTES);
  let length = await from.read(position, buffer);
  if (length === 0) return;
  let copy;
  try {
    copy = await disk.open(to, "create");
  } catch (error) {
    if (error instanceof DiskError && error.kind === "exists") return;
    throw error;
  }
  try {
    for (let done = 0; length > 0; length = await from.read(position + done, buffer)) {
      copy.writeSync(done, buffer.subarray(0, length));
      done += length;
    }
    await copy.sync();
  } finally {
    copy.close();
  }
  await disk.syncFolder(to.slice(0, to.lastIndexOf("/")));
  notes.push(`what was cut is kept in ${to}`);
}

/** Step 3. The segment that is appended to from now on. */
async function activeSegment(takeover: Takeover, kept: readonly Segment[], extent: LogExtent): Promise<Segment> {
  const { disk, folder, leaderEpoch, resources } = takeover;
  const last = kept.at(-1);
  if (last !== undefined && last.epoch === leaderEpoch && last.endOffset === extent.logEndOffset) {
    await last.file.drain(); // it may be open for reading only: what lay behind it was damaged
    last.file = SegmentFile.existing(disk, resources.handles, last.logPath, "write");
    if (last.firstTimestamp < 0 && last.sizeBytes >= HEADER_BYTES) {
      const header = new Uint8Array(HEADER_BYTES);
      await last.file.read(0, header);
      last.firstTimestamp = maxTimestamp(header);
    }
    return last;
  }
  for (const segment of kept) {
    if (segment.indexes === null) continue;
    segment.seal();
    await segment.indexes.save(disk, { sync: true }).catch(() => {}); // a hint: rebuilt when it is missing
  }
  const name = { epoch: leaderEpoch, baseOffset: extent.logEndOffset };
  return Segment.create(disk, resources.handles, folder, name);
}

/**
 * The extent with the log start that the manifest shows now. The old leader may have raised it since, and it removes what
 * is below unless it sees the segment of step 3: so either the segments are all there, or their end is known here.
 */
async function withRaisedStart({ disk, folder, leaderEpoch }: Takeover, extent: LogExtent): Promise<LogExtent> {
  const manifest = await readManifest(disk, folder);
  if (manifest.kind !== "present") return extent;
  const { epoch, logStartOffset } = manifest.value;
  if (epoch > leaderEpoch) throw supersededBy(epoch, leaderEpoch);
  const raised = Math.min(Math.max(extent.logStartOffset, logStartOffset), extent.logEndOffset);
  return { ...extent, logStartOffset: raised };
}

/**
 * A deposed leader may have been in the middle of compaction. Without the file that it was about to put in place it
 * changes no segment any more; what it has changed since the folder was listed is met by the next try.
 */
async function fenceCompaction(
  { disk, folder }: Takeover,
  kept: readonly Segment[],
  found: PartitionState,
  { logStartOffset }: LogExtent,
): Promise<void> {
  const unlooked: string[] = [];
  for (const { name } of await disk.list(folder)) {
    if (isTemporaryName(name) && name.includes(".log.")) await removeFile(disk, `${folder}/${name}`, unlooked);
  }
  const sizesOf = ({ segments }: PartitionState) =>
    new Map(segments.map(({ stem, logBytes }) => [`${folder}/${stem}.log`, logBytes]));
  const before = sizesOf(found);
  const after = sizesOf((await readPartitionFolder(disk, folder)).state);
  for (const [i, segment] of kept.entries()) {
    if (segment.endOffset <= logStartOffset) continue;
    const bytes = after.get(segment.logPath);
    // The last one may have been cut here, or written to by the leader before.
    const isSame = bytes === before.get(segment.logPath) || bytes === segment.sizeBytes || i === kept.length - 1;
    if (bytes === undefined || !isSame) throw new DiskError("stale", "take over", segment.logPath);
  }
}

/** Step 5, in the order aborted transactions, snapshot, checkpoint; see `log_sync.ts`. */
async function writeSideFiles(
  { disk, folder, leaderEpoch }: Takeover,
  kept: readonly Segment[],
  active: Segment,
  scan: ScanOutcome,
  { logEndOffset }: LogExtent,
): Promise<void> {
  for (const segment of kept) {
    if (segment.abortedChanged) await segment.saveAborted(disk);
  }
  await writeSnapshot(disk, folder, encodeSnapshot(scan.producers, { offset: logEndOffset, leaderEpoch }));
  await writeCheckpoint(disk, folder, {
    segmentBase: active.baseOffset,
    position: active.sizeBytes,
    highWatermark: logEndOffset,
    leaderEpoch: active.epoch,
  });
}

/** Which of the segments stay, and which are replaced by the active one or lie below the log's start. */
function partition(kept: readonly Segment[], active: Segment, { logStartOffset }: LogExtent) {
  const sealed = kept.filter((segment) => segment !== active);
  const isGone = (segment: Segment) => {
    segment.endOffset = Math.min(segment.endOffset, active.baseOffset);
    return segment.endOffset <= logStartOffset || segment.baseOffset >= active.baseOffset;
  };
  const gone = sealed.filter(isGone);
  return { live: [...sealed.filter((segment) => !gone.includes(segment)), active], gone };
}

/** Step 6. What cannot be removed now is dead or below the log's start for the next takeover too. */
async function removeFiles(
  { disk, folder, resources }: Takeover,
  gone: readonly Segment[],
  found: PartitionState,
  notes: string[],
): Promise<void> {
  for (const segment of gone) {
    await segment.drain();
    await removeSegment(disk, segment, notes);
  }
  for (const name of found.segments.filter((segment) => !segment.live)) {
    const extent = { endOffset: name.baseOffset, sizeBytes: name.logBytes };
    const open = (path: string) => SegmentFile.existing(disk, resources.handles, path, "read");
    await removeSegment(disk, new Segment(folder, name, extent, open), notes);
    notes.push(`removed dead segment ${name.stem}`);
  }
  for (const { name } of [...found.orphans, ...found.temporaries]) await removeFile(disk, `${folder}/${name}`, notes);
}

/** Removes a segment's files, which must be closed; the .log file last. What is not there is fine. */
export async function removeSegment(disk: Disk, segment: Segment, notes: string[]): Promise<void> {
  for (const path of segment.paths.toReversed()) await removeFile(disk, path, notes);
}

async function removeFile(disk: Disk, path: string, notes: string[]): Promise<void> {
  try {
    await disk.remove(path);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    if (error.kind !== "not-found") notes.push(`${path} could not be removed: ${error.message}`);
  }
}

function logReport(logger: StorageLogger, folder: string, report: RecoveryReport): void {
  for (const damage of report.damages) {
    const say = damage.repair === "cut" ? logger.info : logger.warn;
    say.call(logger, "log repaired", { folder, what: describeDamage(damage), durable: damage.durable });
  }
  for (const note of report.notes) logger.info("takeover", { folder, note });
}
