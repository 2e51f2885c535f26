/**
 * LZ4 frames (the LZ4 frame format 1.6 and block format descriptions) as Kafka's clients send and expect them.
 *
 *     magic 184D2204, flags, block size, [content size 8], [dictionary id 4], header checksum,
 *     { length uint32 (top bit: stored as is), block, [checksum uint32] } …, 0 uint32, [content checksum uint32]
 *
 * Ours, because npm's lz4js does not fit: it writes linked blocks, which Java's consumer refuses; it reads a block's
 * checksum at the wrong place and one frame only, checks no bounds and no checksum, and reserves 5 MiB at import.
 *
 * Read are linked and independent blocks, with or without sizes and checksums (which are verified), in any number of
 * frames. Written are independent blocks of 64 KiB without checksums, as Java's producer does. Clients of magic 0
 * compute the header checksum over the magic number too (KIP-57): for them both forms are taken and theirs is written.
 */
import { malformed, RecordsFault, tooLarge } from "./fault.ts";
import { xxhash32 } from "./xxhash32.ts";

const FRAME_MAGIC = 0x184d2204;
const SKIPPABLE_MAGIC = 0x184d2a50;
const VERSION = 0x40;
const VERSION_MASK = 0xc0;
const INDEPENDENT_BLOCKS = 0x20;
const BLOCK_CHECKSUMS = 0x10;
const CONTENT_SIZE = 0x08;
const CONTENT_CHECKSUM = 0x04;
const RESERVED_FLAG = 0x02;
const DICTIONARY_ID = 0x01;
const STORED = 0x8000_0000;
const SMALLEST_BLOCK_SIZE_ID = 4;
const BLOCK_BYTES = 64 * 1024;
const MIN_MATCH = 4;
/** A block ends with at least 5 literals, and its last match begins at least 12 bytes before the end. */
const LAST_LITERALS = 5;
const MATCH_LIMIT = 12;
const HASH_BITS = 13;

