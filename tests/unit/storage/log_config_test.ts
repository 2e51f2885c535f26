import assert from "node:assert/strict";
import { defaultLogConfig, relaxedFlush } from "../../../lib/storage/log_config.ts";

Deno.test("relaxedFlush relaxes nothing unless a setting says so", () => {
  const relaxed = (flushMessages: number | null, flushMs: number | null) => {
    return relaxedFlush({ ...defaultLogConfig, flushMessages, flushMs });
  };
  assert.equal(relaxed(null, null), null);
  // Kafka's default for both, which means not set.
  assert.equal(relaxed(9223372036854775807, 9223372036854775807), null);
  assert.equal(relaxed(1, null), null);
  assert.equal(relaxed(1, 5_000), null);
  assert.equal(relaxed(100, 0), null);
  assert.deepEqual(relaxed(100, null), { messages: 100, ms: Infinity });
  assert.deepEqual(relaxed(null, 50), { messages: Infinity, ms: 50 });
  assert.deepEqual(relaxed(100, 50), { messages: 100, ms: 50 });
});
