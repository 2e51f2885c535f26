import assert from "node:assert/strict";
import { readManifest, writeManifest } from "../../../lib/storage/manifest.ts";
import { encodeSnapshot, readSnapshot, writeSnapshot } from "../../../lib/storage/producer_snapshot.ts";
import { ProducerState } from "../../../lib/storage/producer_state.ts";
import { readCheckpoint, writeCheckpoint } from "../../../lib/storage/recovery_checkpoint.ts";
import { failing, storageTest } from "./support.ts";

storageTest("a manifest comes back with the keys that are not known here", async (bench) => {
  const manifest = { epoch: 3, highWatermark: 9, logStartOffset: 4, others: { later: { x: [1, null] } } };
  await writeManifest(bench.disk, bench.folder, manifest);
  assert.deepEqual(await readManifest(bench.disk, bench.folder), { kind: "present", value: manifest });
});

storageTest("a checkpoint comes back; one of another writer has no epoch", async (bench) => {
  const checkpoint = { segmentBase: 3, position: 9, highWatermark: 4, leaderEpoch: 2 };
  await writeCheckpoint(bench.disk, bench.folder, checkpoint);
  assert.deepEqual(await readCheckpoint(bench.disk, bench.folder), { kind: "present", value: checkpoint });
  bench.writeJson("recovery-checkpoint.json", { segmentBase: 0, bytePos: 5389, highWatermark: 500 });
  assert.deepEqual(await readCheckpoint(bench.disk, bench.folder), {
    kind: "present",
    value: { segmentBase: 0, position: 5389, highWatermark: 500, leaderEpoch: null },
  });
});

storageTest("a producer snapshot comes back; one of another writer has no offset", async (bench) => {
  const state = new ProducerState();
  const batch = { producerId: 1099511627776, producerEpoch: 2, lastOffsetDelta: 1, isTransactional: true };
  state.record({ ...batch, baseSequence: 0 }, 10, 77);
  state.record({ ...batch, baseSequence: 2 }, 12, 78);
  await writeSnapshot(bench.disk, bench.folder, encodeSnapshot(state, { offset: 14, leaderEpoch: 5 }));
  const read = await readSnapshot(bench.disk, bench.folder);
  assert.deepEqual(read, { kind: "present", value: { offset: 14, leaderEpoch: 5, entries: [...state.entries()] } });
  bench.writeJson("producer-state.snapshot", { version: 1 });
  assert.deepEqual(await readSnapshot(bench.disk, bench.folder), {
    kind: "present",
    value: { offset: null, leaderEpoch: null, entries: [] },
  });
});

const shapes = {
  "manifest.json": [
    "",
    "null",
    "[]",
    "{",
    '{"epoch":1}',
    '{"epoch":-1,"highWatermark":0,"logStartOffset":0}',
    '{"epoch":1,"highWatermark":1.5,"logStartOffset":0}',
    '{"epoch":1,"highWatermark":"9","logStartOffset":0}',
    '{"epoch":1,"highWatermark":1e300,"logStartOffset":0}',
  ],
  "recovery-checkpoint.json": ["{}", '{"segmentBase":0,"bytePos":-1,"highWatermark":0}', "7"],
  "producer-state.snapshot": [
    '{"version":2}',
    '{"version":1,"entries":{}}',
    '{"version":1,"entries":[null]}',
    '{"version":1,"entries":[{"producer_id":-3,"epoch":0}]}',
    '{"version":1,"entries":[{"producer_id":3,"epoch":0,"recent":[{"first_seq":0}]}]}',
  ],
};
for (const [name, texts] of Object.entries(shapes)) {
  storageTest(`a ${name} of any other shape is damaged, not believed and no failure`, async (bench) => {
    const read = name === "manifest.json" ? readManifest : name.endsWith("snapshot") ? readSnapshot : readCheckpoint;
    for (const text of texts) {
      Deno.writeTextFileSync(bench.path(name), text);
      assert.equal((await read(bench.disk, bench.folder)).kind, "damaged", text);
    }
    Deno.removeSync(bench.path(name));
    assert.equal((await read(bench.disk, bench.folder)).kind, "missing");
  });
}

storageTest("a side file that may be there but cannot be read is a failure", async (bench) => {
  bench.hooked.hook = failing("readFile", /./);
  await assert.rejects(readManifest(bench.disk, bench.folder), { name: "DiskError", kind: "io" });
});
