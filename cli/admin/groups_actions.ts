/** What `kaas admin groups list|describe|delete|delete-offsets` do. */

import { ErrorCode, errorName } from "../../lib/errors.ts";
import { deleteGroupsRequest, deleteGroupsResponse } from "../../lib/protocol/messages/delete_groups.ts";
import { offsetDeleteRequest, offsetDeleteResponse } from "../../lib/protocol/messages/offset_delete.ts";
import { type ClusterClient, Refused } from "../client/cluster_client.ts";
import { committedOffsets, type DescribedGroup, describeGroup, listGroups } from "../client/groups.ts";
import { offsetsAt, type PartitionKey, Place } from "../client/partitions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { type ConnectedOptions, counted, say, table, withCluster } from "./connected.ts";
import { topicsAndPartitions } from "./topic_arguments.ts";

/** A partition of a group: where the group stands in it and how far behind its end that is; null where not known. */
interface PartitionLag extends PartitionKey {
  readonly currentOffset: number | null;
  readonly logEndOffset: number | null;
  readonly lag: number | null;
  readonly memberId: string | null;
}

type GroupReport = DescribedGroup & { readonly offsets: readonly PartitionLag[]; readonly totalLag: number };

export async function list(
  context: CommandContext,
  options: ConnectedOptions & { readonly state?: string[] | undefined; readonly type?: string | undefined },
): Promise<void> {
  const type = options.type?.toLowerCase();
  if (type !== undefined && type !== "classic" && type !== "consumer") {
    throw new UsageError([`--type: ${JSON.stringify(options.type)} is not accepted, expected classic or consumer`]);
  }
  const states = options.state?.map((state) => state.toLowerCase());
  await withCluster(context, options, async (client) => {
    const groups = (await listGroups(client)).filter((group) =>
      (type === undefined || group.type === type) && (states?.includes(group.state.toLowerCase()) ?? true)
    );
    say(context, options, groups, (groups) =>
      table(
        ["GROUP", "TYPE", "PROTOCOL", "STATE", "#COORDINATOR"],
        groups.map((group) => [
          group.groupId,
          group.type,
          group.protocolType || "-",
          group.state,
          group.coordinator,
        ]),
      ));
  });
}

export async function describe(context: CommandContext, groupIds: string[], options: ConnectedOptions): Promise<void> {
  await withCluster(context, options, async (client) => {
    const reports: GroupReport[] = [];
    for (const groupId of groupIds) reports.push(await report(client, groupId));
    say(context, options, reports, (reports) => reports.map(reportText).join("\n"));
  });
}

async function report(client: ClusterClient, groupId: string): Promise<GroupReport> {
  const group = await describeGroup(client, groupId);
  const owners = new Map<string, string>();
  for (const { memberId, partitions } of group.members) {
    for (const { topic, partition } of partitions) owners.set(`${topic}/${partition}`, memberId);
  }
  const committed = new Map((await committedOffsets(client, groupId)).map((one) => [keyOf(one), one]));
  const keys = [...new Set([...committed.keys(), ...owners.keys()])].map(parseKey).sort(byKey);
  const ends = await endsOf(client, keys);
  const offsets = keys.map((key) => {
    const currentOffset = committed.get(keyOf(key))?.offset ?? null;
    const logEndOffset = ends.get(keyOf(key)) ?? null;
    const lag = currentOffset === null || logEndOffset === null ? null : Math.max(0, logEndOffset - currentOffset);
    return { ...key, currentOffset, logEndOffset, lag, memberId: owners.get(keyOf(key)) ?? null };
  });
  return { ...group, offsets, totalLag: offsets.reduce((sum, { lag }) => sum + (lag ?? 0), 0) };
}

/** The ends of the logs of those partitions that are there. */
async function endsOf(client: ClusterClient, keys: readonly PartitionKey[]): Promise<Map<string, number>> {
  const { topics } = await client.metadata([...new Set(keys.map(({ topic }) => topic))]);
  const isThere = ({ topic, partition }: PartitionKey) =>
    topics.some(({ name, partitions }) =>
      name === topic && partitions.some(({ partitionIndex }) => partitionIndex === partition)
    );
  const asked = keys.filter(isThere).map((key) => ({ ...key, timestamp: Place.latest }));
  const ends = asked.length === 0 ? new Map() : await offsetsAt(client, asked);
  return new Map([...ends].map(([key, offset]) => [keyOf(key), offset]));
}

