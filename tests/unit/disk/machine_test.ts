import assert from "node:assert/strict";
import { isLockFree, lockForLife, machineIdentity, sameBoot } from "../../../lib/disk/machine.ts";

async function withFile(test: (path: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(`${folder}/lock`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A process that has taken the lock, and keeps it until it is killed. */
async function holder(path: string): Promise<Deno.ChildProcess> {
  const script = `
    import { lockForLife } from ${JSON.stringify(new URL("../../../lib/disk/machine.ts", import.meta.url).href)};
    console.log(await lockForLife(${JSON.stringify(path)}, 5000));
    setInterval(() => {}, 60000);`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", script],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  assert.equal(new TextDecoder().decode(value).trim(), "true");
  await reader.cancel();
  return child;
}

Deno.test("A machine is the same between two of its starts, and no other", () => {
  const machine = machineIdentity();
  assert.ok(sameBoot(machine, machineIdentity()));
  assert.ok(sameBoot(machine, { ...machine, bootMs: machine.bootMs + 2_000 }), "the uptime is good to some seconds");
  assert.ok(!sameBoot(machine, { ...machine, bootMs: machine.bootMs + 60_000 }), "started anew");
  assert.ok(!sameBoot(machine, { ...machine, host: `${machine.host}-other` }));
});

Deno.test("A process keeps its lock until it is killed, and the next one has it at once then", async () => {
  await withFile(async (path) => {
    const child = await holder(path);
    assert.equal(await lockForLife(path, 50), false);
    assert.equal(await isLockFree(path), false);
    child.kill("SIGKILL");
    await child.status;
    assert.equal(await lockForLife(path, 5_000), true);
    assert.equal(await isLockFree(path), false, "this process has it now");
  });
});

Deno.test("A lock that comes after it was given up is given back", async () => {
  await withFile(async (path) => {
    const child = await holder(path);
    assert.equal(await lockForLife(path, 20), false);
    child.kill("SIGKILL");
    await child.status;
    // The wait that was given up gets the lock now: it does not keep it.
    assert.equal(await lockForLife(path, 5_000), true);
  });
});

Deno.test("Whether a lock is free can be asked without making its file, and the asking keeps nothing", async () => {
  await withFile(async (path) => {
    assert.equal(await isLockFree(path), false, "nothing is known without a file");
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
    await Deno.writeTextFile(path, "");
    assert.equal(await isLockFree(path), true);
    assert.equal(await isLockFree(path), true);
    assert.equal(await lockForLife(path, 5_000), true);
  });
});
