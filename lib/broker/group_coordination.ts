/** Consumer groups as this broker runs them: where their state is, and which settings they obey. */

import type { Clock, Random } from "../clock.ts";
import type { Disk } from "../disk/disk.ts";
import { type ConsumerSettings, GroupCoordinator } from "../groups/coordinator.ts";
import type { MigrationPolicy } from "../groups/group_migration.ts";
import type { TopicView } from "../groups/topic_view.ts";
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
    topics: topicViewOf(topics),
    settings: () => ({
      minSessionTimeoutMs: config.get("group.min.session.timeout.ms"),
      maxSessionTimeoutMs: config.get("group.max.session.timeout.ms"),
      maxSize: config.get("group.max.size"),
      initialDelayMs: config.get("group.initial.rebalance.delay.ms"),
      offsetMetadataMaxBytes: config.get("offset.metadata.max.bytes"),
      offsetRetentionMs: config.get("offsets.retention.minutes") * 60_000,
      expiryIntervalMs: config.get("offsets.retention.check.interval.ms"),
      consumer: consumerSettingsOf(config),
    }),
    onProblem: (problem, error) => logger.error(problem, { error: errorText(error) }),
  });
  topics.subscribe({ topicDeleted: ({ name }) => groups.topicDeleted(name) });
  return groups;
}

/** A value outside its bounds counts as the bound. */
function consumerSettingsOf(config: BrokerConfig): ConsumerSettings {
  const bounded = (value: number, min: number, max: number) => Math.max(min, Math.min(value, max));
  return {
    isServed: config.get("group.coordinator.rebalance.protocols").includes("consumer"),
    assignors: config.get("group.consumer.assignors"),
    assignmentIntervalMs: config.get("group.consumer.assignment.interval.ms"),
    sessionTimeoutMs: bounded(
      config.get("group.consumer.session.timeout.ms"),
      config.get("group.consumer.min.session.timeout.ms"),
      config.get("group.consumer.max.session.timeout.ms"),
    ),
    heartbeatIntervalMs: bounded(
      config.get("group.consumer.heartbeat.interval.ms"),
      config.get("group.consumer.min.heartbeat.interval.ms"),
      config.get("group.consumer.max.heartbeat.interval.ms"),
    ),
    maxSize: config.get("group.consumer.max.size"),
    migrationPolicy: config.get("group.consumer.migration.policy").toLowerCase() as MigrationPolicy,
  };
}

function topicViewOf(topics: Topics): TopicView {
  let version = 0;
  const changed = () => void version++;
  topics.subscribe({ partitionsAdded: changed, topicDeleted: changed });
  return {
    byName: (name) => topics.get(name),
    byId: (topicId) => topics.getById(topicId),
    *names() {
      for (const { name, internal } of topics.all()) if (!internal) yield name;
    },
    get version() {
      return version;
    },
  };
}
