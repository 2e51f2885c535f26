/**
 * Every topic setting: Kafka's name, type, default and range (Apache Kafka 4.3; `segment.bytes` may be as small as in
 * 3.x), and what it does here. The value of a topic that does not set one comes from the broker setting of the same
 * meaning: `brokerSynonyms` names those, the first that is set wins, its value times `factor`.
 */

import {
  atLeast,
  between,
  boolean,
  double,
  type Importance,
  int,
  list,
  long,
  matching,
  named,
  NO_LIMIT_LONG,
  oneOf,
  orExactly,
  type Setting,
  someOf,
  string,
  type ValueOfSetting,
} from "./config_definitions_setting.ts";

const noTieredStorage = "kaas has no tiered storage: all data of a topic is on the volume.";
const refused = { effect: "refused" } as const;
const accepted = { effect: "accepted" } as const;
const high = { importance: "high" as Importance };
const throttled = matching(/^(\*|\d+:\d+)$/, "* or a list of partition:broker pairs");

/** All topic settings by name. */
export const topicSettings = named({
  "cleanup.policy": list(
    ["delete"],
    someOf("compact", "delete"),
    "How old data leaves: delete removes segments by age and size, compact keeps the last value of each key, both together do " +
      "both. An empty list keeps everything.",
    high,
  ),
  "compression.gzip.level": int(
    -1,
    orExactly(-1, between(1, 9)),
    "Level used where kaas itself compresses with gzip; -1 leaves the choice to the library.",
  ),
  "compression.lz4.level": int(
    9,
    between(1, 17),
    "Level for lz4. The lz4 encoder used here knows one level.",
    accepted,
  ),
  "compression.type": string(
    "producer",
    oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "Codec of the stored batches. producer keeps each batch byte for byte as it was sent; any other value makes the broker " +
      "re-encode batches that came with another codec.",
    high,
  ),
  "compression.zstd.level": int(3, between(-131072, 22), "Level used where kaas itself compresses with zstd."),
  "delete.retention.ms": long(
    86400000,
    atLeast(0),
    "How long a delete mark (a record with a null value) stays in a compacted topic after the first compaction that met it.",
  ),
  "file.delete.delay.ms": long(
    60000,
    atLeast(0),
    "Kafka's pause between setting a file aside and removing it. kaas closes a file, then removes it at once.",
    accepted,
  ),
  "flush.messages": long(
    NO_LIMIT_LONG,
    atLeast(1),
    "Relaxes durability. Not set, each acknowledgement waits until its records are on the volume. Set to n greater than 1, " +
      "records are acknowledged from memory and the log is synced after every n records; 1 is the same as not set.",
  ),
  "flush.ms": long(
    NO_LIMIT_LONG,
    atLeast(0),
    "Relaxes durability. Not set, each acknowledgement waits until its records are on the volume. Set, records are " +
      "acknowledged from memory and the log is synced at the latest this many milliseconds after them; 0 is the same as not set.",
  ),
  "follower.replication.throttled.replicas": list(
    [],
    throttled,
    "Replicas whose catching up is throttled. Partitions here are not copied between brokers.",
    accepted,
  ),
  "index.interval.bytes": int(4096, atLeast(0), "Bytes of log between two entries of the offset and time indexes."),
  "leader.replication.throttled.replicas": list(
    [],
    throttled,
    "Replicas whose leader is throttled. Partitions here are not copied between brokers.",
    accepted,
  ),
  "local.retention.bytes": long(-2, atLeast(-2), noTieredStorage, refused),
  "local.retention.ms": long(-2, atLeast(-2), noTieredStorage, refused),
  "max.compaction.lag.ms": long(
    NO_LIMIT_LONG,
    atLeast(1),
    "A record of a compacted topic becomes due for compaction at the latest this long after it was written, however clean " +
      "the log is.",
  ),
  "max.message.bytes": int(
    1048588,
    atLeast(0),
    "Largest record batch that is accepted, in bytes as sent (compressed), batch header included.",
    high,
  ),
  "message.timestamp.after.max.ms": long(
    3600000,
    atLeast(0),
    "How far a record's timestamp may lie in the future of the broker's clock when message.timestamp.type is CreateTime.",
  ),
  "message.timestamp.before.max.ms": long(
    NO_LIMIT_LONG,
    atLeast(0),
    "How far a record's timestamp may lie in the past of the broker's clock when message.timestamp.type is CreateTime.",
  ),
  "message.timestamp.type": string(
    "CreateTime",
    oneOf("CreateTime", "LogAppendTime"),
    "CreateTime keeps the producer's timestamps, LogAppendTime replaces them by the broker's time of the append.",
  ),
  "min.cleanable.dirty.ratio": double(
    0.5,
    between(0, 1),
    "A compacted log is compacted once this share of it has not been compacted yet.",
  ),
  "min.compaction.lag.ms": long(0, atLeast(0), "A record is left alone by compaction for at least this long."),
  "min.insync.replicas": int(
    1,
    atLeast(1),
    "Kept and shown. Every partition has one copy on the shared volume, and acks=all always means that it is synced there.",
    accepted,
  ),
  "preallocate": boolean(
    false,
    "Whether Kafka reserves a segment's space at once. Files grow as they are written here.",
    accepted,
  ),
  "remote.log.copy.disable": boolean(false, noTieredStorage, refused),
  "remote.log.delete.on.disable": boolean(false, noTieredStorage, refused),
  "remote.storage.enable": boolean(false, noTieredStorage, refused),
  "retention.bytes": long(
    -1,
    atLeast(-1),
    "Oldest segments of a partition are deleted while what remains is at least this many bytes; -1 sets no limit.",
    high,
  ),
  "retention.ms": long(
    604800000,
    atLeast(-1),
    "A segment is deleted once its newest record is older than this; -1 keeps records for ever.",
    high,
  ),
  "segment.bytes": int(1073741824, atLeast(14), "Size at which a new segment is begun."),
  "segment.index.bytes": int(10485760, atLeast(4), "Size of a segment's index at which a new segment is begun."),
  "segment.jitter.ms": long(
    0,
    atLeast(0),
    "Up to this much, by chance, is taken off segment.ms, so that logs do not all roll at once.",
  ),
  "segment.ms": long(604800000, atLeast(1), "Age of a segment's first record at which a new segment is begun."),
  "unclean.leader.election.enable": boolean(
    false,
    "Kept and shown. Every leader reads the one copy on the volume, so there is no election that loses records.",
    accepted,
  ),
});

