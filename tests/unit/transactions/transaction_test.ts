import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import {
  LAST_EPOCH,
  type Outcome,
  type ProducerIdentity,
  Transaction,
  type TransactionProtocol,
} from "../../../lib/transactions/transaction.ts";

const ID = 1000;
const TIMEOUT_MS = 60_000;
const places = [{ topic: "t", partition: 0 }];

function ready(epoch = 0): Transaction {
  const transaction = new Transaction("x");
  assert.equal(init(transaction, null, ID).kind, "changed");
  transaction.producerEpoch = epoch;
  return transaction;
}

function ongoing(epoch = 0): Transaction {
  const transaction = ready(epoch);
  assert.equal(transaction.add(transaction.identity, places, 5).kind, "changed");
  return transaction;
}

function init(transaction: Transaction, expected: ProducerIdentity | null, freshId: number | null = null): Outcome {
  return transaction.init({ expected, timeoutMs: TIMEOUT_MS }, freshId, 1);
}

function end(
  transaction: Transaction,
  producerEpoch: number,
  commits: boolean,
  protocol: TransactionProtocol,
  { freshId = null as number | null, producerId = ID } = {},
): Outcome {
  return transaction.end({ producerId, producerEpoch, commits, protocol }, freshId, 9);
}

function code(outcome: Outcome): ErrorCode | string {
  return outcome.kind === "refused" ? outcome.errorCode : outcome.kind;
}

Deno.test("a new id asks for a producer id and begins with epoch 0, whatever the producer says it was", () => {
  for (const expected of [null, { producerId: 5, producerEpoch: 3 }]) {
    const transaction = new Transaction("x");
    assert.equal(init(transaction, expected).kind, "needs-producer-id");
    assert.equal(init(transaction, expected, ID).kind, "changed");
    assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 0 });
    assert.equal(transaction.state, "Empty");
    assert.equal(transaction.timeoutMs, TIMEOUT_MS);
  }
});

Deno.test("initialising raises the epoch of the same producer id", () => {
  const transaction = ready();
  assert.equal(init(transaction, null).kind, "changed");
  assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 1 });
});

Deno.test("with the present epoch it is raised, with the last one it stays, with any other the producer is fenced", () => {
  const transaction = ready(4);
  const as = (producerEpoch: number, producerId = ID) => init(transaction, { producerId, producerEpoch });
  assert.equal(code(as(4)), "changed");
  assert.equal(transaction.producerEpoch, 5);
  assert.equal(code(as(4)), "unchanged");
  assert.equal(transaction.producerEpoch, 5);
  for (const epoch of [3, 6]) assert.equal(code(as(epoch)), ErrorCode.PRODUCER_FENCED);
  assert.equal(code(as(5, ID + 1)), ErrorCode.PRODUCER_FENCED);
  assert.equal(code(init(transaction, null)), "changed");
  assert.equal(code(as(5)), ErrorCode.PRODUCER_FENCED, "a new producer came between");
  assert.equal(transaction.producerEpoch, 6);
});

Deno.test("when the epochs are used up a new producer id begins at 0, and the repeated request gets it too", () => {
  const transaction = ready(LAST_EPOCH);
  const own = { producerId: ID, producerEpoch: LAST_EPOCH };
  assert.equal(init(transaction, own).kind, "needs-producer-id");
  assert.equal(init(transaction, own, 2000).kind, "changed");
  assert.deepEqual(transaction.identity, { producerId: 2000, producerEpoch: 0 });
  assert.equal(init(transaction, own).kind, "unchanged");
  assert.equal(code(init(transaction, { producerId: ID, producerEpoch: 5 })), ErrorCode.PRODUCER_FENCED);
  const other = ready(LAST_EPOCH);
  init(other, null, 2000);
  assert.equal(code(init(other, own)), ErrorCode.PRODUCER_FENCED);
});

Deno.test("nobody initialises while a transaction is open or being ended", () => {
  const transaction = ongoing();
  assert.equal(code(init(transaction, null)), ErrorCode.CONCURRENT_TRANSACTIONS);
  assert.equal(code(init(transaction, { producerId: ID, producerEpoch: 7 })), ErrorCode.PRODUCER_FENCED);
  for (const commits of [true, false]) {
    const ended = ongoing();
    end(ended, 0, commits, 1);
    assert.equal(code(init(ended, null)), ErrorCode.CONCURRENT_TRANSACTIONS);
    ended.complete(1);
    assert.equal(code(init(ended, null)), "changed");
  }
});

Deno.test("a transaction that its own producer has aborted by initialising anew gives it the raised epoch", () => {
  const transaction = ongoing();
  const own = { producerId: ID, producerEpoch: 0 };
  assert.ok(transaction.mayInit({ expected: own, timeoutMs: 1 }));
  transaction.fence(own, 1);
  assert.equal(transaction.state, "PrepareAbort");
  assert.equal(code(init(transaction, own)), ErrorCode.CONCURRENT_TRANSACTIONS);
  transaction.complete(2);
  assert.equal(code(init(transaction, own)), "unchanged");
  assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 1 });
});

