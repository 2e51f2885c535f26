import assert from "node:assert/strict";
import { ErrorCode, KafkaError } from "../../../lib/errors.ts";
import { Journal, type JournalEntry } from "../../../lib/journal/journal.ts";
import type { Disk } from "../../../lib/disk/disk.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { SimulatedDisk } from "../../simulation/simulated_disk.ts";

const folder = "data/journal";
const utf8 = new TextEncoder();
const text = new TextDecoder();

function entry(key: string, value: string | null): JournalEntry {
  return { key: utf8.encode(key), value: value === null ? null : utf8.encode(value) };
}

function stateOf(journal: Journal): Record<string, string> {
  return Object.fromEntries(Array.from(journal.entries(), ({ key, value }) => [text.decode(key), text.decode(value!)]));
}

async function newDisk(seed = 1): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ random: new SeededRandom(seed) });
  await disk.makeFolder("data");
  await disk.syncFolder("");
  return disk;
}

function open(disk: Disk, epoch: number, minDeadBytes?: number): Promise<Journal> {
  return Journal.open({ disk, folder, epoch, minDeadBytes });
}

Deno.test("The next owner finds the newest value of each key and none of a removed one", async () => {
  const disk = await newDisk();
  const journal = await open(disk, 1);
  await journal.append([entry("a", "1"), entry("b", "1"), entry("c", "1")]);
  await journal.append([entry("a", "2"), entry("b", null)]);
  await journal.close();
  const next = await open(disk, 2);
  assert.deepEqual(stateOf(next), { a: "2", c: "1" });
  await next.close();
  assert.equal(disk.openHandles, 0);
});

Deno.test("Appends that queue while a sync runs share the next one", async () => {
  const disk = await newDisk();
  const journal = await open(disk, 1);
  const before = disk.log().length;
  await Promise.all(Array.from({ length: 100 }, (_, index) => journal.append([entry(`k${index}`, "x")])));
  const syncs = disk.log().slice(before).filter((line) => /\bsync\b/.test(line));
  assert.ok(syncs.length <= 2, syncs.join("\n"));
  await journal.close();
});

Deno.test("The files stay small however often a key is changed", async () => {
  const disk = await newDisk();
  const journal = await open(disk, 1, 2000);
  for (let round = 0; round < 200; round++) await journal.append([entry("key", `value ${round}`)]);
  let bytes = 0;
  const names = await disk.list(folder);
  for (const { name } of names) bytes += (await disk.stat(`${folder}/${name}`)).size;
  assert.ok(bytes < 4000, `${bytes} bytes`);
  assert.equal(names.length, 2);
  await journal.close();
  const next = await open(disk, 2);
  assert.deepEqual(stateOf(next), { key: "value 199" });
  await next.close();
});

Deno.test("What a deposed owner still writes is never read", async () => {
  const disk = await newDisk();
  const deposed = await open(disk, 1, 200);
  await deposed.append([entry("a", "old")]);
  const owner = await open(disk, 2);
  await owner.append([entry("a", "new")]);
  for (let round = 0; round < 20; round++) await deposed.append([entry("a", `late ${round}`)]).catch(() => {});
  await owner.close();
  const next = await open(disk, 3);
  assert.deepEqual(stateOf(next), { a: "new" });
  await next.close();
  await assert.rejects(
    open(disk, 2),
    (error) => error instanceof KafkaError && error.code === ErrorCode.NOT_COORDINATOR,
  );
});

Deno.test("After a failed sync every append is refused, for good", async () => {
  const disk = await newDisk();
  const journal = await open(disk, 1);
  disk.faults = { ...disk.faults, sync: 1 };
  await assert.rejects(journal.append([entry("a", "1")]), KafkaError);
  disk.calm();
  await assert.rejects(journal.append([entry("a", "2")]), KafkaError);
});

Deno.test("Nothing is answered as durable by a process that may be deposed", async () => {
  const disk = await newDisk();
  const journal = await Journal.open({ disk, folder, epoch: 1, mayAcknowledge: () => false });
  await assert.rejects(journal.append([entry("a", "1")]), KafkaError);
});

Deno.test("Whatever the moment of a crash, all that was answered is back and nothing that was never asked for", async () => {
  const keys = ["a", "b", "c"];
  for (let crashAt = 1; crashAt < 400; crashAt++) {
    const first = await newDisk(crashAt);
    first.crashAfter(first.operations + crashAt);
    const acknowledged = new Map<string, number>();
    const asked = new Map<string, number>();
    let isComplete = false;
    try {
      const journal = await open(first, 1, 300);
      for (let round = 1; round <= 15; round++) {
        await Promise.all(keys.map(async (key) => {
          asked.set(key, round);
          await journal.append([entry(key, String(round))]);
          acknowledged.set(key, round);
        }));
      }
      await journal.close();
      isComplete = true;
    } catch {
      // The machine stopped.
    }
    await first.settle();
    let disk = first;
    // A second crash on the way back must not make it worse.
    for (const [epoch, crashIn] of [[2, 5], [3, Infinity]]) {
      disk = disk.restart();
      disk.crashAfter(crashIn);
      try {
        await disk.makeFolder("data");
        const journal = await open(disk, epoch);
        const state = stateOf(journal);
        for (const key of keys) {
          const value = Number(state[key] ?? 0);
          assert.ok(value >= (acknowledged.get(key) ?? 0), `crash after ${crashAt}: ${key} is ${value}`);
          assert.ok(value <= (asked.get(key) ?? 0), `crash after ${crashAt}: ${key} is ${value}`);
        }
        await journal.close();
      } catch (error) {
        if (error instanceof assert.AssertionError || !disk.crashed) throw error;
      }
      await disk.settle();
    }
    if (isComplete) return;
  }
  assert.fail("the history never ended");
});
