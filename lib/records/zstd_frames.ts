/**
 * Where the frames of zstd data begin and end (RFC 8878, section 3), without decoding them.
 *
 *     magic FD2FB528, descriptor, [window], [dictionary id], [content size], { block header 3 bytes, block } …, [checksum]
 *
 * The runtime's decoder stops after the first frame and gives no error for a frame that is cut; Kafka's clients may
 * flush several frames into one batch. All numbers are little-endian.
 */
import { malformed, type RecordsFault } from "./fault.ts";

/** One frame, and the size it says it unpacks to (null where it does not say). */
export interface ZstdFrame {
  bytes: Uint8Array;
  contentBytes: number | null;
}

const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];
const BLOCK_HEADER_BYTES = 3;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;
const CHECKSUM_BYTES = 4;

/** The frames of `bytes` in order, skippable ones left out; a fault where they do not end with the bytes. */
export function zstdFrames(bytes: Uint8Array): ZstdFrame[] | RecordsFault {
  const frames: ZstdFrame[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < 8) return malformed("zstd", "cut frame");
    const magic = little(bytes, at, 4);
    if (magic - (magic % 16) === SKIPPABLE_MAGIC) {
      at += 8 + little(bytes, at + 4, 4);
      continue;
    }
    if (magic !== FRAME_MAGIC) return malformed("zstd", "no frame magic");
    const descriptor = bytes[at + 4];
    const isSingleSegment = (descriptor & 0x20) !== 0;
    const sizeBytes = isSingleSegment && descriptor < 0x40 ? 1 : CONTENT_SIZE_BYTES[descriptor >>> 6];
    const sizeAt = at + 5 + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3];
    const end = blocksEnd(bytes, sizeAt + sizeBytes, (descriptor & 4) === 0 ? 0 : CHECKSUM_BYTES);
    if (end < 0) return malformed("zstd", "cut or broken frame");
    const contentBytes = sizeBytes === 0 ? null : little(bytes, sizeAt, sizeBytes) + (sizeBytes === 2 ? 256 : 0);
    frames.push({ bytes: bytes.subarray(at, end), contentBytes });
    at = end;
  }
  return at > bytes.length ? malformed("zstd", "cut skippable frame") : frames;
}

/** Position after the last block and the checksum, or −1 where the bytes end before. */
function blocksEnd(bytes: Uint8Array, at: number, checksumBytes: number): number {
  while (at + BLOCK_HEADER_BYTES <= bytes.length) {
    const header = little(bytes, at, BLOCK_HEADER_BYTES);
    const type = (header >>> 1) & 3;
    if (type === RESERVED_BLOCK) return -1;
    at += BLOCK_HEADER_BYTES + (type === RLE_BLOCK ? 1 : header >>> 3);
    if ((header & 1) === 1) return at + checksumBytes <= bytes.length ? at + checksumBytes : -1;
  }
  return -1;
}

function little(bytes: Uint8Array, at: number, width: number): number {
  let value = 0;
  for (let index = width - 1; index >= 0; index--) value = value * 0x100 + bytes[at + index];
  return value;
}
