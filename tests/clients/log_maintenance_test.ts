/** Retention and compaction as clients see them: what leaves, what stays, and that nobody is disturbed. */

import assert from "node:assert/strict";
import { brokersAreOwned, startBroker, until } from "../support/broker_process.ts";
import { ClientProcess, codecs, type SentRecord } from "../support/client_process.ts";
import { base64 } from "../support/client_records.ts";
import { createTopic } from "../support/client_suite.ts";
import { hasSillyVolumes, sillyVolume } from "../support/silly_volume.ts";
import { clientCommand, type Part } from "../support/toolchain.ts";

const settings = { "log.retention.check.interval.ms": "1000", "log.cleaner.backoff.ms": "500" };
const compacted = {
  "cleanup.policy": "compact",
  "segment.bytes": "20000",
  "min.cleanable.dirty.ratio": "0.01",
  "delete.retention.ms": "3600000",
};

async function withClient(
  part: Part,
  run: (client: ClientProcess, broker: Awaited<ReturnType<typeof startBroker>>) => Promise<void>,
  dataFolder?: string,
): Promise<void> {
  const broker = await startBroker(dataFolder === undefined ? { settings } : { settings, dataFolder });
  const client = ClientProcess.start(part, broker.bootstrap)!;
  try {
    await run(client, broker);
  } finally {
    await client.close();
    await broker.stop();
  }
}

/** Rounds of records over the same keys, a codec each; in the last round every tenth key is deleted. */
async function produceRounds(client: ClientProcess, topic: string, keys: number): Promise<Map<string, string | null>> {
  const last = new Map<string, string | null>();
  for (const [round, compression] of [...codecs, ...codecs].entries()) {
    const records: SentRecord[] = Array.from({ length: keys }, (_, i) => {
      const isDeleted = round === 9 && i % 10 === 0;
      const value = isDeleted ? null : base64(`${round}-${i}-${noise()}`);
      last.set(base64(`key ${i}`), value);
      return { key: base64(`key ${i}`), value };
    });
    await client.produce({ topic, records, compression });
  }
  return last;
}

/** Text that does not shrink much when it is compressed. */
function noise(): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(45))));
}

/** Everything that a consumer reads from the beginning, when it has reached the end of the log. */
async function readAll(client: ClientProcess, topic: string) {
  const { offset: end } = await client.offset({ topic, at: "latest" });
  const { records, position } = await client.consume({ topic, from: "earliest", timeoutMs: 2_500 });
  assert.equal(position, end, "the reader reaches the end");
  return records;
}

for (const part of ["confluent", "kafka-clients-4.3", "franz-go"] as const) {
  Deno.test({
    name: `${part} reads the last value of each key from a compacted topic, and reaches its end`,
    ignore: !brokersAreOwned || clientCommand(part) === null,
    fn: () =>
      withClient(part, async (client, broker) => {
        await createTopic(client, "table", 1, compacted);
        const last = await produceRounds(client, "table", 200);
        let records = await readAll(client, "table");
        await until(async () => {
          records = await readAll(client, "table");
          return records.length < 600; // the last round, and what is in the active segment
        }, "the topic to be compacted");
        const offsets = records.map(({ offset }) => offset);
        assert.deepEqual(offsets, [...offsets].sort((a, b) => a - b));
        assert.deepEqual(new Map(records.map(({ key, value }) => [key!, value])), last);
        await broker.kill();
        await broker.restart();
        const again = await readAll(client, "table");
        assert.deepEqual(new Map(again.map(({ key, value }) => [key!, value])), last);
        assert.doesNotMatch(broker.logs(), /failed|damage|repaired/);
      }),
  });
}

const ignore = !brokersAreOwned || clientCommand("confluent") === null;

