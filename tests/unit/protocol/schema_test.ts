import assert from "node:assert/strict";
import {
  array,
  defaultOf,
  int32,
  message,
  string,
  struct,
  type ValueOf,
  ZERO_UUID,
} from "../../../lib/protocol/schema.ts";
import * as schema from "../../../lib/protocol/schema.ts";

Deno.test("a message knows its versions and where it became flexible", () => {
  const sample = message({ name: "Sample", apiKey: 1, type: "request", versions: "2-11", flexible: "6+" }, {});
  assert.deepEqual([1, 2, 11, 12].map((version) => sample.hasVersion(version)), [false, true, true, false]);
  assert.deepEqual([5, 6].map((version) => sample.isFlexible(version)), [false, true]);
  const single = message({ name: "Single", apiKey: 1, type: "request", versions: "0", flexible: "none" }, {});
  assert.deepEqual([single.minVersion, single.maxVersion, single.isFlexible(0)], [0, 0, false]);
});

Deno.test("mistakes in a declaration are found when it is made", () => {
  const head = { name: "Sample", apiKey: 1, type: "request", versions: "0", flexible: "none" } as const;
  assert.throws(() => message({ ...head, versions: "0+" }, {}), /cannot be parsed/);
  assert.throws(() => message({ ...head, flexible: "3" }, {}), /cannot be parsed/);
  assert.throws(() => message(head, { "1": int32() }), /no field name/);
  assert.throws(() => message(head, { "a-b": int32() }), /no field name/);
  assert.throws(() => int32().nullable(), /no way to say null/);
});

Deno.test("defaults are Kafka's own where none is declared, and new objects each time", () => {
  const spec = struct({
    number: int32(),
    minusOne: int32().default(-1),
    text: string().nullable(),
    nothing: string().nullable().default(null),
    list: array(int32()).nullable(),
    id: schema.uuid(),
    exact: schema.int64Exact(),
    raw: schema.bytes(),
  }).spec;
  assert.deepEqual(defaultOf(spec), {
    number: 0,
    minusOne: -1,
    text: "",
    nothing: null,
    list: [],
    id: ZERO_UUID,
    exact: 0n,
    raw: new Uint8Array(0),
  });
  assert.notEqual(defaultOf(spec), defaultOf(spec));
});

Deno.test("types follow from the declaration", () => {
  const sample = message({ name: "Sample", apiKey: 1, type: "request", versions: "0", flexible: "none" }, {
    name: string().nullable(),
    items: array(struct({ number: int32().default(3) })),
  });
  const value: ValueOf<typeof sample> = { name: null, items: [{ number: 1 }] };
  const input: schema.InputOf<typeof sample> = { name: "a", items: [{}] };
  // @ts-expect-error a value has every field
  const partial: ValueOf<typeof sample> = { name: null, items: [{}] };
  // @ts-expect-error a field without a default cannot be left out
  const missing: schema.InputOf<typeof sample> = { items: [] };
  assert.ok(value && input && partial && missing);
});
