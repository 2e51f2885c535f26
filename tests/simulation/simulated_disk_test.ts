import assert from "node:assert/strict";
import { DiskError } from "../../lib/disk/disk.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { NO_FAULTS } from "./simulated_handle.ts";

const SEEDS = 300;

/** The outcomes of one scenario over many seeds. */
async function outcomes(run: (disk: SimulatedDisk) => Promise<string>): Promise<Set<string>> {
  const seen = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) seen.add(await run(new SimulatedDisk({ random: new SeededRandom(seed) })));
  return seen;
}

async function textOf(disk: SimulatedDisk, path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await disk.readFile(path)).replaceAll("\0", "0");
  } catch (error) {
    assert.ok(error instanceof DiskError);
    return error.kind;
  }
}

async function create(disk: SimulatedDisk, path: string, content: string, sync: boolean): Promise<void> {
  const handle = await disk.open(path, "create");
  handle.writeSync(0, new TextEncoder().encode(content));
  if (sync) await handle.sync();
  handle.close();
}

Deno.test("what is synced, name and content, survives every crash", async () => {
  const seen = await outcomes(async (disk) => {
    await create(disk, "/a", "content", true);
    await disk.syncFolder("/");
    return await textOf(disk.restart(), "/a");
  });
  assert.deepEqual([...seen], ["content"]);
});

Deno.test("a synced file whose folder is not synced may be gone, and is whole if it is not", async () => {
  const seen = await outcomes(async (disk) => {
    await create(disk, "/a", "content", true);
    return await textOf(disk.restart(), "/a");
  });
  assert.deepEqual([...seen].sort(), ["content", "not-found"]);
});

Deno.test("unsynced bytes are lost, torn or kept", async () => {
  const seen = await outcomes(async (disk) => {
    await create(disk, "/a", "content", false);
    await disk.syncFolder("/");
    return await textOf(disk.restart(), "/a");
  });
  for (const part of ["", "cont", "content", "0000000"]) assert.ok(seen.has(part), `never ${JSON.stringify(part)}`);
});

Deno.test("of two unsynced writes the second alone may survive", async () => {
  const seen = await outcomes(async (disk) => {
    const handle = await disk.open("/a", "create");
    await disk.syncFolder("/");
    handle.writeSync(0, new TextEncoder().encode("aa"));
    handle.writeSync(2, new TextEncoder().encode("bb"));
    return await textOf(disk.restart(), "/a");
  });
  for (const part of ["", "a", "aabb", "00bb", "aa"]) assert.ok(seen.has(part), `never ${JSON.stringify(part)}`);
});

Deno.test("a sync covers what was written before it began, and only that", async () => {
  const seen = await outcomes(async (disk) => {
    const handle = await disk.open("/a", "create");
    await disk.syncFolder("/");
    handle.writeSync(0, new TextEncoder().encode("aa"));
    const first = handle.sync();
    handle.writeSync(2, new TextEncoder().encode("bb"));
    const second = handle.sync();
    handle.writeSync(4, new TextEncoder().encode("cc"));
    await first;
    await second;
    return (await textOf(disk.restart(), "/a")).slice(0, 4);
  });
  assert.deepEqual([...seen], ["aabb"]);
});

Deno.test("overlapping syncs never take along what was written after they began", async () => {
  const seen = await outcomes(async (disk) => {
    const handle = await disk.open("/a", "create");
    await disk.syncFolder("/");
    handle.writeSync(0, new TextEncoder().encode("aa"));
    const syncs = [handle.sync(), handle.sync()];
    handle.writeSync(2, new TextEncoder().encode("bb"));
    await Promise.all(syncs);
    return await textOf(disk.restart(), "/a");
  });
  assert.ok(seen.has("aa"), "bb was never lost");
  for (const left of seen) assert.ok(left.startsWith("aa"), left);
});

Deno.test("a rename is whole or not at all, and waits for a sync of its folder", async () => {
  const run = (sync: boolean) =>
    outcomes(async (disk) => {
      await create(disk, "/a", "new", true);
      await create(disk, "/b", "old", true);
      await disk.syncFolder("/");
      await disk.rename("/a", "/b");
      if (sync) await disk.syncFolder("/");
      const left = disk.restart();
      return `${await textOf(left, "/a")} ${await textOf(left, "/b")}`;
    });
  assert.deepEqual([...await run(false)].sort(), ["new old", "not-found new"]);
  assert.deepEqual([...await run(true)], ["not-found new"]);
});

