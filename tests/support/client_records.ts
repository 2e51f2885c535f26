/**
 * Records with which clients are tested: what differs easily between libraries (null and empty, repeated header names,
 * bytes that are no text), and the comparison of what was written with what was read.
 */

import assert from "node:assert/strict";
import type { ReadRecord, SentRecord } from "./client_process.ts";

export function base64(text: string): string {
  return new TextEncoder().encode(text).toBase64();
}

/** What a client cannot write or read, by its own design. */
export interface RecordLimits {
  readonly headers?: boolean;
  readonly timestamps?: boolean;
  /** Whether a header may have no value, other than an empty one. */
  readonly nullHeaderValues?: boolean;
  /** Whether the order of headers with different names is kept where a name is repeated. */
  readonly headerOrder?: boolean;
}

/** Milliseconds of the first record; each next is a second younger, with one step back among them. */
export const firstTimestamp = 1_700_000_000_000;

export function canonicalRecords(limits: RecordLimits = {}): SentRecord[] {
  const allBytes = Uint8Array.from({ length: 256 }, (_, i) => i).toBase64();
  const records: SentRecord[] = [
    { key: base64("key"), value: base64("value"), headers: [] },
    { key: null, value: base64("no key") },
    { key: base64("no value"), value: null },
    { key: null, value: null },
    { key: "", value: "" },
    { key: allBytes, value: allBytes },
    { key: base64("ключ 🔑"), value: base64("значение ".repeat(3)) },
    { key: base64("one header"), value: base64("v"), headers: [["name", base64("content")]] },
    { key: base64("empty header"), value: base64("v"), headers: [["empty", ""]] },
    { key: base64("null header"), value: base64("v"), headers: [["null", null]] },
    { key: base64("repeated"), value: base64("v"), headers: repeatedHeaders(limits) },
    { key: base64("compressible"), value: base64("abcdefgh".repeat(2_000)) },
    { key: base64("last"), value: base64("end") },
  ];
  return records.map((record, i) => ({
    ...record,
    headers: limits.headers === false
      ? []
      : (record.headers ?? []).map(([name, value]) =>
        [name, value === null && limits.nullHeaderValues === false ? "" : value] as const
      ),
    ...(limits.timestamps === false ? {} : { timestamp: firstTimestamp + 1_000 * (i === 5 ? 2 : i) }),
  }));
}

function repeatedHeaders(limits: RecordLimits): (readonly [string, string | null])[] {
  const headers: (readonly [string, string])[] = [["a", base64("1")], ["b", base64("2")], ["a", base64("3")], [
    "ü",
    "/w==",
  ]];
  if (limits.headerOrder !== false) return headers;
  return [...headers].sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}

/** Asserts that what was read is what was written: in order, byte for byte, at the offsets from `baseOffset` on. */
export function assertSameRecords(
  read: readonly ReadRecord[],
  written: readonly SentRecord[],
  options: { readonly baseOffset?: number; readonly readLimits?: RecordLimits } = {},
): void {
  const { baseOffset = 0, readLimits = {} } = options;
  assert.equal(read.length, written.length, "number of records");
  for (const [i, record] of read.entries()) {
    const wanted = written[i];
    const which = `record ${i}`;
    assert.equal(record.offset, baseOffset + i, `${which}: offset`);
    assert.equal(record.key, wanted.key, `${which}: key`);
    assert.equal(record.value, wanted.value, `${which}: value`);
    if (wanted.timestamp !== undefined && readLimits.timestamps !== false) {
      assert.equal(record.timestamp, wanted.timestamp, `${which}: timestamp`);
    }
    if (readLimits.headers === false) continue;
    assert.deepEqual(
      orderedHeaders(record.headers, readLimits),
      orderedHeaders(wanted.headers ?? [], readLimits),
      `${which}: headers`,
    );
  }
}

function orderedHeaders(headers: readonly (readonly [string, string | null])[], limits: RecordLimits) {
  const list = headers.map(([name, value]) =>
    [name, value === null && limits.nullHeaderValues === false ? "" : value] as const
  );
  if (limits.headerOrder !== false) return list;
  return list.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}
