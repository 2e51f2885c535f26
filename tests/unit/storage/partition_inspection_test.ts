import assert from "node:assert/strict";
import { type Disk, DiskError, type Entry } from "../../../lib/disk/disk.ts";
import { segmentStem } from "../../../lib/partition_state.ts";
import { buildBatch } from "../../../lib/records/record.ts";
import { inspectPartition } from "../../../lib/storage/partition_inspection.ts";
import { verifyPartition } from "../../../lib/storage/partition_verification.ts";

const batch = (offset: number) => buildBatch({ baseOffset: offset, records: [{ value: "a" }, { value: "b" }] });
const batches = (...offsets: number[]) => new Uint8Array(offsets.flatMap((offset) => [...batch(offset)]));
const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const log = (epoch: number, baseOffset: number) => `${segmentStem(epoch, baseOffset)}.log`;

/** A disk of one read-only folder that remembers what was read and opened. */
function folderDisk(files: Record<string, Uint8Array>) {
  const touched: string[] = [];
  const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const contentOf = (path: string): Uint8Array => {
    const content = files[nameOf(path)];
    if (content === undefined) throw new DiskError("not-found", "open", path);
    touched.push(nameOf(path));
    return content;
  };
  const disk = {
    list: (): Promise<Entry[]> =>
      Promise.resolve(Object.keys(files).map((name) => ({ name, isFile: true, isFolder: false }))),
    stat: (path: string) => Promise.resolve({ size: files[nameOf(path)].length, modifiedMs: 0, isFolder: false }),
    readFile: (path: string) => new Promise((resolve) => resolve(contentOf(path))),
    open: (path: string) =>
      new Promise((resolve) => {
        const content = contentOf(path);
        resolve({
          sizeSync: () => content.length,
          close: () => {},
          read: (position: number, into: Uint8Array) => {
            const part = content.subarray(position, position + into.length);
            into.set(part);
            return Promise.resolve(part.length);
          },
        });
      }),
  } as unknown as Disk;
  return { disk, touched };
}

Deno.test("An inspection tells sealed, active and dead segments apart, and opens side files only", async () => {
  const { disk, touched } = folderDisk({
    [log(1, 0)]: batches(0, 2, 4, 6),
    [`${segmentStem(1, 0)}.index`]: new Uint8Array(8),
    [log(1, 6)]: batches(6),
    [log(2, 6)]: new Uint8Array(0),
    "manifest.json": json({ epoch: 2, highWatermark: 6, logStartOffset: 2 }),
    "recovery-checkpoint.json": json({ segmentBase: 6, bytePos: 0, highWatermark: 6 }),
    "notes.txt": json(1),
    [`${log(1, 0)}.cut-2`]: new Uint8Array(1),
  });
  const inspection = await inspectPartition(disk, "/data/t/0");
  assert.deepEqual(inspection.segments.map(({ stem, state, endOffset }) => [stem, state, endOffset]), [
    [segmentStem(1, 0), "sealed", 6],
    [segmentStem(1, 6), "dead", null],
    [segmentStem(2, 6), "active", null],
  ]);
  assert.equal(inspection.epoch, 2);
  assert.equal(inspection.logStartOffset, 2);
  assert.equal(inspection.highWatermark, 6);
  assert.equal(inspection.liveBytes, 4 * batch(0).length);
  assert.equal(inspection.deadBytes, batch(0).length);
  assert.deepEqual(inspection.foreign, ["notes.txt"]);
  assert.deepEqual(inspection.leftovers, [`${log(1, 0)}.cut-2`]);
  assert.deepEqual(inspection.findings, []);
  assert.deepEqual(inspection.takeover, [
    "check nothing: the checkpoint stands at the end",
    `begin ${segmentStem(3, 6)} (epoch 3 or higher) in place of the empty ${segmentStem(2, 6)}`,
    `remove dead segments: ${segmentStem(1, 6)}`,
    "leave foreign names alone: 1",
  ]);
  assert.deepEqual(touched.sort(), ["manifest.json", "recovery-checkpoint.json"]);
});

Deno.test("An inspection names what does not fit together", async () => {
  const { disk } = folderDisk({
    [log(1, 4)]: new Uint8Array(0),
    [log(1, 6)]: batches(6),
    [log(1, 8)]: batches(8),
    "manifest.json": json({ epoch: 1, highWatermark: 7, logStartOffset: 2 }),
    "recovery-checkpoint.json": new TextEncoder().encode("{"),
  });
  const { findings, takeover } = await inspectPartition(disk, "/data/t/0");
  assert.deepEqual(findings, [
    "recovery-checkpoint.json is damaged: not JSON",
    "gap: offsets 2 to 3 are in no segment",
    `gap: offsets 4 to 5: segment ${segmentStem(1, 4)} is empty`,
    `segment ${segmentStem(1, 6)} has no index`,
    "the manifest is older than the segments: high watermark 7, active segment at 8",
  ]);
  assert.match(takeover[0], new RegExp(`^check ${2 * batch(0).length} bytes from byte 0 of ${segmentStem(1, 4)} on`));
  assert.match(takeover[1], /^seal .* and begin a segment of epoch 2 or higher at the log's end$/);
});

Deno.test("An inspection of an empty folder says that there is nothing", async () => {
  const inspection = await inspectPartition(folderDisk({}).disk, "/data/t/0");
  assert.equal(inspection.epoch, null);
  assert.deepEqual(inspection.findings.slice(-1), ["there is no live segment"]);
  assert.equal((await verifyPartition(folderDisk({}).disk, inspection)).batches, 0);
});

Deno.test("A verification counts what is valid and names the exact place of what is not", async () => {
  const size = batch(0).length;
  const first = batches(0, 2, 4);
  first[size + 61] ^= 1;
  const { disk } = folderDisk({ [log(1, 0)]: first, [log(1, 8)]: batches(8, 10).slice(0, -1) });
  const progress: number[] = [];
  const inspection = await inspectPartition(disk, "/data/t/0");
  const verification = await verifyPartition(disk, inspection, (bytes) => progress.push(bytes));
  assert.deepEqual(progress, [size, size, size]);
  assert.equal(verification.batches, 3);
  assert.equal(verification.records, 6);
  assert.equal(verification.logEndOffset, 10);
  assert.deepEqual(verification.gaps, [{ firstOffset: 6, endOffset: 8 }]);
  assert.deepEqual(
    verification.damages.map(({ segment, position, kind, isCorruption }) => [segment, position, kind, isCorruption]),
    [
      [segmentStem(1, 0), size, "corrupt", true],
      [segmentStem(1, 8), size, "tail", false],
    ],
  );
});

Deno.test("A verification skips a segment that was removed meanwhile, and records of a deposed leader", async () => {
  const files: Record<string, Uint8Array> = {
    [log(1, 0)]: batches(0, 2),
    [log(1, 4)]: batches(4, 6, 8),
    [log(2, 8)]: batches(8),
  };
  const { disk } = folderDisk(files);
  const inspection = await inspectPartition(disk, "/data/t/0");
  delete files[log(1, 0)];
  const verification = await verifyPartition(disk, inspection);
  assert.deepEqual(verification.vanished, [segmentStem(1, 0)]);
  assert.equal(verification.batches, 3);
  assert.deepEqual(verification.damages, []);
  assert.deepEqual(verification.gaps, []);
});
