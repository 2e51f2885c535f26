/**
 * Holds every declared message against the facts of Apache Kafka 4.3, version by version and field by field.
 *
 * The facts are not part of this repository: they are looked for at `KAAS_SHARED`, or else beside the repository. The
 * versions below those that Kafka 4.3 knows are held by bytes instead, in `golden_test.ts`.
 */

import assert from "node:assert/strict";
import {
  type AnyMessage,
  defaultOf,
  type FieldSpec,
  type MemberSpec,
  ZERO_UUID,
} from "../../../lib/protocol/schema.ts";
import { allMessages } from "./support/all_messages.ts";

interface FactField {
  readonly name: string;
  readonly type: string;
  readonly versions: string;
  readonly nullableVersions?: string;
  readonly tag?: number;
  readonly taggedVersions?: string;
  readonly default?: unknown;
  readonly fields?: readonly FactField[];
}

interface Fact {
  readonly apiKey?: number;
  readonly type: string;
  readonly name: string;
  readonly validVersions: string;
  readonly flexibleVersions?: string;
  readonly fields: readonly FactField[];
  readonly commonStructs?: readonly FactField[];
}

/** What both sides are brought to: a field as one version sees it. */
interface Layout {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly tag: number | null;
  readonly default: unknown;
  readonly members: readonly Layout[] | null;
}

/** First versions of what Apache Kafka 3.9 served and 4.3 no longer does. */
const OLDER_THAN_FACTS: Record<string, number> = {
  Produce: 0,
  Fetch: 0,
  ListOffsets: 0,
  OffsetCommit: 0,
  OffsetFetch: 0,
  CreateTopics: 0,
  DeleteTopics: 0,
  OffsetForLeaderEpoch: 0,
  DescribeConfigs: 0,
  DescribeLogDirs: 0,
  WriteTxnMarkers: 0,
};

const shared = Deno.env.get("KAAS_SHARED") ?? new URL("../../../../shared", import.meta.url).pathname;
const path = `${shared}/protocol/messages.json`;
const facts = readFacts();

function readFacts(): Map<string, Fact> | null {
  try {
    const list: Fact[] = JSON.parse(Deno.readTextFileSync(path));
    return new Map(list.map((fact) => [fact.name, fact]));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.warn(`SKIPPED: the declared messages are not held against Kafka's, because ${path} is not there`);
    return null;
  }
}

function inRange(range: string | undefined, version: number): boolean {
  if (range === undefined || range === "none") return false;
  const [, first, open, last] = /^(\d+)(?:(\+)|-(\d+))?$/.exec(range)!;
  if (version < Number(first)) return false;
  return open === "+" || version <= Number(last ?? first);
}

function factLayout(fields: readonly FactField[], fact: Fact, version: number): Layout[] {
  return fields.filter((field) => inRange(field.versions, version)).map((field) => {
    const element = field.type.replace("[]", "");
    const members = field.fields ?? fact.commonStructs?.find(({ name }) => name === element)?.fields ?? null;
    const layout = members === null ? null : factLayout(members, fact, version);
    const isArray = field.type.startsWith("[]");
    return {
      name: field.name[0].toLowerCase() + field.name.slice(1),
      type: (isArray ? "[]" : "") + (members === null ? element : "struct"),
      nullable: inRange(field.nullableVersions, version),
      tag: inRange(field.taggedVersions, version) ? field.tag! : null,
      default: factDefault(field, isArray, layout),
      members: layout,
    };
  });
}

function factDefault(field: FactField, isArray: boolean, members: readonly Layout[] | null): unknown {
  const given = field.default;
  if (given === "null") return null;
  if (isArray) return [];
  if (members !== null) return Object.fromEntries(members.map((member) => [member.name, member.default]));
  switch (field.type) {
    case "string":
      return given ?? "";
    case "bool":
      return String(given ?? false) === "true";
    case "uuid":
      return ZERO_UUID;
    case "bytes":
    case "records":
      return new Uint8Array(0);
    default: {
      const number = Number(given ?? 0);
      return Math.min(Number.MAX_SAFE_INTEGER, Math.max(-Number.MAX_SAFE_INTEGER, number));
    }
  }
}

function declaredLayout(members: readonly MemberSpec[], version: number): Layout[] {
  return members.filter(({ spec }) => version >= spec.since && version <= spec.until).map(({ name, spec }) => {
    const element = spec.element ?? spec;
    const layout = element.members === null ? null : declaredLayout(element.members, version);
    const type = element.kind === "int64Exact" ? "int64" : element.kind;
    return {
      name,
      type: (spec.element === null ? "" : "[]") + type,
      nullable: version >= spec.nullableFrom,
      tag: spec.tag,
      default: declaredDefault(spec, layout),
      members: layout,
    };
  });
}

/** A struct's default counts only the members that the version carries. */
function declaredDefault(spec: FieldSpec, members: readonly Layout[] | null): unknown {
  if (spec.kind !== "struct" || spec.declaredDefault !== undefined) return defaultOf(spec);
  return Object.fromEntries(members!.map((member) => [member.name, member.default]));
}

function bounds(range: string): { first: number; last: number } {
  const [first, last] = range.split("-").map(Number);
  return { first, last: last ?? first };
}

function hold(message: AnyMessage, fact: Fact): void {
  assert.equal(message.apiKey, fact.apiKey ?? -1);
  assert.equal(message.type, fact.type);
  const { first, last } = bounds(fact.validVersions);
  const api = message.name.replace(/(Request|Response)$/, "");
  assert.equal(message.minVersion, OLDER_THAN_FACTS[api] ?? first, "first version");
  assert.equal(message.maxVersion, last, "last version");
  for (let version = first; version <= last; version++) {
    assert.equal(message.isFlexible(version), inRange(fact.flexibleVersions, version), `flexible in v${version}`);
    assert.deepEqual(declaredLayout(message.members, version), factLayout(fact.fields, fact, version), `v${version}`);
  }
}

for (const message of allMessages) {
  Deno.test({
    name: `${message.name} is declared as Kafka has it`,
    ignore: facts === null,
    fn() {
      const fact = facts!.get(message.name);
      assert.ok(fact, `Kafka has no ${message.name}`);
      hold(message, fact);
    },
  });
}

Deno.test("requests and responses come in pairs of the same API and versions", () => {
  const requests = allMessages.filter(({ type }) => type === "request");
  const responses = new Map(allMessages.filter(({ type }) => type === "response").map((it) => [it.apiKey, it]));
  assert.equal(requests.length, responses.size);
  for (const request of requests) {
    const response = responses.get(request.apiKey);
    assert.equal(response?.name, request.name.replace("Request", "Response"));
    assert.equal(response?.minVersion, request.minVersion);
    assert.equal(response?.maxVersion, request.maxVersion);
    assert.equal(response?.flexibleFrom, request.flexibleFrom);
  }
});
