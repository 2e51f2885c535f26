/** A data folder that the Rust system wrote is served as it is. */

import assert from "node:assert/strict";
import { batchOf, Bench, consume, fromFileUrl, numbers, produce, storageTest } from "./support.ts";
import { FolderTopicStore } from "../../../lib/storage/topic_store.ts";
import { systemRandom } from "../../../lib/clock.ts";

const archive = fromFileUrl("../../../../shared/cases/rust-kaas-data/data.tgz");

async function unpack(into: string): Promise<void> {
  const { success } = await new Deno.Command("tar", { args: ["xzf", archive, "-C", into] }).output();
  assert.ok(success);
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

const producer = { producerId: 1099511627776, producerEpoch: 0 };

// The sample lies beside the checkout; a checkout alone has none.
if (exists(archive)) {
  for (const without of ["nothing", "producer-state.snapshot", "recovery-checkpoint.json", "manifest.json"]) {
    storageTest(`the sample folder is served as it is (without ${without})`, async (bench) => {
      await unpack(bench.folder);
      const store = new FolderTopicStore({
        disk: bench.disk,
        dataFolder: bench.path("data"),
        clock: bench.clock,
        random: systemRandom,
        logger: console,
      });
      assert.deepEqual((await store.scan()).map(({ name, partitions }) => [name, partitions]), [["t1", [0, 1]]]);
      if (without !== "nothing") Deno.removeSync(bench.path(`data/t1/0/${without}`));

      const full = new Bench(bench.path("data/t1/0"));
      const log = await full.takeOver(1);
      assert.deepEqual(log.report.damages, []);
      assert.deepEqual([log.logStartOffset, log.highWatermark, log.lastStableOffset], [0, 500, 500]);
      const records = await consume(log);
      assert.deepEqual(records, numbers(0, 500).map((offset) => ({ offset, value: `${offset + 1}` })));
      const resend = log.append(batchOf(500, { ...producer, baseSequence: 0 }), 5_000);
      assert.equal(resend.kind === "duplicate" && resend.baseOffset, 0);
      assert.equal((await produce(log, batchOf(1, { ...producer, baseSequence: 500 }))).baseOffset, 500);
      assert.equal((await log.offsetForTimestamp(0))?.offset, 0);
      assert.deepEqual(log.endOffsetForEpoch(0), { epoch: 0, endOffset: 500 });
      await log.relinquish();
      full.assertClosed();

      const empty = new Bench(bench.path("data/t1/1"));
      const other = await empty.takeOver(1);
      assert.deepEqual([other.logStartOffset, other.highWatermark, await consume(other)], [0, 0, []]);
      await other.relinquish();
      empty.assertClosed();
    });
  }
}
