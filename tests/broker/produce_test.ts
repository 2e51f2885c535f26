/** Produce as it travels: every generation of the request, and what each wrong part of one comes to. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { apiVersionsRequest, apiVersionsResponse } from "../../lib/protocol/messages/api_versions.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { Compression, compressionOf, crc, HEADER_BYTES, writeInt32 } from "../../lib/records/batch.ts";
import { buildEndTransactionMarker } from "../../lib/records/control.ts";
import { downConvert } from "../../lib/records/legacy.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { batchesOf, fetchedRecords, fetchedValues, withWireBroker } from "../support/wire_broker.ts";

const TIME = 1_700_000_000_000;

function values(...texts: string[]) {
  return texts.map((value) => ({ key: `key of ${value}`, value }));
}

/** The records as clients of these formats send them. */
function messageSet(magic: 0 | 1, texts: string[], compression: Compression = Compression.none): Uint8Array {
  const set = downConvert(buildBatch({ timestamp: TIME, compression, records: values(...texts) }), magic);
  assert.ok(set instanceof Uint8Array);
  return set;
}

for (const [version, magic] of [[0, 0], [1, 0], [2, 1]] as const) {
  for (const compression of [Compression.none, Compression.gzip]) {
    const kind = compression === Compression.none ? "plain" : "compressed";
    Deno.test(`Produce ${version} takes ${kind} messages of format ${magic}, which every Fetch gives back`, async () => {
      await withWireBroker(async (wire) => {
        await wire.createTopic("old");
        const first = await wire.produce("old", messageSet(magic, ["a", "b"], compression), { version });
        assert.deepEqual([first.errorCode, first.baseOffset], [ErrorCode.NONE, 0]);
        const second = await wire.produce("old", messageSet(magic, ["c"], compression), { version });
        assert.equal(second.baseOffset, 2);
        const stored = await wire.fetch("old", 0);
        assert.deepEqual(fetchedValues(stored.records), ["a", "b", "c"]);
        const times = magic === 0 ? [-1, -1, -1] : [TIME, TIME, TIME];
        assert.deepEqual(fetchedRecords(stored.records).map(({ timestamp }) => timestamp), times);
        for (const fetchVersion of [0, 1, 2, 3]) {
          const old = await wire.fetch("old", 0, { version: fetchVersion });
          const again = await wire.produce("old", old.records, { version: fetchVersion >= 2 ? 2 : 0 });
          assert.equal(again.errorCode, ErrorCode.NONE, `what Fetch ${fetchVersion} gives can be produced again`);
        }
        // Each of the four doubled what was there.
        const copies = await wire.fetch("old", 0);
        assert.deepEqual(fetchedValues(copies.records), Array.from({ length: 16 }, () => ["a", "b", "c"]).flat());
      });
    });
  }
}

Deno.test("Each version of Produce answers with the fields that it has", async () => {
  await withWireBroker(async (wire) => {
    const topicId = await wire.createTopic("t", { "message.timestamp.type": "LogAppendTime" });
    const before = Date.now();
    for (let version = 3; version <= 13; version++) {
      const reply = await wire.produce(
        version >= 13 ? topicId : "t",
        buildBatch({ records: values("a"), timestamp: 1 }),
        {
          version,
        },
      );
      assert.equal(reply.errorCode, ErrorCode.NONE);
      assert.equal(reply.baseOffset, version - 3);
      assert.ok(reply.logAppendTimeMs >= before && reply.logAppendTimeMs <= Date.now());
      assert.equal(reply.logStartOffset, version >= 5 ? 0 : -1);
    }
  });
});

Deno.test("Nothing is answered to acks=0, and the next request is answered in its turn", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    await wire.client.send(produceRequest, 12, {
      acks: 0,
      timeoutMs: 1000,
      topicData: [{
        name: "t",
        topicId: ZERO_UUID,
        partitionData: [{ index: 0, records: buildBatch({ timestamp: Date.now(), records: values("quiet") }) }],
      }],
    });
    const versions = await wire.client.call(apiVersionsRequest, apiVersionsResponse, 0, {
      clientSoftwareName: "",
      clientSoftwareVersion: "",
    });
    assert.equal(versions.errorCode, ErrorCode.NONE);
    assert.equal(await wire.append("t", { records: values("loud") }), 1);
    assert.deepEqual(fetchedValues((await wire.fetch("t", 0)).records), ["quiet", "loud"]);
  });
});

Deno.test("A failed produce with acks=0 closes the connection: nothing else could tell", async () => {
  await withWireBroker(async (wire) => {
    using other = await wire.connect();
    await other.send(produceRequest, 12, {
      acks: 0,
      timeoutMs: 1000,
      topicData: [{
        name: "nowhere",
        topicId: ZERO_UUID,
        partitionData: [{ index: 0, records: buildBatch({ timestamp: TIME, records: values("a") }) }],
      }],
    });
    await other.closedByBroker();
  }, { "auto.create.topics.enable": false });
});

