/**
 * Turns a message's declaration and one version into the straight-line code that writes it.
 *
 * The code holds the writer's buffer and position in local variables and asks for room once per run of neighbouring
 * fixed-size fields. What a version does not carry is not looked at. Null where the version cannot say null, in a field
 * that other versions may leave null, is written as the empty value.
 */

import { defaultLiteral, type FieldSpec, isPresent, type MemberSpec } from "./schema.ts";
import type { DecodableMessage } from "./compile_decoder.ts";
import type { Writer } from "./writer.ts";

/** Writes one message behind what the writer holds. */
export type Encoder<Input> = (value: Input, writer: Writer) => void;

const FIXED: Partial<
  Record<FieldSpec["kind"], { readonly bytes: number; readonly write: (at: string, value: string) => string }>
> = {
  bool: { bytes: 1, write: (at, value) => `view.setInt8(${at}, ${value} ? 1 : 0);` },
  int8: { bytes: 1, write: (at, value) => `view.setInt8(${at}, ${value});` },
  int16: { bytes: 2, write: (at, value) => `view.setInt16(${at}, ${value});` },
  uint16: { bytes: 2, write: (at, value) => `view.setUint16(${at}, ${value});` },
  int32: { bytes: 4, write: (at, value) => `view.setInt32(${at}, ${value});` },
  uint32: { bytes: 4, write: (at, value) => `view.setUint32(${at}, ${value});` },
  int64: { bytes: 8, write: (at, value) => `setInt64(view, ${at}, ${value});` },
  int64Exact: { bytes: 8, write: (at, value) => `view.setBigInt64(${at}, ${value});` },
  float64: { bytes: 8, write: (at, value) => `view.setFloat64(${at}, ${value});` },
};

/** Compiles the writer of `message` in `version`. */
export function compileEncoder<Input>(message: DecodableMessage, version: number): Encoder<Input> {
  return new Function("setInt64", encoderSource(message, version))(setInt64);
}

/** The code {@link compileEncoder} runs; for tests and for looking at it. */
export function encoderSource(message: DecodableMessage, version: number): string {
  return new EncoderWriter(version, message.isFlexible(version)).write(message.members);
}

function setInt64(view: DataView, at: number, value: number): void {
  view.setInt32(at, Math.floor(value / 0x100000000));
  view.setUint32(at + 4, value);
}

class EncoderWriter {
  readonly #version: number;
  readonly #flexible: boolean;
  readonly #lines: string[] = [];
  #names = 0;
  /** Line that will ask for the present run's room; -1 outside a run. */
  #runLine = -1;
  #runBytes = 0;

  constructor(version: number, flexible: boolean) {
    this.#version = version;
    this.#flexible = flexible;
  }

  write(members: readonly MemberSpec[]): string {
    this.#members(members, "value");
    this.#endRun();
    return [
      `"use strict";`,
      `return (value, writer) => {`,
      `let bytes = writer.bytes, view = writer.view, p = writer.position;`,
      ...this.#lines,
      `writer.position = p;`,
      `};`,
    ].join("\n");
  }

