/** `kaas admin topics|groups|configs|delete-records` against a running broker, as a person and as a program call them. */

import assert from "node:assert/strict";
import { joinGroupRequest, joinGroupResponse } from "../../lib/protocol/messages/join_group.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../lib/protocol/messages/offset_commit.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { type WireBroker, withWireBroker } from "../support/wire_broker.ts";
import { run as runCommand } from "../unit/cli/support.ts";

interface Admin {
  readonly wire: WireBroker;
  /** Runs a command that must work; resolves to what it says. */
  says(...args: string[]): Promise<string>;
  // deno-lint-ignore no-explicit-any -- whatever the command prints
  json(...args: string[]): Promise<any>;
  /** Runs a command that must fail; resolves to its complaint. */
  complains(code: number, ...args: string[]): Promise<string>;
}

async function withAdmin(test: (admin: Admin) => Promise<void>): Promise<void> {
  await withWireBroker(async (wire) => {
    const run = (args: string[]) =>
      runCommand(["admin", ...args, "--bootstrap", `127.0.0.1:${wire.port}`], { readTextFile: Deno.readTextFile });
    const says = async (...args: string[]) => {
      const { code, out, err } = await run(args);
      assert.equal(code, 0, err);
      return out;
    };
    await test({
      wire,
      says,
      json: async (...args) => JSON.parse(await says(...args, "--json")),
      complains: async (code, ...args) => {
        const outcome = await run(args);
        assert.equal(outcome.code, code, outcome.out);
        return outcome.err;
      },
    });
  });
}

async function commit(wire: WireBroker, groupId: string, topic: string, offset: number): Promise<void> {
  const { topics } = await wire.client.call(offsetCommitRequest, offsetCommitResponse, 8, {
    groupId,
    memberId: "",
    topics: [{
      name: topic,
      topicId: ZERO_UUID,
      partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: "" }],
    }],
  });
  assert.equal(topics[0].partitions[0].errorCode, 0);
}

Deno.test("Topics are created, listed, described, grown and deleted", async () => {
  await withAdmin(async ({ wire, says, json, complains }) => {
    assert.equal(
      await says("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=60000"),
      "topic orders created with 2 partitions\n",
    );
    assert.equal(await says("topics", "create", "orders", "--if-not-exists"), "");
    assert.match(await complains(1, "topics", "create", "orders"), /topic orders.*exists/);
    assert.match(await complains(1, "topics", "create", "x", "--config", "retentoin.ms=1"), /retention\.ms/);
    assert.match(await complains(2, "topics", "create", "x", "--partitions", "0"), /at least 1/);

    assert.match(await says("topics", "list"), /^TOPIC +PARTITIONS +ID\norders +2 +[0-9a-f-]{36}\n$/);
    const [listed] = await json("topics", "list");
    assert.deepEqual([listed.topic, listed.partitions, listed.internal], ["orders", 2, false]);

    await wire.append("orders", { records: [{ value: "a" }, { value: "b" }] });
    const [described] = await json("topics", "describe", "orders");
    assert.deepEqual(described.configs, { "retention.ms": "60000" });
    assert.deepEqual(
      described.partitions.map((one: Record<string, number>) => [one.partition, one.leader, one.logEndOffset]),
      [[0, 0, 2], [1, 0, 0]],
    );
    const text = await says("topics", "describe", "orders");
    assert.match(text, /^orders: 2 partitions, id .*\n {2}retention\.ms=60000\n/);
    assert.match(text, /PARTITION +LEADER +EPOCH +START +END\n/);

    assert.equal(await says("topics", "alter", "orders", "--partitions", "3"), "topic orders has 3 partitions now\n");
    assert.match(await complains(1, "topics", "alter", "orders", "--partitions", "1"), /fewer/);
    assert.match(await complains(1, "topics", "describe", "nowhere"), /there is no topic nowhere/);

    assert.match(await complains(1, "topics", "delete", "orders"), /nothing was deleted/);
    assert.equal(await says("topics", "delete", "orders", "--yes"), "topic orders deleted\n");
    assert.match(await complains(1, "topics", "delete", "orders", "--yes"), /topic orders/);
    assert.equal(await says("topics", "delete", "orders", "--yes", "--if-exists"), "");
    assert.deepEqual(await json("topics", "list"), []);
  });
});

