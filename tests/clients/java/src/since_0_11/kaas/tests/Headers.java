package kaas.tests;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Records with headers, and the names of assignors. */
final class Headers {
  private Headers() {}

  static ProducerRecord<byte[], byte[]> record(String topic, Request record) {
    List<Header> headers = new ArrayList<>();
    if (record.has("headers")) {
      for (Object item : record.list("headers")) {
        List<?> header = (List<?>) item;
        headers.add(new RecordHeader((String) header.get(0), Produce.bytes(header.get(1))));
      }
    }
    return new ProducerRecord<>(
        topic,
        (int) record.number("partition", 0),
        (Long) record.get("timestamp"),
        Produce.bytes(record.get("key")),
        Produce.bytes(record.get("value")),
        headers);
  }

  static Object list(ConsumerRecord<byte[], byte[]> record) {
    List<Object> headers = new ArrayList<>();
    for (Header header : record.headers()) headers.add(Arrays.asList(header.key(), Produce.base64(header.value())));
    return headers;
  }

  static List<String> strategies(Request request) {
    List<String> classes = new ArrayList<>();
    for (String name : request.text("strategy", "").split(",")) {
      switch (name) {
        case "range":
          classes.add("org.apache.kafka.clients.consumer.RangeAssignor");
          break;
        case "roundrobin":
          classes.add("org.apache.kafka.clients.consumer.RoundRobinAssignor");
          break;
        case "sticky":
          classes.add("org.apache.kafka.clients.consumer.StickyAssignor");
          break;
        case "cooperative-sticky":
          classes.add("org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
          break;
        default:
          throw new IllegalArgumentException("no assignor is named " + name);
      }
    }
    return classes;
  }
}
