/**
 * Bytes that other people's libraries made, and what is inside them.
 *
 * `java_batches.json` holds batches of kafka-clients 3.9.1 (the last that writes magic 0 and 1) made with its
 * MemoryRecordsBuilder; `compressed_text.json` frames of liblz4 and zstd (Python's lz4 and zstandard) and of Python's
 * gzip, in the forms that clients in other languages send.
 */
import javaBatches from "../../golden/records/java_batches.json" with { type: "json" };
import compressedText from "../../golden/records/compressed_text.json" with { type: "json" };

/** The bytes of a hex string. */
export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

/** Names of the batches that Java made: `v<magic> <compression>[ large]` and some special ones. */
export type JavaBatch = keyof typeof javaBatches;

/** A copy of a batch that Java made. */
export function javaBatch(name: JavaBatch): Uint8Array {
  return fromHex(javaBatches[name]);
}

/** The frames of one codec by what is special about them. */
export function framesOf(codec: "lz4" | "zstd" | "gzip"): [string, Uint8Array][] {
  return Object.entries(compressedText[codec]).map(([name, hex]) => [name, fromHex(hex)]);
}

/** 300 random bytes, packed in the frames named "noise". */
export const noise = fromHex(compressedText.noise);

/** 150,000 bytes of text, packed in all other frames. */
export const text = new TextEncoder().encode(
  Array.from({ length: 9000 }, (_, index) => `record ${index % 11} of a batch;`).join(""),
).subarray(0, 150_000);

/** The value of the single record in the batches named "large". */
export const largeValue = new TextEncoder().encode(
  Array.from({ length: 5000 }, (_, index) => `line ${index % 7} of kaas;\n`).join(""),
);

/** The four records of the small batches; magic 0 has no times (−1), headers are in magic 2 only. */
export const smallRecords = [
  {
    timestamp: 1700000000000,
    key: "key-0",
    value: "first value",
    headers: [{ key: "trace", value: "a1" }, { key: "none", value: null }, { key: "", value: "" }],
  },
  { timestamp: 1700000000250, key: null, value: "no key", headers: [] },
  { timestamp: 1699999999000, key: "gone", value: null, headers: [] },
  { timestamp: 1700000000100, key: "", value: "", headers: [] },
];

/** Pseudo-random numbers in [0, 1) by seed (mulberry32). */
export function seeded(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/** Random bytes in runs and noise, so that compressors find something and not everything. */
export function compressible(random: () => number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const run = 1 + Math.floor(random() * 200);
    const from = random() < 0.6 && at > 0 ? Math.floor(random() * at) : -1;
    for (let end = Math.min(length, at + run), step = 0; at < end; at++, step++) {
      bytes[at] = from < 0 ? Math.floor(random() * 256) : bytes[from + step];
    }
  }
  return bytes;
}

/** Cuts and flips of `bytes`: every length (in steps) and random damage. */
export function* damaged(bytes: Uint8Array, random: () => number, flips: number): Generator<Uint8Array> {
  for (let length = 0; length < bytes.length; length += 1 + Math.floor(bytes.length / 200)) {
    yield bytes.slice(0, length);
  }
  for (let round = 0; round < flips; round++) {
    const copy = bytes.slice();
    for (let count = 1 + Math.floor(random() * 4); count > 0; count--) {
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
    }
    yield copy;
  }
}
