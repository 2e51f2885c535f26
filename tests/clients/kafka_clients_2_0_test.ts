/** Kafka's Java client of 2018 against the broker: older versions of every request, and sessions of fetches. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({
  part: "kafka-clients-2.0",
  codecs: ["none", "gzip", "snappy", "lz4"],
  describesTopicId: false,
  readsTopics: true,
});
