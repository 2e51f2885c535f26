/**
 * What `kaas admin transactions find-hanging` does: looks in the logs for transactions that go on, and asks the
 * coordinators whether they know of them. One that no coordinator knows will never end: it holds back every consumer at
 * read_committed.
 */

import { partitionsOf } from "../client/partitions.ts";
import { activeProducers, describeTransaction, listTransactions } from "../client/transactions.ts";
import type { CommandContext } from "../command_context.ts";
import { CommandFailure } from "../exit.ts";
import { type ConnectedOptions, counted, say, table, withCluster } from "./connected.ts";
import { topicsAndPartitions } from "./topic_arguments.ts";

/** Longest transaction that brokers allow by default (transaction.max.timeout.ms). */
const DEFAULT_AGE_S = 900;

export async function findHanging(
  context: CommandContext,
  options: ConnectedOptions & { readonly topic?: string[] | undefined; readonly olderThan?: number | undefined },
): Promise<void> {
  await withCluster(context, options, async (client) => {
    const keys = options.topic === undefined
      ? partitionsOf((await client.metadata(null)).topics)
      : await topicsAndPartitions(client, options.topic, "--topic");
    const before = Date.now() - (options.olderThan ?? DEFAULT_AGE_S) * 1000;
    const open = (await activeProducers(client, keys))
      .filter(({ transactionStart, lastTimestamp }) => transactionStart >= 0 && lastTimestamp <= before);
    const hanging = [];
    for (const producer of open) {
      const { producerId, topic, partition } = producer;
      const ids = await listTransactions(client, { producerIds: [producerId] });
      const known = await Promise.all(ids.map(({ transactionalId }) => describeTransaction(client, transactionalId)));
      const isKnown = known.some(({ producerEpoch, partitions, state }) =>
        state !== "CompleteCommit" && state !== "CompleteAbort" && state !== "Empty" &&
        producerEpoch >= producer.producerEpoch &&
        partitions.some((one) => one.topic === topic && one.partition === partition)
      );
      if (!isKnown) hanging.push(producer);
    }
    const found = hanging.map(({ topic, partition, transactionStart, producerId, producerEpoch, lastTimestamp }) => ({
      ...{ topic, partition, startOffset: transactionStart, producerId, producerEpoch },
      lastRecordAt: new Date(lastTimestamp).toISOString(),
    }));
    say(context, options, found, (found) =>
      found.length === 0 ? "no transaction hangs\n" : table(
        ["TOPIC", "#PARTITION", "#START OFFSET", "#PRODUCER", "#EPOCH", "LAST RECORD"],
        found.map((one) => [
          ...[one.topic, one.partition, one.startOffset, one.producerId, one.producerEpoch],
          one.lastRecordAt,
        ]),
      ));
    if (found.length > 0) {
      throw new CommandFailure(
        `${counted(found.length, "transaction")} hang${found.length === 1 ? "s" : ""}: ` +
          "'kaas admin transactions abort --topic TOPIC:P --start-offset N' ends one",
      );
    }
  });
}
