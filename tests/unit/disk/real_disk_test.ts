import assert from "node:assert/strict";
import { DiskError } from "../../../lib/disk/disk.ts";
import { openHandleCount, realDisk } from "../../../lib/disk/real_disk.ts";
import { AssertionError } from "../../../lib/errors.ts";
import { openBelow } from "../../support/open_descriptors.ts";

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "kaas-disk-" });
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a full device is no-space, and the handle can be closed after it", () => {
  // Deno lets a process touch devices with all rights only; the test itself runs with fewer.
  const script = new URL("../../support/full_device.ts", import.meta.url).pathname;
  const { stdout } = new Deno.Command(Deno.execPath(), { args: ["run", "--allow-all", "--no-check", script] })
    .outputSync();
  assert.equal(new TextDecoder().decode(stdout), "no-space, 0 open\n");
});

Deno.test("opens that fail leave no descriptor and no handle behind", () =>
  inFolder(async (folder) => {
    const before = openHandleCount();
    await Deno.writeTextFile(`${folder}/a`, "x");
    for (let i = 0; i < 10; i++) {
      assert.throws(() => realDisk.openSync(`${folder}/a`, "create"), DiskError);
      await assert.rejects(realDisk.open(`${folder}/none`, "write"), DiskError);
      await assert.rejects(realDisk.open(folder, "write"), DiskError);
      await assert.rejects(realDisk.syncFolder(`${folder}/none`), DiskError);
    }
    assert.equal(openHandleCount(), before);
    assert.deepEqual(openBelow(folder), []);
  }));

Deno.test("closing gives the descriptor back to the system", () =>
  inFolder(async (folder) => {
    const handle = await realDisk.open(`${folder}/a`, "create");
    assert.deepEqual(openBelow(folder), [`${folder}/a`]);
    handle.close();
    assert.deepEqual(openBelow(folder), []);
    await realDisk.syncFolder(folder);
    assert.deepEqual(openBelow(folder), []);
  }));

Deno.test("a sync under way ends well though the handle is closed meanwhile", () =>
  inFolder(async (folder) => {
    const handle = await realDisk.open(`${folder}/a`, "create");
    handle.writeSync(0, new Uint8Array(100_000));
    const sync = handle.sync();
    handle.close();
    await sync;
    assert.deepEqual(openBelow(folder), []);
  }));

Deno.test("a synchronous use beside an asynchronous read is a broken invariant", () =>
  inFolder(async (folder) => {
    await Deno.writeFile(`${folder}/a`, new Uint8Array(1000));
    const handle = await realDisk.open(`${folder}/a`, "write");
    const read = handle.read(0, new Uint8Array(1000));
    assert.throws(() => handle.readSync(0, new Uint8Array(1)), AssertionError);
    assert.throws(() => handle.writeSync(0, new Uint8Array(1)), AssertionError);
    assert.equal(await read, 1000);
    handle.writeSync(0, new Uint8Array(1));
    handle.close();
  }));

Deno.test("sequential and random access may alternate with asynchronous reads", () =>
  inFolder(async (folder) => {
    const handle = await realDisk.open(`${folder}/a`, "create");
    const content = Uint8Array.from({ length: 1000 }, (_, i) => i % 256);
    handle.writeSync(0, content.subarray(0, 400));
    const into = new Uint8Array(10);
    assert.equal(await handle.read(100, into), 10);
    handle.writeSync(400, content.subarray(400));
    assert.equal(handle.readSync(0, into), 10);
    handle.writeSync(10, content.subarray(10, 20));
    handle.close();
    assert.deepEqual(await realDisk.readFile(`${folder}/a`), content);
  }));

Deno.test("a failed operation does not move later ones", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a`, "0123456789");
    const handle = await realDisk.open(`${folder}/a`, "read");
    const into = new Uint8Array(5);
    handle.readSync(0, into);
    assert.throws(() => handle.writeSync(5, new Uint8Array(1)), DiskError);
    assert.equal(handle.readSync(5, into), 5);
    assert.equal(new TextDecoder().decode(into), "56789");
    handle.close();
  }));

Deno.test("links are listed as what they lead to", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/real`);
    await Deno.symlink(`${folder}/real`, `${folder}/link`);
    await Deno.symlink(`${folder}/none`, `${folder}/nowhere`);
    assert.deepEqual(await realDisk.list(folder), [
      { name: "link", isFile: false, isFolder: true },
      { name: "nowhere", isFile: false, isFolder: false },
      { name: "real", isFile: false, isFolder: true },
    ]);
  }));

Deno.test("writerId is fit for file names", () => {
  assert.match(realDisk.writerId, /^[0-9a-z]{8,}$/);
});
