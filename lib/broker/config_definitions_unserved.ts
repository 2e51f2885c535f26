/**
 * Settings of features that this version does not have yet. They are checked, kept and shown to clients like any other, so
 * that files and tools of a Kafka broker can be used, but nothing obeys them; whoever sets one is told so.
 */

/** Names of broker and topic settings, by the feature that is missing. */
const unserved: Readonly<Record<string, readonly string[]>> = {
  "compression levels": [
    "compression.gzip.level",
    "compression.zstd.level",
  ],
  "a time limit of offset commits": ["offsets.commit.timeout.ms"],
  "several brokers": [
    "broker.heartbeat.interval.ms",
    "controlled.shutdown.enable",
    "request.timeout.ms",
  ],
};

const featureOf = new Map(Object.entries(unserved).flatMap(([feature, names]) => names.map((name) => [name, feature])));

/** What this version lacks to obey a setting; null where it obeys it, or where no version would. */
export function unservedFeatureOf(name: string): string | null {
  return featureOf.get(name) ?? null;
}

/** All such settings by feature. */
export const unservedSettings: Readonly<Record<string, readonly string[]>> = unserved;
