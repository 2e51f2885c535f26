/**
 * The oracle of the compiled codecs: reads and writes messages by walking their declaration, in the plainest way there
 * is. It shares the declarations with the compiled code and nothing else: numbers go through BigInt, lengths through
 * lists of bytes.
 */

import { type AnyMessage, defaultOf, type FieldSpec, type MemberSpec } from "../../../../lib/protocol/schema.ts";

const WIDTHS: Record<string, { bytes: number; signed: boolean }> = {
  int8: { bytes: 1, signed: true },
  int16: { bytes: 2, signed: true },
  uint16: { bytes: 2, signed: false },
  int32: { bytes: 4, signed: true },
  uint32: { bytes: 4, signed: false },
  int64: { bytes: 8, signed: true },
  int64Exact: { bytes: 8, signed: true },
};

type Struct = Record<string, unknown>;

/** A tagged field that no declaration knows. */
export interface UnknownTag {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

/** Writes `value`; `unknown`, if given, says which unknown tagged fields each section of them gets besides. */
export function interpretEncode(
  message: AnyMessage,
  version: number,
  value: unknown,
  unknown: () => UnknownTag[] = () => [],
): Uint8Array {
  const flexible = version >= message.flexibleFrom;
  return Uint8Array.from(membersOut(message.members, value as Struct));

  function membersOut(members: readonly MemberSpec[], struct: Struct): number[] {
    const out: number[] = [];
    const tagged: { tag: number; bytes: number[] }[] = [];
    for (const { name, spec } of members) {
      if (version < spec.since || version > spec.until) continue;
      const bytes = valueOut(spec, struct[name]);
      if (spec.tag === null) out.push(...bytes);
      else if (!same(struct[name], defaultOf(spec))) tagged.push({ tag: spec.tag, bytes });
    }
    if (!flexible) return out;
    for (const { tag, bytes } of unknown()) tagged.push({ tag, bytes: [...bytes] });
    tagged.sort((a, b) => a.tag - b.tag);
    out.push(...varintOut(tagged.length));
    for (const { tag, bytes } of tagged) out.push(...varintOut(tag), ...varintOut(bytes.length), ...bytes);
    return out;
  }

  function valueOut(spec: FieldSpec, value: unknown): number[] {
    const width = WIDTHS[spec.kind];
    if (width !== undefined) return numberOut(BigInt(value as number), width.bytes);
    switch (spec.kind) {
      case "bool":
        return [value ? 1 : 0];
      case "float64": {
        const bytes = new Uint8Array(8);
        new DataView(bytes.buffer).setFloat64(0, value as number);
        return [...bytes];
      }
      case "uuid":
        return (value as string).replaceAll("-", "").match(/../g)!.map((pair) => parseInt(pair, 16));
      case "string": {
        const bytes = value === null ? null : [...new TextEncoder().encode(value as string)];
        return [...lengthOut(bytes === null ? -1 : bytes.length, 2), ...bytes ?? []];
      }
      case "array": {
        const items = value as unknown[] | null;
        const out = lengthOut(items === null ? -1 : items.length, 4);
        for (const item of items ?? []) out.push(...valueOut(spec.element!, item));
        return out;
      }
      case "struct": {
        if (value === null) return [255];
        const out = membersOut(spec.members!, value as Struct);
        return version >= spec.nullableFrom ? [1, ...out] : out;
      }
      default: {
        const bytes = value as Uint8Array | null;
        return [...lengthOut(bytes === null ? -1 : bytes.length, 4), ...bytes ?? []];
      }
    }
  }

  function lengthOut(length: number, classicBytes: number): number[] {
    return flexible ? varintOut(length + 1) : numberOut(BigInt(length), classicBytes);
  }
}

/** Reads `bytes`; throws a plain Error where they are not such a message. */
export function interpretDecode(message: AnyMessage, version: number, bytes: Uint8Array): unknown {
  const flexible = version >= message.flexibleFrom;
  let at = 0;
  const value = membersIn(message.members);
  if (at !== bytes.length) throw new Error("bytes left over");
  return value;

  function membersIn(members: readonly MemberSpec[]): Struct {
    const struct: Struct = {};
    for (const { name, spec } of members) {
      const inPlace = version >= spec.since && version <= spec.until && spec.tag === null;
      struct[name] = inPlace ? valueIn(spec) : defaultOf(spec);
    }
    if (!flexible) return struct;
    for (let left = varintIn(); left > 0; left--) {
      const tag = varintIn();
      const size = varintIn();
      const member = members.find(({ spec }) => spec.tag === tag && version >= spec.since && version <= spec.until);
      const end = at + size;
      if (member === undefined) take(size);
      else struct[member.name] = valueIn(member.spec);
      if (at !== end) throw new Error("a tagged field of another length");
    }
    return struct;
  }

  function valueIn(spec: FieldSpec): unknown {
    const width = WIDTHS[spec.kind];
    if (width !== undefined) {
      const number = numberIn(width.bytes, width.signed);
      if (spec.kind === "int64Exact") return number;
      const bound = BigInt(Number.MAX_SAFE_INTEGER);
      return Number(number > bound ? bound : number < -bound ? -bound : number);
    }
    switch (spec.kind) {
      case "bool":
        return take(1)[0] !== 0;
      case "float64":
        return new DataView(take(8).buffer).getFloat64(0);
      case "uuid": {
        const text = [...take(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
        return text.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
      }
      case "string": {
        const length = lengthIn(2, spec);
        return length === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(take(length));
      }
      case "array": {
        const count = lengthIn(4, spec);
        if (count === null) return null;
        const items: unknown[] = [];
        for (let index = 0; index < count; index++) items.push(valueIn(spec.element!));
        return items;
      }
      case "struct":
        if (version >= spec.nullableFrom && numberIn(1, true) < 0n) return null;
        return membersIn(spec.members!);
      default: {
        const length = lengthIn(4, spec);
        return length === null ? null : take(length);
      }
    }
  }

  function lengthIn(classicBytes: number, spec: FieldSpec): number | null {
    const length = flexible ? varintIn() - 1 : Number(numberIn(classicBytes, true));
    if (length >= 0) return length;
    if (version < spec.nullableFrom) throw new Error("null where a value must be");
    return null;
  }

  function varintIn(): number {
    let value = 0n;
    for (let shift = 0n;; shift += 7n) {
      const byte = BigInt(take(1)[0]);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return Number(value);
    }
  }

  function numberIn(width: number, signed: boolean): bigint {
    let value = 0n;
    for (const byte of take(width)) value = value << 8n | BigInt(byte);
    return signed ? BigInt.asIntN(width * 8, value) : value;
  }

  function take(count: number): Uint8Array {
    if (at + count > bytes.length) throw new Error("the bytes end");
    at += count;
    return bytes.slice(at - count, at);
  }
}

function numberOut(value: bigint, width: number): number[] {
  const out: number[] = [];
  for (let shift = BigInt(width - 1) * 8n; shift >= 0n; shift -= 8n) out.push(Number(value >> shift & 255n));
  return out;
}

function varintOut(value: number): number[] {
  const out: number[] = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n | 128n));
  return [...out, Number(rest)];
}

function same(a: unknown, b: unknown): boolean {
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => same((a as Struct)[key], (b as Struct)[key]));
}
