/** Transactions as this broker coordinates them: where their state is, and how their ends reach partitions and groups. */

import type { Clock } from "../clock.ts";
import { type Disk, DiskError } from "../disk/disk.ts";
import { ErrorCode, errorName } from "../errors.ts";
import type { GroupCoordinator } from "../groups/coordinator.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import { TransactionCoordinator } from "../transactions/transaction_coordinator.ts";
import type { Tenure } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import type { Partitions } from "./partitions.ts";
import type { ProducerIds } from "./producer_ids.ts";
import type { Topics } from "./topics.ts";
import { writeMarker } from "./transaction_markers.ts";

export interface TransactionCoordinationOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly topics: Topics;
  readonly partitions: Partitions;
  readonly groups: GroupCoordinator;
  readonly producerIds: ProducerIds;
  readonly clusterFolder: string;
  /** Higher than that of whoever served the volume before. */
  readonly epoch: number;
  readonly tenure: Tenure;
}

/** Begins to read the transactions' state; requests are refused until it is there. @throws {DiskError} */
export async function coordinateTransactions(options: TransactionCoordinationOptions): Promise<TransactionCoordinator> {
  const { disk, clock, logger, config, topics, partitions, groups, producerIds, clusterFolder, epoch, tenure } =
    options;
  const folder = `${clusterFolder}/transactions`;
  await disk.makeFolder(folder);
  await disk.syncFolder(clusterFolder);
  const transactions = new TransactionCoordinator({
    journal: { disk, epoch, folder: `${folder}/0`, mayAcknowledge: () => tenure.isValid() },
    clock,
    surroundings: {
      newProducerId: () => newProducerId(producerIds, logger),
      async endPartition(place, marker, isRepeated) {
        const errorCode = await writeMarker({ partitions, clock, tenure }, place, marker, isRepeated);
        switch (errorCode) {
          // The topic was deleted; or a later epoch of the producer has been here, which ends what an earlier one began.
          case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
          case ErrorCode.INVALID_PRODUCER_EPOCH:
            return ErrorCode.NONE;
          default:
            return errorCode;
        }
      },
      endGroup: (groupId, producerId, commits) => groups.endTransaction(groupId, producerId, commits),
    },
    settings: () => ({
      maxTimeoutMs: config.get("transaction.max.timeout.ms"),
      timeoutIntervalMs: config.get("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
      idExpirationMs: config.get("transactional.id.expiration.ms"),
      idExpiryIntervalMs: config.get("transaction.remove.expired.transaction.cleanup.interval.ms"),
    }),
    onProblem: (problem, error) =>
      logger.error(problem, { error: typeof error === "number" ? errorName(error) : errorText(error) }),
  });
  topics.subscribe({ topicDeleted: ({ name }) => transactions.topicDeleted(name) });
  return transactions;
}

/** A new producer id, or null where the volume gives none; the log then says why. */
export async function newProducerId(producerIds: ProducerIds, logger: Logger): Promise<number | null> {
  try {
    return await producerIds.next();
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    logger.error("cannot reserve producer ids", { error: String(error) });
    return null;
  }
}
