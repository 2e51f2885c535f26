/** Kafka's own Java client of the newest version against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({ part: "kafka-clients-4.3", looksUpMaxTimestamp: true, readsTopics: true });
