/**
 * The language in which Kafka's messages are declared, and the TypeScript types that follow from a declaration.
 *
 * A message is an ordered record of fields: key order is wire order. Each field knows the versions that carry it, from
 * which version it may be null, its default and, where it travels as a tagged field (KIP-482), its tag. Declarations
 * are plain data; `compile_decoder.ts` and `compile_encoder.ts` turn (message, version) into code.
 *
 * Invariants:
 * - All versions of a message share one object shape; a field that a version does not carry takes its default there.
 * - A default that is not declared is Kafka's own: zero, false, "", no bytes, no elements, the zero UUID, and for a
 *   struct the struct of its defaults. That also holds for nullable fields; null is a default only where declared.
 */

/** The UUID of 16 zero bytes, by which Kafka says "no id". */
export const ZERO_UUID = "00000000-0000-0000-0000-000000000000";

/** Kinds of a field without elements or members of its own. */
export type ScalarKind =
  | "bool"
  | "int8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"
  | "int64"
  | "int64Exact"
  | "float64"
  | "uuid"
  | "string"
  | "bytes"
  | "records";

/** Kinds whose length or marker can say null. */
const NULLABLE_KINDS: readonly FieldSpec["kind"][] = ["string", "bytes", "records", "array", "struct"];

/** All that is declared about a field, as data. */
export interface FieldSpec {
  readonly kind: ScalarKind | "array" | "struct";
  /** What an array holds; null for every other kind. */
  readonly element: FieldSpec | null;
  /** A struct's members in wire order; null for every other kind. */
  readonly members: readonly MemberSpec[] | null;
  /** First version that carries the field. */
  readonly since: number;
  /** Last version that carries the field; `Infinity` when it never left. */
  readonly until: number;
  /** First version in which the field may be null; `Infinity` when it never may. */
  readonly nullableFrom: number;
  /** The declared default; undefined when Kafka's own applies. */
  readonly declaredDefault: unknown;
  /** The tag under which the field travels; null for a field at a fixed place. */
  readonly tag: number | null;
}

/** A named member of a struct or message. */
export interface MemberSpec {
  readonly name: string;
  readonly spec: FieldSpec;
}

/**
 * A field under declaration; every method gives a new field.
 *
 * `Value` is what decoding yields, `Input` what encoding takes, `Optional` whether encoding may leave the field out
 * (it has a declared default, is tagged, or left the protocol) and so means the default.
 */
export class Field<Value, Input, Optional extends boolean> {
  declare readonly value: Value;
  declare readonly input: Input;
  declare readonly optional: Optional;

  constructor(readonly spec: FieldSpec) {}

  /** The field travels from `version` on. */
  since(version: number): Field<Value, Input, Optional> {
    return new Field({ ...this.spec, since: version });
  }

  /** The field travels up to and including `version`. */
  until(version: number): Field<Value, Input, true> {
    return new Field({ ...this.spec, until: version });
  }

  /**
   * The field may be null from `version` on. Where an older version has no way to say null, encoding writes the empty
   * value in its place.
   */
  nullable(version = 0): Field<Value | null, Input | null, Optional> {
    if (!NULLABLE_KINDS.includes(this.spec.kind)) throw new TypeError(`${this.spec.kind} has no way to say null`);
    return new Field({ ...this.spec, nullableFrom: version });
  }

  /** What the field is in versions that do not carry it, and when encoding finds it left out. */
  default(value: Value): Field<Value, Input, true> {
    return new Field({ ...this.spec, declaredDefault: value });
  }

  /** The field travels as tagged field `tag` from `version` on, and only when it differs from its default. */
  tagged(tag: number, version: number): Field<Value, Input, true> {
    return new Field({ ...this.spec, tag, since: version });
  }
}

/** Members of a struct or message by name, in wire order. */
export type Shape = Readonly<Record<string, Field<unknown, unknown, boolean>>>;

/** What decoding a struct of this shape yields. */
export type ShapeValue<S extends Shape> = { [K in keyof S]: S[K]["value"] };

/** What encoding a struct of this shape takes. */
export type ShapeInput<S extends Shape> =
  & { [K in keyof S as S[K]["optional"] extends true ? never : K]: S[K]["input"] }
  & { [K in keyof S as S[K]["optional"] extends true ? K : never]?: S[K]["input"] };

function scalar<T>(kind: ScalarKind): Field<T, T, false> {
  return new Field({
    kind,
    element: null,
    members: null,
    since: 0,
    until: Infinity,
    nullableFrom: Infinity,
    declaredDefault: undefined,
    tag: null,
  });
}

/** One byte; anything but 0 reads as true. */
export const bool = () => scalar<boolean>("bool");
export const int8 = () => scalar<number>("int8");
export const int16 = () => scalar<number>("int16");
export const uint16 = () => scalar<number>("uint16");
export const int32 = () => scalar<number>("int32");
export const uint32 = () => scalar<number>("uint32");
/** A 64-bit number for comparing: what lies beyond ±(2⁵³−1) reads as that bound. */
export const int64 = () => scalar<number>("int64");
/** A 64-bit number that comes back exactly as it was sent; a third slower than {@link int64}. */
export const int64Exact = () => scalar<bigint>("int64Exact");
export const float64 = () => scalar<number>("float64");
/** 16 bytes, as lower-case text with hyphens. */
export const uuid = () => scalar<string>("uuid");
/** UTF-8 text of at most 32,767 bytes; bytes that are not UTF-8 read as U+FFFD. */
export const string = () => scalar<string>("string");
/** Bytes that decoding copies, so that they outlive the frame. */
export const bytes = () => scalar<Uint8Array>("bytes");
/** Record batches: decoding yields a view into the frame, encoding links large ones instead of copying them. */
export const records = () => scalar<Uint8Array>("records");

