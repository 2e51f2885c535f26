/** Consumer groups as this broker runs them: where their state is, and which settings they obey. */

import type { Clock, Random } from "../clock.ts";
import type { Disk } from "../disk/disk.ts";
import { GroupCoordinator } from "../groups/coordinator.ts";
import { errorText, type Logger } from "../observability/logger.ts";
import type { Tenure } from "./broker.ts";
import type { BrokerConfig } from "./broker_config.ts";
import type { Topics } from "./topics.ts";

export interface GroupCoordinationOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: BrokerConfig;
  readonly topics: Topics;
  readonly clusterFolder: string;
  /** Higher than that of whoever served the volume before. */
  readonly epoch: number;
  readonly tenure: Tenure;
}

/** Begins to read the groups' state; requests are refused until it is there. @throws {DiskError} */
export async function coordinateGroups(options: GroupCoordinationOptions): Promise<GroupCoordinator> {
  const { disk, clock, random, logger, config, topics, clusterFolder, epoch, tenure } = options;
  const folder = `${clusterFolder}/groups`;
  await disk.makeFolder(folder);
  await disk.syncFolder(clusterFolder);
  const groups = new GroupCoordinator({
    journal: { disk, epoch, folder: `${folder}/0`, mayAcknowledge: () => tenure.isValid() },
    clock,
    random,
    settings: () => ({
      minSessionTimeoutMs: config.get("group.min.session.timeout.ms"),
      maxSessionTimeoutMs: config.get("group.max.session.timeout.ms"),
      maxSize: config.get("group.max.size"),
      initialDelayMs: config.get("group.initial.rebalance.delay.ms"),
      offsetMetadataMaxBytes: config.get("offset.metadata.max.bytes"),
      offsetRetentionMs: config.get("offsets.retention.minutes") * 60_000,
      expiryIntervalMs: config.get("offsets.retention.check.interval.ms"),
    }),
    onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
  });
  topics.subscribe({ topicDeleted: ({ name }) => groups.topicDeleted(name) });
  return groups;
}