Deno.test("Settings of topics and brokers are shown with where they come from, and changed", async () => {
  await withAdmin(async ({ wire, says, json, complains }) => {
    await wire.createTopic("orders");
    assert.match(await says("configs", "describe", "--topic", "orders"), /topic orders: everything is as the defaults/);
    assert.equal(
      await says("configs", "alter", "--topic", "orders", "--set", "retention.ms=1000", "--dry-run"),
      "settings of topic orders would be changed\n",
    );
    assert.deepEqual((await json("configs", "describe", "--topic", "orders"))[0].configs, []);
    await says("configs", "alter", "--topic", "orders", "--set", "retention.ms=1000", "--set", "segment.bytes=2000000");
    const [{ configs }] = await json("configs", "describe", "--topic", "orders");
    assert.deepEqual(
      configs.map((config: Record<string, string>) => [config.name, config.value, config.source]),
      [["retention.ms", "1000", "topic"], ["segment.bytes", "2000000", "topic"]],
    );
    await says("configs", "alter", "--topic", "orders", "--delete", "retention.ms");
    const text = await says("configs", "describe", "--topic", "orders");
    assert.match(text, /NAME +VALUE +FROM +WITHOUT THAT\nsegment\.bytes +2000000 +topic/);
    assert.ok((await json("configs", "describe", "--topic", "orders", "--all"))[0].configs.length > 20);

    await says("configs", "alter", "--broker", "0", "--set", "log.retention.ms=5000");
    await says("configs", "alter", "--all-brokers", "--set", "log.retention.ms=6000");
    const [broker, all] = await json("configs", "describe", "--broker", "0", "--all-brokers");
    const retention = broker.configs.find((config: Record<string, string>) => config.name === "log.retention.ms");
    assert.deepEqual([retention.value, retention.source], ["5000", "broker"]);
    assert.equal(all.resource, "all brokers");

    assert.match(
      await complains(1, "configs", "alter", "--topic", "orders", "--set", "retenton.ms=1"),
      /retention\.ms/,
    );
    assert.match(await complains(1, "configs", "describe", "--topic", "nowhere"), /topic nowhere/);
    assert.match(await complains(2, "configs", "describe"), /--topic TOPIC, --broker ID or --all-brokers/);
    assert.match(await complains(2, "configs", "alter", "--topic", "orders"), /--set NAME=VALUE or --delete NAME/);
    assert.match(await complains(1, "configs", "describe", "--broker", "9"), /broker 9/);
  });
});

Deno.test("Groups are listed and described with their lag, and deleted", async () => {
  await withAdmin(async ({ wire, says, json, complains }) => {
    await wire.createTopic("orders");
    await wire.append("orders", { records: [{ value: "a" }, { value: "b" }, { value: "c" }] });
    await commit(wire, "billing", "orders", 1);
    assert.match(
      await says("groups", "list"),
      /GROUP +TYPE +PROTOCOL +STATE +COORDINATOR\nbilling +classic +- +Empty +0\n/,
    );
    assert.deepEqual(await json("groups", "list", "--type", "consumer"), []);
    assert.deepEqual((await json("groups", "list", "--state", "empty")).length, 1);
    const [described] = await json("groups", "describe", "billing");
    assert.deepEqual([described.state, described.members, described.totalLag], ["Empty", [], 2]);
    assert.deepEqual(described.offsets, [
      { topic: "orders", partition: 0, currentOffset: 1, logEndOffset: 3, lag: 2, memberId: null },
    ]);
    const text = await says("groups", "describe", "billing");
    assert.match(text, /^billing: classic group, Empty, 0 members, lag 2\n/);
    assert.match(text, /orders +0 +1 +3 +2 +-\n/);
    assert.equal(
      await says("groups", "delete-offsets", "billing", "--topic", "orders:0"),
      "offsets deleted: orders:0\n",
    );
    await commit(wire, "billing", "orders", 2);
    assert.equal(await says("groups", "delete", "billing"), "group billing deleted\n");
    assert.match(await complains(1, "groups", "delete", "billing"), /there is no such group/);
    assert.match(await complains(1, "groups", "describe", "billing"), /there is no such group/);
    assert.match(await complains(2, "groups", "list", "--type", "share"), /classic or consumer/);
  });
});

