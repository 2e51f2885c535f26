/** What `kaas admin delete-records` does. */

import { ErrorCode } from "../../lib/errors.ts";
import { deleteRecordsRequest, deleteRecordsResponse } from "../../lib/protocol/messages/delete_records.ts";
import { Refused } from "../client/cluster_client.ts";
import type { PartitionKey } from "../client/partitions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { type ConnectedOptions, counted, say, table, withCluster } from "./connected.ts";
import { topicsAndPartitions } from "./topic_arguments.ts";

type Cut = PartitionKey & { readonly offset: number };

export interface DeleteRecordsOptions extends ConnectedOptions {
  readonly topic?: string | undefined;
  readonly beforeOffset?: string | undefined;
  readonly fromFile?: string | undefined;
  readonly yes?: true | undefined;
}

/** The offset that stands for the end of the log. */
const END = -1;

export async function deleteRecords(context: CommandContext, options: DeleteRecordsOptions): Promise<void> {
  const { topic, beforeOffset, fromFile } = options;
  const isByFile = fromFile !== undefined && topic === undefined && beforeOffset === undefined;
  if (!isByFile && (fromFile !== undefined || topic === undefined || beforeOffset === undefined)) {
    throw new UsageError(["expected --topic TOPIC and --before-offset N, or --from-file JSON"]);
  }
  const fileCuts = isByFile ? await readCuts(fromFile, context) : [];
  const offset = isByFile ? END : parseOffset(beforeOffset!);
  await withCluster(context, options, async (client) => {
    const cuts = isByFile
      ? fileCuts
      : (await topicsAndPartitions(client, [topic!], "--topic")).map((key) => ({ ...key, offset }));
    if (options.yes !== true && !context.confirm(`Delete records of ${counted(cuts.length, "partition")} for good?`)) {
      throw new CommandFailure("nothing was deleted: say yes when asked, or --yes");
    }
    const starts = new Map<Cut, number>();
    const codes = await client.leaders(cuts, async (nodeId, led) => {
      const reply = await client.node(nodeId, deleteRecordsRequest, deleteRecordsResponse, {
        topics: [...Map.groupBy(led, (cut) => cut.topic)].map(([name, partitions]) => ({
          name,
          partitions: partitions.map(({ partition, offset }) => ({ partitionIndex: partition, offset })),
        })),
        timeoutMs: client.timeoutMs,
      });
      const answered = new Map<Cut, number>();
      for (const cut of led) {
        const found = reply.topics.find(({ name }) => name === cut.topic)?.partitions
          .find(({ partitionIndex }) => partitionIndex === cut.partition);
        answered.set(cut, found?.errorCode ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
        if (found?.errorCode === ErrorCode.NONE) starts.set(cut, found.lowWatermark);
      }
      return answered;
    });
    const done = [...starts].map(([{ topic, partition }, logStartOffset]) => ({ topic, partition, logStartOffset }));
    say(context, options, done, (done) =>
      done.length === 0 ? "" : table(
        ["TOPIC", "#PARTITION", "#LOG START"],
        done.map((one) => [one.topic, one.partition, one.logStartOffset]),
      ));
    const failed = [...codes].filter(([, code]) => code !== ErrorCode.NONE)
      .map(([{ topic, partition }, code]) => new Refused(`${topic}/${partition}`, code).message);
    if (failed.length > 0) throw new CommandFailure(failed.join("; "));
  });
}

function parseOffset(text: string): number {
  if (text === "end") return END;
  const offset = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(offset)) return offset;
  throw new UsageError([`--before-offset: ${JSON.stringify(text)} is not accepted, expected an offset or end`]);
}

async function readCuts(path: string, context: CommandContext): Promise<Cut[]> {
  const wrong = (what: string) => new UsageError([`--from-file: ${path}: ${what}`]);
  let json: unknown;
  try {
    json = JSON.parse(await context.readTextFile(path));
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
  const partitions = (json as { partitions?: unknown } | null)?.partitions;
  const form = `expected {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}`;
  if (!Array.isArray(partitions) || partitions.length === 0) throw wrong(form);
  return partitions.map(({ topic, partition, offset }: Record<string, unknown>) => {
    const isRight = typeof topic === "string" && Number.isSafeInteger(partition) && Number.isSafeInteger(offset) &&
      (partition as number) >= 0 && (offset as number) >= END;
    if (!isRight) throw wrong(form);
    return { topic: topic as string, partition: partition as number, offset: offset as number };
  });
}