Deno.test({
  name: "records leave by retention.ms and retention.bytes within seconds",
  ignore,
  fn: () =>
    withClient("confluent", async (client) => {
      await createTopic(client, "old", 1, { "retention.ms": "60000" });
      await createTopic(client, "large", 1, { "retention.bytes": "20000", "segment.bytes": "10000" });
      const aged = { key: null, value: base64("old"), timestamp: Date.now() - 3_600_000 };
      await client.produce({ topic: "old", records: [aged, aged, aged] });
      const value = base64("x".repeat(900));
      for (let i = 0; i < 40; i++) await client.produce({ topic: "large", records: [{ key: null, value }] });
      const start = async (topic: string) => (await client.offset({ topic, at: "earliest" })).offset!;
      await until(async () => await start("old") === 3, "the aged records to leave");
      await until(async () => await start("large") > 0, "the oldest segment to leave");
      assert.equal(await start("large"), 10); // without the second segment less than retention.bytes would remain
      await client.produce({ topic: "old", records: [{ key: null, value: base64("young") }] });
      assert.equal(await start("old"), 3);
      assert.equal((await client.consume({ topic: "old", from: 3, count: 1 })).records[0].value, base64("young"));
    }),
});

Deno.test({
  name: "ten consumers read from the beginning while segments are compacted and removed under them",
  ignore,
  fn: () =>
    withClient("confluent", async (client, broker) => {
      await createTopic(client, "busy", 1, { ...compacted, "segment.bytes": "60000" });
      await createTopic(client, "leaving", 1, { "retention.bytes": "200000", "segment.bytes": "20000" });
      const others = Array.from({ length: 10 }, () => ClientProcess.start("confluent", broker.bootstrap)!);
      try {
        let isWriting = true;
        const readers = others.map(async (other, i) => {
          const topic = i % 2 === 0 ? "busy" : "leaving";
          let read = 0;
          while (isWriting) {
            const { records } = await other.consume({ topic, from: "earliest", timeoutMs: 800 });
            const offsets = records.map(({ offset }) => offset);
            for (let at = 1; at < offsets.length; at++) assert.ok(offsets[at] > offsets[at - 1], "offsets rise");
            read += records.length;
          }
          return read;
        });
        let last = new Map<string, string | null>();
        for (let i = 0; i < 6; i++) {
          last = await produceRounds(client, "busy", 300);
          await client.produce({ topic: "leaving", generate: { count: 400, prefix: "key", valueBytes: 500 } });
        }
        isWriting = false;
        for (const read of await Promise.all(readers)) assert.ok(read > 0);
        const records = await readAll(client, "busy");
        assert.deepEqual(new Map(records.map(({ key, value }) => [key!, value])), last);
        assert.match(broker.logs(), /compacted/);
        assert.match(broker.logs(), /records left by retention/);
        assert.doesNotMatch(broker.logs(), /failed/);
      } finally {
        await Promise.all(others.map((other) => other.close()));
      }
    }),
});

Deno.test({
  name: "retention, compaction and deletion leave no hidden file where open files are not removed",
  ignore: ignore || !hasSillyVolumes,
  fn: async () => {
    const volume = await sillyVolume();
    try {
      await withClient("confluent", async (client) => {
        const dataFolder = volume.folder;
        await createTopic(client, "table", 1, compacted);
        await createTopic(client, "large", 1, { "retention.bytes": "20000", "segment.bytes": "10000" });
        const reading = client.start("consume", { topic: "table", from: "earliest", timeoutMs: 6_000 });
        await produceRounds(client, "table", 200);
        await client.produce({
          topic: "large",
          batchBytes: 4_000,
          generate: { count: 200, prefix: "key", valueBytes: 500 },
        });
        await until(async () => (await readAll(client, "table")).length < 600, "the topic to be compacted");
        const start = async () => (await client.offset({ topic: "large", at: "earliest" })).offset! > 0;
        await until(start, "the oldest segments to leave");
        assert.deepEqual(hiddenFiles(dataFolder), []);
        await reading.result;
        await client.deleteTopic("table");
        await client.deleteTopic("large");
        assert.deepEqual(hiddenFiles(dataFolder), []);
        const names = [...Deno.readDirSync(dataFolder)].map(({ name }) => name);
        assert.ok(!names.includes("table") && !names.includes("large"), names.join());
      }, volume.folder);
    } finally {
      await volume.unmount();
    }
  },
});

function hiddenFiles(folder: string): string[] {
  const found: string[] = [];
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (/^\.(fuse_hidden|nfs)/.test(name)) found.push(`${folder}/${name}`);
    else if (isDirectory) found.push(...hiddenFiles(`${folder}/${name}`));
  }
  return found;
}
