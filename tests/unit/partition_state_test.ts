import assert from "node:assert/strict";
import {
  cutAsideName,
  isTemporaryName,
  type NamedFile,
  parsePartitionKey,
  parseSegmentFileName,
  partitionStateOf,
  segmentStem,
} from "../../lib/partition_state.ts";

const MAX_OFFSET = Number.MAX_SAFE_INTEGER;

/** Files of segments given as [epoch, base offset, bytes]. */
function logs(...segments: readonly (readonly [number, number, number?])[]): NamedFile[] {
  return segments.map(([epoch, base, size = 100]) => ({ name: `${segmentStem(epoch, base)}.log`, size }));
}

/** The live and dead segments as `epoch@base..end` and `epoch@base`. */
function verdict(files: NamedFile[]): { live: string[]; dead: string[] } {
  const { segments } = partitionStateOf(files);
  return {
    live: segments.filter((s) => s.live).map((s) => `${s.epoch}@${s.baseOffset}..${s.endOffset ?? ""}`),
    dead: segments.filter((s) => !s.live).map((s) => `${s.epoch}@${s.baseOffset}`),
  };
}

Deno.test("segmentStem and parseSegmentFileName are each other's inverse", () => {
  for (const [epoch, baseOffset] of [[0, 0], [1, 500], [255, 10], [0x7fffffff, MAX_OFFSET]]) {
    for (const suffix of ["log", "index", "timeindex", "txnindex"] as const) {
      assert.deepEqual(parseSegmentFileName(`${segmentStem(epoch, baseOffset)}.${suffix}`), {
        epoch,
        baseOffset,
        suffix,
      });
    }
  }
  assert.equal(segmentStem(255, 42), "000000ff-00000000000000000042");
});

Deno.test("parseSegmentFileName takes nothing that is not exactly a segment's file", () => {
  const names = [
    "",
    "00000000000000000000.log",
    "0-00000000000000000000.log",
    "000000FF-00000000000000000000.log",
    "00000000-0000000000000000000.log",
    "00000000-000000000000000000000.log",
    "00000000-00000000000000000000.log ",
    "00000000-00000000000000000000.log\n",
    " 00000000-00000000000000000000.log",
    "00000000-00000000000000000000.LOG",
    "00000000-00000000000000000000",
    "00000000-00000000000000000000.log.cut-1",
    "00000000-00000000000000000000.snapshot",
    "00000000_00000000000000000000.log",
    "80000000-00000000000000000000.log",
    "00000000-09007199254740992000.log",
    "00000000-99999999999999999999.log",
    "0000000g-00000000000000000000.log",
  ];
  for (const name of names) assert.equal(parseSegmentFileName(name), null, name);
});

Deno.test("segments of one leader are live and end where the next begins", () => {
  assert.deepEqual(verdict(logs([1, 200], [1, 0], [1, 100])), {
    live: ["1@0..100", "1@100..200", "1@200.."],
    dead: [],
  });
});

Deno.test("a later leader's segment cuts the one in front of it short", () => {
  const { live } = partitionStateOf(logs([1, 0], [3, 70], [3, 90]));
  assert.deepEqual(live.map(({ endOffset, endedBy }) => ({ endOffset, endedBy })), [
    { endOffset: 70, endedBy: "takeover" },
    { endOffset: 90, endedBy: "roll" },
    { endOffset: null, endedBy: null },
  ]);
});

Deno.test("what a deposed leader rolls at or past its successor's first offset is dead", () => {
  assert.deepEqual(verdict(logs([1, 0], [1, 100], [2, 70], [1, 70])), {
    live: ["1@0..70", "2@70.."],
    dead: ["1@70", "1@100"],
  });
});

Deno.test("an empty active segment that was replaced at its base offset is dead", () => {
  assert.deepEqual(verdict(logs([1, 0], [2, 50, 0], [3, 50, 0], [4, 50, 0])), {
    live: ["1@0..50", "4@50.."],
    dead: ["2@50", "3@50"],
  });
});

Deno.test("a dead segment in between hides none of those behind it", () => {
  assert.deepEqual(verdict(logs([1, 0], [5, 50], [2, 60], [5, 80], [4, 90], [6, 100])), {
    live: ["1@0..50", "5@50..80", "5@80..100", "6@100.."],
    dead: ["2@60", "4@90"],
  });
});