Deno.test("a fenced producer gets nowhere: not by ending, not by adding, not by initialising", () => {
  for (const protocol of [1, 2] as const) {
    const transaction = ongoing();
    transaction.fence(null, 1);
    const own = { producerId: ID, producerEpoch: 0 };
    const refusedEverywhere = () => {
      for (const commits of [true, false]) {
        assert.equal(code(end(transaction, 0, commits, protocol)), ErrorCode.PRODUCER_FENCED);
      }
      assert.equal(code(transaction.add(own, places, 1)), ErrorCode.PRODUCER_FENCED);
      assert.equal(transaction.verify(own, places), ErrorCode.PRODUCER_FENCED);
      assert.equal(code(init(transaction, own)), ErrorCode.PRODUCER_FENCED);
    };
    refusedEverywhere();
    transaction.complete(2);
    assert.equal(transaction.state, "CompleteAbort");
    assert.equal(transaction.producerEpoch, 1);
    refusedEverywhere();
  }
});

Deno.test("adding begins a transaction, adding the same again changes nothing, adding more does", () => {
  const transaction = ready();
  const own = transaction.identity;
  assert.equal(transaction.startedAtMs, -1);
  assert.equal(code(transaction.add(own, places, 5)), "changed");
  assert.equal(transaction.state, "Ongoing");
  assert.equal(transaction.startedAtMs, 5);
  assert.equal(code(transaction.add(own, places, 6)), "unchanged");
  assert.equal(code(transaction.add(own, [{ topic: "t", partition: 1 }], 7)), "changed");
  assert.equal(code(transaction.add(own, [{ topic: "u", partition: 0 }], 8)), "changed");
  assert.equal(transaction.startedAtMs, 5);
  assert.deepEqual(transaction.participants(), [
    { topic: "t", partition: 0 },
    { topic: "t", partition: 1 },
    { topic: "u", partition: 0 },
  ]);
});

Deno.test("adding is refused to other ids and epochs, and while a transaction is being ended", () => {
  const transaction = ongoing(3);
  const as = (producerId: number, producerEpoch: number) =>
    code(transaction.add({ producerId, producerEpoch }, places, 1));
  assert.equal(as(ID + 1, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  assert.equal(as(ID, 2), ErrorCode.PRODUCER_FENCED);
  assert.equal(as(ID, 4), ErrorCode.PRODUCER_FENCED);
  end(transaction, 3, true, 1);
  assert.equal(as(ID, 3), ErrorCode.CONCURRENT_TRANSACTIONS);
  transaction.complete(1);
  assert.deepEqual(transaction.participants(), []);
  assert.equal(as(ID, 3), "changed");
});

Deno.test("only what was added may be written to, and only until the end", () => {
  const transaction = ongoing();
  const own = transaction.identity;
  assert.equal(transaction.verify(own, places), ErrorCode.NONE);
  const other = [{ topic: "t", partition: 1 }];
  assert.equal(transaction.verify(own, other), ErrorCode.TRANSACTION_ABORTABLE);
  assert.equal(transaction.verify(own, [...places, ...other]), ErrorCode.TRANSACTION_ABORTABLE);
  assert.equal(transaction.verify({ ...own, producerId: 1 }, places), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  end(transaction, 0, true, 1);
  assert.equal(transaction.verify(own, places), ErrorCode.CONCURRENT_TRANSACTIONS);
  transaction.complete(1);
  assert.equal(transaction.verify(own, places), ErrorCode.TRANSACTION_ABORTABLE);
});

for (const commits of [true, false]) {
  const word = commits ? "commit" : "abort";
  Deno.test(`protocol 1: a repeated ${word} is done, the other end is not, and the epoch stays`, () => {
    const transaction = ongoing();
    assert.equal(code(end(transaction, 0, commits, 1)), "changed");
    assert.equal(transaction.state, commits ? "PrepareCommit" : "PrepareAbort");
    assert.equal(code(end(transaction, 0, commits, 1)), ErrorCode.CONCURRENT_TRANSACTIONS);
    assert.equal(code(end(transaction, 0, !commits, 1)), ErrorCode.INVALID_TXN_STATE);
    transaction.complete(1);
    assert.equal(transaction.state, commits ? "CompleteCommit" : "CompleteAbort");
    assert.equal(code(end(transaction, 0, commits, 1)), "unchanged");
    assert.equal(code(end(transaction, 0, !commits, 1)), ErrorCode.INVALID_TXN_STATE);
    assert.equal(transaction.producerEpoch, 0);
  });

  Deno.test(`protocol 2: a ${word} raises the epoch; repeated with the old one it gives the same`, () => {
    const transaction = ongoing(6);
    assert.equal(code(end(transaction, 6, commits, 2)), "changed");
    assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 7 });
    assert.equal(code(end(transaction, 6, commits, 2)), ErrorCode.CONCURRENT_TRANSACTIONS);
    assert.equal(code(end(transaction, 6, !commits, 2)), ErrorCode.INVALID_TXN_STATE);
    assert.equal(code(end(transaction, 5, commits, 2)), ErrorCode.PRODUCER_FENCED);
    transaction.complete(1);
    assert.equal(code(end(transaction, 6, commits, 2)), "unchanged");
    assert.equal(code(end(transaction, 6, !commits, 2)), ErrorCode.INVALID_TXN_STATE);
    assert.equal(code(end(transaction, 5, commits, 2)), ErrorCode.PRODUCER_FENCED);
    assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 7 });
  });

  Deno.test(`protocol 2: with the epochs used up a ${word} goes on with a new producer id`, () => {
    const transaction = ongoing(LAST_EPOCH);
    assert.equal(code(end(transaction, LAST_EPOCH, commits, 2)), "needs-producer-id");
    assert.equal(transaction.state, "Ongoing");
    assert.equal(code(end(transaction, LAST_EPOCH, commits, 2, { freshId: 2000 })), "changed");
    assert.deepEqual(transaction.identity, { producerId: 2000, producerEpoch: 0 });
    assert.equal(transaction.producerEpoch, LAST_EPOCH + 1, "its markers are written with the last epoch of all");
    assert.equal(transaction.producerId, ID);
    const next = { producerId: 2000, producerEpoch: 0 };
    assert.equal(code(transaction.add(next, places, 1)), ErrorCode.CONCURRENT_TRANSACTIONS);
    transaction.complete(1);
    assert.equal(transaction.producerId, 2000);
    assert.equal(code(end(transaction, LAST_EPOCH, commits, 2)), "unchanged");
    assert.equal(code(transaction.add(next, places, 1)), "changed");
  });
}

