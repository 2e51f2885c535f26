import assert from "node:assert/strict";
import { ProgressBar } from "../../../cli/progress_bar.ts";

function bar(errIsTerminal: boolean) {
  const drawn: string[] = [];
  const clock = { now: 0, monotonicMs: () => clock.now };
  const terminal = { out: () => {}, err: (text: string) => void drawn.push(text), outIsTerminal: true, errIsTerminal };
  return { drawn, clock, bar: new ProgressBar(terminal, clock, 200) };
}

Deno.test("A progress bar is drawn once work takes long, not at every step, and wiped at the end", () => {
  const { drawn, clock, bar: progress } = bar(true);
  progress.advance(20, "a");
  assert.deepEqual(drawn, []);
  clock.now = 100;
  progress.advance(80, "a");
  clock.now = 150;
  progress.advance(50, "a");
  assert.equal(drawn.length, 1);
  assert.match(drawn[0], /█{15}░{15} {2}50 % {2}a$/);
  progress.end();
  assert.equal(drawn[1], "\r\x1b[2K");
});

Deno.test("No progress bar is drawn where stderr is no terminal", () => {
  const { drawn, clock, bar: progress } = bar(false);
  clock.now = 1000;
  progress.advance(100, "a");
  progress.end();
  assert.deepEqual(drawn, []);
});
