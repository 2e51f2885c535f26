import assert from "node:assert/strict";
import { describeLogDirsHandler } from "../../../../lib/broker/handlers/describe_log_dirs.ts";
import { createTopic } from "../../../../lib/broker/topic_creation.ts";
import { ErrorCode } from "../../../../lib/errors.ts";
import type { InputOf } from "../../../../lib/protocol/schema.ts";
import {
  describeLogDirsRequest,
  describeLogDirsResponse,
} from "../../../../lib/protocol/messages/describe_log_dirs.ts";
import { type AdminBroker, appendRecords, ask, withAdminBroker } from "../../../support/admin_broker.ts";

const messages = { request: describeLogDirsRequest, response: describeLogDirsResponse };

function describe(
  broker: AdminBroker,
  topics: InputOf<typeof describeLogDirsRequest>["topics"],
  version = describeLogDirsRequest.maxVersion,
) {
  return ask(describeLogDirsHandler(broker), messages, version, { topics });
}

async function withTopic(test: (broker: AdminBroker, restart: () => Promise<AdminBroker>) => Promise<void>) {
  await withAdminBroker(async (broker, restart) => {
    await createTopic(broker, { name: "t", numPartitions: 3, replicationFactor: 1, assignments: [], configs: [] });
    await test(broker, restart);
  });
}

Deno.test("DescribeLogDirs tells the bytes of each partition, open or not, in every version", async () => {
  await withTopic(async (broker, restart) => {
    await appendRecords(broker, "t", 10);
    const log = await broker.partitions.get("t", 0)?.log();
    assert.ok(typeof log === "object");
    const bytes = log.sizeBytes;
    assert.ok(bytes > 0);
    for (const next of [() => Promise.resolve(broker), restart]) {
      const present = await next();
      for (let version = describeLogDirsRequest.minVersion; version <= describeLogDirsRequest.maxVersion; version++) {
        const { errorCode, results } = await describe(present, null, version);
        assert.equal(errorCode, ErrorCode.NONE);
        assert.deepEqual(results.map(({ errorCode, logDir }) => [errorCode, logDir]), [
          [ErrorCode.NONE, present.dataFolders[0]],
        ]);
        assert.deepEqual(results[0].topics, [{
          name: "t",
          partitions: [bytes, 0, 0].map((partitionSize, partitionIndex) => ({
            partitionIndex,
            partitionSize,
            offsetLag: 0,
            isFutureKey: false,
          })),
        }]);
        if (version >= 4) assert.ok(results[0].totalBytes >= results[0].usableBytes && results[0].usableBytes > 0);
      }
    }
  });
});

Deno.test("DescribeLogDirs describes only what is asked for and is here", async () => {
  await withTopic(async (broker) => {
    const { results: [{ topics }] } = await describe(broker, [
      { topic: "t", partitions: [1, 7] },
      { topic: "nothere", partitions: [0] },
    ]);
    assert.deepEqual(topics.map(({ name, partitions }) => [name, partitions.map((p) => p.partitionIndex)]), [["t", [
      1,
    ]]]);
  });
});

Deno.test("a data folder that cannot be read is named with its error", async () => {
  await withTopic(async (broker) => {
    const missing = { ...broker, dataFolders: ["/nothing/here"] };
    const { results } = await describe(missing, null);
    assert.deepEqual(results.map(({ errorCode, logDir }) => [errorCode, logDir]), [
      [ErrorCode.KAFKA_STORAGE_ERROR, "/nothing/here"],
    ]);
  });
});
