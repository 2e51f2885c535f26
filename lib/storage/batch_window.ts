/**
 * Finding, in bytes read from a segment, the whole batches that answer a read. Pure; looks at headers only.
 */

import { baseOffset, HEADER_BYTES, lastOffset, sizeInBytes } from "../records/batch.ts";
import { isPlausibleHeader } from "./batch_scan.ts";

/** What is wanted of the bytes. */
export interface WindowRequest {
  /** The first batch is the one that holds this offset, or the first one behind it. */
  readonly offset: number;
  /** Batches that begin at or past this offset do not count. */
  readonly limitOffset: number;
  /** Bytes of batches at most; the first one is not measured. */
  readonly maxBytes: number;
  /**
   * A place inside the bytes where a batch is known to begin, whose last offset is below the limit: batches in front of
   * it need no look. 0 for none.
   */
  readonly jumpTo: number;
  /** Last offset of the batch at `jumpTo`; a jump that it does not bear out is not made. */
  readonly jumpLastOffset: number;
}

/**
 * What the bytes hold: `batches` in `[start, end)`, of which the first begins at `firstOffset` and the last ends before
 * `nextOffset`; `partial`: the batch at `start` is the first wanted one, and `bytes` are needed to have it (or its header);
 * `limit`: the first wanted batch does not count; `end`: the bytes end before it, on a batch boundary; `corrupt`: at
 * `start` there is no batch, and none that is wanted in front.
 */
export type Window =
  | { readonly kind: "batches"; readonly start: number; readonly end: number; readonly nextOffset: number }
  | { readonly kind: "partial"; readonly start: number; readonly bytes: number }
  | { readonly kind: "limit" }
  | { readonly kind: "end" }
  | { readonly kind: "corrupt"; readonly start: number };

/** Looks at `bytes[0, length)`, which begin at a batch boundary. */
export function findWindow(bytes: Uint8Array, length: number, request: WindowRequest): Window {
  const start = seek(bytes, length, request.offset);
  if (start === length) return { kind: "end" };
  if (length - start < HEADER_BYTES) return { kind: "partial", start, bytes: HEADER_BYTES };
  if (!isPlausibleHeader(bytes, start)) return { kind: "corrupt", start };
  if (baseOffset(bytes, start) >= request.limitOffset) return { kind: "limit" };
  const firstBytes = sizeInBytes(bytes, start);
  if (firstBytes > length - start) return { kind: "partial", start, bytes: firstBytes };

  const room = Math.min(length, start + Math.max(request.maxBytes, firstBytes));
  let at = start;
  let nextOffset = request.offset;
  if (mayJump(bytes, start, room, request)) at = request.jumpTo;
  let end = at;
  while (room - at >= HEADER_BYTES && isPlausibleHeader(bytes, at) && baseOffset(bytes, at) < request.limitOffset) {
    const next = at + sizeInBytes(bytes, at);
    if (next > room) break;
    nextOffset = lastOffset(bytes, at) + 1;
    at = end = next;
  }
  // The batch at the jump did not fit: those in front of it do, so walk to it after all.
  if (end === request.jumpTo && end > start) return findWindow(bytes, end, { ...request, jumpTo: 0 });
  return { kind: "batches", start, end, nextOffset };
}

function mayJump(bytes: Uint8Array, start: number, room: number, { jumpTo, jumpLastOffset }: WindowRequest): boolean {
  return jumpTo > start && room - jumpTo >= HEADER_BYTES && isPlausibleHeader(bytes, jumpTo) &&
    lastOffset(bytes, jumpTo) === jumpLastOffset;
}

/** Where the batch begins that holds `offset` or comes first behind it; stops early at bytes that are no whole batch. */
function seek(bytes: Uint8Array, length: number, offset: number): number {
  let at = 0;
  while (length - at >= HEADER_BYTES && isPlausibleHeader(bytes, at) && lastOffset(bytes, at) < offset) {
    const next = at + sizeInBytes(bytes, at);
    // Not the wanted one, but its end lies beyond what was read.
    if (next > length) return at;
    at = next;
  }
  return at;
}
