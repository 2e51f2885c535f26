/** franz-go against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({ part: "franz-go", looksUpMaxTimestamp: true, readsTopics: true });
