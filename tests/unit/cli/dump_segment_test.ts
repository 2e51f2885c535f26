import assert from "node:assert/strict";
import { Compression } from "../../../lib/records/batch.ts";
import { buildEndTransactionMarker } from "../../../lib/records/control.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { run } from "./support.ts";

const time = Date.UTC(2024, 1, 29, 12);

async function dump(bytes: Uint8Array, ...flags: string[]) {
  const path = await Deno.makeTempFile({ suffix: ".log" });
  try {
    await Deno.writeFile(path, bytes);
    return await run(["admin", "dump-segment", path, ...flags]);
  } finally {
    await Deno.remove(path);
  }
}

function segment(): Uint8Array {
  const plain = buildBatch({
    baseOffset: 5,
    leaderEpoch: 3,
    compression: Compression.gzip,
    producerId: 12,
    producerEpoch: 1,
    baseSequence: 40,
    records: [
      { timestamp: time, key: "k", value: "line\nbreak", headers: [{ key: "h", value: null }] },
      { timestamp: time + 1, key: null, value: Uint8Array.of(0xff, 0) },
    ],
  });
  const marker = buildEndTransactionMarker(
    { result: "abort", producerId: 12, producerEpoch: 1, coordinatorEpoch: 0 },
    time,
  );
  marker[7] = 7;
  return new Uint8Array([...plain, ...marker]);
}

Deno.test("A dump shows each batch on a line, and its records with --records", async () => {
  const { code, out, err } = await dump(segment(), "--records");
  assert.equal(err, "");
  assert.equal(code, 0);
  const lines = out.split("\n");
  assert.deepEqual(lines[0].replace(/\d+ bytes/, "N bytes").split("  "), [
    "position 0",
    "offsets 5–6",
    "2 records",
    "N bytes",
    "epoch 3",
    "createTime 2024-02-29T12:00:00.000Z to 2024-02-29T12:00:00.001Z",
    "gzip",
    "producer 12 epoch 1 sequence 40",
  ]);
  assert.equal(lines[1], '  offset 5  2024-02-29T12:00:00.000Z  key "k"  value "line\\nbreak"  headers {"h": null}');
  assert.equal(lines[2], "  offset 6  2024-02-29T12:00:00.001Z  key null  value 0xff00");
  assert.match(lines[3], /^position \d+ {2}offsets 7–7 {2}1 records .* transactional {2}abort marker$/);
});

Deno.test("A dump in JSON has one object a line, with bytes that are no text in base64", async () => {
  const { out } = await dump(segment(), "--records", "--json");
  const [first, second] = out.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(first.baseOffset, 5);
  assert.equal(first.compression, "gzip");
  assert.deepEqual(first.records[0].headers, [{ key: "h", value: null }]);
  assert.deepEqual(first.records[1].value, { base64: "/wA=" });
  assert.equal(second.marker, "abort");
  assert.equal((await dump(segment(), "--json")).out.includes('"records":'), false);
});

Deno.test("Bytes that are no valid batch are shown with place and reason and make the dump fail", async () => {
  const bytes = segment();
  bytes[70] ^= 1;
  const { code, out } = await dump(bytes);
  assert.equal(code, 1);
  assert.match(out, /^position 0 {2}\d+ bytes are no valid batch \(corrupt\): checksum of the batch at offset 5 is /);
  assert.match(out, /\nposition \d+ {2}offsets 7–7 /);
});

Deno.test("A batch that the file cuts short at its end does not make the dump fail", async () => {
  const { code, out } = await dump(segment().slice(0, -1));
  assert.equal(code, 0);
  assert.match(out, /\nposition \d+ {2}\d+ bytes are no valid batch \(tail\): the batch has \d+ bytes/);
});

Deno.test("A file that cannot be read is named on stderr", async () => {
  const { code, out, err } = await run(["admin", "dump-segment", "/nowhere/x.log"]);
  assert.deepEqual({ code, out }, { code: 1, out: "" });
  assert.equal(err, "kaas admin dump-segment: cannot read /nowhere/x.log: not-found\n");
});
