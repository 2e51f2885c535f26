/**
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of record batches.
 *
 * Two implementations give the same numbers: slicing-by-8 in plain JavaScript, there from the first instruction on, and
 * hash-wasm, whose module is compiled in the background so that starting waits for nothing. Short inputs stay with
 * JavaScript, since calling into wasm costs more than they do.
 */
import { createCRC32, type IHasher } from "hash-wasm";

/** The polynomial 0x1EDC6F41 with its bits reversed. */
const POLYNOMIAL = 0x82f63b78;

/** Inputs from this many bytes on are faster in wasm (measured on Deno 2.9.6). */
const WASM_FROM_BYTES = 2048;

const tables = buildTables();

function buildTables(): Int32Array[] {
  const all = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ POLYNOMIAL;
    all[0][byte] = value;
  }
  for (let slice = 1; slice < 8; slice++) {
    for (let byte = 0; byte < 256; byte++) {
      const previous = all[slice - 1][byte];
      all[slice][byte] = (previous >>> 8) ^ all[0][previous & 0xff];
    }
  }
  return all;
}

const [t0, t1, t2, t3, t4, t5, t6, t7] = tables;

/** CRC-32C of `bytes[start, end)` in plain JavaScript, whatever the size. */
export function crc32cInScript(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = -1;
  let at = start;
  for (const last = end - 8; at <= last; at += 8) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc = t7[crc & 0xff] ^ t6[(crc >>> 8) & 0xff] ^ t5[(crc >>> 16) & 0xff] ^ t4[crc >>> 24] ^
      t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]) & 0xff];
  return ~crc >>> 0;
}

let hasher: IHasher | null = null;

/** Resolves when the wasm implementation serves; never rejects (without wasm, JavaScript goes on serving). */
export const ready: Promise<void> = createCRC32(POLYNOMIAL).then((made) => {
  hasher = made;
}, () => {});

/** CRC-32C of `bytes[start, end)` as an unsigned 32-bit number. The range must lie within `bytes`. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  if (hasher === null || end - start < WASM_FROM_BYTES) return crc32cInScript(bytes, start, end);
  const digest = hasher.init().update(bytes.subarray(start, end)).digest("binary");
  return ((digest[0] << 24) | (digest[1] << 16) | (digest[2] << 8) | digest[3]) >>> 0;
}
