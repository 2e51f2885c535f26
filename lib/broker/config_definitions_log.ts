/**
 * The broker settings about logs: defaults for topics that do not set their own (the topic setting of the same meaning
 * says what it does, see `brokerSynonyms`), and the background work on logs.
 */

import {
  atLeast,
  between,
  boolean,
  double,
  int,
  list,
  long,
  named,
  NO_LIMIT_LONG,
  oneOf,
  optionalInt,
  optionalLong,
  orExactly,
  someOf,
  string,
} from "./config_definitions_setting.ts";

const dynamic = { update: "cluster-wide" } as const;
const highDynamic = { importance: "high", update: "cluster-wide" } as const;
const high = { importance: "high" } as const;
const accepted = { effect: "accepted", update: "cluster-wide" } as const;
const refused = { effect: "refused", update: "cluster-wide" } as const;
const noTieredStorage = "kaas has no tiered storage: all data of a topic is on the volume.";

const forTopic = (name: string) => `Value of ${name} for topics that do not set it.`;

/** Broker settings about logs, by name. */
export const logBrokerSettings = named({
  "compression.gzip.level": int(-1, orExactly(-1, between(1, 9)), forTopic("compression.gzip.level"), dynamic),
  "compression.lz4.level": int(9, between(1, 17), forTopic("compression.lz4.level"), accepted),
  "compression.type": string(
    "producer",
    oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    forTopic("compression.type"),
    highDynamic,
  ),
  "compression.zstd.level": int(3, between(-131072, 22), forTopic("compression.zstd.level"), dynamic),
  "log.cleaner.backoff.ms": long(15000, atLeast(0), "Pause of compaction when no log needs it.", dynamic),
  "log.cleaner.dedupe.buffer.size": long(
    134217728,
    atLeast(1024),
    "Bytes of memory for the table of keys that one compaction pass works with; a log with more keys takes several passes.",
    dynamic,
  ),
  "log.cleaner.delete.retention.ms": long(86400000, atLeast(0), forTopic("delete.retention.ms"), dynamic),
  "log.cleaner.enable": boolean(true, "Whether topics whose cleanup.policy includes compact are compacted."),
  "log.cleaner.io.buffer.load.factor": double(0.9, between(0, 1), "How full the table of keys may become.", dynamic),
  "log.cleaner.io.buffer.size": int(524288, atLeast(0), "Bytes of one read or write of compaction.", dynamic),
  "log.cleaner.io.max.bytes.per.second": double(
    Number.MAX_VALUE,
    atLeast(1),
    "Most bytes that compaction reads and writes in a second.",
    dynamic,
  ),
  "log.cleaner.max.compaction.lag.ms": long(NO_LIMIT_LONG, atLeast(1), forTopic("max.compaction.lag.ms"), dynamic),
  "log.cleaner.min.cleanable.ratio": double(0.5, between(0, 1), forTopic("min.cleanable.dirty.ratio"), dynamic),
  "log.cleaner.min.compaction.lag.ms": long(0, atLeast(0), forTopic("min.compaction.lag.ms"), dynamic),
  "log.cleanup.policy": list(["delete"], someOf("compact", "delete"), forTopic("cleanup.policy"), dynamic),
  "log.flush.interval.messages": long(NO_LIMIT_LONG, atLeast(1), forTopic("flush.messages"), highDynamic),
  "log.flush.interval.ms": optionalLong(
    atLeast(0),
    "Value of flush.ms for topics that do not set it. Not set, log.flush.scheduler.interval.ms is used.",
    highDynamic,
  ),
  "log.flush.scheduler.interval.ms": long(
    NO_LIMIT_LONG,
    atLeast(0),
    "Used as log.flush.interval.ms where that is not set.",
    high,
  ),
  "log.index.interval.bytes": int(4096, atLeast(0), forTopic("index.interval.bytes"), dynamic),
  "log.index.size.max.bytes": int(10485760, atLeast(4), forTopic("segment.index.bytes"), dynamic),
  "log.local.retention.bytes": long(-2, atLeast(-2), noTieredStorage, refused),
  "log.local.retention.ms": long(-2, atLeast(-2), noTieredStorage, refused),
  "log.message.timestamp.after.max.ms": long(3600000, atLeast(0), forTopic("message.timestamp.after.max.ms"), dynamic),
  "log.message.timestamp.before.max.ms": long(
    NO_LIMIT_LONG,
    atLeast(0),
    forTopic("message.timestamp.before.max.ms"),
    dynamic,
  ),
  "log.message.timestamp.type": string(
    "CreateTime",
    oneOf("CreateTime", "LogAppendTime"),
    forTopic("message.timestamp.type"),
    dynamic,
  ),
  "log.preallocate": boolean(false, forTopic("preallocate"), accepted),
  "log.retention.bytes": long(-1, atLeast(-1), forTopic("retention.bytes"), highDynamic),
  "log.retention.check.interval.ms": long(300000, atLeast(1), "Time between two looks for data that is due to leave."),
  "log.retention.hours": int(
    168,
    atLeast(-1),
    "Value of retention.ms, in hours, for topics that do not set it, where neither log.retention.ms nor " +
      "log.retention.minutes is set.",
    high,
  ),
  "log.retention.minutes": optionalInt(
    atLeast(-1),
    "Value of retention.ms, in minutes, for topics that do not set it, where log.retention.ms is not set.",
    high,
  ),
  "log.retention.ms": optionalLong(atLeast(-1), forTopic("retention.ms"), highDynamic),
  "log.roll.hours": int(
    168,
    atLeast(1),
    "Value of segment.ms, in hours, for topics that do not set it, where log.roll.ms is not set.",
    high,
  ),
  "log.roll.jitter.hours": int(
    0,
    atLeast(0),
    "Value of segment.jitter.ms, in hours, for topics that do not set it, where log.roll.jitter.ms is not set.",
    high,
  ),
  "log.roll.jitter.ms": optionalLong(atLeast(0), forTopic("segment.jitter.ms"), highDynamic),
  "log.roll.ms": optionalLong(atLeast(1), forTopic("segment.ms"), highDynamic),
  "log.segment.bytes": int(1073741824, atLeast(14), forTopic("segment.bytes"), highDynamic),
  "log.segment.delete.delay.ms": long(60000, atLeast(0), forTopic("file.delete.delay.ms"), {
    ...accepted,
    importance: "high",
  }),
  "message.max.bytes": int(1048588, atLeast(0), forTopic("max.message.bytes"), highDynamic),
  "min.insync.replicas": int(1, atLeast(1), forTopic("min.insync.replicas"), { ...accepted, importance: "high" }),
  "unclean.leader.election.enable": boolean(false, forTopic("unclean.leader.election.enable"), {
    ...accepted,
    importance: "high",
  }),
});
