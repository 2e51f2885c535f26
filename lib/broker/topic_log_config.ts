/** From a topic's settings to what its logs obey. */

import { defaultLogConfig, type LogConfig } from "../storage/log_config.ts";
import type { BrokerConfig } from "./broker_config.ts";
import type { TopicSettingValues } from "./config_definitions_topic.ts";

/** The log settings of a topic with these effective values on a broker with this configuration. */
export function logConfigOf(settings: TopicSettingValues, broker: BrokerConfig): LogConfig {
  return {
    segmentBytes: settings["segment.bytes"],
    segmentMs: settings["segment.ms"],
    segmentJitterMs: settings["segment.jitter.ms"],
    segmentIndexBytes: settings["segment.index.bytes"],
    indexIntervalBytes: settings["index.interval.bytes"],
    maxMessageBytes: settings["max.message.bytes"],
    messageTimestampType: settings["message.timestamp.type"] === "LogAppendTime" ? "LogAppendTime" : "CreateTime",
    flushMessages: settings["flush.messages"],
    flushMs: settings["flush.ms"],
    producerIdExpirationMs: broker.get("producer.id.expiration.ms"),
    deletes: settings["cleanup.policy"].includes("delete"),
    compacts: settings["cleanup.policy"].includes("compact"),
    retentionMs: settings["retention.ms"],
    retentionBytes: settings["retention.bytes"],
    deleteRetentionMs: settings["delete.retention.ms"],
    minCompactionLagMs: settings["min.compaction.lag.ms"],
    maxCompactionLagMs: settings["max.compaction.lag.ms"],
    minCleanableDirtyRatio: settings["min.cleanable.dirty.ratio"],
    checkpointIntervalBytes: defaultLogConfig.checkpointIntervalBytes,
  };
}
