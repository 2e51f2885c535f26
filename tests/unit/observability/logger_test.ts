import assert from "node:assert/strict";
import { createLogger, errorText, type LoggerOptions } from "../../../lib/observability/logger.ts";

function recorder(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const clock = { wallMs: () => Date.UTC(2024, 0, 2, 3, 4, 5, 6) };
  const logger = createLogger({
    level: "info",
    format: "json",
    clock,
    write: (line) => void lines.push(line),
    ...options,
  });
  return { lines, logger };
}

Deno.test("A JSON line holds time, level, message and the fields", () => {
  const { lines, logger } = recorder();
  logger.with({ topic: "t" }).warn("it happened", { partition: 3, big: 2n ** 60n, none: undefined });
  assert.deepEqual(lines, [
    '{"time":"2024-01-02T03:04:05.006Z","level":"warn","message":"it happened","topic":"t","partition":3,"big":"1152921504606846976"}\n',
  ]);
});

Deno.test("A text line is for reading, and quotes what would be misread", () => {
  const { lines, logger } = recorder({ format: "text" });
  logger.info("started", { port: 9092, name: "a b", path: "/data", empty: "", list: [1, 2] });
  assert.deepEqual(lines, ['03:04:05.006 INFO  started  port=9092 name="a b" path=/data empty="" list=[1,2]\n']);
});

Deno.test("Levels below the logger's are not written", () => {
  const { lines, logger } = recorder({ level: "warn" });
  logger.debug("a");
  logger.info("b");
  logger.error("c");
  assert.equal(lines.length, 1);
  assert.deepEqual([logger.writes("info"), logger.writes("warn")], [false, true]);
});

Deno.test("One event is one line whatever is in it", () => {
  for (const format of ["text", "json"] as const) {
    const { lines, logger } = recorder({ format });
    logger.info("two\nlines\u2028", { "field": "a\r\nb\u001b[31m", error: new Error("x\ny") });
    assert.equal(lines.length, 1);
    assert.equal(lines[0].search(/\p{Cc}|\u2028/u), lines[0].length - 1);
  }
});

Deno.test("A field cannot overwrite time, level or message", () => {
  const { lines, logger } = recorder();
  logger.info("real", { message: "fake", level: "fake" });
  const entry = JSON.parse(lines[0]);
  assert.deepEqual([entry.message, entry.level, entry.message_, entry.level_], ["real", "info", "fake", "fake"]);
});

Deno.test("Errors are written with what caused them, and cycles do no harm", () => {
  const error = new TypeError("outer", { cause: new Error("inner") });
  assert.equal(errorText(error), "TypeError: outer, caused by Error: inner");
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const { lines, logger } = recorder();
  logger.error("failed", { error, cycle });
  assert.equal(JSON.parse(lines[0]).error, "TypeError: outer, caused by Error: inner");
});

Deno.test("An output that takes no lines stops nothing, and the loss is reported when it takes them again", () => {
  let broken = true;
  const lines: string[] = [];
  const { logger } = recorder({
    write: (line) => {
      if (broken) throw new Error("broken pipe");
      lines.push(line);
    },
  });
  logger.info("a");
  logger.info("b");
  broken = false;
  logger.info("c");
  assert.deepEqual(lines.map((line) => [JSON.parse(line).message, JSON.parse(line).lines]), [
    ["log lines were dropped: the output did not take them", 2],
    ["c", undefined],
  ]);
});
