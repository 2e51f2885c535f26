/**
 * The compiled codecs against the interpreter of the same declarations, over all messages and versions, and their
 * behaviour on bytes that no honest peer sends.
 */

import assert from "node:assert/strict";
import { decode, decodeFront, encode, MalformedFrame } from "../../../lib/protocol/codec.ts";
import { MAX_REQUEST_ELEMENTS } from "../../../lib/protocol/compile_decoder.ts";
import * as schema from "../../../lib/protocol/schema.ts";
import { fetchRequest } from "../../../lib/protocol/messages/fetch.ts";
import { metadataRequest, metadataResponse } from "../../../lib/protocol/messages/metadata.ts";
import { Writer } from "../../../lib/protocol/writer.ts";
import { forEachVersion } from "./support/all_messages.ts";
import { interpretDecode, interpretEncode, type UnknownTag } from "./support/interpreter.ts";
import { randomMessage } from "./support/random_message.ts";
import { Seeded } from "./support/seeded.ts";

const VALUES_PER_VERSION = 8;

/** A message of everything the language can say, for what no message of Kafka's has. */
const everything = schema.message(
  { name: "Everything", apiKey: -1, type: "data", versions: "0-2", flexible: "1+" },
  {
    unsigned: schema.uint16(),
    wide: schema.uint32(),
    exact: schema.int64Exact(),
    real: schema.float64(),
    member: schema.struct({
      text: schema.string().nullable(1),
      deep: schema.struct({ flag: schema.bool() }).nullable(),
    }),
    maybe: schema.struct({ id: schema.uuid(), raw: schema.bytes().nullable() }).nullable(1).since(1),
    table: schema.array(schema.array(schema.string())).nullable(2),
    taggedNumber: schema.int32().default(7).tagged(5, 1),
    taggedText: schema.string().nullable(1).default(null).tagged(0, 1),
    taggedList: schema.array(schema.struct({ name: schema.string() })).tagged(200, 1),
    taggedBytes: schema.bytes().tagged(3, 2),
    taggedMaybe: schema.struct({ number: schema.int8() }).nullable(2).default(null).tagged(4, 2),
    taggedStruct: schema.struct({ number: schema.int8(), list: schema.array(schema.int16()) }).tagged(6, 2),
    taggedExact: schema.int64Exact().default(-1n).tagged(7, 2),
  },
);

function versions(visit: (message: schema.AnyMessage, version: number) => void): void {
  for (let version = 0; version <= 2; version++) visit(everything, version);
  forEachVersion(visit);
}

