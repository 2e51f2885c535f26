/** What the commands of `kaas admin topics` do. */

import { ErrorCode } from "../../lib/errors.ts";
import { createPartitionsRequest, createPartitionsResponse } from "../../lib/protocol/messages/create_partitions.ts";
import { createTopicsRequest, createTopicsResponse } from "../../lib/protocol/messages/create_topics.ts";
import { deleteTopicsRequest, deleteTopicsResponse } from "../../lib/protocol/messages/delete_topics.ts";
import { ZERO_UUID } from "../../lib/protocol/schema.ts";
import { Refused, type TopicMetadata } from "../client/cluster_client.ts";
import { describeConfigs, ResourceType } from "../client/configs.ts";
import { existingTopics, offsetsAt, partitionsOf, Place } from "../client/partitions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { type ConnectedOptions, counted, say, table, withCluster } from "./connected.ts";

/** How many records a partition holds at most: offsets that compaction took count. */
interface DescribedPartition {
  readonly partition: number;
  readonly leader: number;
  readonly leaderEpoch: number;
  readonly logStartOffset: number | null;
  readonly logEndOffset: number | null;
}

export async function list(
  context: CommandContext,
  options: ConnectedOptions & { readonly internal?: true | undefined },
): Promise<void> {
  await withCluster(context, options, async (client) => {
    const { topics } = await client.metadata(null);
    const shown = topics
      .filter(({ isInternal }) => options.internal === true || !isInternal)
      .map(({ name, topicId, partitions, isInternal }) => ({
        topic: name ?? "",
        partitions: partitions.length,
        topicId,
        internal: isInternal,
      }))
      .sort((a, b) => a.topic < b.topic ? -1 : 1);
    say(
      context,
      options,
      shown,
      (topics) => table(["TOPIC", "#PARTITIONS", "ID"], topics.map((one) => [one.topic, one.partitions, one.topicId])),
    );
  });
}

export async function describe(context: CommandContext, names: string[], options: ConnectedOptions): Promise<void> {
  await withCluster(context, options, async (client) => {
    const topics = await existingTopics(client, names);
    const offsets = async (timestamp: number, topic: TopicMetadata) => {
      const led = topic.partitions.filter(({ leaderId }) => leaderId >= 0).map(({ partitionIndex }) => partitionIndex);
      const keys = partitionsOf([topic]).filter(({ partition }) => led.includes(partition));
      const found = await offsetsAt(client, keys.map((key) => ({ ...key, timestamp })));
      return new Map([...found].map(([{ partition }, offset]) => [partition, offset]));
    };
    const described = [];
    for (const topic of topics) {
      const [starts, ends] = [await offsets(Place.earliest, topic), await offsets(Place.latest, topic)];
      const [{ configs }] = await describeConfigs(client, [{ type: ResourceType.topic, name: topic.name ?? "" }]);
      const own = configs.filter(({ source }) => source === "topic");
      described.push({
        topic: topic.name ?? "",
        topicId: topic.topicId,
        internal: topic.isInternal,
        configs: Object.fromEntries(own.map(({ name, value }) => [name, value])),
        partitions: topic.partitions.toSorted((a, b) => a.partitionIndex - b.partitionIndex).map((
          one,
        ): DescribedPartition => ({
          partition: one.partitionIndex,
          leader: one.leaderId,
          leaderEpoch: one.leaderEpoch,
          logStartOffset: starts.get(one.partitionIndex) ?? null,
          logEndOffset: ends.get(one.partitionIndex) ?? null,
        })),
      });
    }
    say(context, options, described, (all) =>
      all.map(({ topic, topicId, configs, partitions }) => {
        const settings = Object.entries(configs).map(([name, value]) => `  ${name}=${value}\n`).join("");
        return `${topic}: ${counted(partitions.length, "partition")}, id ${topicId}\n${settings}\n` + table(
          ["#PARTITION", "#LEADER", "#EPOCH", "#START", "#END"],
          partitions.map((one) => [
            one.partition,
            one.leader < 0 ? null : one.leader,
            one.leaderEpoch < 0 ? null : one.leaderEpoch,
            one.logStartOffset,
            one.logEndOffset,
          ]),
        );
      }).join("\n"));
  });
}

