import assert from "node:assert/strict";
import {
  DamagedFileError,
  MAX_NAME_BYTES,
  readJson,
  replaceFile,
  replaceJson,
  temporaryName,
} from "../../../lib/disk/atomic_replace.ts";
import { DiskError } from "../../../lib/disk/disk.ts";
import { isTemporaryName } from "../../../lib/partition_state.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";
import { NO_FAULTS } from "../../simulation/simulated_handle.ts";

const encoder = new TextEncoder();

async function diskWith(content: string | null, seed: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ random: new SeededRandom(seed) });
  await disk.makeFolder("/data");
  await disk.syncFolder("/");
  if (content !== null) await replaceFile(disk, "/data/state", encoder.encode(content));
  return disk;
}

async function contentOf(disk: SimulatedDisk): Promise<string | null> {
  try {
    return new TextDecoder().decode(await disk.readFile("/data/state"));
  } catch (error) {
    if (error instanceof DiskError && error.kind === "not-found") return null;
    throw error;
  }
}

Deno.test("temporary names are hidden, known as such, at most 255 bytes long and never the same", () => {
  const disk = new SimulatedDisk({ random: new SeededRandom(1) });
  const seen = new Set<string>();
  for (const name of ["a", "manifest.json", "x".repeat(255), "ä".repeat(127), `${"a".repeat(230)}€€€€€€€€`]) {
    for (let i = 0; i < 2; i++) {
      const temporary = temporaryName(disk, name);
      assert.ok(isTemporaryName(temporary), temporary);
      assert.ok(encoder.encode(temporary).byteLength <= MAX_NAME_BYTES, temporary);
      assert.ok(!temporary.includes("\ufffd"), temporary);
      seen.add(temporary);
    }
  }
  assert.equal(seen.size, 10);
});

Deno.test("a crash after any call of a replacement leaves the old content or the new", async () => {
  for (const old of [null, "old content"]) {
    for (let calls = 0, isLast = false; !isLast; calls++) {
      for (let seed = 0; seed < 40; seed++) {
        const disk = await diskWith(old, seed);
        disk.crashAfter(disk.operations + calls);
        if (calls === 0) disk.crash();
        const outcome = await replaceFile(disk, "/data/state", encoder.encode("the new content")).then(
          () => "done",
          (error) => {
            if (!(error instanceof DiskError)) throw error;
            return "failed";
          },
        );
        isLast = !disk.crashed;
        const left = await contentOf(disk.restart());
        if (outcome === "done") assert.equal(left, "the new content");
        else assert.ok(left === old || left === "the new content", `${left} after ${calls} calls, seed ${seed}`);
      }
    }
  }
});

Deno.test("a replacement that fails leaves old or new content, no handle and, where it can, no temporary file", async () => {
  let failures = 0;
  for (let seed = 0; seed < 200; seed++) {
    const disk = await diskWith("old", seed);
    disk.faults = { ...NO_FAULTS, write: 0.2, sync: 0.2, open: 0.1, names: 0.1, noSpace: 0.1 };
    const failed = await replaceFile(disk, "/data/state", encoder.encode("new")).then(() => false, () => true);
    disk.faults = NO_FAULTS;
    assert.equal(disk.openHandles, 0);
    const left = await contentOf(disk);
    if (failed) failures++;
    assert.ok(failed ? left === "old" || left === "new" : left === "new", `${left}, seed ${seed}`);
    const after = await contentOf(disk.restart());
    assert.ok(failed ? after === "old" || after === "new" : after === "new", `${after} after restart, seed ${seed}`);
  }
  assert.ok(failures > 20, "the faults did not strike");
});

Deno.test("readJson gives null for no file, and what parse makes of one that is there", async () => {
  const disk = await diskWith(null, 1);
  assert.equal(await readJson(disk, "/data/state", (json) => json), null);
  await replaceJson(disk, "/data/state", { epoch: 3 });
  assert.equal(await readJson(disk, "/data/state", (json) => (json as { epoch: number }).epoch), 3);
});

Deno.test("readJson names the file that is damaged", async () => {
  const invalid = new Uint8Array([0x22, 0xff, 0x22]);
  for (const content of [encoder.encode(""), encoder.encode('{"epoch":'), encoder.encode("\0\0\0"), invalid]) {
    const disk = await diskWith(null, 1);
    await replaceFile(disk, "/data/state", content);
    await assert.rejects(readJson(disk, "/data/state", (json) => json), (error) => {
      assert.ok(error instanceof DamagedFileError);
      assert.equal(error.path, "/data/state");
      assert.ok(error.cause instanceof Error);
      return true;
    });
  }
  const disk = await diskWith("{}", 1);
  const refuse = () => {
    throw new Error("no epoch");
  };
  await assert.rejects(readJson(disk, "/data/state", refuse), DamagedFileError);
});

Deno.test("readJson passes on what the volume says", async () => {
  const disk = await diskWith("{}", 1);
  disk.faults = { ...NO_FAULTS, read: 1 };
  await assert.rejects(readJson(disk, "/data/state", (json) => json), DiskError);
});
