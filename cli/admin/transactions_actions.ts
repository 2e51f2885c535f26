/** What `kaas admin transactions list|describe|abort` do. */

import { ErrorCode } from "../../lib/errors.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../lib/protocol/messages/init_producer_id.ts";
import { writeTxnMarkersRequest, writeTxnMarkersResponse } from "../../lib/protocol/messages/write_txn_markers.ts";
import { type ClusterClient, Refused } from "../client/cluster_client.ts";
import {
  activeProducers,
  type DescribedTransaction,
  describeTransaction,
  listTransactions,
} from "../client/transactions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure, UsageError } from "../exit.ts";
import { type ConnectedOptions, say, table, withCluster } from "./connected.ts";
import { topicsAndPartitions } from "./topic_arguments.ts";

export async function list(
  context: CommandContext,
  options: ConnectedOptions & {
    readonly state?: string[] | undefined;
    readonly producerId?: string[] | undefined;
    readonly longerThan?: number | undefined;
    readonly idPattern?: string | undefined;
  },
): Promise<void> {
  const producerIds = options.producerId?.map((text) => {
    if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
    throw new UsageError([`--producer-id: ${JSON.stringify(text)} is not accepted, expected a number`]);
  });
  await withCluster(context, options, async (client) => {
    const listed = await listTransactions(client, {
      states: options.state,
      producerIds,
      longerThanMs: options.longerThan === undefined ? undefined : options.longerThan * 1000,
      idPattern: options.idPattern,
    });
    say(context, options, listed, (listed) =>
      table(
        ["TRANSACTIONAL ID", "STATE", "#PRODUCER", "#COORDINATOR"],
        listed.map((one) => [one.transactionalId, one.state, one.producerId, one.coordinator]),
      ));
  });
}

export async function describe(context: CommandContext, ids: string[], options: ConnectedOptions): Promise<void> {
  await withCluster(context, options, async (client) => {
    const described: DescribedTransaction[] = [];
    for (const id of ids) described.push(await describeTransaction(client, id));
    say(context, options, described, (all) => all.map(describedText).join("\n"));
  });
}

function describedText(one: DescribedTransaction): string {
  const since = one.startedAtMs === null ? "" : ` since ${new Date(one.startedAtMs).toISOString()}`;
  const head =
    `${one.transactionalId}: ${one.state}${since}, producer ${one.producerId} in epoch ${one.producerEpoch}, ` +
    `timeout ${one.timeoutMs / 1000} s\n`;
  if (one.partitions.length === 0) return head;
  return `${head}\n${table(["TOPIC", "#PARTITION"], one.partitions.map(({ topic, partition }) => [topic, partition]))}`;
}

export async function abort(
  context: CommandContext,
  id: string | undefined,
  options: ConnectedOptions & {
    readonly topic?: string | undefined;
    readonly startOffset?: number | undefined;
    readonly yes?: true | undefined;
  },
): Promise<void> {
  const { topic, startOffset } = options;
  if (id !== undefined && (topic !== undefined || startOffset !== undefined)) {
    throw new UsageError(["expected a transactional id, or --topic and --start-offset, not both"]);
  }
  if (id === undefined && (topic === undefined || startOffset === undefined)) {
    throw new UsageError(["expected a transactional id, or --topic TOPIC:P and --start-offset N"]);
  }
  const what = id ?? `the transaction at offset ${startOffset} of ${topic}`;
  if (options.yes !== true && !context.confirm(`Abort ${what}?`)) {
    throw new CommandFailure("nothing was aborted: say yes when asked, or --yes");
  }
  await withCluster(context, options, async (client) => {
    if (id !== undefined) await fence(client, id);
    else await abortHanging(client, topic!, startOffset!);
    say(context, options, { aborted: what }, () => `${what} aborted\n`);
  });
}

/** A new session of the id ends the one before, and aborts what that has begun. */
async function fence(client: ClusterClient, id: string): Promise<void> {
  const { timeoutMs } = await describeTransaction(client, id);
  const { errorCode } = await client.coordinator(
    id,
    initProducerIdRequest,
    initProducerIdResponse,
    { transactionalId: id, transactionTimeoutMs: timeoutMs },
    ({ errorCode }) => errorCode,
    "transactional id",
  );
  if (errorCode !== ErrorCode.NONE) throw new Refused(`transactional id ${id}`, errorCode);
}

async function abortHanging(client: ClusterClient, topicText: string, startOffset: number): Promise<void> {
  const keys = await topicsAndPartitions(client, [topicText], "--topic");
  if (keys.length !== 1) throw new UsageError([`--topic: ${topicText} is more than one partition, expected TOPIC:P`]);
  const producers = await activeProducers(client, keys);
  const [producer] = producers.filter(({ transactionStart }) => transactionStart === startOffset);
  if (producer === undefined) {
    throw new CommandFailure(`no transaction that goes on begins at ${startOffset} of ${topicText}`);
  }
  const { producerId, producerEpoch, coordinatorEpoch } = producer;
  const codes = await client.leaders(keys, async (nodeId, led) => {
    const reply = await client.node(nodeId, writeTxnMarkersRequest, writeTxnMarkersResponse, {
      markers: [{
        producerId,
        producerEpoch,
        transactionResult: false,
        topics: led.map(({ topic, partition }) => ({ name: topic, partitionIndexes: [partition] })),
        // A log that has seen no coordinator yet takes any.
        coordinatorEpoch: Math.max(0, coordinatorEpoch),
      }],
    });
    const code = reply.markers[0]?.topics[0]?.partitions[0]?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR;
    return new Map(led.map((key) => [key, code]));
  });
  for (const [{ topic, partition }, code] of codes) {
    if (code !== ErrorCode.NONE) throw new Refused(`${topic}/${partition}`, code);
  }
}
