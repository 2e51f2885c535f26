// What the JavaScript clients share: JSON lines in and out, and the records that `generate` describes.

import { createInterface } from "node:readline";

/** Serves commands from stdin until it ends. `codeOf` finds the broker's error code in an error, or null. */
export function serve(run, codeOf) {
  const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");
  process.on("unhandledRejection", (error) => console.error("unhandled rejection", error));
  createInterface({ input: process.stdin }).on("line", async (line) => {
    const request = JSON.parse(line);
    const { id } = request;
    try {
      write({ id, result: await run(request, (event, fields = {}) => write({ id, event, ...fields })) });
    } catch (error) {
      if (process.env.KAAS_TEST_TRACE) console.error(error);
      write({ id, error: { code: codeOf(error), name: error.name, message: String(error.message) } });
    }
  }).on("close", () => process.exit(0));
}

export function encode(bytes) {
  return bytes == null ? null : Buffer.from(bytes).toString("base64");
}

export function decode(text) {
  return text == null ? null : Buffer.from(text, "base64");
}

/** Records with keys `prefix-0`, `prefix-1`, …, values as long as wanted, dealt to the partitions in turn. */
export function generated({ prefix, count, valueBytes = 0, partitions = 1 }) {
  return Array.from({ length: count }, (_, i) => ({
    partition: i % partitions,
    key: Buffer.from(`${prefix}-${i}`).toString("base64"),
    value: Buffer.from(`${prefix}-${i}`.padEnd(valueBytes, ".")).toString("base64"),
  }));
}
