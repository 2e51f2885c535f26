import assert from "node:assert/strict";
import { setBaseOffset } from "../../../lib/records/batch.ts";
import { findWindow, type Window, type WindowRequest } from "../../../lib/storage/batch_window.ts";
import { batchOf } from "./support.ts";

/** Batches of the given record counts, one after the other, and where each begins. */
function log(...counts: number[]): { bytes: Uint8Array; starts: number[] } {
  const parts: number[] = [];
  const starts: number[] = [];
  let offset = 0;
  for (const count of counts) {
    const batch = batchOf(count);
    setBaseOffset(batch, 0, offset);
    offset += count;
    starts.push(parts.length);
    parts.push(...batch);
  }
  return { bytes: new Uint8Array(parts), starts: [...starts, parts.length] };
}

const { bytes, starts } = log(2, 1, 3, 2);

function find(changes: Partial<WindowRequest>, length = bytes.byteLength, of = bytes): Window {
  const all = { offset: 0, limitOffset: 100, maxBytes: 1 << 20, jumpTo: 0, jumpLastOffset: -1 };
  return findWindow(of, length, { ...all, ...changes });
}

Deno.test("findWindow gives the batch that holds the offset and those behind it", () => {
  assert.deepEqual(find({}), { kind: "batches", start: 0, end: starts[4], nextOffset: 8 });
  for (const [offset, first] of [[1, 0], [2, 1], [3, 2], [5, 2], [6, 3], [7, 3]]) {
    assert.deepEqual(find({ offset }), { kind: "batches", start: starts[first], end: starts[4], nextOffset: 8 });
  }
  assert.deepEqual(find({ offset: 8 }), { kind: "end" });
});

Deno.test("findWindow ends in front of the first batch that does not fit, or does not count", () => {
  const second = { kind: "batches", start: 0, end: starts[2], nextOffset: 3 };
  assert.deepEqual(find({ maxBytes: starts[3] - 1 }), second);
  assert.deepEqual(find({}, starts[3] - 1), second);
  assert.deepEqual(find({ limitOffset: 3 }), second);
  assert.deepEqual(find({ maxBytes: 0 }), { kind: "batches", start: 0, end: starts[1], nextOffset: 2 });
  assert.deepEqual(find({ offset: 3, limitOffset: 3 }), { kind: "limit" });
});

Deno.test("findWindow says how much is missing of a first batch that is cut", () => {
  const size = starts[1];
  assert.deepEqual(find({}, size - 1), { kind: "partial", start: 0, bytes: size });
  assert.deepEqual(find({}, 60), { kind: "partial", start: 0, bytes: 61 });
  assert.deepEqual(find({ offset: 2 }, size - 1), { kind: "partial", start: 0, bytes: size });
  assert.deepEqual(find({ offset: 2 }, size + 3), { kind: "partial", start: size, bytes: 61 });
});

Deno.test("findWindow stops at bytes that are no batch", () => {
  const damaged = new Uint8Array(bytes);
  damaged[starts[2] + 16] = 7;
  assert.deepEqual(find({}, damaged.byteLength, damaged), {
    kind: "batches",
    start: 0,
    end: starts[2],
    nextOffset: 3,
  });
  for (const offset of [3, 6]) {
    assert.deepEqual(find({ offset }, damaged.byteLength, damaged), { kind: "corrupt", start: starts[2] });
  }
});

Deno.test("findWindow jumps where an index says so, and finds the same", () => {
  for (let offset = 0; offset < 8; offset++) {
    for (let maxBytes = 0; maxBytes <= bytes.byteLength; maxBytes += 50) {
      for (const [i, jumpLastOffset] of [1, 2, 5, 7].entries()) {
        const wanted = { offset, maxBytes };
        assert.deepEqual(find({ ...wanted, jumpTo: starts[i], jumpLastOffset }), find(wanted));
      }
    }
  }
});

Deno.test("findWindow does not jump where the bytes do not bear the index out", () => {
  assert.deepEqual(find({ jumpTo: starts[2], jumpLastOffset: 4 }), find({}));
  assert.deepEqual(find({ jumpTo: starts[2] + 5, jumpLastOffset: 5 }), find({}));
});