  #emit(line: string): void {
    this.#lines.push(line);
  }

  #name(prefix: string): string {
    return `${prefix}${this.#names++}`;
  }

  /** Room for `bytes` more in the present run; gives the place to write at. */
  #reserve(bytes: number): string {
    if (this.#runLine === -1) {
      this.#runLine = this.#lines.length;
      this.#emit("");
    }
    const at = this.#runBytes === 0 ? "p" : `p + ${this.#runBytes}`;
    this.#runBytes += bytes;
    return at;
  }

  /** Ends the present run; needed before every branch and loop and wherever `p` must be up to date. */
  #endRun(): void {
    if (this.#runLine === -1) return;
    this.#lines[this.#runLine] = roomFor(String(this.#runBytes));
    this.#emit(`p += ${this.#runBytes};`);
    this.#runLine = -1;
    this.#runBytes = 0;
  }

  /** Emits a call of a writer's method, which may grow the buffer. */
  #call(call: string): void {
    this.#endRun();
    this.#emit(`writer.position = p; writer.${call}; ${REREAD}`);
  }

  #members(members: readonly MemberSpec[], object: string): void {
    const tagged: MemberSpec[] = [];
    for (const member of members) {
      if (!isPresent(member.spec, this.#version)) continue;
      if (member.spec.tag === null) this.#value(member.spec, this.#take(member, object));
      else tagged.push(member);
    }
    if (this.#flexible) this.#taggedFields(tagged, object);
  }

  /** Emits the reading of a member of `object` into a variable, with its default where it may be left out. */
  #take({ name, spec }: MemberSpec, object: string): string {
    const variable = this.#name("v");
    const optional = spec.declaredDefault !== undefined || spec.tag !== null || spec.until !== Infinity;
    if (!optional) {
      this.#emit(`const ${variable} = ${object}.${name};`);
      return variable;
    }
    this.#emit(`let ${variable} = ${object}.${name};`);
    this.#emit(`if (${variable} === undefined) ${variable} = ${defaultLiteral(spec)};`);
    return variable;
  }

  #taggedFields(tagged: readonly MemberSpec[], object: string): void {
    if (tagged.length === 0) {
      this.#emit(`bytes[${this.#reserve(1)}] = 0;`);
      return;
    }
    this.#endRun();
    const count = this.#name("count");
    this.#emit(`let ${count} = 0;`);
    const fields = [...tagged].sort((a, b) => a.spec.tag! - b.spec.tag!).map(({ name, spec }) => {
      const written = this.#name("written");
      this.#emit(`const ${written} = ${differs(spec, `${object}.${name}`, this.#version)};`);
      this.#emit(`if (${written}) ${count} += 1;`);
      return { written, name, spec };
    });
    this.#varint(count);
    this.#emit(`if (${count} !== 0) {`);
    for (const { written, name, spec } of fields) {
      this.#emit(`if (${written}) {`);
      this.#varint(String(spec.tag));
      const before = this.#name("before");
      this.#emit(`writer.position = p;`);
      this.#emit(`const ${before} = writer.byteLength;`);
      this.#value(spec, this.#take({ name, spec }, object));
      this.#call(`insertSize(${before})`);
      this.#emit(`}`);
    }
    this.#emit(`}`);
  }

  #value(spec: FieldSpec, value: string): void {
    const fixed = FIXED[spec.kind];
    if (fixed !== undefined) {
      this.#emit(fixed.write(this.#reserve(fixed.bytes), value));
      return;
    }
    if (spec.nullableFrom === Infinity) return this.#present(spec, value);
    this.#endRun();
    this.#emit(`if (${value} === null) {`);
    this.#null(spec);
    this.#endRun();
    this.#emit(`} else {`);
    if (spec.kind === "struct" && spec.nullableFrom <= this.#version) {
      this.#emit(`view.setInt8(${this.#reserve(1)}, 1);`);
    }
    this.#present(spec, value);
    this.#endRun();
    this.#emit(`}`);
  }

  #null(spec: FieldSpec): void {
    const length = spec.nullableFrom <= this.#version ? -1 : 0;
    if (spec.kind === "struct") {
      if (length === -1) this.#emit(`view.setInt8(${this.#reserve(1)}, -1);`);
      else this.#emit(`throw new TypeError("null where this version has a struct");`);
    } else if (this.#flexible) {
      this.#emit(`bytes[${this.#reserve(1)}] = ${length + 1};`);
    } else {
      const bytes = spec.kind === "string" ? 2 : 4;
      this.#emit(`view.setInt${bytes * 8}(${this.#reserve(bytes)}, ${length});`);
    }
  }

  #present(spec: FieldSpec, value: string): void {
    switch (spec.kind) {
      case "uuid":
        return this.#call(`uuid(${value})`);
      case "string":
        return this.#call(`${this.#flexible ? "compactString" : "string"}(${value})`);
      case "bytes":
        this.#length(`${value}.length`);
        return this.#call(`raw(${value})`);
      case "records":
        this.#length(`${value}.length`);
        return this.#call(`records(${value})`);
      case "array":
        return this.#array(spec.element!, value);
      default:
        return this.#members(spec.members!, value);
    }
  }

  #array(element: FieldSpec, list: string): void {
    const count = this.#name("n");
    const index = this.#name("i");
    this.#emit(`const ${count} = ${list}.length;`);
    this.#length(count);
    this.#endRun();
    const fixed = FIXED[element.kind];
    if (fixed !== undefined) this.#emit(roomFor(`${count} * ${fixed.bytes}`));
    this.#emit(`for (let ${index} = 0; ${index} < ${count}; ${index}++) {`);
    if (fixed !== undefined) {
      this.#emit(fixed.write("p", `${list}[${index}]`));
      this.#emit(`p += ${fixed.bytes};`);
    } else {
      const item = this.#name("item");
      this.#emit(`const ${item} = ${list}[${index}];`);
      this.#value(element, item);
      this.#endRun();
    }
    this.#emit(`}`);
  }

  /** Emits a length or count in front of what it counts. */
  #length(length: string): void {
    if (this.#flexible) this.#varint(`${length} + 1`);
    else this.#emit(`view.setInt32(${this.#reserve(4)}, ${length});`);
  }

  #varint(value: string): void {
    this.#endRun();
    const number = this.#name("u");
    this.#emit(roomFor("5"));
    this.#emit(`const ${number} = ${value};`);
    this.#emit(`if (${number} < 128) { bytes[p] = ${number}; p += 1; }`);
    this.#emit(`else { writer.position = p; writer.varint(${number}); p = writer.position; }`);
  }
}

const REREAD = `bytes = writer.bytes; view = writer.view; p = writer.position;`;

function roomFor(bytes: string): string {
  return `if (p + ${bytes} > bytes.length) { writer.position = p; writer.grow(${bytes}); ${REREAD} }`;
}

/** Source text of whether `value` differs from the field's default, so that a tagged field must be written. */
function differs(spec: FieldSpec, value: string, version: number): string {
  const given = `${value} !== undefined`;
  if (spec.declaredDefault !== undefined) return `(${given} && ${value} !== ${defaultLiteral(spec)})`;
  const orNull = spec.nullableFrom === Infinity ? "" : `${value} === null || `;
  switch (spec.kind) {
    case "bytes":
    case "records":
    case "array":
      return `(${given} && (${orNull}${value}.length !== 0))`;
    case "struct": {
      const members = spec.members!.filter((member) => isPresent(member.spec, version));
      const any = members.map((member) => differs(member.spec, `${value}.${member.name}`, version)).join(" || ");
      return `(${given} && (${orNull}${any || "false"}))`;
    }
    default:
      return `(${given} && ${value} !== ${defaultLiteral(spec)})`;
  }
}
