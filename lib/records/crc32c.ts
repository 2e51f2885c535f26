/**
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of record batches.
 *
 * Small inputs go through tables in plain JavaScript (slicing-by-8), larger ones are folded in wasm (`crc32c_fold.ts`);
 * where the runtime lacks what that needs, the tables serve all. Compiling the wasm takes a fraction of a millisecond.
 */
import { makeFoldedCrc32c, MIN_FOLDED_BYTES } from "./crc32c_fold.ts";

/** The polynomial 0x1EDC6F41 with its bits reversed. */
const POLYNOMIAL = 0x82f63b78;

const [t0, t1, t2, t3, t4, t5, t6, t7] = buildTables();

function buildTables(): Int32Array[] {
  const tables = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ POLYNOMIAL;
    tables[0][byte] = value;
  }
  for (let slice = 1; slice < 8; slice++) {
    for (let byte = 0; byte < 256; byte++) {
      const previous = tables[slice - 1][byte];
      tables[slice][byte] = (previous >>> 8) ^ tables[0][previous & 0xff];
    }
  }
  return tables;
}

function byTables(register: number, bytes: Uint8Array, start: number, end: number): number {
  let crc = register;
  let at = start;
  for (const last = end - 8; at <= last; at += 8) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc = t7[crc & 0xff] ^ t6[(crc >>> 8) & 0xff] ^ t5[(crc >>> 16) & 0xff] ^ t4[crc >>> 24] ^
      t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]) & 0xff];
  return ~crc >>> 0;
}

const folded = makeFoldedCrc32c((bytes, start, end) => byTables(0, bytes, start, end));

/** Whether larger inputs are folded in wasm. */
export const isFolding = folded !== null;

/** CRC-32C of `bytes[start, end)` as an unsigned 32-bit number. The range must lie within `bytes`. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  return folded === null || end - start < MIN_FOLDED_BYTES
    ? byTables(-1, bytes, start, end)
    : folded(bytes, start, end);
}

/** The same in plain JavaScript, whatever the size. */
export function crc32cByTables(bytes: Uint8Array, start = 0, end = bytes.length): number {
  return byTables(-1, bytes, start, end);
}
