/**
 * What checking and reading record batches costs: `deno bench -A bench/records_bench.ts`. GB/s = batch bytes per time.
 */
import { Compression } from "../lib/records/batch.ts";
import { crc32cByTables } from "../lib/records/crc32c.ts";
import { buildBatch, openRecords } from "../lib/records/record.ts";
import { type ProduceRules, validateProduced } from "../lib/records/validate.ts";

const rules: ProduceRules = {
  apiVersion: 9,
  partition: "topic-0",
  nowMs: 1_700_000_000_000,
  maxMessageBytes: 2_000_000,
  timestampType: "createTime",
  timestampBeforeMaxMs: Infinity,
  timestampAfterMaxMs: 3_600_000,
  requiresKeys: false,
};

/** A batch of about `size` bytes of records of 1 KiB, half of them text and half noise. */
function batchOf(size: number, compression: Compression = Compression.none): Uint8Array {
  const records = Array.from({ length: Math.max(1, size >> 10) }, (_, index) => {
    const value = new TextEncoder().encode(`record ${index} of a batch; `.repeat(50)).slice(0, 1000);
    crypto.getRandomValues(value.subarray(500));
    return { key: `key-${index}`, value, timestamp: rules.nowMs };
  });
  return buildBatch({ records, compression });
}

for (
  const [name, size] of [["1 KiB", 1 << 10], ["16 KiB", 1 << 14], ["128 KiB", 1 << 17], ["1 MiB", 1 << 20]] as const
) {
  const batch = batchOf(size);
  const group = `produce ${name}`;
  Deno.bench(`validateProduced ${name} (${batch.length} bytes)`, { group, baseline: true }, () => {
    validateProduced(batch, rules);
  });
  Deno.bench(`CRC-32C by tables ${name}`, { group }, () => {
    crc32cByTables(batch, 21);
  });
}

for (const [name, compression] of Object.entries(Compression)) {
  const batch = batchOf(1 << 20, compression);
  Deno.bench(`read 1024 records of 1 KiB, ${name}`, { group: "read" }, () => {
    const cursor = openRecords(batch);
    if ("next" in cursor) { while (cursor.next()); }
  });
}
