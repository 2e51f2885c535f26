/**
 * What to do about damage that a takeover finds, as pure decision tables; `recovery_scan.ts` finds the damage,
 * `takeover.ts` carries the repair out.
 *
 * What may have been acknowledged decides. An acknowledgement follows the sync of everything up to its record, and a
 * checkpoint, a manifest's high watermark, and a segment of a higher epoch are each written after the sync of what they
 * speak of. So bytes below one of these are *durable*: damage there is the volume's, and what lies behind it may have
 * been acknowledged. Damage past all of them is what a crash leaves of writes that were never synced, and nothing
 * behind it was acknowledged: the sync that would have covered it covers the damaged place as well.
 */

import { unreachable } from "../errors.ts";

/** Bytes that are no valid batch, and what surrounds them. */
export interface Damage {
  /** Whether the damaged place was known to be synced. */
  readonly durable: boolean;
  /** What follows it in the same file. */
  readonly behind: "batch" | "zeros" | "junk" | "nothing";
  /** Whether there are later live segments, which hold something. */
  readonly laterData: boolean;
}

/**
 * `cut`: the log ends in front of the damage, the bytes behind it are of no use to anybody. `cut-aside`: the log ends
 * there, what is cut is kept in a file of its own. `leave`: the log goes on behind the damage, whose offsets answer
 * CORRUPT_MESSAGE.
 */
export type Repair = "cut" | "cut-aside" | "leave";

/**
 * The repair for a damage:
 *
 *     durable  behind            later data   repair      because
 *     no       zeros, nothing    no           cut         a tail that was never written out
 *     no       junk              no           cut         a torn write
 *     no       batch             any          cut-aside   pages of unsynced writes, written out of order
 *     no       not a batch       yes          cut-aside   a rolled segment whose predecessor was never synced
 *     yes      batch             any          leave       acknowledged data lies behind
 *     yes      not a batch       yes          leave       acknowledged data lies behind, in later segments
 *     yes      not a batch       no           cut-aside   the end of the log is gone; what is left of it may help
 */
export function repairOf(damage: Damage): Repair {
  const dataBehind = damage.behind === "batch" || damage.laterData;
  if (damage.durable) return dataBehind ? "leave" : "cut-aside";
  return dataBehind ? "cut-aside" : "cut";
}

/** Where a log begins and ends. */
export interface LogExtent {
  readonly logStartOffset: number;
  readonly logEndOffset: number;
}

/** What segments and side files say about a log's extent. */
export interface ExtentEvidence {
  /** Extent of the live segments; null when none of them holds a batch. */
  readonly data: { readonly startOffset: number; readonly endOffset: number } | null;
  /** Base offset of the last live segment; 0 when there is none. */
  readonly lastBaseOffset: number;
  /** From the manifest; null without one. */
  readonly manifest: { readonly logStartOffset: number; readonly highWatermark: number } | null;
  /** From the checkpoint; null without one. */
  readonly checkpointHighWatermark: number | null;
}

/** The row of the table below that held. */
export type ExtentCase = "data" | "start-past-data" | "no-data";

/**
 * The extent that a log has:
 *
 *     segments                             log start                    log end
 *     hold batches                         the larger of the manifest's  what the batches show
 *                                          and the first segment's
 *     hold batches, all below the          the manifest's               the manifest's log start
 *       manifest's log start
 *     hold none                            = log end                    the largest offset that any side file or
 *                                                                       segment name promises: none is used twice
 *
 * A manifest's high watermark is thus never believed over batches, and never lets offsets be reused.
 */
export function extentOf(evidence: ExtentEvidence): LogExtent & { readonly because: ExtentCase } {
  const { data, manifest } = evidence;
  if (data === null) {
    const end = Math.max(
      evidence.lastBaseOffset,
      manifest?.logStartOffset ?? 0,
      manifest?.highWatermark ?? 0,
      evidence.checkpointHighWatermark ?? 0,
    );
    return { logStartOffset: end, logEndOffset: end, because: "no-data" };
  }
  const start = Math.max(manifest?.logStartOffset ?? 0, data.startOffset);
  if (start > data.endOffset) return { logStartOffset: start, logEndOffset: start, because: "start-past-data" };
  return { logStartOffset: start, logEndOffset: data.endOffset, because: "data" };
}

/** One damage that was found, and what was done about it. */
export interface FoundDamage extends Damage {
  readonly segment: string;
  /** Where the damage begins in that segment's .log file. */
  readonly position: number;
  /** Bytes that are no longer part of the log, or that stay as a hole in it. */
  readonly bytes: number;
  /** The offset that was expected at that place. */
  readonly offset: number;
  readonly repair: Repair;
}

/** What a takeover found and did, for the broker's log. */
export interface RecoveryReport {
  /** Bytes whose batches were checked. */
  readonly scannedBytes: number;
  readonly logStartOffset: number;
  readonly logEndOffset: number;
  readonly damages: readonly FoundDamage[];
  /** Files that were kept aside or removed, and side files done without, one sentence each. */
  readonly notes: readonly string[];
}

/** A damage in words. */
export function describeDamage(damage: FoundDamage): string {
  const where = `${damage.segment}.log at byte ${damage.position} (offset ${damage.offset})`;
  switch (damage.repair) {
    case "cut":
      return `cut ${damage.bytes} bytes of an unfinished write off ${where}`;
    case "cut-aside":
      return `cut ${damage.bytes} bytes off ${where} and kept them aside`;
    case "leave":
      return `left ${damage.bytes} corrupt bytes in ${where}: valid records follow`;
    default:
      return unreachable(damage.repair);
  }
}
