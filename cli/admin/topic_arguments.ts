/** Arguments that name topics, or some of their partitions: `orders`, `orders:0,2`. */

import type { ClusterClient } from "../client/cluster_client.ts";
import { existingTopics, type PartitionKey, partitionsOf } from "../client/partitions.ts";
import { CommandFailure, UsageError } from "../exit.ts";

/** The partitions that such arguments mean, all of a topic where none is named. @throws {CommandFailure} */
export async function topicsAndPartitions(
  client: ClusterClient,
  texts: readonly string[],
  flag: string,
): Promise<PartitionKey[]> {
  const wanted = new Map<string, Set<number> | "all">();
  for (const text of texts) {
    const match = /^([^:\s]+)(?::(\d+(?:,\d+)*))?$/.exec(text);
    if (match === null) {
      throw new UsageError([`${flag}: ${JSON.stringify(text)} is not accepted, expected TOPIC or TOPIC:0,1`]);
    }
    const [, topic, list] = match;
    const before = wanted.get(topic);
    if (list === undefined || before === "all") wanted.set(topic, "all");
    else wanted.set(topic, new Set([...before ?? [], ...list.split(",").map(Number)]));
  }
  const present = partitionsOf(await existingTopics(client, [...wanted.keys()]));
  for (const [topic, partitions] of wanted) {
    if (partitions === "all") continue;
    const missing = [...partitions].filter((partition) =>
      !present.some((key) => key.topic === topic && key.partition === partition)
    );
    if (missing.length > 0) throw new CommandFailure(`topic ${topic} has no partition ${missing.join(", ")}`);
  }
  return present.filter(({ topic, partition }) => {
    const partitions = wanted.get(topic);
    return partitions === "all" || partitions?.has(partition);
  });
}
