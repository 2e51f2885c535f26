import assert from "node:assert/strict";
import { type Damage, describeDamage, extentOf, type Repair, repairOf } from "../../../lib/storage/recovery.ts";

Deno.test("repairOf answers every combination of what is known of a damage", () => {
  const answers: Record<Repair, number> = { cut: 0, "cut-aside": 0, leave: 0 };
  for (const durable of [true, false]) {
    for (const behind of ["batch", "zeros", "junk", "nothing"] as const) {
      for (const laterData of [true, false]) {
        const damage: Damage = { durable, behind, laterData };
        const repair = repairOf(damage);
        answers[repair]++;
        const dataBehind = behind === "batch" || laterData;
        // Data that may have been acknowledged is never cut off; nothing that could be of use is destroyed.
        if (durable && dataBehind) assert.equal(repair, "leave", JSON.stringify(damage));
        if (repair === "cut") assert.ok(!durable && !dataBehind, JSON.stringify(damage));
        // What was never synced leaves no hole in front of acknowledged records.
        if (!durable) assert.notEqual(repair, "leave", JSON.stringify(damage));
      }
    }
  }
  assert.deepEqual(answers, { cut: 3, "cut-aside": 8, leave: 5 });
});

const manifest = { logStartOffset: 0, highWatermark: 1500 };

Deno.test("extentOf believes batches over a manifest", () => {
  const data = { startOffset: 0, endOffset: 10 };
  const evidence = { data, lastBaseOffset: 0, manifest, checkpointHighWatermark: 700 };
  assert.deepEqual(extentOf(evidence), { logStartOffset: 0, logEndOffset: 10, because: "data" });
});

Deno.test("extentOf continues at the largest promised offset where there are no batches", () => {
  const none = { data: null, lastBaseOffset: 700, manifest: null, checkpointHighWatermark: null };
  assert.equal(extentOf(none).logEndOffset, 700);
  assert.equal(extentOf({ ...none, manifest }).logEndOffset, 1500);
  assert.equal(extentOf({ ...none, manifest, checkpointHighWatermark: 1501 }).logEndOffset, 1501);
  const trimmed = { ...none, manifest: { logStartOffset: 1502, highWatermark: 3 } };
  assert.deepEqual(extentOf(trimmed), { logStartOffset: 1502, logEndOffset: 1502, because: "no-data" });
});

Deno.test("extentOf takes the larger of the manifest's and the segments' start", () => {
  const evidence = { lastBaseOffset: 5, manifest: { ...manifest, logStartOffset: 7 }, checkpointHighWatermark: null };
  assert.equal(extentOf({ ...evidence, data: { startOffset: 5, endOffset: 10 } }).logStartOffset, 7);
  assert.equal(extentOf({ ...evidence, data: { startOffset: 9, endOffset: 10 } }).logStartOffset, 9);
});

Deno.test("extentOf empties a log whose start is past all batches", () => {
  const evidence = { lastBaseOffset: 0, manifest: { ...manifest, logStartOffset: 40 }, checkpointHighWatermark: null };
  assert.deepEqual(extentOf({ ...evidence, data: { startOffset: 0, endOffset: 10 } }), {
    logStartOffset: 40,
    logEndOffset: 40,
    because: "start-past-data",
  });
});

Deno.test("describeDamage says where, how much and what was done", () => {
  const damage = {
    durable: true,
    behind: "batch",
    laterData: false,
    segment: "s",
    position: 7,
    bytes: 9,
    offset: 3,
  } as const;
  assert.equal(
    describeDamage({ ...damage, repair: "leave" }),
    "left 9 corrupt bytes in s.log at byte 7 (offset 3): valid records follow",
  );
  assert.match(describeDamage({ ...damage, repair: "cut" }), /^cut 9 bytes of an unfinished write off s\.log/);
  assert.match(describeDamage({ ...damage, repair: "cut-aside" }), /kept them aside$/);
});
