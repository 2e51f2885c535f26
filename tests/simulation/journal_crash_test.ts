/**
 * The journal against machines that stop, disks that fail and owners that do not know that they are deposed. What an owner
 * finds is always what its predecessors appended, up to some moment: nothing answered is missing, nothing is out of order.
 */

import assert from "node:assert/strict";
import { DiskError } from "../../lib/disk/disk.ts";
import { KafkaError } from "../../lib/errors.ts";
import { Journal, type JournalEntry } from "../../lib/journal/journal.ts";
import { HeldUpDisk } from "./flawed_disk.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

const folder = "data/journal";
const utf8 = new TextEncoder();
const text = new TextDecoder();
/** Small enough that a history has several snapshots. */
const MIN_DEAD_BYTES = 400;

type State = Readonly<Record<string, string>>;
type Change = readonly (readonly [key: string, value: string | null])[];

async function newDisk(seed: number, syncTurns?: number): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk({ random: new SeededRandom(seed), syncTurns });
  await disk.makeFolder("data");
  await disk.syncFolder("");
  return disk;
}

function open(disk: SimulatedDisk, epoch: number, mayAcknowledge?: () => boolean): Promise<Journal> {
  return Journal.open({ disk, folder, epoch, minDeadBytes: MIN_DEAD_BYTES, mayAcknowledge });
}

function entriesOf(change: Change): JournalEntry[] {
  return change.map(([key, value]) => ({ key: utf8.encode(key), value: value === null ? null : utf8.encode(value) }));
}

function stateOf(journal: Journal): State {
  return Object.fromEntries(Array.from(journal.entries(), ({ key, value }) => [text.decode(key), text.decode(value!)]));
}

function changed(state: State, change: Change): State {
  const next = { ...state };
  for (const [key, value] of change) {
    if (value === null) delete next[key];
    else next[key] = value;
  }
  return next;
}

/** States equal whatever the order of their keys. */
function same(a: State, b: State): boolean {
  return Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value);
}

function randomChange(random: SeededRandom, mark: string): Change {
  return Array.from({ length: random.between(1, 3) }, () => {
    const key = `key ${random.below(6)}`;
    return [key, random.chance(0.3) ? null : `${mark} ${"x".repeat(random.below(40))}`];
  });
}

/** Changes to make one after the other, and the states after none, one, two … of them. */
function historyOf(count: number): { changes: Change[]; states: State[] } {
  const random = new SeededRandom(count);
  const changes = Array.from({ length: count }, (_, index) => randomChange(random, `change ${index}`));
  const states: State[] = [{}];
  for (const change of changes) states.push(changed(states.at(-1)!, change));
  return { changes, states };
}

/** Appends until one is refused; returns how many were answered. */
async function appendAll(journal: Journal, changes: readonly Change[]): Promise<number> {
  for (const [index, change] of changes.entries()) {
    try {
      await journal.append(entriesOf(change));
    } catch {
      return index;
    }
  }
  return changes.length;
}

async function bytesIn(disk: SimulatedDisk): Promise<{ files: number; bytes: number }> {
  const names = await disk.list(folder);
  let bytes = 0;
  for (const { name } of names) bytes += (await disk.stat(`${folder}/${name}`)).size;
  return { files: names.length, bytes };
}

Deno.test("a crash after any disk call, also while the next owner begins, loses nothing that was answered", async () => {
  const { changes, states } = historyOf(24);
  const whole = await newDisk(1);
  await appendAll(await open(whole, 1), changes);
  await whole.settle();
  const snapshots = whole.log().filter((line) => line.includes(".snapshot") && line.includes("rename")).length;
  assert.ok(snapshots >= 3, `${snapshots} snapshots make no test`);
  for (let call = 3; call <= whole.operations; call++) {
    for (let seed = 1; seed <= 3; seed++) {
      const disk = await newDisk(seed * 1000 + call);
      disk.crashAfter(call);
      const answered = await open(disk, 1).then((journal) => appendAll(journal, changes), () => 0);
      disk.crash();
      await disk.settle();
      const second = disk.restart();
      // The next owner's machine stops as well, after its first, second … call.
      second.crashAfter(second.operations + 1 + (call % 12));
      const found = await open(second, 2).then((journal) => void journal.close(), () => {});
      assert.equal(found, undefined);
      second.crash();
      await second.settle();
      const journal = await open(second.restart(), 3);
      const state = stateOf(journal);
      const allowed = states.slice(answered, answered + 2);
      const isAllowed = allowed.some((one) => same(one, state));
      assert.ok(isAllowed, `call ${call}, seed ${seed}: ${answered} answered, found ${JSON.stringify(state)}`);
      await journal.close();
    }
  }
});

