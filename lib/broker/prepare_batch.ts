/**
 * From what a producer sent for one partition to the one batch that is appended: checked against the topic's rules,
 * converted from old formats, and recompressed where the topic asks for a codec of its own. On the usual path the batch
 * stays the producer's bytes.
 */
import { ErrorCode } from "../errors.ts";
import { Compression, compressionOf } from "../records/batch.ts";
import { upConvert } from "../records/legacy.ts";
import { recompressBatch } from "../records/rewrite.ts";
import { type ProducedOutcome, type ProduceRules, refused, validateProduced } from "../records/validate.ts";
import type { TopicSettingValues } from "./config_definitions_topic.ts";
import type { Topic } from "./topics.ts";

/** First Produce version with record batches. */
const RECORD_BATCHES_SINCE = 3;

const codecs: Readonly<Record<string, Compression>> = {
  uncompressed: Compression.none,
  gzip: Compression.gzip,
  snappy: Compression.snappy,
  lz4: Compression.lz4,
  zstd: Compression.zstd,
};

/** The codec that a topic stores everything with; null where it keeps the producer's. */
export function storedCodec(settings: TopicSettingValues): Compression | null {
  return codecs[settings["compression.type"]] ?? null;
}

/** The batch to append, or why there is none. */
export function prepareBatch(
  records: Uint8Array | null,
  topic: Topic,
  partition: number,
  request: { readonly apiVersion: number; readonly nowMs: number },
): ProducedOutcome {
  const rules = rulesOf(topic, partition, request);
  const outcome = request.apiVersion < RECORD_BATCHES_SINCE
    ? upConvert(records, rules)
    : validateProduced(records, rules);
  if (outcome.kind === "refused") return outcome;
  const codec = storedCodec(topic.settings);
  if (codec === null || codec === compressionOf(outcome.batch)) return outcome;
  const recompressed = recompressBatch(outcome.batch, 0, codec);
  if (!(recompressed instanceof Uint8Array)) return refused(recompressed.errorCode, recompressed.message);
  if (recompressed.length > rules.maxMessageBytes) {
    return refused(
      ErrorCode.MESSAGE_TOO_LARGE,
      `The batch for ${rules.partition} takes ${recompressed.length} bytes in the topic's compression.type, ` +
        `more than the ${rules.maxMessageBytes} that max.message.bytes allows`,
    );
  }
  return { kind: "valid", batch: recompressed };
}

function rulesOf(
  { name, settings }: Topic,
  partition: number,
  { apiVersion, nowMs }: { readonly apiVersion: number; readonly nowMs: number },
): ProduceRules {
  return {
    apiVersion,
    partition: `${name}-${partition}`,
    nowMs,
    maxMessageBytes: settings["max.message.bytes"],
    timestampType: settings["message.timestamp.type"] === "LogAppendTime" ? "logAppendTime" : "createTime",
    timestampBeforeMaxMs: settings["message.timestamp.before.max.ms"],
    timestampAfterMaxMs: settings["message.timestamp.after.max.ms"],
    requiresKeys: settings["cleanup.policy"].includes("compact"),
  };
}
