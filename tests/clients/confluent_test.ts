/** confluent-kafka for Python, which is librdkafka, against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({ part: "confluent", looksUpMaxTimestamp: true, readsTopics: true });
