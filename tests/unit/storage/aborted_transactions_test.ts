import assert from "node:assert/strict";
import { AbortedTransactions } from "../../../lib/storage/aborted_transactions.ts";

function transaction(firstOffset: number, lastOffset: number, lastStableOffset = lastOffset + 1, producerId = 7) {
  return { producerId, firstOffset, lastOffset, lastStableOffset };
}

function collect(index: AbortedTransactions, from: number, end: number): [number[], boolean] {
  const found: { firstOffset: number }[] = [];
  const done = index.collect(from, end, found as never);
  return [found.map((range) => range.firstOffset), done];
}

function sample(): AbortedTransactions {
  const index = new AbortedTransactions();
  // The second began first and was still open when the first was aborted.
  for (const entry of [transaction(5, 8, 3), transaction(3, 10), transaction(20, 25)]) index.add(entry);
  return index;
}

Deno.test("AbortedTransactions gives those that overlap a range, and says when later ones cannot", () => {
  assert.deepEqual(collect(sample(), 0, 3), [[], true]);
  assert.deepEqual(collect(sample(), 0, 4), [[3], true]);
  assert.deepEqual(collect(sample(), 6, 9), [[5, 3], true]);
  assert.deepEqual(collect(sample(), 9, 15), [[3], true]);
  assert.deepEqual(collect(sample(), 11, 20), [[], true]);
  assert.deepEqual(collect(sample(), 25, 30), [[20], false]);
});

Deno.test("AbortedTransactions takes a marker that it knows only once", () => {
  const index = sample();
  index.add(transaction(20, 25));
  assert.equal(index.count, 3);
});

Deno.test("AbortedTransactions comes back from its file's bytes, up to the first implausible entry", () => {
  const bytes = sample().encode();
  assert.equal(bytes.byteLength, 3 * 34);
  assert.deepEqual(AbortedTransactions.decode(bytes).encode(), bytes);
  assert.equal(AbortedTransactions.decode(bytes.subarray(0, 101)).count, 2);
  assert.equal(AbortedTransactions.decode(new Uint8Array([...bytes, ...new Uint8Array(34)])).count, 3);
  assert.equal(AbortedTransactions.decode(new Uint8Array(340).fill(0xff)).count, 0);
});

Deno.test("AbortedTransactions forgets markers at or past a truncation", () => {
  const index = sample();
  index.truncate(10);
  assert.equal(index.count, 1);
});
