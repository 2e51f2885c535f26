import assert from "node:assert/strict";
import { HandleBudget } from "../../../lib/storage/handle_budget.ts";
import { SegmentFile } from "../../../lib/storage/segment_file.ts";
import { type Bench, failing, storageTest } from "./support.ts";

const budgetOf = (maxOpen: number) => new HandleBudget(maxOpen);

function create(bench: Bench, budget: HandleBudget, name: string): SegmentFile {
  return SegmentFile.create(bench.disk, budget, bench.path(name));
}

storageTest("SegmentFile opens on first use and again after it was evicted", async (bench) => {
  const budget = budgetOf(10);
  Deno.writeFileSync(bench.path("a"), new Uint8Array([1, 2, 3]));
  const file = SegmentFile.existing(bench.disk, budget, bench.path("a"), "read");
  assert.deepEqual([file.isOpen, budget.open], [false, 0]);
  const into = new Uint8Array(3);
  assert.equal(file.readSync(0, into), 3);
  assert.deepEqual([file.isOpen, budget.open, [...into]], [true, 1, [1, 2, 3]]);
  let evicted = 0;
  file.onEvicted = () => evicted++;
  file.rest();
  assert.deepEqual([file.isOpen, budget.open, evicted], [false, 0, 1]);
  assert.equal(await file.read(1, into), 2);
  file.close();
});

storageTest("SegmentFile is not evicted while it has unsynced writes or anything in flight", async (bench) => {
  const file = create(bench, budgetOf(10), "a");
  file.writeSync(0, new Uint8Array(10));
  assert.equal(file.evict(), false);
  const syncing = file.sync();
  assert.equal(file.evict(), false);
  await syncing;
  const reading = file.read(0, new Uint8Array(4));
  assert.deepEqual([file.evict(), file.mayReadSync], [false, false]);
  await reading;
  assert.deepEqual([file.mayReadSync, file.evict()], [true, true]);
  file.close();
});

storageTest("SegmentFile stays unsynced after a failed sync", async (bench) => {
  const file = create(bench, budgetOf(10), "a");
  file.writeSync(0, new Uint8Array(10));
  bench.hooked.hook = failing("sync", /a$/);
  await assert.rejects(file.sync(), { name: "DiskError" });
  assert.equal(file.evict(), false);
  file.close();
});

storageTest(
  "SegmentFile runs asynchronous reads one after the other, and goes on after one that failed",
  async (bench) => {
    const file = create(bench, budgetOf(10), "a");
    file.writeSync(0, Uint8Array.from({ length: 100 }, (_, i) => i));
    let fail = true;
    bench.hooked.hook = (operation) => {
      if (operation === "read" && fail) {
        fail = false;
        failing("read", /./)(operation, "a");
      }
    };
    const buffers = [10, 20, 30].map((position) => ({ position, into: new Uint8Array(1) }));
    const outcomes = await Promise.allSettled(buffers.map(({ position, into }) => file.read(position, into)));
    assert.deepEqual(outcomes.map((outcome) => outcome.status), ["rejected", "fulfilled", "fulfilled"]);
    assert.deepEqual(buffers.slice(1).map(({ into }) => into[0]), [20, 30]);
    file.close();
  },
);

storageTest("SegmentFile drains: reads that were asked for finish, later ones are refused", async (bench) => {
  Deno.writeFileSync(bench.path("a"), new Uint8Array([7, 8, 9]));
  const file = SegmentFile.existing(bench.disk, budgetOf(10), bench.path("a"), "read");
  const buffers = [new Uint8Array(1), new Uint8Array(1)];
  const reads = buffers.map((into, i) => file.read(i, into));
  const drained = file.drain();
  await assert.rejects(file.read(0, new Uint8Array(1)), { name: "DiskError", kind: "closed" });
  await drained;
  assert.deepEqual(await Promise.all(reads), [1, 1]);
  assert.deepEqual(buffers.map((into) => into[0]), [7, 8]);
  assert.throws(() => file.readSync(0, new Uint8Array(1)), { name: "DiskError", kind: "closed" });
});

storageTest("SegmentFile opens nothing after it was closed, not even what was being opened", async (bench) => {
  Deno.writeFileSync(bench.path("a"), new Uint8Array(3));
  const budget = budgetOf(10);
  const file = SegmentFile.existing(bench.disk, budget, bench.path("a"), "read");
  const reading = file.read(0, new Uint8Array(1));
  file.close();
  await assert.rejects(reading, { name: "DiskError", kind: "closed" });
  assert.equal(budget.open, 0);
});

storageTest("files over the budget give their handles back, the written one last", async (bench) => {
  const budget = budgetOf(2);
  const files = ["a", "b", "c", "d"].map((name) => create(bench, budget, name));
  assert.equal(bench.registry.openCount, 2);
  files[0].writeSync(0, new Uint8Array(1));
  for (const file of files.slice(1)) file.readSync(0, new Uint8Array(1));
  assert.equal(files[0].isOpen, true);
  await files[0].sync();
  for (const file of files) file.close();
});
