/**
 * What every {@link Disk} does alike, whatever is behind it. What survives a crash is not here: only a simulated disk can
 * show that.
 */

import assert from "node:assert/strict";
import { readJson, replaceFile, replaceJson } from "../../lib/disk/atomic_replace.ts";
import { type Disk, DiskError, type DiskErrorKind } from "../../lib/disk/disk.ts";

/** A disk, and an empty folder on it that is the test's own. */
export interface DiskUnderTest {
  readonly disk: Disk;
  readonly folder: string;
  /** Handles open on the disk now. */
  openHandles(): number;
  dispose(): Promise<void>;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytesOf = (string: string) => new TextEncoder().encode(string);

async function refuses(kind: DiskErrorKind, run: () => unknown): Promise<void> {
  await assert.rejects(async () => await run(), (error) => {
    assert.ok(error instanceof DiskError, `not a DiskError: ${error}`);
    assert.equal(error.kind, kind, error.message);
    return true;
  });
}

async function write(disk: Disk, path: string, content: string): Promise<void> {
  const handle = await disk.open(path, "create");
  handle.writeSync(0, bytesOf(content));
  handle.close();
}

type Case = (under: DiskUnderTest) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "a new file is empty, and reads back what is written at any position": async ({ disk, folder }) => {
    const handle = disk.openSync(`${folder}/a`, "create");
    assert.equal(handle.sizeSync(), 0);
    handle.writeSync(0, bytesOf("hello"));
    handle.writeSync(8, bytesOf("world"));
    handle.writeSync(1, bytesOf("E"));
    assert.equal(handle.sizeSync(), 13);
    const into = new Uint8Array(20);
    assert.equal(handle.readSync(0, into), 13);
    assert.equal(text(into.subarray(0, 13)), "hEllo\0\0\0world");
    handle.close();
    assert.equal(text(await disk.readFile(`${folder}/a`)), "hEllo\0\0\0world");
  },

