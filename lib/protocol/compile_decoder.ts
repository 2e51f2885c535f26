/**
 * Turns a message's declaration and one version into the straight-line code that reads it.
 *
 * The code keeps its position in a local variable, adds up the widths of neighbouring fixed-size fields, and builds
 * each object by one literal whose keys are in declared order, so that all versions share a shape.
 *
 * Invariants of the generated code:
 * - Nothing is allocated for a length or a count that the bytes left cannot hold, nor for more elements than
 *   {@link MAX_REQUEST_ELEMENTS} in what a client sent.
 * - It ends with a value and the position behind it, or throws MalformedFrame, or lets DataView's RangeError through,
 *   which says that the bytes end inside the message.
 */

import { defaultLiteral, type FieldSpec, isPresent, type MemberSpec, type ScalarKind } from "./schema.ts";
import { MalformedFrame } from "./malformed_frame.ts";
import { type Cursor, readText, readUuid, readVarintRest } from "./primitives.ts";

/** Reads one message; `cursor.position` is where to begin, and afterwards where the message ended. */
export type Decoder<Value> = (bytes: Uint8Array, view: DataView, cursor: Cursor) => Value;

/** What a declaration must say of itself to be compiled. */
export interface DecodableMessage {
  readonly name: string;
  readonly type: "request" | "response" | "data";
  readonly members: readonly MemberSpec[];
  isFlexible(version: number): boolean;
}

/** Arrays of up to this many elements are allocated at once; longer ones grow with what is really read. */
const PREALLOCATED_ELEMENTS = 4096;
/**
 * Requests hold at most this many array elements in all. Two bytes can be an element that takes fifty times as much
 * memory; without an end, one frame of the allowed size could fill the heap.
 */
export const MAX_REQUEST_ELEMENTS = 1 << 20;
const MAX_STRING_BYTES = 0x7fff;

const FIXED: Partial<Record<FieldSpec["kind"], { readonly bytes: number; readonly read: (at: string) => string }>> = {
  bool: { bytes: 1, read: (at) => `view.getInt8(${at}) !== 0` },
  int8: { bytes: 1, read: (at) => `view.getInt8(${at})` },
  int16: { bytes: 2, read: (at) => `view.getInt16(${at})` },
  uint16: { bytes: 2, read: (at) => `view.getUint16(${at})` },
  int32: { bytes: 4, read: (at) => `view.getInt32(${at})` },
  uint32: { bytes: 4, read: (at) => `view.getUint32(${at})` },
  int64: { bytes: 8, read: (at) => `int64(view, ${at})` },
  int64Exact: { bytes: 8, read: (at) => `view.getBigInt64(${at})` },
  float64: { bytes: 8, read: (at) => `view.getFloat64(${at})` },
};

/** Compiles the reader of `message` in `version`. */
export function compileDecoder<Value>(message: DecodableMessage, version: number): Decoder<Value> {
  const source = decoderSource(message, version);
  const fail = (position: number, path: string, problem: string) => {
    throw new MalformedFrame(`${message.name} v${version}${path === "" ? "" : `, ${path}`}: ${problem}`, position);
  };
  const create = new Function("fail", "readText", "readUuid", "readVarintRest", "int64", source);
  return create(fail, readText, readUuid, readVarintRest, readInt64);
}

/** The code {@link compileDecoder} runs; for tests and for looking at it. */
export function decoderSource(message: DecodableMessage, version: number): string {
  return new DecoderWriter(message, version).write(message.members);
}

