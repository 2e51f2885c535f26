/** Random values of any message, as decoding that version would yield them. */

import { type AnyMessage, defaultOf, type FieldSpec, type MemberSpec } from "../../../../lib/protocol/schema.ts";
import type { Seeded } from "./seeded.ts";

const TEXTS = [
  "",
  "a",
  "orders",
  "12345678",
  "123456789",
  "naïve",
  "日本語のトピック",
  "🦀",
  "\ufeffmark",
  "x".repeat(32),
];

/** A random value of `message` in `version`: what the version does not carry has its default. */
export function randomMessage(message: AnyMessage, version: number, random: Seeded): unknown {
  return members(message.members);

  function members(specs: readonly MemberSpec[]): Record<string, unknown> {
    return Object.fromEntries(specs.map(({ name, spec }) => [name, member(spec)]));
  }

  function member(spec: FieldSpec): unknown {
    if (version < spec.since || version > spec.until) return defaultOf(spec);
    if (spec.tag !== null && random.oneIn(2)) return defaultOf(spec);
    return value(spec);
  }

  function value(spec: FieldSpec): unknown {
    if (version >= spec.nullableFrom && random.oneIn(4)) return null;
    switch (spec.kind) {
      case "bool":
        return random.oneIn(2);
      case "int8":
        return random.below(256) - 128;
      case "int16":
        return random.below(0x10000) - 0x8000;
      case "uint16":
        return random.below(0x10000);
      case "int32":
        return random.pick([0, -1, 0x7fffffff, -0x80000000, random.below(1000)]);
      case "uint32":
        return random.pick([0, 0xffffffff, random.below(1000)]);
      case "int64": {
        const any = random.below(0x200000) * 0x100000000 + random.below(0x100000000);
        return random.pick([0, -1, any, -any, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0xffffffff]);
      }
      case "int64Exact":
        return random.pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), BigInt(random.below(0x100000000))]);
      case "float64":
        return random.pick([0, -1.5, Infinity, Number.MIN_VALUE, random.below(1000) / 7]);
      case "uuid": {
        const digits = [...random.bytes(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
        return digits.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
      }
      case "string":
        return random.oneIn(20) ? "é".repeat(random.below(200)) : random.pick(TEXTS);
      case "bytes":
        return random.bytes(random.pick([0, 1, 20, 130]));
      case "records":
        return random.oneIn(20) ? random.bytes(8192 + random.below(100)) : random.bytes(random.pick([0, 5, 200]));
      case "array": {
        const element = spec.element!;
        const count = element.kind === "struct" || !random.oneIn(20) ? random.below(4) : 130;
        return Array.from({ length: count }, () => value(element));
      }
      case "struct":
        return members(spec.members!);
    }
  }
}
