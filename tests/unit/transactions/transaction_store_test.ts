import assert from "node:assert/strict";
import { Transaction, transactionStates } from "../../../lib/transactions/transaction.ts";
import { readTransaction, transactionEntry, transactionRemoval } from "../../../lib/transactions/transaction_store.ts";

function example(): Transaction {
  const transaction = new Transaction("id with ünïcode");
  Object.assign(transaction, {
    ...{ state: "PrepareCommit", producerId: 2 ** 40 + 5, producerEpoch: 32767, previousProducerId: 2 ** 41 },
    ...{ nextProducerId: 2 ** 42, lastProducerEpoch: 32766, timeoutMs: 900_000, startedAtMs: 1e12, updatedAtMs: 2e12 },
  });
  transaction.partitions.set("a", new Set([0, 7]));
  transaction.partitions.set("b", new Set([2 ** 31 - 1]));
  return transaction;
}

Deno.test("a transaction is read back as it was saved, in every state", () => {
  for (const state of transactionStates) {
    const transaction = example();
    transaction.state = state;
    assert.deepEqual(readTransaction(transactionEntry(transaction)), transaction);
  }
  const empty = new Transaction("empty");
  assert.deepEqual(readTransaction(transactionEntry(empty)), empty);
});

Deno.test("a removal has the key of what it removes", () => {
  const removal = transactionRemoval("id with ünïcode");
  assert.deepEqual(removal.key, transactionEntry(example()).key);
  assert.equal(removal.value, null);
});

Deno.test("entries of later layouts and kinds are passed over", () => {
  const { key, value } = transactionEntry(example());
  assert.equal(readTransaction({ key, value: Uint8Array.of(2, ...value!.slice(1)) }), null);
  assert.equal(readTransaction({ key: Uint8Array.of(2, ...key.slice(1)), value }), null);
  assert.equal(readTransaction({ key: Uint8Array.of(1, 9, ...key.slice(2)), value }), null);
});

Deno.test("a cut entry is a RangeError wherever it is cut, and so is a state that there is not", () => {
  const { key, value } = transactionEntry(example());
  for (let end = 1; end < value!.length; end++) {
    assert.throws(() => readTransaction({ key, value: value!.slice(0, end) }), RangeError);
  }
  assert.throws(() => readTransaction({ key, value: Uint8Array.of(1, 6, ...value!.slice(2)) }), RangeError);
});

Deno.test("an entry keeps its layout", () => {
  const { key, value } = transactionEntry(Object.assign(new Transaction("x"), { producerId: 3, producerEpoch: 1 }));
  const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  assert.equal(hex(key), "01010000000178");
  assert.equal(
    hex(value!),
    "01" + "00" + "0000000000000003" + "00000001" + "ffffffffffffffff" + "ffffffffffffffff" + "ffffffff" +
      "00000000" + "ffffffffffffffff" + "0000000000000000" + "00000000",
  );
});