Deno.test("Offsets are reset to wherever one says, shown first and done with --execute", async () => {
  await withAdmin(async ({ wire, says, json, complains }) => {
    await wire.createTopic("orders");
    for (const ms of [10, 20, 30]) {
      await wire.append("orders", { records: [{ value: String(ms), timestamp: 1_700_000_000_000 + ms }] });
    }
    await commit(wire, "billing", "orders", 2);
    const where = async (...args: string[]) =>
      (await json("groups", "reset-offsets", "billing", "--topic", "orders", ...args))[0].newOffset;
    assert.equal(await where("--to-earliest"), 0);
    assert.equal(await where("--to-latest"), 3);
    assert.equal(await where("--to-current"), 2);
    assert.equal(await where("--to-offset", "1"), 1);
    assert.equal(await where("--to-offset", "100"), 3, "no further than the end");
    assert.equal(await where("--shift-by", "-1"), 1);
    assert.equal(await where("--shift-by=-100"), 0, "no further than the start");
    assert.equal(await where("--to-datetime", "2023-11-14T22:13:20.015Z"), 1);
    assert.equal(await where("--to-datetime", "2030-01-01T00:00:00Z"), 3);
    assert.equal(await where("--by-duration", "P1D"), 3);
    assert.equal((await json("groups", "describe", "billing"))[0].offsets[0].currentOffset, 2, "nothing was done yet");
    const shown = await says("groups", "reset-offsets", "billing", "--topic", "orders", "--to-earliest");
    assert.match(shown, /orders +0 +2 +0\n\nnothing was changed: add --execute/);
    await says("groups", "reset-offsets", "billing", "--topic", "orders:0", "--to-earliest", "--execute");
    assert.equal((await json("groups", "describe", "billing"))[0].offsets[0].currentOffset, 0);

    const csv = await says("groups", "reset-offsets", "billing", "--all-topics", "--to-latest", "--export");
    assert.equal(csv, "orders,0,3\n");
    const file = await Deno.makeTempFile();
    try {
      await Deno.writeTextFile(file, csv);
      await says("groups", "reset-offsets", "fresh", "--from-file", file, "--execute");
      assert.equal((await json("groups", "describe", "fresh"))[0].totalLag, 0);
      await Deno.writeTextFile(file, "orders;0;3\n");
      assert.match(
        await complains(2, "groups", "reset-offsets", "fresh", "--from-file", file),
        /:1: expected TOPIC,PARTITION/,
      );
    } finally {
      await Deno.remove(file);
    }
    const wrong = (...args: string[]) => complains(2, "groups", "reset-offsets", "billing", ...args);
    assert.match(await wrong("--topic", "orders"), /where to\? Take one of/);
    assert.match(await wrong("--topic", "orders", "--to-latest", "--to-earliest"), /contradict each other/);
    assert.match(await wrong("--to-latest"), /--topic, or take --all-topics/);
    assert.match(await wrong("--topic", "orders", "--to-datetime", "yesterday"), /expected 2026-01-31T12:00:00Z/);
    assert.match(await wrong("--topic", "orders", "--by-duration", "1h"), /expected PT1H30M/);
    const missing = await complains(1, "groups", "reset-offsets", "billing", "--topic", "orders:7", "--to-latest");
    assert.match(missing, /topic orders has no partition 7/);
  });
});

Deno.test("A group with members is neither reset nor deleted", async () => {
  await withAdmin(async ({ wire, says, complains }) => {
    await wire.createTopic("orders");
    const joining = {
      groupId: "billing",
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 10_000,
      protocolType: "consumer",
      protocols: [{ name: "range", metadata: new Uint8Array(0) }],
    };
    const { memberId } = await wire.client.call(joinGroupRequest, joinGroupResponse, 5, { ...joining, memberId: "" });
    const joined = await wire.client.call(joinGroupRequest, joinGroupResponse, 5, { ...joining, memberId });
    assert.equal(joined.errorCode, 0);
    const reset = await complains(
      1,
      "groups",
      "reset-offsets",
      "billing",
      "--topic",
      "orders",
      "--to-latest",
      "--execute",
    );
    assert.match(reset, /group billing is .* with 1 member; stop them first/);
    assert.match(await complains(1, "groups", "delete", "billing"), /the group has members; stop them first/);
    assert.match(await says("groups", "describe", "billing"), /1 member, lag 0\n/);
  });
});

Deno.test("Records before an offset are deleted, by topic or by Kafka's file", async () => {
  await withAdmin(async ({ wire, says, json, complains }) => {
    await wire.createTopic("orders");
    await wire.append("orders", { records: Array.from({ length: 5 }, (_, i) => ({ value: String(i) })) });
    const cut = ["delete-records", "--topic", "orders:0", "--yes"];
    assert.match(await says(...cut, "--before-offset", "2"), /TOPIC +PARTITION +LOG START\norders +0 +2\n/);
    assert.match(await complains(1, ...cut, "--before-offset", "9"), /orders\/0: the offset is not in the log/);
    const file = await Deno.makeTempFile();
    try {
      await Deno.writeTextFile(
        file,
        JSON.stringify({ partitions: [{ topic: "orders", partition: 0, offset: -1 }], version: 1 }),
      );
      assert.deepEqual(await json("delete-records", "--from-file", file, "--yes"), [
        { topic: "orders", partition: 0, logStartOffset: 5 },
      ]);
      await Deno.writeTextFile(file, "{}");
      assert.match(await complains(2, "delete-records", "--from-file", file, "--yes"), /expected \{"partitions"/);
    } finally {
      await Deno.remove(file);
    }
    assert.match(
      await complains(1, "delete-records", "--topic", "orders", "--before-offset", "1"),
      /nothing was deleted/,
    );
    assert.match(await complains(2, "delete-records", "--topic", "orders"), /--before-offset N/);
    assert.match(await complains(2, ...cut, "--before-offset", "x"), /expected an offset or end/);
  });
});

Deno.test("Without a broker the complaint says where it was looked for, and how to say another place", async () => {
  const { code, err } = await runCommand(["admin", "topics", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "2"]);
  assert.equal(code, 1);
  assert.match(err, /cannot reach 127\.0\.0\.1:1: connection refused \(is the broker running\? --bootstrap HOST:PORT/);
  const wrong = await runCommand(["admin", "topics", "list", "--bootstrap", "a:b:c"]);
  assert.deepEqual([wrong.code, /--bootstrap: "a:b:c".*expected HOST:PORT/.test(wrong.err)], [2, true]);
});
