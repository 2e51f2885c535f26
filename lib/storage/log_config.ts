/**
 * The settings that a partition's log obeys. The broker resolves topic overrides and broker defaults into one
 * {@link LogConfig} and hands a new one in when a setting changes; a log never looks settings up itself.
 */

/** Settings of one log, resolved. Sizes in bytes, times in ms. */
export interface LogConfig {
  /** A new segment begins before a batch would make the active one larger than this (`segment.bytes`). */
  readonly segmentBytes: number;
  /** A new segment begins when the active one spans more time than this (`segment.ms`). */
  readonly segmentMs: number;
  /** At most this much is randomly taken off `segmentMs`, so that logs do not roll together (`segment.jitter.ms`). */
  readonly segmentJitterMs: number;
  /** A new segment begins when an index file would grow past this (`segment.index.bytes`). */
  readonly segmentIndexBytes: number;
  /** Bytes of log between two index entries (`index.interval.bytes`). */
  readonly indexIntervalBytes: number;
  /** Largest batch that is accepted, header included (`max.message.bytes`); checked where batches come in. */
  readonly maxMessageBytes: number;
  /** Whose clock stamps the records (`message.timestamp.type`). */
  readonly messageTimestampType: "CreateTime" | "LogAppendTime";
  /** `flush.messages`; null when not set: then each acknowledgement waits for the sync. */
  readonly flushMessages: number | null;
  /** `flush.ms`; null when not set. */
  readonly flushMs: number | null;
  /** A producer silent for this long is forgotten (`producer.id.expiration.ms`). */
  readonly producerIdExpirationMs: number;
  /** Whether segments leave by age and size (`cleanup.policy` has delete). */
  readonly deletes: boolean;
  /** Whether the log is compacted (`cleanup.policy` has compact). */
  readonly compacts: boolean;
  /** Age of its newest record at which a segment leaves; −1: never (`retention.ms`). */
  readonly retentionMs: number;
  /** Oldest segments leave while what remains is at least this large; −1: never (`retention.bytes`). */
  readonly retentionBytes: number;
  /** How long delete marks stay after the compaction that first met them (`delete.retention.ms`). */
  readonly deleteRetentionMs: number;
  /** A record is left alone by compaction for at least this long (`min.compaction.lag.ms`). */
  readonly minCompactionLagMs: number;
  /** A record is due for compaction at the latest after this long (`max.compaction.lag.ms`). */
  readonly maxCompactionLagMs: number;
  /** Share of the log that has to be uncompacted before it is due (`min.cleanable.dirty.ratio`). */
  readonly minCleanableDirtyRatio: number;
  /** Producer snapshot and recovery checkpoint are renewed after this many synced bytes: bounds a takeover's scan. */
  readonly checkpointIntervalBytes: number;
}

/** Kafka's defaults, and kaas's own where Kafka has none. */
export const defaultLogConfig: LogConfig = {
  segmentBytes: 1073741824,
  segmentMs: 604800000,
  segmentJitterMs: 0,
  segmentIndexBytes: 10485760,
  indexIntervalBytes: 4096,
  maxMessageBytes: 1048588,
  messageTimestampType: "CreateTime",
  flushMessages: null,
  flushMs: null,
  producerIdExpirationMs: 86400000,
  deletes: true,
  compacts: false,
  retentionMs: 604800000,
  retentionBytes: -1,
  deleteRetentionMs: 86400000,
  minCompactionLagMs: 0,
  maxCompactionLagMs: Number.MAX_SAFE_INTEGER,
  minCleanableDirtyRatio: 0.5,
  checkpointIntervalBytes: 64 * 1024 * 1024,
};

/** When a log syncs although nobody waits for it; each limit may be Infinity, not both. */
export interface RelaxedFlush {
  readonly messages: number;
  readonly ms: number;
}

/**
 * How far `flush.messages` and `flush.ms` relax durability; null when every acknowledgement has to wait for its sync:
 * neither is set, or one of them asks for it (1 message, 0 ms).
 */
export function relaxedFlush(config: LogConfig): RelaxedFlush | null {
  const messages = limitOf(config.flushMessages);
  const ms = limitOf(config.flushMs);
  if (messages === Infinity && ms === Infinity) return null;
  if (messages <= 1 || ms <= 0) return null;
  return { messages, ms };
}

/** Kafka's default for both settings is the largest int64, which means not set. */
function limitOf(value: number | null): number {
  return value === null || value >= Number.MAX_SAFE_INTEGER ? Infinity : value;
}