Deno.test("live segments rise in offset and never fall in epoch, and a segment is dead by the rule alone", () => {
  // Every set of up to four segments with three epochs and three base offsets.
  const all = [1, 2, 3].flatMap((epoch) => [0, 10, 20].map((base) => [epoch, base] as const));
  for (let chosen = 0; chosen < 1 << all.length; chosen++) {
    const segments = all.filter((_, i) => chosen >> i & 1);
    if (segments.length > 4) continue;
    const state = partitionStateOf(logs(...segments));
    for (const { epoch, baseOffset, live } of state.segments) {
      const overtaken = segments.some(([e, base]) => e > epoch && base <= baseOffset);
      assert.equal(live, !overtaken, `${JSON.stringify(segments)}: ${epoch}@${baseOffset}`);
    }
    for (let i = 1; i < state.live.length; i++) {
      assert.ok(state.live[i].baseOffset > state.live[i - 1].baseOffset);
      assert.ok(state.live[i].epoch >= state.live[i - 1].epoch);
      assert.equal(state.live[i - 1].endOffset, state.live[i].baseOffset);
    }
    if (segments.length > 0) assert.equal(state.live.at(-1)?.endOffset, null);
  }
});

Deno.test("every other name is sorted into what it is, and unknown ones are reported", () => {
  const stem = segmentStem(2, 40);
  const orphan = segmentStem(1, 7);
  const state = partitionStateOf([
    { name: `${stem}.timeindex`, size: 24 },
    { name: `${stem}.log`, size: 100 },
    { name: `${stem}.index`, size: 16 },
    { name: `${orphan}.index`, size: 8 },
    { name: `${stem}.log.cut-3`, size: 9 },
    { name: "manifest.json", size: 50 },
    { name: "recovery-checkpoint.json", size: 51 },
    { name: "producer-state.snapshot", size: 52 },
    { name: ".manifest.json.a1b2-1z.tmp", size: 3 },
    { name: "notes.txt", size: 1 },
    { name: "manifest.json.bak", size: 1 },
    { name: "x.log.cut-3", size: 1 },
    { name: ".nfs0000000000c0ffee", size: 1 },
  ]);
  assert.equal(state.epoch, 2);
  assert.deepEqual(state.segments, [{
    epoch: 2,
    baseOffset: 40,
    stem,
    live: true,
    endOffset: null,
    endedBy: null,
    logBytes: 100,
    indexBytes: 16,
    timeIndexBytes: 24,
    abortedIndexBytes: null,
  }]);
  assert.deepEqual(state.sideFiles.map(({ name }) => name), [
    "manifest.json",
    "producer-state.snapshot",
    "recovery-checkpoint.json",
  ]);
  assert.deepEqual(state.orphans, [{ name: `${orphan}.index`, size: 8 }]);
  assert.deepEqual(state.cutAside, [{ name: `${stem}.log.cut-3`, size: 9 }]);
  assert.deepEqual(state.temporaries, [{ name: ".manifest.json.a1b2-1z.tmp", size: 3 }]);
  assert.deepEqual(state.foreign, [".nfs0000000000c0ffee", "manifest.json.bak", "notes.txt", "x.log.cut-3"]);
});

Deno.test("an empty folder is a partition without segments", () => {
  assert.deepEqual(partitionStateOf([]), {
    segments: [],
    live: [],
    epoch: -1,
    sideFiles: [],
    orphans: [],
    cutAside: [],
    temporaries: [],
    foreign: [],
  });
});

Deno.test("cutAsideName gives a name that is known again", () => {
  const name = cutAsideName(`${segmentStem(1, 2)}.log`, 12);
  assert.equal(partitionStateOf([{ name, size: 0 }]).cutAside.length, 1);
});

Deno.test("isTemporaryName does not take state files or hidden files for temporary ones", () => {
  assert.ok(isTemporaryName(".manifest.json.abc123-7.tmp"));
  for (const name of ["manifest.json", ".topic-id.json", ".config.json", "a.b-1.tmp", ".a.tmp", ".a.b-1.tmp.x"]) {
    assert.equal(isTemporaryName(name), false, name);
  }
});

Deno.test("parsePartitionKey reads from the right", () => {
  assert.deepEqual(parsePartitionKey("topic/0"), { topic: "topic", partition: 0 });
  assert.deepEqual(parsePartitionKey("a/b/3"), { topic: "a/b", partition: 3 });
  assert.deepEqual(parsePartitionKey("a/1/2147483647"), { topic: "a/1", partition: 2147483647 });
  for (const key of ["", "topic", "/3", "topic/", "topic/-1", "topic/01", "topic/1x", "topic/2147483648", "topic/1/"]) {
    assert.equal(parsePartitionKey(key), null, key);
  }
});
