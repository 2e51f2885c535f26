/**
 * xxHash32 with seed 0 (the xxHash specification, "XXH32 algorithm description"), the checksum inside LZ4 frames.
 */

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f | 0;
const PRIME_5 = 0x165667b1 | 0;

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function round(lane: number, word: number): number {
  return Math.imul(rotate((lane + Math.imul(word, PRIME_2)) | 0, 13), PRIME_1);
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

/** xxHash32 of `bytes[start, end)` as an unsigned 32-bit number. */
export function xxhash32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let at = start;
  let hash = PRIME_5;
  if (end - start >= 16) {
    let lane1 = (PRIME_1 + PRIME_2) | 0;
    let lane2 = PRIME_2;
    let lane3 = 0;
    let lane4 = -PRIME_1 | 0;
    for (const last = end - 16; at <= last; at += 16) {
      lane1 = round(lane1, word(bytes, at));
      lane2 = round(lane2, word(bytes, at + 4));
      lane3 = round(lane3, word(bytes, at + 8));
      lane4 = round(lane4, word(bytes, at + 12));
    }
    hash = (rotate(lane1, 1) + rotate(lane2, 7) + rotate(lane3, 12) + rotate(lane4, 18)) | 0;
  }
  hash = (hash + (end - start)) | 0;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(word(bytes, at), PRIME_3)) | 0, 17), PRIME_4);
  }
  for (; at < end; at++) hash = Math.imul(rotate((hash + Math.imul(bytes[at], PRIME_5)) | 0, 11), PRIME_1);
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
