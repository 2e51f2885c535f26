import assert from "node:assert/strict";
import { checkBatch, isControl, isTransactional, setBaseOffset, setLeaderEpoch } from "../../../lib/records/batch.ts";
import { buildEndTransactionMarker, readEndTransactionMarker } from "../../../lib/records/control.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { damaged, javaBatch, seeded } from "./golden.ts";

for (const result of ["commit", "abort"] as const) {
  const marker = { result, producerId: 4711, producerEpoch: 3, coordinatorEpoch: 9 };

  Deno.test(`the ${result} marker of Java's broker is read`, () => {
    assert.deepEqual(readEndTransactionMarker(javaBatch(`v2 marker ${result}`)), marker);
  });

  Deno.test(`the ${result} marker is written as Java's broker writes it`, () => {
    const batch = buildEndTransactionMarker(marker, 1700000000000);
    setBaseOffset(batch, 0, 42);
    setLeaderEpoch(batch, 0, 7);
    assert.deepEqual(batch, javaBatch(`v2 marker ${result}`));
    assert.equal(checkBatch(batch, 0), "whole");
    assert.ok(isControl(batch) && isTransactional(batch));
  });
}

Deno.test("a data batch and control records of other types are no markers", () => {
  assert.equal(readEndTransactionMarker(javaBatch("v2 transactional")), null);
  const leaderChange = buildBatch({
    records: [{ key: Uint8Array.of(0, 0, 0, 2), value: new Uint8Array(6) }],
    isControl: true,
  });
  assert.equal(readEndTransactionMarker(leaderChange), null);
  assert.equal(readEndTransactionMarker(buildBatch({ records: [], isControl: true })), null);
  assert.equal(readEndTransactionMarker(buildBatch({ records: [{ key: "k", value: "v" }], isControl: true })), null);
});

Deno.test("a marker is found in the middle of a buffer", () => {
  const marker = javaBatch("v2 marker abort");
  const buffer = new Uint8Array(marker.length + 10);
  buffer.set(marker, 10);
  assert.equal(readEndTransactionMarker(buffer, 10)?.result, "abort");
});

Deno.test("a damaged marker is read as something or as null, never with an exception", () => {
  const random = seeded(61);
  for (const broken of damaged(javaBatch("v2 marker commit"), random, 2000)) {
    const marker = readEndTransactionMarker(broken);
    assert.ok(marker === null || marker.result === "commit" || marker.result === "abort");
  }
});
