import assert from "node:assert/strict";
import { CleanerPace } from "../../../lib/broker/cleaner_pace.ts";
import { ManualClock } from "../storage/support.ts";

/** How long a rest takes, with the clock moved until it ends. */
async function rest(pace: CleanerPace, clock: ManualClock): Promise<number> {
  const beganMs = clock.nowMs;
  let isOver = false;
  const resting = pace.rest().then(() => isOver = true);
  for (let i = 0; i < 1_000 && !isOver; i++) {
    clock.advance(i === 0 ? 0 : 1);
    await null;
    await null;
    await null;
  }
  await resting;
  return clock.nowMs - beganMs;
}

Deno.test("work goes in slices of a millisecond", async () => {
  const clock = new ManualClock();
  const pace = new CleanerPace(clock, () => Number.MAX_VALUE);
  assert.ok(pace.isDue());
  for (let i = 0; i < 12; i++) assert.equal(await rest(pace, clock), 1);
  assert.ok(!pace.isDue());
  clock.nowMs += 0.5;
  pace.moved(1 << 30);
  assert.ok(!pace.isDue());
  clock.nowMs += 0.5;
  assert.ok(pace.isDue());
});

Deno.test("no more bytes are moved than a second may have; the limit may change meanwhile", async () => {
  const clock = new ManualClock();
  let limit = 1_000;
  const pace = new CleanerPace(clock, () => limit);
  const beganMs = clock.nowMs;
  for (let i = 0; i < 20; i++) {
    pace.moved(100);
    while (pace.isDue()) await rest(pace, clock);
  }
  assert.ok(Math.abs(clock.nowMs - beganMs - 2_000) <= 5, `${clock.nowMs - beganMs} ms for 2,000 bytes`);
  limit = 10_000;
  const laterMs = clock.nowMs;
  for (let i = 0; i < 20; i++) {
    pace.moved(100);
    while (pace.isDue()) await rest(pace, clock);
  }
  assert.ok(clock.nowMs - laterMs <= 210, `${clock.nowMs - laterMs} ms`);
});

Deno.test("a rest is short, however much is owed: who wants to end it gets a look in", async () => {
  const clock = new ManualClock();
  const pace = new CleanerPace(clock, () => 1);
  pace.moved(1_000_000);
  assert.ok(await rest(pace, clock) <= 101);
  assert.ok(pace.isDue());
});