/** A sequence of `element`. */
export function array<V, I, O extends boolean>(element: Field<V, I, O>): Field<V[], readonly I[], false> {
  return new Field({ ...scalar("int8").spec, kind: "array", element: element.spec });
}

/** A group of fields. Where it is nullable, one byte in front of it says so: −1 null, 1 present (KIP-893). */
export function struct<S extends Shape>(shape: S): Field<ShapeValue<S>, ShapeInput<S>, false> {
  return new Field({ ...scalar("int8").spec, kind: "struct", members: membersOf(shape) });
}

/** What identifies a message and says how it travels. */
export interface MessageHead {
  /** Name for logs and errors, such as `FetchRequest`. */
  readonly name: string;
  /** The API's number; -1 for data that travels inside other messages. */
  readonly apiKey: number;
  readonly type: "request" | "response" | "data";
  /** All versions, as `"0-11"` or `"0"`. */
  readonly versions: string;
  /** First version with compact lengths and tagged fields, as `"6+"`, or `"none"`. */
  readonly flexible: string;
}

/** A declared message. {@link ValueOf} and {@link InputOf} give its TypeScript types. */
export class Message<Value, Input> {
  declare readonly value: Value;
  /** A type only. A method, so that a message may stand for one that takes whole values as for one of unknown type. */
  declare readonly takes: { method(value: Input): void }["method"];
  readonly name: string;
  readonly apiKey: number;
  readonly type: MessageHead["type"];
  readonly minVersion: number;
  readonly maxVersion: number;
  /** First flexible version; `Infinity` when there is none. */
  readonly flexibleFrom: number;
  readonly members: readonly MemberSpec[];
  /** Compiled readers and writers by version; filled by `codec.ts` on first use. */
  readonly decoders: unknown[] = [];
  readonly encoders: unknown[] = [];

  constructor(head: MessageHead, members: readonly MemberSpec[]) {
    const versions = /^(\d+)(?:-(\d+))?$/.exec(head.versions);
    const flexible = /^(?:(\d+)\+|none)$/.exec(head.flexible);
    if (versions === null || flexible === null) {
      throw new TypeError(`${head.name}: versions "${head.versions}", flexible "${head.flexible}" cannot be parsed`);
    }
    this.name = head.name;
    this.apiKey = head.apiKey;
    this.type = head.type;
    this.minVersion = Number(versions[1]);
    this.maxVersion = Number(versions[2] ?? versions[1]);
    this.flexibleFrom = flexible[1] === undefined ? Infinity : Number(flexible[1]);
    this.members = members;
  }

  /** Whether `version` is one that the declaration covers. */
  hasVersion(version: number): boolean {
    return version >= this.minVersion && version <= this.maxVersion;
  }

  /** Whether `version` uses compact lengths and tagged fields. */
  isFlexible(version: number): boolean {
    return version >= this.flexibleFrom;
  }
}

/** Any message, where its types do not matter. */
export type AnyMessage = Message<unknown, unknown>;
/** What decoding the message yields: every field is there in every version. */
export type ValueOf<M extends AnyMessage> = M["value"];
/** What encoding the message takes: fields with a default may be left out. */
export type InputOf<M extends AnyMessage> = Parameters<M["takes"]>[0];

/** Declares a message. Key order is wire order. */
export function message<S extends Shape>(head: MessageHead, shape: S): Message<ShapeValue<S>, ShapeInput<S>> {
  return new Message(head, membersOf(shape));
}

function membersOf(shape: Shape): MemberSpec[] {
  return Object.entries(shape).map(([name, field]) => {
    // Names go into generated code; integer-like keys would also lose their place in the order.
    if (!/^[a-z][A-Za-z0-9]*$/.test(name)) throw new TypeError(`"${name}" is no field name in camelCase`);
    return { name, spec: field.spec };
  });
}

/** Whether messages of `version` carry the field at all, be it in place or tagged. */
export function isPresent(spec: FieldSpec, version: number): boolean {
  return version >= spec.since && version <= spec.until;
}

/** Source text of a field's default for generated code: a new object wherever it is one. */
export function defaultLiteral(spec: FieldSpec): string {
  if (spec.kind === "struct" && spec.declaredDefault === undefined) {
    return `{ ${spec.members!.map(({ name, spec }) => `${name}: ${defaultLiteral(spec)}`).join(", ")} }`;
  }
  const value = defaultOf(spec);
  if (value instanceof Uint8Array) return "new Uint8Array(0)";
  if (typeof value === "bigint") return `${value}n`;
  return JSON.stringify(value);
}

/** The value the field has where a version or a sender leaves it out. A new object on each call. */
export function defaultOf(spec: FieldSpec): unknown {
  if (spec.declaredDefault !== undefined) return spec.declaredDefault;
  switch (spec.kind) {
    case "bool":
      return false;
    case "int64Exact":
      return 0n;
    case "uuid":
      return ZERO_UUID;
    case "string":
      return "";
    case "bytes":
    case "records":
      return new Uint8Array(0);
    case "array":
      return [];
    case "struct":
      return Object.fromEntries(spec.members!.map((member) => [member.name, defaultOf(member.spec)]));
    default:
      return 0;
  }
}
