import assert from "node:assert/strict";
import { ProducerIds } from "../../../lib/broker/producer_ids.ts";
import { DiskError } from "../../../lib/disk/disk.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";

const FOLDER = "data/__cluster/producer_ids";

async function newDisk(seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ random: new SeededRandom(seed), syncTurns: 2 });
  await disk.makeFolder("data/__cluster");
  await disk.syncFolder("data");
  await disk.syncFolder(".");
  return disk;
}

Deno.test("Producer ids rise, and those of two brokers never meet", async () => {
  const disk = await newDisk(1);
  const [first, second] = [new ProducerIds(disk, FOLDER, 0), new ProducerIds(disk, FOLDER, 1)];
  const seen = new Set<number>();
  let last = -1;
  for (let i = 0; i < 2_500; i++) {
    const id = await first.next();
    assert.ok(id > last && Number.isSafeInteger(id));
    last = id;
    seen.add(id).add(await second.next());
  }
  assert.equal(seen.size, 5_000);
});

Deno.test("Many ask at a time, over the end of a block: each gets another id", async () => {
  const disk = await newDisk(1);
  const ids = new ProducerIds(disk, FOLDER, 0);
  const all = await Promise.all(Array.from({ length: 3_000 }, () => ids.next()));
  assert.equal(new Set(all).size, 3_000);
});

Deno.test("A crash after any disk call repeats no id, and wastes no more than is reserved", async () => {
  const calls = await (async () => {
    const disk = await newDisk(1);
    const before = disk.operations;
    const ids = new ProducerIds(disk, FOLDER, 0);
    for (let i = 0; i < 1_001; i++) await ids.next();
    return disk.operations - before;
  })();
  assert.ok(calls > 5, "there is something to crash between");
  for (let call = 1; call <= calls; call++) {
    for (let seed = 1; seed <= 6; seed++) {
      let disk = await newDisk(seed);
      const used = new Set<number>();
      disk.crashAfter(disk.operations + call);
      for (let start = 0; start < 3; start++) {
        const ids = new ProducerIds(disk, FOLDER, 0);
        try {
          for (let i = 0; i < 1_001; i++) {
            const id = await ids.next();
            assert.ok(!used.has(id), `call ${call}, seed ${seed}: ${id} again\n${disk.log().join("\n")}`);
            used.add(id);
          }
        } catch (error) {
          if (!(error instanceof DiskError)) throw error;
        }
        disk = disk.restart();
      }
      assert.ok(Math.max(...used) - Math.min(...used) < 12_000, "blocks are not wasted without end");
    }
  }
});

Deno.test("An id is refused while no block can be reserved, and comes when one can", async () => {
  const disk = await newDisk(1);
  const ids = new ProducerIds(disk, FOLDER, 0);
  disk.faults = { ...disk.faults, noSpace: 1 };
  await assert.rejects(ids.next(), { name: "DiskError", kind: "no-space" });
  disk.calm();
  assert.equal(typeof await ids.next(), "number");
});

Deno.test("A broker goes on behind what it has used although its file went back", async () => {
  const disk = await newDisk(1);
  const ids = new ProducerIds(disk, FOLDER, 0);
  const first = await ids.next();
  await disk.remove(`${FOLDER}/kaas-0.json`);
  const all = new Set([first]);
  for (let i = 0; i < 2_000; i++) all.add(await ids.next());
  assert.equal(all.size, 2_001);
});
