/** sarama against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({ part: "sarama", describesTopicId: false, readsTopics: true });
