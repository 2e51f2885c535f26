/**
 * What `kaas admin groups reset-offsets` does: works out where each partition's offset goes, shows it, and commits it with
 * `--execute`. Groups that have members are left alone: they would commit over it.
 */

import { ErrorCode } from "../../lib/errors.ts";
import { offsetCommitRequest, offsetCommitResponse } from "../../lib/protocol/messages/offset_commit.ts";
import { type ClusterClient, Refused } from "../client/cluster_client.ts";
import { committedOffsets, describeGroup } from "../client/groups.ts";
import { offsetsAt, type PartitionKey, Place } from "../client/partitions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { type ConnectedOptions, counted, say, table, withCluster } from "./connected.ts";
import { topicsAndPartitions } from "./topic_arguments.ts";

export interface ResetOptions extends ConnectedOptions {
  readonly topic?: string[] | undefined;
  readonly allTopics?: true | undefined;
  readonly toEarliest?: true | undefined;
  readonly toLatest?: true | undefined;
  readonly toCurrent?: true | undefined;
  readonly toOffset?: number | undefined;
  readonly shiftBy?: number | undefined;
  readonly toDatetime?: string | undefined;
  readonly byDuration?: string | undefined;
  readonly fromFile?: string | undefined;
  readonly execute?: true | undefined;
  readonly export?: true | undefined;
}

/** One partition's offset now (null: none) and then. */
interface Reset extends PartitionKey {
  readonly currentOffset: number | null;
  readonly newOffset: number;
}

/** Where offsets are to go. */
type Target =
  | { readonly kind: "earliest" | "latest" | "current" }
  | { readonly kind: "offset"; readonly offset: number }
  | { readonly kind: "shift"; readonly by: number }
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "file"; readonly offsets: readonly (PartitionKey & { readonly offset: number })[] };

export async function resetOffsets(context: CommandContext, groupId: string, options: ResetOptions): Promise<void> {
  const target = await targetOf(options, context);
  if (target.kind !== "file" && options.topic === undefined && options.allTopics !== true) {
    throw new UsageError(["which offsets? Name topics with --topic, or take --all-topics"]);
  }
  await withCluster(context, options, async (client) => {
    await refuseActive(client, groupId);
    const committed = await committedOf(client, groupId);
    const keys = target.kind === "file" ? target.offsets : await chosen(client, options, committed);
    const resets = await plan(client, keys, committed, target);
    if (options.execute === true) await commit(client, groupId, resets);
    if (options.export === true) {
      context.terminal.out(resets.map((one) => `${one.topic},${one.partition},${one.newOffset}\n`).join(""));
      return;
    }
    say(context, options, resets, (resets) =>
      table(
        ["TOPIC", "#PARTITION", "#OFFSET", "#NEW OFFSET"],
        resets.map((one) => [one.topic, one.partition, one.currentOffset, one.newOffset]),
      ) + (options.execute === true
        ? `\n${counted(resets.length, "offset")} reset\n`
        : "\nnothing was changed: add --execute to do it\n"));
  });
}

async function refuseActive(client: ClusterClient, groupId: string): Promise<void> {
  try {
    const { state, members } = await describeGroup(client, groupId);
    if (members.length === 0) return;
    throw new CommandFailure(
      `group ${groupId} is ${state} with ${counted(members.length, "member")}; stop them first, or they commit over it`,
    );
  } catch (error) {
    // A group that is not there yet may be given offsets to begin with.
    if (!(error instanceof Refused) || error.errorCode !== ErrorCode.GROUP_ID_NOT_FOUND) throw error;
  }
}

async function committedOf(client: ClusterClient, groupId: string): Promise<Map<string, number>> {
  const offsets = await committedOffsets(client, groupId).catch((error) => {
    if (error instanceof Refused && error.errorCode === ErrorCode.GROUP_ID_NOT_FOUND) return [];
    throw error;
  });
  return new Map(offsets.map(({ topic, partition, offset }) => [`${topic}/${partition}`, offset]));
}

async function chosen(
  client: ClusterClient,
  options: ResetOptions,
  committed: ReadonlyMap<string, number>,
): Promise<PartitionKey[]> {
  if (options.allTopics !== true) return await topicsAndPartitions(client, options.topic ?? [], "--topic");
  const keys = [...committed.keys()].map((key) => {
    const slash = key.lastIndexOf("/");
    return { topic: key.slice(0, slash), partition: Number(key.slice(slash + 1)) };
  });
  if (keys.length === 0) throw new CommandFailure("the group has no offsets; name topics with --topic");
  return keys;
}

async function plan(
  client: ClusterClient,
  keys: readonly PartitionKey[],
  committed: ReadonlyMap<string, number>,
  target: Target,
): Promise<Reset[]> {
  const at = async (timestamp: number) => {
    const asked = keys.map(({ topic, partition }) => ({ topic, partition, timestamp }));
    const found = await offsetsAt(client, asked);
    return asked.map((key) => found.get(key) ?? -1);
  };
  const [starts, ends] = [await at(Place.earliest), await at(Place.latest)];
  const times = target.kind === "time" ? await at(target.ms) : [];
  return keys.map(({ topic, partition }, index) => {
    const currentOffset = committed.get(`${topic}/${partition}`) ?? null;
    const wanted = wantedOffset(target, { index, currentOffset, start: starts[index], end: ends[index], times });
    return {
      topic,
      partition,
      currentOffset,
      newOffset: Math.min(Math.max(wanted, starts[index]), ends[index]),
    };
  });
}

