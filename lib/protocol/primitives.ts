/**
 * Reading of the few primitive types that do not fit one DataView call, for generated and for hand-written readers.
 * Callers have checked that the bytes are there, except where a function says that it checks itself.
 */

import { ZERO_UUID } from "./schema.ts";
import { MalformedFrame } from "./malformed_frame.ts";

/** Strings up to this many bytes are read by a loop; the call into the platform's decoder costs more than that. */
const SHORT_STRING_BYTES = 24;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Where reading stands, for reads whose length only the bytes tell. */
export interface Cursor {
  position: number;
}

/** Reads `length` bytes of UTF-8 at `position`. */
export function readText(bytes: Uint8Array, position: number, length: number): string {
  const end = position + length;
  if (length > SHORT_STRING_BYTES) return decoder.decode(bytes.subarray(position, end));
  let text = "";
  let index = position;
  // Four at a time halves the cost of names of usual length.
  for (; index + 4 <= end; index += 4) {
    const a = bytes[index], b = bytes[index + 1], c = bytes[index + 2], d = bytes[index + 3];
    if ((a | b | c | d) > 127) return decoder.decode(bytes.subarray(position, end));
    text += String.fromCharCode(a, b, c, d);
  }
  for (; index < end; index++) {
    const byte = bytes[index];
    if (byte > 127) return decoder.decode(bytes.subarray(position, end));
    text += String.fromCharCode(byte);
  }
  return text;
}

/** Reads 16 bytes at `position` as a UUID in canonical text. */
export function readUuid(bytes: Uint8Array, position: number): string {
  const b = bytes;
  const p = position;
  const text = hex[b[p]] + hex[b[p + 1]] + hex[b[p + 2]] + hex[b[p + 3]] + "-" + hex[b[p + 4]] + hex[b[p + 5]] + "-" +
    hex[b[p + 6]] + hex[b[p + 7]] + "-" + hex[b[p + 8]] + hex[b[p + 9]] + "-" + hex[b[p + 10]] + hex[b[p + 11]] +
    hex[b[p + 12]] + hex[b[p + 13]] + hex[b[p + 14]] + hex[b[p + 15]];
  return text === ZERO_UUID ? ZERO_UUID : text;
}

/**
 * Reads the rest of an unsigned varint whose first byte, `first`, has its continuation bit set; moves `cursor`.
 *
 * @throws MalformedFrame when it does not fit 32 bits.
 * @throws RangeError when the view ends inside it.
 */
export function readVarintRest(view: DataView, cursor: Cursor, first: number): number {
  let value = first & 127;
  let weight = 128;
  for (let count = 1; count < 5; count++) {
    const byte = view.getUint8(cursor.position);
    cursor.position += 1;
    value += (byte & 127) * weight;
    if (byte < 128) {
      if (value > 0xffffffff) break;
      return value;
    }
    weight *= 128;
  }
  throw new MalformedFrame("a varint does not fit 32 bits", cursor.position);
}

/** Reads an unsigned varint and moves `cursor`; throws as {@link readVarintRest} does. */
export function readVarint(view: DataView, cursor: Cursor): number {
  const first = view.getUint8(cursor.position);
  cursor.position += 1;
  return first < 128 ? first : readVarintRest(view, cursor, first);
}

/**
 * Skips a section of tagged fields (KIP-482) and moves `cursor`; checks that the bytes are there.
 *
 * @throws MalformedFrame when a field claims more bytes than are left.
 * @throws RangeError when the view ends inside the section.
 */
export function skipTaggedFields(view: DataView, cursor: Cursor): void {
  for (let left = readVarint(view, cursor); left > 0; left--) {
    readVarint(view, cursor);
    const size = readVarint(view, cursor);
    if (size > view.byteLength - cursor.position) {
      throw new MalformedFrame(`a tagged field claims ${size} bytes`, cursor.position);
    }
    cursor.position += size;
  }
}