Deno.test("an end of nothing is an invalid state; under protocol 2 an abort of nothing raises the epoch all the same", () => {
  const empty = ready();
  assert.equal(code(end(empty, 0, true, 1)), ErrorCode.INVALID_TXN_STATE);
  assert.equal(code(end(empty, 0, false, 1)), ErrorCode.INVALID_TXN_STATE);
  assert.equal(code(end(empty, 0, true, 2)), ErrorCode.INVALID_TXN_STATE);
  assert.equal(code(end(empty, 0, false, 2)), "changed");
  assert.equal(empty.state, "CompleteAbort");
  assert.equal(empty.producerEpoch, 1);
  for (const commits of [true, false]) {
    const transaction = ongoing(6);
    end(transaction, 6, commits, 2);
    transaction.complete(1);
    assert.equal(code(end(transaction, 7, true, 2)), ErrorCode.INVALID_TXN_STATE);
    assert.equal(code(end(transaction, 7, false, 2)), "changed");
    assert.deepEqual(transaction.identity, { producerId: ID, producerEpoch: 8 });
    assert.equal(code(end(transaction, 7, false, 2)), "unchanged");
  }
});

Deno.test("aborting nothing with the last epoch goes on with a new producer id", () => {
  const transaction = ready(LAST_EPOCH);
  assert.equal(code(end(transaction, LAST_EPOCH, false, 2)), "needs-producer-id");
  assert.equal(code(end(transaction, LAST_EPOCH, false, 2, { freshId: 2000 })), "changed");
  assert.deepEqual(transaction.identity, { producerId: 2000, producerEpoch: 0 });
  assert.equal(code(end(transaction, LAST_EPOCH, false, 2)), "unchanged");
});

Deno.test("ends of other producer ids are refused", () => {
  assert.equal(code(end(ongoing(), 0, true, 1, { producerId: 7 })), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  assert.equal(code(end(ongoing(), 0, true, 2, { producerId: 7 })), ErrorCode.INVALID_PRODUCER_ID_MAPPING);
});

Deno.test("the repeated end of one transaction does not end the next one", () => {
  const transaction = ongoing(6);
  end(transaction, 6, true, 2);
  transaction.complete(1);
  transaction.add({ producerId: ID, producerEpoch: 7 }, places, 1);
  assert.equal(code(end(transaction, 6, true, 2)), ErrorCode.PRODUCER_FENCED);
  assert.equal(transaction.state, "Ongoing");
});

Deno.test("an id expires when it was not used for long, but never with a transaction", () => {
  const transaction = ready();
  assert.equal(transaction.isExpired(1 + 99, 100), false);
  assert.equal(transaction.isExpired(1 + 100, 100), true);
  assert.equal(ongoing().isExpired(1e9, 100), false);
  const prepared = ongoing();
  end(prepared, 0, true, 1);
  assert.equal(prepared.isExpired(1e9, 100), false);
});