function readInt64(view: DataView, at: number): number {
  const value = view.getInt32(at) * 0x100000000 + view.getUint32(at + 4);
  if (value > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return value < -Number.MAX_SAFE_INTEGER ? -Number.MAX_SAFE_INTEGER : value;
}

/** The fewest bytes a value of the field can take; at least 1, so that counts are always bounded by bytes. */
function minBytes(spec: FieldSpec, version: number, flexible: boolean): number {
  const fixed = FIXED[spec.kind];
  if (fixed !== undefined) return fixed.bytes;
  if (spec.kind === "uuid") return 16;
  if (spec.kind === "string") return flexible ? 1 : 2;
  if (spec.kind !== "struct") return flexible ? 1 : 4;
  if (spec.nullableFrom <= version) return 1;
  let sum = flexible ? 1 : 0;
  for (const { spec: member } of spec.members!) {
    if (member.tag === null && isPresent(member, version)) sum += minBytes(member, version, flexible);
  }
  return Math.max(1, sum);
}

class DecoderWriter {
  readonly #version: number;
  readonly #flexible: boolean;
  /** Whether elements are counted: in all that clients send. */
  readonly #bounded: boolean;
  readonly #lines: string[] = [];
  #names = 0;
  /** Bytes that generated code has read since it last moved `p`. */
  #ahead = 0;

  constructor(message: DecodableMessage, version: number) {
    this.#version = version;
    this.#flexible = message.isFlexible(version);
    this.#bounded = message.type !== "response";
  }

  write(members: readonly MemberSpec[]): string {
    const value = this.#members(members, "");
    this.#settle();
    return [
      `"use strict";`,
      `return (bytes, view, cursor) => {`,
      `const end = view.byteLength; let p = cursor.position, elements = 0;`,
      ...this.#lines,
      `cursor.position = p;`,
      `return ${value};`,
      `};`,
    ].join("\n");
  }

  #emit(line: string): void {
    this.#lines.push(line);
  }

  #name(prefix: string): string {
    return `${prefix}${this.#names++}`;
  }

  #at(): string {
    return this.#ahead === 0 ? "p" : `p + ${this.#ahead}`;
  }

  /** Brings `p` up to date; needed before every branch, loop and use of `p` as such. */
  #settle(): void {
    if (this.#ahead !== 0) this.#emit(`p += ${this.#ahead};`);
    this.#ahead = 0;
  }

  /** Emits the reading of a struct's members; gives the literal that builds the object. */
  #members(members: readonly MemberSpec[], path: string): string {
    const entries: string[] = [];
    const tagged: { variable: string; member: MemberSpec }[] = [];
    for (const member of members) {
      const { name, spec } = member;
      const variable = this.#name("v");
      entries.push(`${name}: ${variable}`);
      if (spec.tag === null && isPresent(spec, this.#version)) {
        this.#emit(`let ${variable};`);
        this.#value(spec, variable, path === "" ? name : `${path}.${name}`);
      } else {
        this.#emit(`let ${variable} = ${defaultLiteral(spec)};`);
        if (spec.tag !== null && isPresent(spec, this.#version)) tagged.push({ variable, member });
      }
    }
    if (this.#flexible) this.#taggedFields(tagged, path);
    return `{ ${entries.join(", ")} }`;
  }

  #taggedFields(tagged: readonly { variable: string; member: MemberSpec }[], path: string): void {
    const left = this.#varint();
    const tag = this.#name("tag");
    this.#emit(`for (; ${left} > 0; ${left}--) {`);
    this.#emit(`let ${tag};`);
    this.#varint(tag);
    const size = this.#varint();
    const stop = this.#name("stop");
    const where = JSON.stringify(path);
    this.#emit(`if (${size} > end - p) fail(p, ${where}, "a tagged field claims " + ${size} + " bytes");`);
    this.#emit(`const ${stop} = p + ${size};`);
    this.#emit(`switch (${tag}) {`);
    for (const { variable, member: { name, spec } } of tagged) {
      this.#emit(`case ${spec.tag}: {`);
      this.#value(spec, variable, path === "" ? name : `${path}.${name}`);
      this.#settle();
      this.#emit(`break; }`);
    }
    this.#emit(`default: p = ${stop};`);
    this.#emit(`}`);
    this.#emit(`if (p !== ${stop}) fail(p, ${where}, "tagged field " + ${tag} + " is not as long as it claims");`);
    this.#emit(`}`);
  }

  /** Emits the reading of one field into `variable`. */
  #value(spec: FieldSpec, variable: string, path: string): void {
    const fixed = FIXED[spec.kind];
    if (fixed !== undefined) {
      this.#emit(`${variable} = ${fixed.read(this.#at())};`);
      this.#ahead += fixed.bytes;
      return;
    }
    const nullable = spec.nullableFrom <= this.#version;
    switch (spec.kind) {
      case "uuid":
        this.#settle();
        this.#emit(`if (end - p < 16) fail(p, ${JSON.stringify(path)}, "the bytes end inside it");`);
        this.#emit(`${variable} = readUuid(bytes, p);`);
        this.#ahead = 16;
        return;
      case "struct":
        return this.#struct(spec, variable, path, nullable);
      case "array":
        return this.#array(spec, variable, path, nullable);
      default:
        return this.#lengthPrefixed(spec.kind as ScalarKind, variable, path, nullable);
    }
  }

  #struct(spec: FieldSpec, variable: string, path: string, nullable: boolean): void {
    if (!nullable) {
      const value = this.#members(spec.members!, path);
      this.#emit(`${variable} = ${value};`);
      return;
    }
    const marker = this.#name("marker");
    this.#emit(`const ${marker} = view.getInt8(${this.#at()});`);
    this.#ahead += 1;
    this.#settle();
    this.#emit(`if (${marker} < 0) ${variable} = null; else {`);
    const value = this.#members(spec.members!, path);
    this.#settle();
    this.#emit(`${variable} = ${value};`);
    this.#emit(`}`);
  }

  #array(spec: FieldSpec, variable: string, path: string, nullable: boolean): void {
    const element = spec.element!;
    const smallest = minBytes(element, this.#version, this.#flexible);
    const count = this.#length(4);
    const where = JSON.stringify(path);
    this.#openNullable(count, variable, where, nullable);
    this.#emit(`if (${smallest === 1 ? count : `${count} * ${smallest}`} > end - p)`);
    this.#emit(`  fail(p, ${where}, "there is no room for " + ${count} + " elements");`);
    if (this.#bounded) {
      this.#emit(`elements += ${count};`);
      this.#emit(`if (elements > ${MAX_REQUEST_ELEMENTS}) fail(p, ${where}, "too many elements: " + elements);`);
    }
    const list = this.#name("list");
    const index = this.#name("i");
    this.#emit(`const ${list} = ${count} <= ${PREALLOCATED_ELEMENTS} ? new Array(${count}) : [];`);
    this.#emit(`for (let ${index} = 0; ${index} < ${count}; ${index}++) {`);
    const item = this.#name("item");
    this.#emit(`let ${item};`);
    this.#value(element, item, path);
    this.#settle();
    this.#emit(`${list}[${index}] = ${item};`);
    this.#emit(`}`);
    this.#emit(`${variable} = ${list};`);
    this.#emit(`}`);
  }

  #lengthPrefixed(kind: ScalarKind, variable: string, path: string, nullable: boolean): void {
    const length = this.#length(kind === "string" ? 2 : 4);
    const where = JSON.stringify(path);
    this.#openNullable(length, variable, where, nullable);
    if (kind === "string" && this.#flexible) {
      this.#emit(`if (${length} > ${MAX_STRING_BYTES}) fail(p, ${where}, "a string of " + ${length} + " bytes");`);
    }
    this.#emit(`if (${length} > end - p) fail(p, ${where}, ${length} + " bytes claimed, " + (end - p) + " left");`);
    const read = kind === "string"
      ? `readText(bytes, p, ${length})`
      : `bytes.${kind === "bytes" ? "slice" : "subarray"}(p, p + ${length})`;
    this.#emit(`${variable} = ${read};`);
    this.#emit(`p += ${length};`);
    this.#emit(`}`);
  }

  /** Opens the block for a length that is not negative; null, or a failure, for one that is. */
  #openNullable(length: string, variable: string, where: string, nullable: boolean): void {
    const otherwise = nullable ? `${variable} = null` : `fail(p, ${where}, "null where a value must be")`;
    this.#emit(`if (${length} < 0) ${otherwise}; else {`);
  }

  /** Emits the reading of a length or count, `classicBytes` wide where it is not a varint; -1 means null. */
  #length(classicBytes: 2 | 4): string {
    if (this.#flexible) {
      const length = this.#varint();
      this.#emit(`${length} -= 1;`);
      return length;
    }
    const length = this.#name("n");
    this.#emit(`const ${length} = view.getInt${classicBytes * 8}(${this.#at()});`);
    this.#ahead += classicBytes;
    this.#settle();
    return length;
  }

  /** Emits the reading of an unsigned varint into a new variable, or into `variable`. */
  #varint(variable?: string): string {
    const name = variable ?? this.#name("n");
    this.#emit(`${variable === undefined ? "let " : ""}${name} = view.getUint8(${this.#at()});`);
    this.#ahead += 1;
    this.#settle();
    this.#emit(`if (${name} > 127) {`);
    this.#emit(`cursor.position = p; ${name} = readVarintRest(view, cursor, ${name}); p = cursor.position;`);
    this.#emit(`}`);
    return name;
  }
}