function wantedOffset(
  target: Target,
  { index, currentOffset, start, end, times }: {
    readonly index: number;
    readonly currentOffset: number | null;
    readonly start: number;
    readonly end: number;
    readonly times: readonly number[];
  },
): number {
  switch (target.kind) {
    case "earliest":
      return start;
    case "latest":
      return end;
    case "current":
      return currentOffset ?? end;
    case "offset":
      return target.offset;
    case "shift":
      return (currentOffset ?? end) + target.by;
    case "time":
      return times[index] < 0 ? end : times[index];
    case "file":
      return target.offsets[index].offset;
  }
}

async function commit(client: ClusterClient, groupId: string, resets: readonly Reset[]): Promise<void> {
  const reply = await client.coordinator(
    groupId,
    offsetCommitRequest,
    offsetCommitResponse,
    {
      groupId,
      memberId: "",
      topics: [...Map.groupBy(resets, ({ topic }) => topic)].map(([name, partitions]) => ({
        name,
        topicId: "00000000-0000-0000-0000-000000000000",
        partitions: partitions.map(({ partition, newOffset }) => ({
          partitionIndex: partition,
          committedOffset: newOffset,
          committedMetadata: "",
        })),
      })),
    },
    ({ topics }) => topics[0]?.partitions[0]?.errorCode ?? ErrorCode.NONE,
  );
  for (const { name, partitions } of reply.topics) {
    for (const { partitionIndex, errorCode } of partitions) {
      if (errorCode !== ErrorCode.NONE) throw new Refused(`${name}/${partitionIndex} of group ${groupId}`, errorCode);
    }
  }
}

async function targetOf(options: ResetOptions, context: CommandContext): Promise<Target> {
  const given: [flag: string, target: () => Target | Promise<Target>][] = [];
  if (options.toEarliest) given.push(["--to-earliest", () => ({ kind: "earliest" })]);
  if (options.toLatest) given.push(["--to-latest", () => ({ kind: "latest" })]);
  if (options.toCurrent) given.push(["--to-current", () => ({ kind: "current" })]);
  const { toOffset, shiftBy, toDatetime, byDuration, fromFile } = options;
  if (toOffset !== undefined) given.push(["--to-offset", () => ({ kind: "offset", offset: toOffset })]);
  if (shiftBy !== undefined) given.push(["--shift-by", () => ({ kind: "shift", by: shiftBy })]);
  if (toDatetime !== undefined) given.push(["--to-datetime", () => ({ kind: "time", ms: parseTime(toDatetime) })]);
  if (byDuration !== undefined) {
    given.push(["--by-duration", () => ({ kind: "time", ms: Date.now() - parseDuration(byDuration) })]);
  }
  if (fromFile !== undefined) given.push(["--from-file", () => readOffsets(fromFile, context)]);
  if (given.length === 1) return await given[0][1]();
  const all =
    "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration, --from-file";
  throw new UsageError([
    given.length === 0
      ? `where to? Take one of ${all}`
      : `${given.map(([flag]) => flag).join(" and ")} contradict each other: take one`,
  ]);
}

/** A time as ISO 8601 has it; without a zone, UTC. @throws {UsageError} */
export function parseTime(text: string): number {
  const hasZone = /(Z|[+-]\d{2}:?\d{2})$/i.test(text);
  const ms = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(hasZone || !text.includes("T") ? text : `${text}Z`) : NaN;
  if (!Number.isNaN(ms)) return ms;
  throw new UsageError([`--to-datetime: ${JSON.stringify(text)} is not accepted, expected 2026-01-31T12:00:00Z`]);
}

/** A duration as ISO 8601 has it, up to days, in ms. @throws {UsageError} */
export function parseDuration(text: string): number {
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text);
  if (match === null || match.slice(1).every((part) => part === undefined)) {
    throw new UsageError([`--by-duration: ${JSON.stringify(text)} is not accepted, expected PT1H30M or P1D`]);
  }
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}

async function readOffsets(path: string, context: CommandContext): Promise<Target> {
  let text: string;
  try {
    text = await context.readTextFile(path);
  } catch (error) {
    throw new UsageError([`--from-file: cannot read ${path}: ${error instanceof Error ? error.message : error}`]);
  }
  const offsets = text.split("\n").map((line) => line.trim()).flatMap((line, index) => {
    if (line === "" || line.startsWith("#")) return [];
    const match = /^"?([^",\s]+)"?,(\d+),(\d+)$/.exec(line);
    if (match === null) {
      throw new UsageError([`--from-file: ${path}:${index + 1}: expected TOPIC,PARTITION,OFFSET, such as orders,0,42`]);
    }
    return [{ topic: match[1], partition: Number(match[2]), offset: Number(match[3]) }];
  });
  if (offsets.length === 0) throw new UsageError([`--from-file: ${path} holds no offsets`]);
  return { kind: "file", offsets };
}
