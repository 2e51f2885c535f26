/** Questions about partitions, each taken to its leader: where logs begin and end, and what stands at a time. */

import { ErrorCode } from "../../lib/errors.ts";
import { listOffsetsRequest, listOffsetsResponse } from "../../lib/protocol/messages/list_offsets.ts";
import { CommandFailure } from "../exit.ts";
import { type ClusterClient, Refused, type TopicMetadata } from "./cluster_client.ts";

export interface PartitionKey {
  readonly topic: string;
  readonly partition: number;
}

/** Places of a log that are asked for like times. */
export const Place = { latest: -1, earliest: -2 } as const;

/** The offset at a place or time (ms since 1970) of each partition; -1 where nothing is that late. @throws {Refused} */
export async function offsetsAt<Key extends PartitionKey & { readonly timestamp: number }>(
  client: ClusterClient,
  keys: readonly Key[],
): Promise<Map<Key, number>> {
  const offsets = new Map<Key, number>();
  const codes = await client.leaders(keys, async (nodeId, led) => {
    const reply = await client.node(nodeId, listOffsetsRequest, listOffsetsResponse, {
      replicaId: -1,
      isolationLevel: 0,
      timeoutMs: client.timeoutMs,
      topics: [...Map.groupBy(led, ({ topic }) => topic)].map(([name, partitions]) => ({
        name,
        partitions: partitions.map(({ partition, timestamp }) => ({ partitionIndex: partition, timestamp })),
      })),
    });
    const answered = new Map<Key, number>();
    for (const key of led) {
      const topic = reply.topics.find(({ name }) => name === key.topic);
      const found = topic?.partitions.find(({ partitionIndex }) => partitionIndex === key.partition);
      answered.set(key, found?.errorCode ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      if (found?.errorCode === ErrorCode.NONE) offsets.set(key, found.offset);
    }
    return answered;
  });
  for (const [{ topic, partition }, code] of codes) {
    if (code !== ErrorCode.NONE) throw new Refused(`${topic}/${partition}`, code);
  }
  return offsets;
}

/** The topics of these names. @throws {CommandFailure} naming those that are not there */
export async function existingTopics(client: ClusterClient, names: readonly string[]): Promise<TopicMetadata[]> {
  if (names.length === 0) return [];
  const { topics } = await client.metadata(names);
  const missing = topics.filter(({ errorCode }) => errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  if (missing.length > 0) throw new CommandFailure(`there is no topic ${missing.map(({ name }) => name).join(", ")}`);
  for (const { name, errorCode } of topics) {
    if (errorCode !== ErrorCode.NONE) throw new Refused(`topic ${name}`, errorCode);
  }
  return topics;
}

/** All partitions of topics, in order. */
export function partitionsOf(topics: readonly TopicMetadata[]): PartitionKey[] {
  return topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex }) => ({ topic: name ?? "", partition: partitionIndex })).sort((a, b) =>
      a.partition - b.partition
    )
  );
}
