/** kafka-consumer-groups in every mode it has, on a group without members. */

import assert from "node:assert/strict";
import { offsetCommitRequest, offsetCommitResponse } from "../../lib/protocol/messages/offset_commit.ts";
import { produceRequest, produceResponse } from "../../lib/protocol/messages/produce.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { startBroker } from "../support/broker_process.ts";
import { runTool, tool } from "../support/kafka_tools.ts";
import { RawClient } from "../support/raw_client.ts";
import { clientCommand } from "../support/toolchain.ts";

const run = Math.random().toString(36).slice(2, 8);
const GROUP = `billing-${run}`;
const TOPIC = `orders-${run}`;
const START = Date.parse("2026-01-31T12:00:00Z");

Deno.test({
  name: "kafka-consumer-groups lists, describes, resets by every method, and deletes",
  ignore: clientCommand("kafka-tools") === null,
  async fn() {
    const broker = await startBroker();
    const folder = await Deno.makeTempDir();
    try {
      using client = await RawClient.connect(broker.port);
      await createTopic(client);
      for (let i = 0; i < 10; i++) await produce(client, `record ${i}`, START + i * 60_000);
      await commit(client, 5);
      const groups = (...args: string[]) =>
        tool("kafka-consumer-groups", ["--bootstrap-server", broker.bootstrap, ...args]);
      const describedOffset = async () =>
        /^\S+\s+\S+\s+0\s+(\d+)/m.exec(await groups("--describe", "--group", GROUP))?.[1];
      const shown = async (...args: string[]) => {
        const out = await groups("--reset-offsets", "--group", GROUP, "--topic", `${TOPIC}:0`, "--dry-run", ...args);
        return new RegExp(`^${GROUP}\\s+${TOPIC}\\s+0\\s+(\\d+)`, "m").exec(out)?.[1];
      };

      assert.match(await groups("--list"), new RegExp(`^${GROUP}$`, "m"));
      assert.match(await groups("--list", "--state", "Empty"), new RegExp(`^${GROUP}\\s+Empty`, "m"));
      assert.doesNotMatch(await groups("--list", "--state", "Stable"), new RegExp(GROUP));
      assert.match(await groups("--describe", "--group", GROUP), new RegExp(`${TOPIC}\\s+0\\s+5\\s+10\\s+5`));
      assert.match(await groups("--describe", "--group", GROUP, "--state"), /Empty\s+0/);
      assert.match(await groups("--describe", "--all-groups"), new RegExp(GROUP));

      assert.equal(await shown("--to-earliest"), "0");
      assert.equal(await shown("--to-latest"), "10");
      assert.equal(await shown("--to-current"), "5");
      assert.equal(await shown("--to-offset", "3"), "3");
      assert.equal(await shown("--to-offset", "99"), "10");
      assert.equal(await shown("--shift-by", "-2"), "3");
      assert.equal(await shown("--shift-by", "2"), "7");
      assert.equal(await shown("--to-datetime", "2026-01-31T12:03:30.000+00:00"), "4");
      assert.equal(await shown("--by-duration", "PT0S"), "10");
      assert.equal(await describedOffset(), "5", "a dry run changes nothing");

      const exported = await groups(
        ...["--reset-offsets", "--group", GROUP, "--all-topics", "--to-offset", "2", "--dry-run", "--export"],
      );
      const csv = exported.split("\n").find((line) => line.includes(`${TOPIC}`));
      assert.match(csv ?? "", new RegExp(`"?${TOPIC}"?,0,2`));
      await Deno.writeTextFile(`${folder}/offsets.csv`, `${csv}\n`);
      await groups("--reset-offsets", "--group", GROUP, "--from-file", `${folder}/offsets.csv`, "--execute");
      assert.equal(await describedOffset(), "2");
      await groups("--reset-offsets", "--group", GROUP, "--all-topics", "--to-latest", "--execute");
      assert.equal(await describedOffset(), "10");

      assert.match(
        await groups("--delete-offsets", "--group", GROUP, "--topic", TOPIC),
        new RegExp(`${TOPIC}\\s+0\\s+Successful`),
      );
      await commit(client, 1);
      assert.match(await groups("--delete", "--group", GROUP), /successful/);
      assert.doesNotMatch(await groups("--list"), new RegExp(GROUP));
      const gone = await runTool(
        "kafka-consumer-groups",
        ["--bootstrap-server", broker.bootstrap, "--delete", "--group", GROUP],
      );
      assert.match(gone.stdout + gone.stderr, /GroupIdNotFound|not exist|not found/i);
    } finally {
      await broker.stop();
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function createTopic(client: RawClient): Promise<void> {
  const { topics } = await client.call(createTopicsRequest, createTopicsResponse, 7, {
    topics: [{ name: TOPIC, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
  });
  assert.equal(topics[0].errorCode, 0);
}

async function produce(client: RawClient, value: string, timestamp: number): Promise<void> {
  const { responses } = await client.call(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 10_000,
    topicData: [{
      name: TOPIC,
      topicId: ZERO_UUID,
      partitionData: [{ index: 0, records: buildBatch({ timestamp, records: [{ value }] }) }],
    }],
  });
  assert.equal(responses[0].partitionResponses[0].errorCode, 0);
}

async function commit(client: RawClient, committedOffset: number): Promise<void> {
  const { topics } = await client.call(offsetCommitRequest, offsetCommitResponse, 8, {
    groupId: GROUP,
    memberId: "",
    topics: [{
      name: TOPIC,
      topicId: ZERO_UUID,
      partitions: [{ partitionIndex: 0, committedOffset, committedMetadata: "" }],
    }],
  });
  assert.equal(topics[0].partitions[0].errorCode, 0);
}