function readUint32(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

/** Output that grows with what is written, up to a limit. */
class Output {
  bytes: Uint8Array;
  length = 0;

  constructor(expected: number, readonly maxBytes: number) {
    this.bytes = new Uint8Array(Math.min(expected, maxBytes));
  }

  /** Makes room for `more` bytes after `length`; false where that exceeds the limit. */
  ensure(more: number): boolean {
    const needed = this.length + more;
    if (needed <= this.bytes.length) return true;
    if (needed > this.maxBytes) return false;
    const grown = new Uint8Array(Math.min(this.maxBytes, Math.max(needed, this.bytes.length * 2)));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
    return true;
  }
}

interface FrameHeader {
  flags: number;
  blockMaxBytes: number;
  contentBytes: number | null;
  /** Position of the first block. */
  end: number;
}

/** Unpacks one or more LZ4 frames to at most `maxBytes`; `isMagic0` takes the old clients' header checksum too. */
export function lz4Decompress(bytes: Uint8Array, maxBytes: number, isMagic0 = false): Uint8Array | RecordsFault {
  const output = new Output(bytes.length * 4, maxBytes);
  let at = 0;
  if (bytes.length === 0) return malformed("lz4", "no frame");
  while (at < bytes.length) {
    if (bytes.length - at < 8) return malformed("lz4", "cut frame");
    const magic = readUint32(bytes, at);
    if (((magic & 0xfffffff0) >>> 0) === SKIPPABLE_MAGIC) {
      at += 8 + readUint32(bytes, at + 4);
      if (at > bytes.length) return malformed("lz4", "cut skippable frame");
      continue;
    }
    const header = readFrameHeader(bytes, at, isMagic0);
    if (header instanceof RecordsFault) return header;
    const end = readBlocks(bytes, header, output);
    if (end instanceof RecordsFault) return end;
    at = end;
  }
  return output.bytes.subarray(0, output.length);
}

function readFrameHeader(bytes: Uint8Array, start: number, isMagic0: boolean): FrameHeader | RecordsFault {
  if (readUint32(bytes, start) !== FRAME_MAGIC) return malformed("lz4", "no frame magic");
  const flags = bytes[start + 4];
  if ((flags & VERSION_MASK) !== VERSION || (flags & RESERVED_FLAG) !== 0) return malformed("lz4", "unknown version");
  if ((flags & DICTIONARY_ID) !== 0) return malformed("lz4", "needs a dictionary");
  const sizeId = (bytes[start + 5] >>> 4) & 7;
  if (sizeId < SMALLEST_BLOCK_SIZE_ID) return malformed("lz4", "unknown block size");
  const checksumAt = start + 6 + ((flags & CONTENT_SIZE) !== 0 ? 8 : 0);
  if (checksumAt >= bytes.length) return malformed("lz4", "cut frame header");
  const checksum = bytes[checksumAt];
  const isRight = checksum === headerChecksum(bytes, start + 4, checksumAt) ||
    (isMagic0 && checksum === headerChecksum(bytes, start, checksumAt));
  if (!isRight) return malformed("lz4", "wrong header checksum");
  return {
    flags,
    blockMaxBytes: 2 ** (8 + 2 * sizeId),
    contentBytes: (flags & CONTENT_SIZE) === 0
      ? null
      : readUint32(bytes, start + 6) + readUint32(bytes, start + 10) * 0x1_0000_0000,
    end: checksumAt + 1,
  };
}

function headerChecksum(bytes: Uint8Array, start: number, end: number): number {
  return (xxhash32(bytes, start, end) >>> 8) & 0xff;
}

/** Unpacks the blocks of one frame; returns the position after the frame. */
function readBlocks(bytes: Uint8Array, header: FrameHeader, output: Output): number | RecordsFault {
  const frameStart = output.length;
  const checksumBytes = (header.flags & BLOCK_CHECKSUMS) === 0 ? 0 : 4;
  let at = header.end;
  while (true) {
    if (bytes.length - at < 4) return malformed("lz4", "cut before the end mark");
    const field = readUint32(bytes, at);
    at += 4;
    if (field === 0) break;
    const length = field % STORED;
    if (length > header.blockMaxBytes || length + checksumBytes > bytes.length - at) {
      return malformed("lz4", "block exceeds its frame");
    }
    if (checksumBytes > 0 && xxhash32(bytes, at, at + length) !== readUint32(bytes, at + length)) {
      return malformed("lz4", "wrong block checksum");
    }
    const fault = field >= STORED
      ? store(bytes, at, length, output)
      : unpackBlock(bytes, at, length, output, header, frameStart);
    if (fault !== null) return fault;
    at += length + checksumBytes;
  }
  if (header.contentBytes !== null && header.contentBytes !== output.length - frameStart) {
    return malformed("lz4", "wrong content size");
  }
  if ((header.flags & CONTENT_CHECKSUM) === 0) return at;
  if (bytes.length - at < 4) return malformed("lz4", "cut content checksum");
  const isRight = xxhash32(output.bytes, frameStart, output.length) === readUint32(bytes, at);
  return isRight ? at + 4 : malformed("lz4", "wrong content checksum");
}

function store(bytes: Uint8Array, at: number, length: number, output: Output): RecordsFault | null {
  if (!output.ensure(length)) return tooLarge(output.maxBytes);
  output.bytes.set(bytes.subarray(at, at + length), output.length);
  output.length += length;
  return null;
}

function unpackBlock(
  bytes: Uint8Array,
  start: number,
  length: number,
  output: Output,
  header: FrameHeader,
  frameStart: number,
): RecordsFault | null {
  const end = start + length;
  const blockStart = output.length;
  const blockLimit = blockStart + header.blockMaxBytes;
  const floor = (header.flags & INDEPENDENT_BLOCKS) === 0 ? frameStart : blockStart;
  let at = start;
  while (at < end) {
    const token = bytes[at++];
    let literals = token >>> 4;
    if (literals === 15) {
      for (let more = 255; more === 255; literals += more) {
        if (at >= end) return malformed("lz4", "cut literal length");
        more = bytes[at++];
      }
    }
    if (literals > end - at || output.length + literals > blockLimit) return malformed("lz4", "too many literals");
    if (!output.ensure(literals)) return tooLarge(output.maxBytes);
    copyLiterals(bytes, at, literals, output);
    at += literals;
    if (at === end) return null;

    if (end - at < 2) return malformed("lz4", "cut match");
    const distance = bytes[at] | (bytes[at + 1] << 8);
    at += 2;
    let matched = (token & 15) + MIN_MATCH;
    if (matched === 15 + MIN_MATCH) {
      for (let more = 255; more === 255; matched += more) {
        if (at >= end) return malformed("lz4", "cut match length");
        more = bytes[at++];
      }
    }
    if (distance === 0 || distance > output.length - floor) return malformed("lz4", "match before the start");
    if (output.length + matched > blockLimit) return malformed("lz4", "block unpacks to more than its size");
    if (!output.ensure(matched)) return tooLarge(output.maxBytes);
    copyMatch(output, distance, matched);
  }
  return malformed("lz4", "block ends without literals");
}

function copyLiterals(bytes: Uint8Array, at: number, length: number, output: Output): void {
  const to = output.bytes;
  const position = output.length;
  if (length < 32) { for (let n = 0; n < length; n++) to[position + n] = bytes[at + n]; }
  else to.set(bytes.subarray(at, at + length), position);
  output.length += length;
}

function copyMatch(output: Output, distance: number, length: number): void {
  const { bytes, length: position } = output;
  const from = position - distance;
  if (length >= 64 && distance >= length) bytes.copyWithin(position, from, from + length);
  else for (let n = 0; n < length; n++) bytes[position + n] = bytes[from + n];
  output.length += length;
}

/** Packs `bytes` into one frame of independent blocks; `isMagic0` writes the old clients' header checksum. */
export function lz4Compress(bytes: Uint8Array, isMagic0 = false): Uint8Array {
  const blocks = Math.ceil(bytes.length / BLOCK_BYTES);
  const packed = new Uint8Array(7 + bytes.length + blocks * 4 + 4);
  writeUint32(packed, 0, FRAME_MAGIC);
  packed[4] = VERSION | INDEPENDENT_BLOCKS;
  packed[5] = SMALLEST_BLOCK_SIZE_ID << 4;
  packed[6] = headerChecksum(packed, isMagic0 ? 0 : 4, 6);
  const table = new Int32Array(1 << HASH_BITS);
  let to = 7;
  for (let start = 0; start < bytes.length; start += BLOCK_BYTES) {
    const end = Math.min(start + BLOCK_BYTES, bytes.length);
    const packedEnd = packBlock(bytes, start, end, packed, to + 4, table);
    if (packedEnd < 0) {
      packed.set(bytes.subarray(start, end), to + 4);
      writeUint32(packed, to, STORED + end - start);
      to += 4 + end - start;
    } else {
      writeUint32(packed, to, packedEnd - to - 4);
      to = packedEnd;
    }
  }
  writeUint32(packed, to, 0);
  return packed.subarray(0, to + 4);
}

/**
 * Packs `bytes[start, end)` to `to`; returns the position after it, or −1 where the block would not shrink.
 */
function packBlock(
  bytes: Uint8Array,
  start: number,
  end: number,
  packed: Uint8Array,
  to: number,
  table: Int32Array,
): number {
  const limit = to + (end - start) - 1;
  table.fill(-1);
  let anchor = start;
  let at = start;
  while (at < end - MATCH_LIMIT) {
    const sequence = readUint32(bytes, at);
    const slot = Math.imul(sequence, 0x9e3779b1) >>> (32 - HASH_BITS);
    const candidate = table[slot];
    table[slot] = at;
    if (candidate < 0 || readUint32(bytes, candidate) !== sequence) {
      at += 1 + ((at - anchor) >>> 6);
      continue;
    }
    let matched = MIN_MATCH;
    while (at + matched < end - LAST_LITERALS && bytes[candidate + matched] === bytes[at + matched]) matched++;
    to = writeSequence(packed, to, limit, bytes, anchor, at, at - candidate, matched);
    if (to < 0) return -1;
    at += matched;
    anchor = at;
  }
  return writeSequence(packed, to, limit, bytes, anchor, end, 0, MIN_MATCH);
}

/** Writes literals `bytes[anchor, at)` and, where `distance` > 0, a match; −1 where that passes `limit`. */
function writeSequence(
  packed: Uint8Array,
  to: number,
  limit: number,
  bytes: Uint8Array,
  anchor: number,
  at: number,
  distance: number,
  matched: number,
): number {
  const literals = at - anchor;
  const extra = matched - MIN_MATCH;
  const worst = 1 + literals + Math.floor(literals / 255) + 1 + 2 + Math.floor(extra / 255) + 1;
  if (to + worst > limit) return -1;
  packed[to++] = (Math.min(literals, 15) << 4) | Math.min(extra, 15);
  if (literals >= 15) to = writeLength(packed, to, literals - 15);
  packed.set(bytes.subarray(anchor, at), to);
  to += literals;
  if (distance === 0) return to;
  packed[to++] = distance;
  packed[to++] = distance >>> 8;
  return extra >= 15 ? writeLength(packed, to, extra - 15) : to;
}

function writeLength(packed: Uint8Array, to: number, rest: number): number {
  for (; rest >= 255; rest -= 255) packed[to++] = 255;
  packed[to++] = rest;
  return to;
}
