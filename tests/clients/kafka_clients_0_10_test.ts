/**
 * Kafka's Java client of 2017 against the broker: it writes message sets of magic 1 and reads them, so that batches are
 * converted both ways.
 */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({
  part: "kafka-clients-0.10",
  codecs: ["none", "gzip", "snappy", "lz4"],
  limits: { headers: false },
  admin: false,
  idempotent: false,
  readsTopics: true,
});