export async function create(
  context: CommandContext,
  names: string[],
  options: ConnectedOptions & {
    readonly partitions?: number | undefined;
    readonly config?: string[] | undefined;
    readonly ifNotExists?: true | undefined;
  },
): Promise<void> {
  const configs = (options.config ?? []).map((text) => {
    const equals = text.indexOf("=");
    if (equals > 0) return { name: text.slice(0, equals), value: text.slice(equals + 1) };
    throw new UsageError([`--config ${text}: expected NAME=VALUE, such as retention.ms=86400000`]);
  });
  await withCluster(context, options, async (client) => {
    const { topics } = await client.controller(createTopicsRequest, createTopicsResponse, {
      topics: names.map((name) => ({
        name,
        numPartitions: options.partitions ?? -1,
        replicationFactor: -1,
        assignments: [],
        configs,
      })),
      timeoutMs: client.timeoutMs,
    });
    const isPresent = (code: number) => options.ifNotExists === true && code === ErrorCode.TOPIC_ALREADY_EXISTS;
    const created = topics.filter(({ errorCode }) => errorCode === ErrorCode.NONE)
      .map(({ name, topicId, numPartitions }) => ({ topic: name, topicId, partitions: numPartitions }));
    say(
      context,
      options,
      created,
      (created) =>
        created.map(({ topic, partitions }) => `topic ${topic} created with ${counted(partitions, "partition")}\n`)
          .join(
            "",
          ),
    );
    failIfAny(topics.filter(({ errorCode }) => errorCode !== ErrorCode.NONE && !isPresent(errorCode)), "topic");
  });
}

export async function alter(
  context: CommandContext,
  name: string,
  options: ConnectedOptions & { readonly partitions: number },
): Promise<void> {
  await withCluster(context, options, async (client) => {
    const { results } = await client.controller(createPartitionsRequest, createPartitionsResponse, {
      topics: [{ name, count: options.partitions, assignments: null }],
      timeoutMs: client.timeoutMs,
      validateOnly: false,
    });
    failIfAny(results.filter(({ errorCode }) => errorCode !== ErrorCode.NONE), "topic");
    const outcome = { topic: name, partitions: options.partitions };
    say(context, options, outcome, () => `topic ${name} has ${counted(options.partitions, "partition")} now\n`);
  });
}

export async function deleteTopics(
  context: CommandContext,
  names: string[],
  options: ConnectedOptions & { readonly ifExists?: true | undefined; readonly yes?: true | undefined },
): Promise<void> {
  if (options.yes !== true && !context.confirm(`Delete ${names.join(", ")} and all records in it?`)) {
    throw new CommandFailure("nothing was deleted: say yes when asked, or --yes");
  }
  await withCluster(context, options, async (client) => {
    const { responses } = await client.controller(deleteTopicsRequest, deleteTopicsResponse, {
      topics: names.map((name) => ({ name, topicId: ZERO_UUID })),
      topicNames: names,
      timeoutMs: client.timeoutMs,
    });
    const isAbsent = (code: number) => options.ifExists === true && code === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    const deleted = responses.filter(({ errorCode }) => errorCode === ErrorCode.NONE).map(({ name }) => name ?? "");
    say(
      context,
      options,
      deleted.map((topic) => ({ topic })),
      () => deleted.map((name) => `topic ${name} deleted\n`).join(""),
    );
    failIfAny(responses.filter(({ errorCode }) => errorCode !== ErrorCode.NONE && !isAbsent(errorCode)), "topic");
  });
}

function failIfAny(
  failed: readonly { readonly name: string | null; readonly errorCode: number; readonly errorMessage: string | null }[],
  what: string,
): void {
  if (failed.length === 0) return;
  const sentences = failed.map(({ name, errorCode, errorMessage }) =>
    new Refused(`${what} ${name}`, errorCode, errorMessage).message
  );
  throw new CommandFailure(sentences.join("; "));
}
