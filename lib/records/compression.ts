/**
 * The four compressions that Kafka's batches know, as whole buffers in and out.
 *
 * Decompression takes nothing on trust: the result grows with the input and ends with a fault at `maxBytes`, whatever
 * size the input claims to unpack to, and broken input is a fault, never an exception.
 *
 * gzip and zstd are the runtime's; zstd goes frame by frame, since the runtime decodes the first frame only and takes a
 * cut one for a short one. Snappy and LZ4 have files of their own, which say why.
 */
import { constants, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { ErrorCode, unreachable } from "../errors.ts";
import { Compression } from "./batch.ts";
import { type CompressionName, malformed, RecordsFault, tooLarge } from "./fault.ts";
import { lz4Compress, lz4Decompress } from "./lz4.ts";
import { snappyCompress, snappyDecompress } from "./snappy.ts";
import { zstdFrames } from "./zstd_frames.ts";

/** Most bytes that one batch may unpack to unless the caller says otherwise: 128 MiB. */
export const MAX_UNPACKED_BYTES = 128 * 1024 * 1024;

const names: readonly CompressionName[] = ["none", "gzip", "snappy", "lz4", "zstd"];

/** Name of a compression kind, or null for a number that Kafka does not know. */
export function compressionName(kind: number): CompressionName | null {
  return names[kind] ?? null;
}

/** Whether `kind` (from the attributes of a batch) is a compression that Kafka knows. */
export function isKnownCompression(kind: number): kind is Compression {
  return kind >= Compression.none && kind <= Compression.zstd;
}

/** How compressed bytes differ in message sets of magic 0. */
export interface CompressionOptions {
  /** Magic 0 clients compute the LZ4 frame's header checksum over too many bytes (KIP-57). */
  lz4BrokenHeaderChecksum?: boolean;
}

/** Compresses `bytes` as Kafka's own clients do. */
export function compress(kind: Compression, bytes: Uint8Array, options: CompressionOptions = {}): Uint8Array {
  switch (kind) {
    case Compression.none:
      return bytes;
    case Compression.gzip:
      return plain(gzipSync(bytes));
    case Compression.snappy:
      return snappyCompress(bytes);
    case Compression.lz4:
      return lz4Compress(bytes, options.lz4BrokenHeaderChecksum ?? false);
    case Compression.zstd:
      return plain(zstdCompressSync(bytes));
    default:
      return unreachable(kind);
  }
}

/**
 * Decompresses `bytes` to at most `maxBytes`. Returns `bytes` itself where they are not compressed. A fault is
 * UNSUPPORTED_COMPRESSION_TYPE for a kind that Kafka does not know, else INVALID_RECORD.
 */
export function decompress(
  kind: number,
  bytes: Uint8Array,
  maxBytes: number,
  options: CompressionOptions = {},
): Uint8Array | RecordsFault {
  if (!isKnownCompression(kind)) {
    return new RecordsFault(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, `Unknown compression type ${kind}`);
  }
  switch (kind) {
    case Compression.none:
      return bytes;
    case Compression.gzip:
      return catching("gzip", maxBytes, () => gunzipSync(bytes, { maxOutputLength: maxBytes, chunkSize: CHUNK_BYTES }));
    case Compression.snappy:
      return snappyDecompress(bytes, maxBytes);
    case Compression.lz4:
      return lz4Decompress(bytes, maxBytes, options.lz4BrokenHeaderChecksum ?? false);
    case Compression.zstd:
      return zstdDecompress(bytes, maxBytes);
    default:
      return unreachable(kind);
  }
}

/** Bytes by which the runtime's decoders grow their output. */
const CHUNK_BYTES = 64 * 1024;

function zstdDecompress(bytes: Uint8Array, maxBytes: number): Uint8Array | RecordsFault {
  const frames = zstdFrames(bytes);
  if (frames instanceof RecordsFault) return frames;
  const parts: Uint8Array[] = [];
  let total = 0;
  for (const frame of frames) {
    const maxOutputLength = Math.max(1, maxBytes - total);
    const part = catching("zstd", maxBytes, () =>
      zstdDecompressSync(frame.bytes, {
        maxOutputLength,
        chunkSize: CHUNK_BYTES,
        params: { [constants.ZSTD_d_windowLogMax]: MAX_ZSTD_WINDOW_LOG },
      }));
    if (part instanceof RecordsFault) return part;
    if (frame.contentBytes !== null && frame.contentBytes !== part.length) return malformed("zstd", "short content");
    total += part.length;
    if (total > maxBytes) return tooLarge(maxBytes);
    parts.push(part);
  }
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(total);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Largest zstd window taken (log₂ of its bytes): zstd's own default limit, 128 MiB. */
const MAX_ZSTD_WINDOW_LOG = 27;

function catching(codec: CompressionName, maxBytes: number, run: () => Uint8Array): Uint8Array | RecordsFault {
  try {
    return plain(run());
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isBomb = (error as Error & { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE";
    return isBomb ? tooLarge(maxBytes) : malformed(codec, error.message);
  }
}

/** The same bytes as a plain Uint8Array: a node Buffer has a `slice` of another meaning. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