function encoded(message: schema.AnyMessage, version: number, value: unknown): Uint8Array {
  const writer = new Writer(64);
  encode(message, version, value, writer);
  const chunks = writer.finish();
  assert.equal(writer.byteLength, chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  return Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
}

Deno.test("every message in every version is written and read as the interpreter does it", () => {
  versions((message, version) => {
    for (let round = 0; round < VALUES_PER_VERSION; round++) {
      const where = `${message.name} v${version}, seed ${round}`;
      const value = randomMessage(message, version, new Seeded(round));
      const bytes = encoded(message, version, value);
      assert.deepEqual(bytes, interpretEncode(message, version, value), where);
      assert.deepEqual(interpretDecode(message, version, bytes), value, where);
      assert.deepEqual(decode(message, version, bytes), value, where);
    }
  });
});

Deno.test("reading begins at the offset, in bytes that are themselves a view", () => {
  const value = { topics: [{ topicId: schema.ZERO_UUID, name: "orders" }] };
  const frame = new Uint8Array([9, 9, 9, ...encoded(metadataRequest, 1, value), 9]);
  const read = decode(metadataRequest, 1, frame.subarray(1, frame.length - 1), 2);
  assert.deepEqual(read.topics, [{ topicId: schema.ZERO_UUID, name: "orders" }]);
});

Deno.test("all versions of a message yield the same keys in the same order", () => {
  versions((message, version) => {
    const value = randomMessage(message, version, new Seeded(1));
    const read = decode(message, version, encoded(message, version, value)) as object;
    assert.deepEqual(Object.keys(read), message.members.map(({ name }) => name));
  });
});

Deno.test("unknown tagged fields are skipped wherever they stand", () => {
  versions((message, version) => {
    if (!message.isFlexible(version)) return;
    const random = new Seeded(version);
    const unknown = (): UnknownTag[] => [{ tag: 1000 + random.below(100000), bytes: random.bytes(random.below(200)) }];
    const value = randomMessage(message, version, random);
    const bytes = interpretEncode(message, version, value, unknown);
    assert.deepEqual(decode(message, version, bytes), value, `${message.name} v${version}`);
  });
});

Deno.test("a message cut at any byte is malformed", () => {
  versions((message, version) => {
    const value = randomMessage(message, version, new Seeded(3));
    const bytes = encoded(message, version, value);
    for (let length = 0; length < Math.min(bytes.length, 600); length++) {
      assert.throws(() => decode(message, version, bytes.subarray(0, length)), MalformedFrame);
    }
  });
});

Deno.test("bytes behind a message are malformed, unless only its front was asked for", () => {
  versions((message, version) => {
    const value = randomMessage(message, version, new Seeded(4));
    const bytes = new Uint8Array([...encoded(message, version, value), 0]);
    assert.throws(() => decode(message, version, bytes), MalformedFrame);
    assert.deepEqual(decodeFront(message, version, bytes), value);
  });
});

Deno.test("changed bytes give a message or MalformedFrame, as the interpreter finds them whole or not", () => {
  versions((message, version) => {
    const random = new Seeded(5);
    const bytes = encoded(message, version, randomMessage(message, version, random));
    if (bytes.length === 0) return;
    for (let round = 0; round < 30; round++) {
      const changed = bytes.slice();
      for (let left = 1 + random.below(3); left > 0; left--) {
        changed[random.below(Math.min(changed.length, 300))] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.below(256)]);
      }
      let value: unknown;
      try {
        value = decode(message, version, changed);
      } catch (error) {
        assert.ok(error instanceof MalformedFrame, `${message.name} v${version}: ${error}`);
        assert.throws(() => interpretDecode(message, version, changed), `${message.name} v${version}: ${error}`);
        continue;
      }
      assert.deepEqual(value, interpretDecode(message, version, changed), `${message.name} v${version}`);
    }
  });
});

Deno.test("a count that the bytes left cannot hold is refused where it stands", () => {
  const counted = (count: number, rest: number) => {
    const bytes = new Uint8Array(4 + rest);
    new DataView(bytes.buffer).setInt32(0, count);
    return bytes;
  };
  // Each topic name takes two bytes at least, so 100 bytes can hold 50.
  for (const count of [51, 1000, 0x7fffffff]) {
    assert.throws(
      () => decode(metadataRequest, 1, counted(count, 100)),
      (error) => error instanceof MalformedFrame && error.position === 4 && /no room for/.test(error.message),
    );
  }
  assert.throws(() => decode(metadataRequest, 0, counted(-1, 0)), /null where a value must be/);
  // A compact count of 2³²−2.
  const compact = new Uint8Array([0xff, 0xff, 0xff, 0xff, 0x0f, ...new Array(100).fill(0)]);
  assert.throws(
    () => decode(metadataRequest, 9, compact),
    (error) => error instanceof MalformedFrame && error.position === 5,
  );
});

Deno.test("a request with more elements than any honest one is refused before they are read", () => {
  const topics = (count: number) => {
    const writer = new Writer();
    writer.varint(count + 1);
    writer.raw(new Uint8Array(count * 2).map((_, index) => index % 2 === 0 ? 1 : 0));
    writer.raw(new Uint8Array(3));
    return writer.finish()[0];
  };
  assert.equal(decode(metadataRequest, 9, new Uint8Array([...topics(1000), 0])).topics!.length, 1000);
  assert.throws(
    () => decode(metadataRequest, 9, topics(MAX_REQUEST_ELEMENTS + 1)),
    (error) => error instanceof MalformedFrame && error.position === 3 && /too many elements/.test(error.message),
  );
});