  "a read ends early only at the end of the file": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "0123456789");
    const handle = await disk.open(`${folder}/a`, "read");
    const into = new Uint8Array(4);
    assert.equal(await handle.read(3, into), 4);
    assert.equal(text(into), "3456");
    assert.equal(await handle.read(8, into), 2);
    assert.equal(text(into.subarray(0, 2)), "89");
    assert.equal(await handle.read(10, into), 0);
    assert.equal(handle.readSync(50, into), 0);
    assert.equal(handle.readSync(0, new Uint8Array(0)), 0);
    handle.close();
  },

  "asynchronous reads of one handle do not disturb each other": async ({ disk, folder }) => {
    const content = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251);
    await replaceFile(disk, `${folder}/a`, content);
    const handle = await disk.open(`${folder}/a`, "read");
    const reads = Array.from({ length: 20 }, async (_, i) => {
      const into = new Uint8Array(5000);
      assert.equal(await handle.read(i * 4321, into), 5000);
      assert.deepEqual(into, content.slice(i * 4321, i * 4321 + 5000));
    });
    await Promise.all(reads);
    handle.close();
  },

  "what is written while a sync runs is there": async ({ disk, folder }) => {
    const handle = await disk.open(`${folder}/a`, "create");
    handle.writeSync(0, bytesOf("one"));
    const syncs = [handle.sync()];
    handle.writeSync(3, bytesOf("two"));
    syncs.push(handle.sync());
    await Promise.all(syncs);
    handle.close();
    assert.equal(text(await disk.readFile(`${folder}/a`)), "onetwo");
  },

  "truncation cuts, and extends with zeros": async ({ disk, folder }) => {
    const handle = await disk.open(`${folder}/a`, "create");
    handle.writeSync(0, bytesOf("0123456789"));
    handle.truncateSync(4);
    assert.equal(handle.sizeSync(), 4);
    handle.truncateSync(6);
    handle.writeSync(6, bytesOf("x"));
    await handle.sync();
    handle.close();
    assert.equal(text(await disk.readFile(`${folder}/a`)), "0123\0\0x");
  },

  "create is exclusive, write and read need the file": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "x");
    await refuses("exists", () => disk.openSync(`${folder}/a`, "create"));
    await refuses("exists", () => disk.open(`${folder}/a`, "create"));
    await refuses("not-found", () => disk.openSync(`${folder}/b`, "write"));
    await refuses("not-found", () => disk.open(`${folder}/b`, "read"));
    await refuses("not-found", () => disk.open(`${folder}/none/b`, "create"));
    await refuses("not-found", () => disk.open(`${folder}/a/b`, "read"));
  },

  "a handle for writing keeps the content and reads too": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "abc");
    const handle = await disk.open(`${folder}/a`, "write");
    const into = new Uint8Array(3);
    assert.equal(handle.readSync(0, into), 3);
    handle.writeSync(3, bytesOf("def"));
    handle.close();
    assert.equal(text(into), "abc");
    assert.equal(text(await disk.readFile(`${folder}/a`)), "abcdef");
  },

  "a closed handle refuses, and closing twice is harmless": async ({ disk, folder, openHandles }) => {
    const before = openHandles();
    const handle = await disk.open(`${folder}/a`, "create");
    assert.equal(openHandles(), before + 1);
    handle.close();
    handle.close();
    assert.equal(openHandles(), before);
    await refuses("closed", () => handle.readSync(0, new Uint8Array(1)));
    await refuses("closed", () => handle.read(0, new Uint8Array(1)));
    await refuses("closed", () => handle.writeSync(0, new Uint8Array(1)));
    await refuses("closed", () => handle.truncateSync(0));
    await refuses("closed", () => handle.sizeSync());
    await refuses("closed", () => handle.sync());
  },

  "a handle opened for reading does not write": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "x");
    const handle = await disk.open(`${folder}/a`, "read");
    await assert.rejects(async () => await handle.writeSync(0, bytesOf("y")), DiskError);
    handle.close();
    assert.equal(text(await disk.readFile(`${folder}/a`)), "x");
  },

  "a folder lists its names in order": async ({ disk, folder }) => {
    await disk.makeFolder(`${folder}/b`);
    for (const name of ["c", "a", "B"]) await write(disk, `${folder}/${name}`, "");
    assert.deepEqual(await disk.list(folder), [
      { name: "B", isFile: true, isFolder: false },
      { name: "a", isFile: true, isFolder: false },
      { name: "b", isFile: false, isFolder: true },
      { name: "c", isFile: true, isFolder: false },
    ]);
    assert.deepEqual(await disk.list(`${folder}/b`), []);
    await refuses("not-found", () => disk.list(`${folder}/none`));
    await refuses("not-found", () => disk.list(`${folder}/a`));
  },

  "stat tells size and kind": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "12345");
    const { size, isFolder } = await disk.stat(`${folder}/a`);
    assert.deepEqual({ size, isFolder }, { size: 5, isFolder: false });
    assert.equal((await disk.stat(folder)).isFolder, true);
    await refuses("not-found", () => disk.stat(`${folder}/none`));
  },

  "a missing file is not found": async ({ disk, folder }) => {
    await refuses("not-found", () => disk.readFile(`${folder}/none`));
    await refuses("not-found", () => disk.remove(`${folder}/none`));
    await refuses("not-found", () => disk.remove(`${folder}/none`, { recursive: true }));
    await refuses("not-found", () => disk.rename(`${folder}/none`, `${folder}/b`));
    await refuses("not-found", () => disk.syncFolder(`${folder}/none`));
  },

  "folders are made with their parents, again without harm": async ({ disk, folder }) => {
    await disk.makeFolder(`${folder}/a/b/c`);
    await disk.makeFolder(`${folder}/a/b/c`);
    assert.deepEqual((await disk.list(`${folder}/a/b`)).map(({ name }) => name), ["c"]);
    await write(disk, `${folder}/file`, "");
    await refuses("exists", () => disk.makeFolder(`${folder}/file`));
  },

  "a rename replaces a file, and moves a folder with all in it": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "new");
    await write(disk, `${folder}/b`, "old");
    await disk.rename(`${folder}/a`, `${folder}/b`);
    assert.equal(text(await disk.readFile(`${folder}/b`)), "new");
    await disk.makeFolder(`${folder}/x/y`);
    await disk.makeFolder(`${folder}/z`);
    await write(disk, `${folder}/x/y/f`, "deep");
    await disk.rename(`${folder}/x`, `${folder}/z/moved`);
    assert.equal(text(await disk.readFile(`${folder}/z/moved/y/f`)), "deep");
    assert.deepEqual((await disk.list(folder)).map(({ name }) => name), ["b", "z"]);
    await disk.makeFolder(`${folder}/w`);
    await refuses("not-empty", () => disk.rename(`${folder}/w`, `${folder}/z`));
  },

  "a folder with something in it goes only when that is asked for": async ({ disk, folder }) => {
    await disk.makeFolder(`${folder}/a/b`);
    await write(disk, `${folder}/a/b/f`, "x");
    await refuses("not-empty", () => disk.remove(`${folder}/a`));
    await disk.remove(`${folder}/a`, { recursive: true });
    assert.deepEqual(await disk.list(folder), []);
    await disk.makeFolder(`${folder}/a`);
    await disk.remove(`${folder}/a`);
    await write(disk, `${folder}/f`, "x");
    await disk.remove(`${folder}/f`);
    assert.deepEqual(await disk.list(folder), []);
  },

  "an open file whose name went still serves its handle": async ({ disk, folder }) => {
    const handle = await disk.open(`${folder}/a`, "create");
    handle.writeSync(0, bytesOf("kept"));
    await disk.rename(`${folder}/a`, `${folder}/b`);
    const into = new Uint8Array(4);
    assert.equal(handle.readSync(0, into), 4);
    assert.equal(text(into), "kept");
    handle.close();
    assert.equal(text(await disk.readFile(`${folder}/b`)), "kept");
  },

  "names are made durable without error": async ({ disk, folder }) => {
    await write(disk, `${folder}/a`, "x");
    await disk.syncFolder(folder);
  },

  "there is some space": async ({ disk, folder }) => {
    const { freeBytes, totalBytes } = await disk.space(folder);
    assert.ok(totalBytes > 0 && freeBytes >= 0 && freeBytes <= totalBytes, `${freeBytes} of ${totalBytes}`);
  },

  "replacing leaves the new content and nothing else": async ({ disk, folder, openHandles }) => {
    const before = openHandles();
    await replaceFile(disk, `${folder}/state`, bytesOf("one"));
    await replaceFile(disk, `${folder}/state`, bytesOf("two"));
    assert.equal(text(await disk.readFile(`${folder}/state`)), "two");
    await replaceJson(disk, `${folder}/json`, { a: 1 });
    assert.deepEqual(await readJson(disk, `${folder}/json`, (json) => json), { a: 1 });
    assert.deepEqual((await disk.list(folder)).map(({ name }) => name), ["json", "state"]);
    assert.equal(openHandles(), before);
  },

  "replacing where it cannot be done leaves nothing behind": async ({ disk, folder, openHandles }) => {
    const before = openHandles();
    await disk.makeFolder(`${folder}/taken/by`);
    await assert.rejects(replaceFile(disk, `${folder}/taken`, bytesOf("x")), DiskError);
    await refuses("not-found", () => replaceFile(disk, `${folder}/none/state`, bytesOf("x")));
    assert.deepEqual((await disk.list(folder)).map(({ name }) => name), ["taken"]);
    assert.equal(openHandles(), before);
  },

  "many replacements of one file at a time leave one of the contents": async ({ disk, folder }) => {
    const contents = Array.from({ length: 8 }, (_, i) => `content ${i}`);
    await Promise.all(contents.map((content) => replaceFile(disk, `${folder}/state`, bytesOf(content))));
    assert.ok(contents.includes(text(await disk.readFile(`${folder}/state`))));
    assert.deepEqual((await disk.list(folder)).map(({ name }) => name), ["state"]);
  },
};

/** Registers the suite for one implementation. */
export function testDisk(name: string, make: () => Promise<DiskUnderTest>): void {
  for (const [sentence, run] of Object.entries(cases)) {
    Deno.test(`${name}: ${sentence}`, async () => {
      const under = await make();
      try {
        await run(under);
      } finally {
        await under.dispose();
      }
    });
  }
}