function reportText({ groupId, type, state, assignor, members, offsets, totalLag }: GroupReport): string {
  const head = `${groupId}: ${type} group, ${state}${assignor === "" ? "" : `, assignor ${assignor}`}, ` +
    `${counted(members.length, "member")}, lag ${totalLag}\n`;
  const memberTable = members.length === 0 ? "" : table(
    ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
    members.map((member) => [
      member.memberId,
      member.instanceId,
      member.clientId,
      member.host,
      partitionsText(member.partitions),
    ]),
  );
  const offsetTable = offsets.length === 0 ? "" : table(
    ["TOPIC", "#PARTITION", "#OFFSET", "#END", "#LAG", "MEMBER"],
    offsets.map((one) => [one.topic, one.partition, one.currentOffset, one.logEndOffset, one.lag, one.memberId]),
  );
  return [head, memberTable, offsetTable].filter((part) => part !== "").join("\n");
}

/** `orders:0,1 payments:3`. */
function partitionsText(partitions: readonly PartitionKey[]): string {
  const byTopic = Map.groupBy(partitions, ({ topic }) => topic);
  const parts = [...byTopic].map(([topic, own]) => `${topic}:${own.map(({ partition }) => partition).join(",")}`);
  return parts.join(" ") || "-";
}

export async function deleteGroups(
  context: CommandContext,
  groupIds: string[],
  options: ConnectedOptions,
): Promise<void> {
  await withCluster(context, options, async (client) => {
    const outcomes: { groupId: string; deleted: boolean; error: string | null }[] = [];
    for (const groupId of groupIds) {
      const { results } = await client.coordinator(
        groupId,
        deleteGroupsRequest,
        deleteGroupsResponse,
        { groupsNames: [groupId] },
        ({ results }) => results[0].errorCode,
      );
      const { errorCode } = results[0];
      const error = errorCode === ErrorCode.NONE ? null : new Refused(`group ${groupId}`, errorCode).message;
      outcomes.push({ groupId, deleted: errorCode === ErrorCode.NONE, error });
    }
    const deleted = outcomes.filter((outcome) => outcome.deleted);
    say(context, options, outcomes, () => deleted.map(({ groupId }) => `group ${groupId} deleted\n`).join(""));
    failIfAny(outcomes.flatMap(({ error }) => error ?? []));
  });
}

export async function deleteOffsets(
  context: CommandContext,
  groupId: string,
  options: ConnectedOptions & { readonly topic: string[] },
): Promise<void> {
  await withCluster(context, options, async (client) => {
    const keys = await topicsAndPartitions(client, options.topic, "--topic");
    const reply = await client.coordinator(
      groupId,
      offsetDeleteRequest,
      offsetDeleteResponse,
      {
        groupId,
        topics: [...Map.groupBy(keys, ({ topic }) => topic)].map(([name, partitions]) => ({
          name,
          partitions: partitions.map(({ partition }) => ({ partitionIndex: partition })),
        })),
      },
      ({ errorCode }) => errorCode,
    );
    if (reply.errorCode !== ErrorCode.NONE) throw new Refused(`group ${groupId}`, reply.errorCode);
    const outcomes = reply.topics.flatMap(({ name, partitions }) =>
      partitions.map(({ partitionIndex, errorCode }) => ({
        topic: name,
        partition: partitionIndex,
        error: errorCode === ErrorCode.NONE ? null : errorName(errorCode),
        refusal: errorCode === ErrorCode.NONE ? null : new Refused(`${name}/${partitionIndex}`, errorCode).message,
      }))
    );
    const shown = outcomes.map(({ refusal: _, ...outcome }) => outcome);
    say(context, options, shown, () => {
      const done = outcomes.filter(({ error }) => error === null);
      return done.length === 0 ? "" : `offsets deleted: ${partitionsText(done)}\n`;
    });
    failIfAny(outcomes.flatMap(({ refusal }) => refusal ?? []));
  });
}

function failIfAny(errors: readonly string[]): void {
  if (errors.length > 0) throw new CommandFailure(errors.join("; "));
}

function keyOf({ topic, partition }: PartitionKey): string {
  return `${topic}/${partition}`;
}

function parseKey(key: string): PartitionKey {
  const slash = key.lastIndexOf("/");
  return { topic: key.slice(0, slash), partition: Number(key.slice(slash + 1)) };
}

function byKey(a: PartitionKey, b: PartitionKey): number {
  return a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1;
}