Deno.test("What cannot be produced is refused by its code, whatever is wrong", async () => {
  await withWireBroker(async (wire) => {
    const compacted = { "cleanup.policy": "compact" };
    await wire.createTopic("t", {
      "message.timestamp.after.max.ms": "1000",
      "message.timestamp.before.max.ms": "1000",
    });
    await wire.createTopic("compacted", compacted);
    const good = buildBatch({ timestamp: Date.now(), records: values("a") });
    const damaged = good.slice();
    damaged[damaged.length - 1] ^= 1;
    const cases: [string, () => Promise<{ errorCode: number }>, ErrorCode][] = [
      ["acks=2", () => wire.produce("t", good, { acks: 2 }), ErrorCode.INVALID_REQUIRED_ACKS],
      ["an unknown topic", () => wire.produce("nowhere", good), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
      [
        "an unknown topic id",
        () => wire.produce("00000000-0000-4000-8000-000000000001", good, { version: 13 }),
        ErrorCode.UNKNOWN_TOPIC_ID,
      ],
      ["a damaged batch", () => wire.produce("t", damaged), ErrorCode.CORRUPT_MESSAGE],
      [
        "a time far ahead",
        () => wire.produce("t", buildBatch({ timestamp: Date.now() + 60_000, records: values("a") })),
        ErrorCode.INVALID_TIMESTAMP,
      ],
      [
        "a time long ago",
        () => wire.produce("t", buildBatch({ timestamp: Date.now() - 60_000, records: values("a") })),
        ErrorCode.INVALID_TIMESTAMP,
      ],
      [
        "no key for a compacted topic",
        () => wire.produce("compacted", buildBatch({ timestamp: Date.now(), records: [{ key: null, value: "a" }] })),
        ErrorCode.INVALID_RECORD,
      ],
      [
        "a control batch",
        () =>
          wire.produce(
            "t",
            buildEndTransactionMarker(
              { result: "commit", producerId: 1, producerEpoch: 0, coordinatorEpoch: 0 },
              Date.now(),
            ),
          ),
        ErrorCode.INVALID_RECORD,
      ],
      ["two batches at once", () => wire.produce("t", Uint8Array.from([...good, ...good])), ErrorCode.INVALID_RECORD],
      ["nothing", () => wire.produce("t", new Uint8Array(0)), ErrorCode.INVALID_RECORD],
    ];
    for (const [what, reply, errorCode] of cases) {
      assert.equal((await reply()).errorCode, errorCode, what);
    }
    assert.equal((await wire.listOffset("t", -1)).offset, 0, "nothing of it was stored");
  }, { "auto.create.topics.enable": false });
});

Deno.test("A batch larger than max.message.bytes is refused, also if it only becomes so by another compression", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("small", { "max.message.bytes": "2000" });
    await wire.createTopic("unpacked", { "max.message.bytes": "2000", "compression.type": "uncompressed" });
    const records = values("x".repeat(5000));
    const large = buildBatch({ timestamp: Date.now(), records });
    assert.equal((await wire.produce("small", large)).errorCode, ErrorCode.MESSAGE_TOO_LARGE);
    const packed = buildBatch({ timestamp: Date.now(), records, compression: Compression.gzip });
    assert.ok(packed.length < 2000);
    assert.equal((await wire.produce("small", packed)).errorCode, ErrorCode.NONE);
    assert.equal((await wire.produce("unpacked", packed)).errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  });
});

Deno.test("A topic's compression.type is what is stored, whatever the producer chose", async () => {
  await withWireBroker(async (wire) => {
    for (const [name, codec] of [["zstd", Compression.zstd], ["uncompressed", Compression.none]] as const) {
      await wire.createTopic(name, { "compression.type": name });
      await wire.append(name, { records: values("a", "b"), compression: Compression.gzip });
      const { records } = await wire.fetch(name, 0);
      assert.deepEqual(batchesOf(records).map((batch) => compressionOf(batch)), [codec]);
      assert.deepEqual(fetchedValues(records), ["a", "b"]);
    }
  });
});

Deno.test("One partition's refusal leaves the others of the request alone", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t", {}, 3);
    const good = () => buildBatch({ timestamp: TIME, records: values("a") });
    const bad = good();
    writeInt32(bad, 17, crc(bad) ^ 1);
    const { responses } = await wire.client.call(produceRequest, produceResponse, 12, {
      acks: -1,
      timeoutMs: 10_000,
      topicData: [{
        name: "t",
        topicId: ZERO_UUID,
        partitionData: [{ index: 0, records: good() }, { index: 1, records: bad }, { index: 2, records: good() }, {
          index: 3,
          records: good(),
        }],
      }],
    });
    assert.deepEqual(
      responses[0].partitionResponses.map(({ index, errorCode }) => [index, errorCode]),
      [[0, 0], [1, ErrorCode.CORRUPT_MESSAGE], [2, 0], [3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]],
    );
  });
});

Deno.test("What was produced is what is fetched, byte for byte behind the offset and the epoch", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const records = [{ key: null, value: "v", headers: [{ key: "h", value: null }, { key: "", value: "x" }] }];
    const batch = buildBatch({ timestamp: TIME, compression: Compression.lz4, records });
    await wire.append("t", { records: values("before") });
    assert.equal((await wire.produce("t", batch.slice())).baseOffset, 1);
    const [, stored] = batchesOf((await wire.fetch("t", 0)).records);
    assert.deepEqual(stored.slice(16), batch.slice(16));
    assert.ok(stored.length > HEADER_BYTES);
  });
});
