/**
 * Kafka's Java client of 2015 against the broker: it does not ask for ApiVersions, writes message sets of magic 0, which
 * have no timestamps, and finds offsets by the first version of ListOffsets.
 */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({
  part: "kafka-clients-0.9",
  codecs: ["none", "gzip", "snappy", "lz4"],
  limits: { headers: false, timestamps: false },
  admin: false,
  idempotent: false,
  looksUpTimestamps: false,
  // Before version 3 of Fetch, a reader that asked for less than a record got nothing.
  readsAboveFetchSize: false,
});