Deno.test("many lives of many writers on a failing disk: what is found is always what was appended up to a moment", async () => {
  for (let seed = 0; seed < 120; seed++) {
    const random = new SeededRandom(seed);
    let disk = await newDisk(seed);
    let state: State = {};
    for (let life = 1; life <= 12; life += 2) {
      const why = `seed ${seed}, life ${life}`;
      const journal = await open(disk, life);
      assert.ok(same(stateOf(journal), state), `${why}: the state changed by itself`);
      disk.crashAfter(disk.operations + random.between(1, 120));
      if (random.chance(0.5)) disk.faults = { ...disk.faults, sync: 0.03, write: 0.03, noSpace: 0.02, names: 0.02 };
      const states = [state];
      let answered = 0;
      let hasFailed = false;
      const appends: Promise<void>[] = [];
      for (let index = 0; index < 40; index++) {
        const change = randomChange(random, `life ${life}, change ${index}`);
        const after = states.push(changed(states.at(-1)!, change)) - 1;
        appends.push(
          journal.append(entriesOf(change)).then(() => {
            assert.ok(!hasFailed, `${why}: an append is answered after one has failed`);
            assert.equal(after, answered + 1, `${why}: answered out of order`);
            answered = after;
          }, (error) => {
            assert.ok(error instanceof KafkaError, `${why}: ${error}`);
            hasFailed = true;
          }),
        );
        for (let turns = random.below(30); turns > 0; turns--) await null;
      }
      await Promise.all(appends);
      if (hasFailed) await assert.rejects(journal.append(entriesOf([["k", "v"]])), KafkaError);
      // The old log, the new one, and a snapshot that is being written.
      assert.ok(disk.openHandles <= 3, `${why}: ${disk.openHandles} handles`);
      disk.crash();
      await disk.settle();
      disk = disk.restart();
      const next = await open(disk, life + 1);
      const found = stateOf(next);
      assert.ok(
        states.slice(answered).some((one) => same(one, found)),
        `${why}: ${answered} answered\n${disk.log().join("\n")}`,
      );
      await next.close();
      disk.crash();
      disk = disk.restart();
      state = found;
    }
  }
});

Deno.test("an owner that goes on after it was deposed spoils nothing: not while its successor begins, and not later", async () => {
  for (let seed = 0; seed < 400; seed++) {
    const random = new SeededRandom(seed);
    // Where a sync takes no longer than a read, the deposed one gets far while its successor reads.
    const disk = await newDisk(seed, seed % 2 === 0 ? 1 : undefined);
    let isDeposed = false;
    const old = await open(disk, 1, () => !isDeposed);
    const states: State[] = [{}];
    let answered = 0;
    const write = async (count: number) => {
      for (let index = 0; index < count; index++) {
        const change = randomChange(random, `old ${states.length}`);
        const after = states.push(changed(states.at(-1)!, change)) - 1;
        try {
          await old.append(entriesOf(change));
          answered = after;
        } catch (error) {
          assert.ok(error instanceof KafkaError, `${error}`);
        }
      }
    };
    const writing = write(60);
    for (let turns = random.below(seed % 2 === 0 ? 400 : 1500); turns > 0; turns--) await null;
    isDeposed = true;
    const heirState = states.length;
    const heir = await open(disk, 2);
    const inherited = stateOf(heir);
    const candidates = states.slice(answered, heirState + 1);
    assert.ok(
      candidates.some((one) => same(one, inherited)),
      `seed ${seed}: ${answered} answered\n${disk.log().join("\n")}`,
    );
    let state = inherited;
    for (let index = 0; index < 20; index++) {
      const change = randomChange(random, `heir ${index}`);
      await heir.append(entriesOf(change));
      state = changed(state, change);
    }
    await writing;
    await old.close();
    await heir.close();
    const third = await open(disk, 3);
    assert.ok(same(stateOf(third), state), `seed ${seed}`);
    await third.close();
    assert.equal(disk.openHandles, 0, `seed ${seed}`);
    assert.deepEqual((await disk.list(folder)).map(({ name }) => name.slice(0, 8)), ["00000003", "00000003"]);
  }
});

Deno.test("an owner held up in the midst of a snapshot goes on at any moment of its successor's beginning: nothing is lost", async () => {
  const { changes, states } = historyOf(40);
  for (let heldAt = 1; heldAt <= 40; heldAt++) {
    for (let resumedAt = 1; resumedAt <= 16; resumedAt++) {
      const disk = await newDisk(1);
      const resumed = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      let isDeposed = false;
      const slow = new HeldUpDisk(disk, (call) => {
        if (call !== heldAt) return undefined;
        held.resolve();
        return resumed.promise;
      });
      let answered = 0;
      const old = Journal.open({
        disk: slow,
        folder,
        epoch: 1,
        minDeadBytes: MIN_DEAD_BYTES,
        mayAcknowledge: () => !isDeposed,
      });
      const writing = old.then(async (journal) => {
        for (const change of changes) {
          await journal.append(entriesOf(change)).then(() => answered++, () => {});
        }
        await journal.close();
      }, (error) => assert.ok(error instanceof KafkaError || error instanceof DiskError));
      await Promise.race([held.promise, writing]);
      const isOver = slow.calls < heldAt;
      isDeposed = true;
      const answeredBefore = answered;
      const goOn = async () => {
        resumed.resolve();
        await disk.settle();
      };
      const heirDisk = new HeldUpDisk(disk, (call) => call === resumedAt ? goOn() : undefined);
      const heir = await Journal.open({ disk: heirDisk, folder, epoch: 2 });
      const found = stateOf(heir);
      const why = `held at ${heldAt}, resumed at ${resumedAt}: ${answeredBefore} answered\n${disk.log().join("\n")}`;
      assert.ok(states.slice(answeredBefore, answered + 2).some((one) => same(one, found)), why);
      await heir.append(entriesOf([["heir", "was here"]]));
      resumed.resolve();
      await writing;
      await heir.close();
      const third = await open(disk, 3);
      assert.ok(same(stateOf(third), { ...found, heir: "was here" }), why);
      await third.close();
      if (isOver) return;
    }
  }
});

