/** kafkajs against the broker. */
import { clientSuite } from "../support/client_suite.ts";

clientSuite({
  part: "kafkajs",
  // It keeps headers in an object, so by name, and writes none without a value; it tells no topic's id.
  limits: { headerOrder: false, nullHeaderValues: false },
  describesTopicId: false,
});
