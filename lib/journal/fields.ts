/** Small self-describing fields for what is kept in journals. Big-endian; a string is its length in bytes and UTF-8. */

const utf8 = new TextEncoder();
const text = new TextDecoder("utf-8", { ignoreBOM: true });

export class FieldWriter {
  #bytes = new Uint8Array(128);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  int8(value: number): this {
    this.#room(1);
    this.#view.setInt8(this.#at, value);
    this.#at += 1;
    return this;
  }

  int32(value: number): this {
    this.#room(4);
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
    return this;
  }

  /** A whole number that a double holds exactly. */
  int64(value: number): this {
    this.#room(8);
    this.#view.setBigInt64(this.#at, BigInt(value));
    this.#at += 8;
    return this;
  }

  /** A whole number from 0 to 2³¹ − 1, shorter where it is small. */
  varint(value: number): this {
    this.#room(5);
    for (; value > 0x7f; value >>>= 7) this.#bytes[this.#at++] = (value & 0x7f) | 0x80;
    this.#bytes[this.#at++] = value;
    return this;
  }

  /** A UUID in canonical form, as its 16 bytes. */
  uuid(value: string): this {
    this.#room(16);
    const hex = value.replaceAll("-", "");
    for (let at = 0; at < 32; at += 2) this.#bytes[this.#at++] = parseInt(hex.slice(at, at + 2), 16);
    return this;
  }

  bytes(value: Uint8Array | null): this {
    this.int32(value === null ? -1 : value.length);
    if (value === null) return this;
    this.#room(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
    return this;
  }

  string(value: string | null): this {
    return this.bytes(value === null ? null : utf8.encode(value));
  }

  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + count));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Reads what {@link FieldWriter} wrote. @throws {RangeError} from every method where the bytes end too early */
export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  int8(): number {
    return this.#view.getInt8(this.#advance(1));
  }

  int32(): number {
    return this.#view.getInt32(this.#advance(4));
  }

  /** How many elements follow; no more than there are bytes, since each takes some. */
  count(): number {
    const count = this.int32();
    if (count < 0 || count > this.#bytes.length - this.#at) throw new RangeError(`${count} elements are too many`);
    return count;
  }

  int64(): number {
    return Number(this.#view.getBigInt64(this.#advance(8)));
  }

  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes[this.#advance(1)];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError("a number has too many bytes");
  }

  uuid(): string {
    const start = this.#advance(16);
    const hex = Array.from(this.#bytes.subarray(start, start + 16), (byte) => byte.toString(16).padStart(2, "0")).join(
      "",
    );
    return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
  }

  bytes(): Uint8Array | null {
    const length = this.int32();
    if (length < 0) return null;
    const start = this.#advance(length);
    return this.#bytes.slice(start, start + length);
  }

  string(): string | null {
    const bytes = this.bytes();
    return bytes === null ? null : text.decode(bytes);
  }

  #advance(count: number): number {
    const start = this.#at;
    if (start + count > this.#bytes.length) throw new RangeError(`${this.#bytes.length} bytes are too few`);
    this.#at += count;
    return start;
  }
}