Deno.test("an unlink waits for a sync of its folder", async () => {
  const seen = await outcomes(async (disk) => {
    await create(disk, "/a", "content", true);
    await disk.syncFolder("/");
    await disk.remove("/a");
    return await textOf(disk.restart(), "/a");
  });
  assert.deepEqual([...seen].sort(), ["content", "not-found"]);
});

Deno.test("what is in a folder goes with it when its name is lost", async () => {
  const seen = await outcomes(async (disk) => {
    await disk.makeFolder("/f");
    await create(disk, "/f/a", "content", true);
    await disk.syncFolder("/f");
    return await textOf(disk.restart(), "/f/a");
  });
  assert.deepEqual([...seen].sort(), ["content", "not-found"]);
});

Deno.test("after a failed sync a later one succeeds without the lost bytes", async () => {
  const seen = await outcomes(async (disk) => {
    const handle = await disk.open("/a", "create");
    await disk.syncFolder("/");
    handle.writeSync(0, new TextEncoder().encode("content"));
    disk.faults = { ...NO_FAULTS, sync: 1 };
    await assert.rejects(handle.sync(), DiskError);
    disk.faults = NO_FAULTS;
    const cached = await textOf(disk, "/a");
    await handle.sync();
    return `${cached === "content" ? "cached" : "forgotten"} ${await textOf(disk.restart(), "/a")}`;
  });
  for (const part of ["cached content", "cached ", "forgotten "]) assert.ok(seen.has(part), `never ${part}`);
});

Deno.test("a write that finds no room may have written a part", async () => {
  const seen = await outcomes(async (disk) => {
    const handle = await disk.open("/a", "create");
    disk.capacityBytes = 4;
    assert.throws(() => handle.writeSync(0, new TextEncoder().encode("content")), (error) => {
      return error instanceof DiskError && error.kind === "no-space";
    });
    handle.writeSync(0, new TextEncoder().encode("room"));
    handle.truncateSync(0);
    assert.throws(() => handle.writeSync(0, new TextEncoder().encode("content")), DiskError);
    return await textOf(disk, "/a");
  });
  assert.deepEqual([...seen].sort(), ["", "c", "co", "con", "cont"]);
});

Deno.test("a change of names that fails may have happened", async () => {
  const seen = await outcomes(async (disk) => {
    await create(disk, "/a", "content", true);
    disk.faults = { ...NO_FAULTS, names: 1 };
    await assert.rejects(disk.rename("/a", "/b"), DiskError);
    disk.faults = NO_FAULTS;
    return await textOf(disk, "/b");
  });
  assert.deepEqual([...seen].sort(), ["content", "not-found"]);
});

Deno.test("after its crash a disk does nothing more, and the counted call has done its work", async () => {
  const disk = new SimulatedDisk({ random: new SeededRandom(1) });
  const handle = await disk.open("/a", "create");
  await disk.syncFolder("/");
  disk.crashAfter(disk.operations + 2);
  handle.writeSync(0, new TextEncoder().encode("a"));
  await handle.sync();
  assert.ok(disk.crashed);
  assert.throws(() => handle.writeSync(1, new TextEncoder().encode("b")), DiskError);
  await assert.rejects(handle.sync(), DiskError);
  await assert.rejects(disk.open("/a", "read"), DiskError);
  handle.close();
  assert.equal(await textOf(disk.restart(), "/a"), "a");
});

Deno.test("one seed gives one history", async () => {
  const run = async () => {
    const disk = new SimulatedDisk({ random: new SeededRandom(42) });
    disk.faults = { ...NO_FAULTS, write: 0.3, sync: 0.3 };
    const handle = await disk.open("/a", "create");
    for (let i = 0; i < 30; i++) {
      try {
        handle.writeSync(i * 3, new Uint8Array(5));
        await handle.sync();
      } catch (error) {
        assert.ok(error instanceof DiskError);
      }
    }
    return [...disk.log(), await textOf(disk.restart(), "/a")];
  };
  assert.deepEqual(await run(), await run());
});