/** Name of a topic setting. */
export type TopicSettingName = keyof typeof topicSettings;
/** Parsed values of all topic settings. */
export type TopicSettingValues = { readonly [K in TopicSettingName]: ValueOfSetting<(typeof topicSettings)[K]> };

/** One broker setting that a topic setting falls back to: its value times `factor` is the topic's. */
export interface BrokerSynonym {
  readonly name: string;
  readonly factor: number;
}

const HOUR_MS = 3600000;
const MINUTE_MS = 60000;
const same = (name: string): readonly BrokerSynonym[] => [{ name, factor: 1 }];

/** Broker settings each topic setting falls back to, first choice first. Settings that are not here have none. */
export const brokerSynonyms: { readonly [K in TopicSettingName]?: readonly BrokerSynonym[] } = {
  "cleanup.policy": same("log.cleanup.policy"),
  "compression.gzip.level": same("compression.gzip.level"),
  "compression.lz4.level": same("compression.lz4.level"),
  "compression.type": same("compression.type"),
  "compression.zstd.level": same("compression.zstd.level"),
  "delete.retention.ms": same("log.cleaner.delete.retention.ms"),
  "file.delete.delay.ms": same("log.segment.delete.delay.ms"),
  "flush.messages": same("log.flush.interval.messages"),
  "flush.ms": [...same("log.flush.interval.ms"), ...same("log.flush.scheduler.interval.ms")],
  "index.interval.bytes": same("log.index.interval.bytes"),
  "local.retention.bytes": same("log.local.retention.bytes"),
  "local.retention.ms": same("log.local.retention.ms"),
  "max.compaction.lag.ms": same("log.cleaner.max.compaction.lag.ms"),
  "max.message.bytes": same("message.max.bytes"),
  "message.timestamp.after.max.ms": same("log.message.timestamp.after.max.ms"),
  "message.timestamp.before.max.ms": same("log.message.timestamp.before.max.ms"),
  "message.timestamp.type": same("log.message.timestamp.type"),
  "min.cleanable.dirty.ratio": same("log.cleaner.min.cleanable.ratio"),
  "min.compaction.lag.ms": same("log.cleaner.min.compaction.lag.ms"),
  "min.insync.replicas": same("min.insync.replicas"),
  "preallocate": same("log.preallocate"),
  "retention.bytes": same("log.retention.bytes"),
  "retention.ms": [
    ...same("log.retention.ms"),
    { name: "log.retention.minutes", factor: MINUTE_MS },
    { name: "log.retention.hours", factor: HOUR_MS },
  ],
  "segment.bytes": same("log.segment.bytes"),
  "segment.index.bytes": same("log.index.size.max.bytes"),
  "segment.jitter.ms": [...same("log.roll.jitter.ms"), { name: "log.roll.jitter.hours", factor: HOUR_MS }],
  "segment.ms": [...same("log.roll.ms"), { name: "log.roll.hours", factor: HOUR_MS }],
  "unclean.leader.election.enable": same("unclean.leader.election.enable"),
};

/** The topic setting of this name, or `undefined`. */
export function topicSetting(name: string): Setting | undefined {
  return Object.hasOwn(topicSettings, name) ? topicSettings[name as TopicSettingName] : undefined;
}

/**
 * Why these values cannot stand together, or `null`. To be asked with the values a topic would really have, after each
 * of them was accepted alone.
 */
export function conflictOf(values: TopicSettingValues): string | null {
  const least = values["min.compaction.lag.ms"];
  const most = values["max.compaction.lag.ms"];
  if (least > most) return `min.compaction.lag.ms (${least}) must not be above max.compaction.lag.ms (${most})`;
  return null;
}
