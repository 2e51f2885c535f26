/**
 * Snappy as Kafka's clients send it: Java's wrap it in the block framing of snappy-java ("xerial"), some others send
 * one raw block. Written in the framing, read in both:
 *
 *     82 "SNAPPY" 00, version int32, lowest compatible version int32, { length int32, raw block } …
 *
 * Packing is npm's snappyjs. Unpacking is ours, because that package's decoder trusts its input: a literal of negative
 * length sends it into an endless loop, and it takes a block for good that unpacks to less than it claims.
 *
 * A raw block cannot unpack to more than 22 times its size (a copy of 64 bytes takes three), so the claimed size is
 * checked against that before any memory is taken.
 */
import { compress as compressBlock } from "snappyjs";
import { readInt32, writeInt32 } from "./batch.ts";
import { malformed, RecordsFault, tooLarge } from "./fault.ts";

const MAGIC_HEADER = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00);
const FRAMING_HEADER_BYTES = 16;
/** Bytes that go into one block, as snappy-java cuts them. */
const BLOCK_BYTES = 32 * 1024;
/** Bound of unpacked to packed size: a copy of 64 bytes takes 3. */
const MAX_RATIO = 22;

/** Packs `bytes` into the framing of snappy-java. */
export function snappyCompress(bytes: Uint8Array): Uint8Array {
  const blocks: Uint8Array[] = [];
  let size = FRAMING_HEADER_BYTES;
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    const block = compressBlock(bytes.subarray(at, at + BLOCK_BYTES));
    blocks.push(block);
    size += 4 + block.length;
  }
  const packed = new Uint8Array(size);
  packed.set(MAGIC_HEADER);
  writeInt32(packed, 8, 1);
  writeInt32(packed, 12, 1);
  let at = FRAMING_HEADER_BYTES;
  for (const block of blocks) {
    writeInt32(packed, at, block.length);
    packed.set(block, at + 4);
    at += 4 + block.length;
  }
  return packed;
}

/** Unpacks framed or raw snappy to at most `maxBytes`. */
export function snappyDecompress(bytes: Uint8Array, maxBytes: number): Uint8Array | RecordsFault {
  const blocks = isFramed(bytes, 0) ? framedBlocks(bytes) : [bytes];
  if (blocks instanceof RecordsFault) return blocks;
  let total = 0;
  for (const block of blocks) {
    const claimed = claimedBytes(block);
    if (claimed < 0 || claimed > block.length * MAX_RATIO) return malformed("snappy", "impossible length");
    total += claimed;
    if (total > maxBytes) return tooLarge(maxBytes);
  }
  const unpacked = new Uint8Array(total);
  let at = 0;
  for (const block of blocks) {
    const end = at + claimedBytes(block);
    if (!decompressBlock(block, unpacked, at, end)) return malformed("snappy", "broken block");
    at = end;
  }
  return unpacked;
}

function isFramed(bytes: Uint8Array, at: number): boolean {
  return bytes.length - at >= FRAMING_HEADER_BYTES && MAGIC_HEADER.every((byte, index) => bytes[at + index] === byte);
}

/** The raw blocks of framed data; a header may stand again where streams were joined. */
function framedBlocks(bytes: Uint8Array): Uint8Array[] | RecordsFault {
  const blocks: Uint8Array[] = [];
  let at = FRAMING_HEADER_BYTES;
  while (at < bytes.length) {
    if (isFramed(bytes, at)) {
      at += FRAMING_HEADER_BYTES;
      continue;
    }
    if (bytes.length - at < 4) return malformed("snappy", "cut block length");
    const length = readInt32(bytes, at);
    if (length <= 0 || length > bytes.length - at - 4) return malformed("snappy", "block exceeds its frame");
    blocks.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return blocks;
}

/** The unpacked size that a raw block states (an unsigned varint of 32 bits), or −1. */
function claimedBytes(block: Uint8Array): number {
  let value = 0;
  for (let at = 0; at < 5 && at < block.length; at++) {
    value += (block[at] & 0x7f) * 2 ** (7 * at);
    if (block[at] < 0x80) return value <= 0xffff_ffff ? value : -1;
  }
  return -1;
}

/** Unpacks one raw block into exactly `output[start, end)`; false where the block is broken. */
function decompressBlock(block: Uint8Array, output: Uint8Array, start: number, end: number): boolean {
  const inputEnd = block.length;
  let at = 0;
  while (block[at] >= 0x80) at++;
  at++;
  let to = start;
  while (at < inputEnd) {
    const tag = block[at++];
    let length = (tag >>> 2) + 1;
    if ((tag & 3) === 0) {
      if (length > 60) {
        const width = length - 60;
        if (width > inputEnd - at) return false;
        length = littleEndian(block, at, width) + 1;
        at += width;
      }
      if (length > inputEnd - at || length > end - to) return false;
      if (length < 16) { for (let n = 0; n < length; n++) output[to + n] = block[at + n]; }
      else output.set(block.subarray(at, at + length), to);
      at += length;
      to += length;
      continue;
    }
    const width = (tag & 3) === 3 ? 4 : tag & 3;
    if (width > inputEnd - at) return false;
    let distance = littleEndian(block, at, width);
    at += width;
    if (width === 1) {
      distance |= (tag >>> 5) << 8;
      length = ((tag >>> 2) & 7) + 4;
    }
    if (distance === 0 || distance > to - start || length > end - to) return false;
    for (let from = to - distance, stop = to + length; to < stop;) output[to++] = output[from++];
  }
  return to === end;
}

function littleEndian(bytes: Uint8Array, at: number, width: number): number {
  let value = 0;
  for (let index = width - 1; index >= 0; index--) value = value * 0x100 + bytes[at + index];
  return value;
}