Deno.test("lengths of strings and varints have an end", () => {
  // One topic whose name claims 32,768 bytes, which no string has.
  const long = new Uint8Array([2, 0x81, 0x80, 0x02, ...new Array(40000).fill(65)]);
  assert.throws(() => decode(metadataRequest, 9, long), /a string of 32768 bytes/);
  assert.throws(() => decode(metadataRequest, 9, new Uint8Array([0xff, 0xff, 0xff, 0xff, 0x1f])), /varint/);
  assert.throws(() => decode(metadataRequest, 9, new Uint8Array([0xff, 0xff, 0xff, 0xff, 0xff, 1])), /varint/);
});

Deno.test("a known tagged field must be as long as it claims", () => {
  const tagged = schema.message({ name: "Tagged", apiKey: -1, type: "data", versions: "1", flexible: "1+" }, {
    number: schema.int32().default(7).tagged(5, 1),
  });
  assert.deepEqual(decode(tagged, 1, new Uint8Array([0])), { number: 7 });
  assert.deepEqual(decode(tagged, 1, new Uint8Array([1, 5, 4, 0, 0, 0, 9])), { number: 9 });
  assert.throws(() => decode(tagged, 1, new Uint8Array([1, 5, 5, 0, 0, 0, 9, 0])), /not as long as it claims/);
  assert.throws(() => decode(tagged, 1, new Uint8Array([1, 9, 5, 0])), /claims 5 bytes/);
});

Deno.test("a 64-bit number beyond 2⁵³ reads as the nearest safe one, and exactly where the schema says so", () => {
  const both = schema.message({ name: "Both", apiKey: -1, type: "data", versions: "0", flexible: "none" }, {
    safe: schema.int64(),
    exact: schema.int64Exact(),
  });
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  for (const value of [2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n, 2n ** 53n - 1n, -(2n ** 53n), 1n - 2n ** 53n, -1n]) {
    view.setBigInt64(0, value);
    view.setBigInt64(8, value);
    const bound = BigInt(Number.MAX_SAFE_INTEGER);
    const nearest = value > bound ? bound : value < -bound ? -bound : value;
    assert.deepEqual(decode(both, 0, bytes), { safe: Number(nearest), exact: value });
  }
});

Deno.test("what has a default may be left out and is then written as the default", () => {
  const full = decode(
    fetchRequest,
    17,
    encoded(fetchRequest, 17, { maxWaitMs: 1, minBytes: 2, topics: [], forgottenTopicsData: [] }),
  );
  assert.deepEqual(full, {
    clusterId: null,
    replicaId: -1,
    replicaState: { replicaId: -1, replicaEpoch: -1 },
    maxWaitMs: 1,
    minBytes: 2,
    maxBytes: 0x7fffffff,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [],
    forgottenTopicsData: [],
    rackId: "",
  });
});

Deno.test("null becomes the empty value in versions that cannot say null", () => {
  const topic = { errorCode: 100, name: null, topicId: schema.ZERO_UUID, partitions: [] };
  const value = { throttleTimeMs: 0, brokers: [], clusterId: null, topics: [topic], errorCode: 0 };
  assert.equal(decode(metadataResponse, 11, encoded(metadataResponse, 11, value)).topics[0].name, "");
  assert.equal(decode(metadataResponse, 0, encoded(metadataResponse, 0, value)).topics[0].name, "");
  assert.equal(decode(metadataResponse, 12, encoded(metadataResponse, 12, value)).topics[0].name, null);
});

Deno.test("a version the message does not have is the caller's fault, not a client's", () => {
  assert.throws(() => decode(metadataRequest, 14, new Uint8Array(0)), { name: "AssertionError" });
  assert.throws(
    () => encode(metadataRequest, -1, { topics: null, includeTopicAuthorizedOperations: false }, new Writer()),
    {
      name: "AssertionError",
    },
  );
});

Deno.test("record bytes are a view into the frame, other bytes a copy", () => {
  const both = schema.message({ name: "Both", apiKey: -1, type: "data", versions: "0", flexible: "none" }, {
    records: schema.records(),
    bytes: schema.bytes(),
  });
  const frame = new Uint8Array([0, 0, 0, 1, 11, 0, 0, 0, 1, 22]);
  const value = decode(both, 0, frame);
  frame.fill(0);
  assert.deepEqual([...value.records], [0]);
  assert.deepEqual([...value.bytes], [22]);
});
