import assert from "node:assert/strict";
import { HandleRegistry, type OpenAtUnlink } from "../../../lib/disk/handle_registry.ts";
import { AssertionError } from "../../../lib/errors.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";

async function registry(onOpenAtUnlink?: (found: OpenAtUnlink) => void): Promise<HandleRegistry> {
  const registry = new HandleRegistry(new SimulatedDisk({ random: new SeededRandom(1) }), onOpenAtUnlink);
  await registry.makeFolder("/t/0");
  return registry;
}

Deno.test("HandleRegistry knows what is open, also below a folder", async () => {
  const disk = await registry();
  const a = await disk.open("/t/0/a", "create");
  const again = disk.openSync("/t/0/a", "read");
  const b = await disk.open("/t/b", "create");
  assert.deepEqual(disk.openPaths(), ["/t/0/a", "/t/0/a", "/t/b"]);
  assert.deepEqual(disk.openPaths("/t/0"), ["/t/0/a", "/t/0/a"]);
  assert.deepEqual(disk.openPaths("/t/0/"), ["/t/0/a", "/t/0/a"]);
  assert.deepEqual(disk.openPaths("/t/0/a"), ["/t/0/a", "/t/0/a"]);
  assert.deepEqual(disk.openPaths("/t/00"), []);
  for (const handle of [a, again, b, a]) handle.close();
  assert.deepEqual(disk.openPaths(), []);
  assert.equal(disk.openCount, 0);
});

Deno.test("HandleRegistry refuses to take the name of an open file", async () => {
  const disk = await registry();
  const handle = await disk.open("/t/0/a", "create");
  (await disk.open("/t/0/b", "create")).close();
  await assert.rejects(disk.remove("/t/0/a"), AssertionError);
  await assert.rejects(disk.remove("/t", { recursive: true }), AssertionError);
  await assert.rejects(disk.rename("/t/0/b", "/t/0/a"), AssertionError);
  await disk.remove("/t/0/b");
  handle.close();
  await disk.remove("/t", { recursive: true });
});

Deno.test("HandleRegistry counts a file as open until its last sync or read has returned", async () => {
  const disk = await registry();
  const handle = await disk.open("/t/0/a", "create");
  handle.writeSync(0, new Uint8Array(10));
  const sync = handle.sync();
  handle.close();
  assert.deepEqual(disk.openPaths(), ["/t/0/a"]);
  await sync;
  assert.deepEqual(disk.openPaths(), []);

  const reader = await disk.open("/t/0/a", "read");
  const read = reader.read(0, new Uint8Array(10));
  reader.close();
  assert.deepEqual(disk.openPaths(), ["/t/0/a"]);
  await read;
  assert.deepEqual(disk.openPaths(), []);
});

Deno.test("HandleRegistry follows a folder that is renamed", async () => {
  const disk = await registry();
  const handle = await disk.open("/t/0/a", "create");
  await disk.rename("/t", "/u");
  assert.equal(handle.path, "/u/0/a");
  await assert.rejects(disk.remove("/u/0/a"), AssertionError);
  handle.close();
  await disk.remove("/u/0/a");
});

Deno.test("HandleRegistry tells a listener of its own, and goes on", async () => {
  const found: OpenAtUnlink[] = [];
  const disk = await registry((open) => found.push(open));
  const handle = await disk.open("/t/0/a", "create");
  await disk.remove("/t/0/a");
  assert.deepEqual(found, [{ operation: "remove", path: "/t/0/a", openPaths: ["/t/0/a"] }]);
  handle.close();
});
