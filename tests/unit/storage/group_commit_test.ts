import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { GroupCommit } from "../../../lib/storage/group_commit.ts";

/** A log whose commits end when the test says so. */
class Target {
  logEndOffset = 0;
  readonly rounds: { endOffset: number; end: (code: ErrorCode) => void }[] = [];
  readonly commit = () => new Promise<ErrorCode>((end) => void this.rounds.push({ endOffset: this.logEndOffset, end }));

  append(): number {
    return ++this.logEndOffset;
  }
}

async function settledOf(promises: Promise<ErrorCode>[]): Promise<(ErrorCode | "waits")[]> {
  for (let turn = 0; turn < 20; turn++) await null;
  return await Promise.all(promises.map((promise) => Promise.race([promise, Promise.resolve("waits" as const)])));
}

Deno.test("GroupCommit lets everything that came during one round share the next", async () => {
  const target = new Target();
  const commit = new GroupCommit(target, 0);
  const waiting = [commit.durable(target.append())];
  for (let i = 0; i < 10; i++) waiting.push(commit.durable(target.append()));
  assert.deepEqual(target.rounds.map((round) => round.endOffset), [1]);
  target.rounds[0].end(ErrorCode.NONE);
  assert.deepEqual(await settledOf(waiting), [0, ...new Array(10).fill("waits")]);
  assert.deepEqual(target.rounds.map((round) => round.endOffset), [1, 11]);
  target.rounds[1].end(ErrorCode.NONE);
  assert.deepEqual(await settledOf(waiting), new Array(11).fill(0));
  await commit.idle();
});

Deno.test("GroupCommit answers nobody from a round that began before the append", async () => {
  const target = new Target();
  const commit = new GroupCommit(target, 0);
  target.append();
  commit.request();
  const late = commit.durable(target.append());
  target.rounds[0].end(ErrorCode.NONE);
  assert.deepEqual(await settledOf([late]), ["waits"]);
  target.rounds[1].end(ErrorCode.NONE);
  assert.deepEqual(await settledOf([late]), [0]);
});

Deno.test("GroupCommit answers at once what is durable already, and syncs nothing for it", async () => {
  const target = new Target();
  target.logEndOffset = 5;
  const commit = new GroupCommit(target, 5);
  commit.request();
  assert.deepEqual(await settledOf([commit.durable(5), commit.durable(1)]), [0, 0]);
  assert.equal(target.rounds.length, 0);
});

Deno.test("GroupCommit never syncs again after a failure, and fails all that was not durable", async () => {
  const target = new Target();
  const commit = new GroupCommit(target, 0);
  const first = commit.durable(target.append());
  const second = commit.durable(target.append());
  target.rounds[0].end(ErrorCode.KAFKA_STORAGE_ERROR);
  const failed = ErrorCode.KAFKA_STORAGE_ERROR;
  assert.deepEqual(await settledOf([first, second]), [failed, failed]);
  assert.deepEqual(await settledOf([commit.durable(target.append()), commit.round()]), [failed, failed]);
  commit.request();
  assert.equal(target.rounds.length, 1);
  await commit.idle();
});

Deno.test("GroupCommit answers who waits when it is told that nothing more will be durable", async () => {
  const target = new Target();
  const commit = new GroupCommit(target, 0);
  const waiting = [commit.durable(target.append()), commit.durable(target.append())];
  commit.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER);
  const gone = ErrorCode.NOT_LEADER_OR_FOLLOWER;
  assert.deepEqual(await settledOf(waiting), [gone, gone]);
  target.rounds[0].end(ErrorCode.NONE);
  await commit.idle();
  assert.deepEqual(await settledOf([commit.durable(2)]), [gone]);
});

Deno.test("GroupCommit runs a round although everything is durable when it is asked to", async () => {
  const target = new Target();
  const commit = new GroupCommit(target, 0);
  const round = commit.round();
  target.rounds[0].end(ErrorCode.NONE);
  assert.deepEqual(await settledOf([round]), [0]);
});