Deno.test("a log that ends anywhere, or with anything, is read up to there", async () => {
  const { changes, states } = historyOf(6);
  const disk = await newDisk(1);
  const journal = await Journal.open({ disk, folder, epoch: 1 });
  const ends = [0];
  const name = (await disk.list(folder)).find(({ name }) => name.endsWith(".log"))!.name;
  for (const change of changes) {
    await journal.append(entriesOf(change));
    ends.push((await disk.stat(`${folder}/${name}`)).size);
  }
  await journal.close();
  const log = await disk.readFile(`${folder}/${name}`);
  const snapshot = await disk.readFile(`${folder}/${name.replace(".log", ".snapshot")}`);
  const random = new SeededRandom(6);
  const readBack = async (bytes: Uint8Array) => {
    const copy = await newDisk(2);
    await copy.makeFolder(folder);
    for (const [suffix, content] of [["snapshot", snapshot], ["log", bytes]] as const) {
      const handle = await copy.open(`${folder}/${name.replace(/log$/, suffix)}`, "create");
      handle.writeSync(0, content);
      handle.close();
    }
    const heir = await open(copy, 2);
    const state = stateOf(heir);
    await heir.close();
    return state;
  };
  for (let length = 0; length <= log.length; length++) {
    const whole = ends.findLastIndex((end) => end <= length);
    assert.deepEqual(await readBack(log.slice(0, length)), states[whole], `${length} bytes`);
    const zeros = log.slice();
    zeros.fill(0, length);
    if (length < log.length && zeros.some((byte, at) => byte !== log[at])) {
      const before = ends.findLastIndex((end) => end <= length);
      const found = await readBack(zeros);
      // The last bytes of a batch may be zeros as it is.
      assert.ok([before, before + 1].some((at) => same(states[at], found)), `zeros from ${length} on`);
    }
    const noise = Uint8Array.from(log, (byte, at) => at < length ? byte : random.below(256));
    const found = await readBack(noise);
    assert.ok(states.slice(whole, whole + 2).some((one) => same(one, found)), `noise from ${length} on`);
  }
});

Deno.test("a damaged snapshot is refused, not taken for a shorter one", async () => {
  const disk = await newDisk(1);
  const journal = await open(disk, 1);
  await appendAll(journal, historyOf(30).changes);
  await journal.close();
  const name = (await disk.list(folder)).find(({ name }) => name.endsWith(".snapshot"))!.name;
  const bytes = await disk.readFile(`${folder}/${name}`);
  for (let length = 0; length < bytes.length; length += 7) {
    const copy = await newDisk(2);
    await copy.makeFolder(folder);
    const handle = await copy.open(`${folder}/${name}`, "create");
    handle.writeSync(0, bytes.subarray(0, length));
    handle.close();
    await assert.rejects(open(copy, 2), KafkaError, `${length} bytes`);
    assert.equal(copy.openHandles, 0);
  }
});

Deno.test("whatever happens to it, the journal keeps two files and one handle, and its bytes are bounded by what lives", async () => {
  const disk = await newDisk(1);
  const journal = await open(disk, 1);
  const random = new SeededRandom(1);
  for (let index = 0; index < 500; index++) {
    await journal.append(entriesOf(randomChange(random, `${index}`)));
    if (index % 20 > 0) continue;
    await disk.settle();
    const { files, bytes } = await bytesIn(disk);
    assert.deepEqual([files, disk.openHandles], [2, 1]);
    assert.ok(bytes < 3 * (MIN_DEAD_BYTES + 6 * 100), `${bytes} bytes`);
  }
  await journal.close();
  assert.equal(disk.openHandles, 0);
});

Deno.test("without room for a snapshot the log goes on, and a snapshot is made when there is room again", async () => {
  const disk = await newDisk(1);
  const journal = await open(disk, 1);
  const big: Change = Array.from({ length: 20 }, (_, index) => [`big ${index}`, "x".repeat(100)]);
  await journal.append(entriesOf(big));
  disk.capacityBytes = (await bytesIn(disk)).bytes + 6_000;
  for (let index = 0; index < 10; index++) await journal.append(entriesOf([["key", `${index}`]]));
  assert.equal(journal.failure, null);
  disk.calm();
  for (let index = 0; index < 100; index++) await journal.append(entriesOf(big));
  await disk.settle();
  assert.ok((await bytesIn(disk)).bytes < 40_000);
  await journal.close();
  const heir = await open(disk, 2);
  assert.deepEqual(stateOf(heir), { ...Object.fromEntries(big), key: "9" });
  await heir.close();
});
