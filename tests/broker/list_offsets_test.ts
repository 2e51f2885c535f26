/** ListOffsets: the special places, and times inside of batches. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../lib/errors.ts";
import { Compression } from "../../lib/records/batch.ts";
import { withWireBroker } from "../support/wire_broker.ts";

const Place = { latest: -1, earliest: -2, maxTimestamp: -3, earliestLocal: -4, latestTiered: -5 } as const;
const TIME = 1_700_000_000_000;

Deno.test("Places and times are found, also inside of a compressed batch", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const records = [10, 20, 40, 30].map((ms) => ({ value: String(ms), timestamp: TIME + ms }));
    await wire.append("t", { records, compression: Compression.zstd });
    await wire.append("t", { records: [{ value: "35", timestamp: TIME + 35 }] });
    const find = async (timestamp: number) => {
      const { errorCode, offset, timestamp: time } = await wire.listOffset("t", timestamp);
      assert.equal(errorCode, ErrorCode.NONE);
      return [offset, time < 0 ? time : time - TIME];
    };
    assert.deepEqual(await find(Place.earliest), [0, -1]);
    assert.deepEqual(await find(Place.earliestLocal), [0, -1]);
    assert.deepEqual(await find(Place.latest), [5, -1]);
    assert.deepEqual(await find(Place.latestTiered), [-1, -1]);
    assert.deepEqual(await find(Place.maxTimestamp), [2, 40]);
    assert.deepEqual(await find(TIME), [0, 10]);
    assert.deepEqual(await find(TIME + 11), [1, 20]);
    assert.deepEqual(await find(TIME + 25), [2, 40]);
    assert.deepEqual(await find(TIME + 40), [2, 40]);
    assert.deepEqual(await find(TIME + 41), [-1, -1]);
  });
});

Deno.test("An empty log has its ends and no times", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    assert.equal((await wire.listOffset("t", Place.earliest)).offset, 0);
    assert.equal((await wire.listOffset("t", Place.latest)).offset, 0);
    assert.equal((await wire.listOffset("t", Place.maxTimestamp)).offset, -1);
    assert.equal((await wire.listOffset("t", TIME)).offset, -1);
  });
});

Deno.test("Version 0 answers with a list, newest first", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    for (const value of ["a", "b"]) await wire.append("t", { records: [{ value }] });
    assert.deepEqual((await wire.listOffset("t", Place.latest, { version: 0 })).oldStyleOffsets, [2, 0]);
    assert.deepEqual((await wire.listOffset("t", Place.earliest, { version: 0 })).oldStyleOffsets, [0]);
  });
});

Deno.test("A special place that a version does not know, and a topic that is not there, are refused", async () => {
  await withWireBroker(async (wire) => {
    await wire.createTopic("t");
    const refused = await wire.listOffset("t", Place.maxTimestamp, { version: 6 });
    assert.equal(refused.errorCode, ErrorCode.UNSUPPORTED_VERSION);
    assert.equal((await wire.listOffset("nowhere", -1)).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  });
});
