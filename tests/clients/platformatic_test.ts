/** @platformatic/kafka against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({ part: "platformatic", looksUpMaxTimestamp: true });
