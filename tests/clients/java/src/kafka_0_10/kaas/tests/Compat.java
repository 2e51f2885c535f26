package kaas.tests;

import java.util.Collections;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** What differs between versions of the Java client, for 0.10: timestamps, but neither headers nor administration. */
final class Compat {
  static final boolean CLOSE_REVOKES = false;

  private Compat() {}

  static void producerProperties(Map<String, Object> properties, Request request) {
    properties.put("request.timeout.ms", (int) Math.min(30_000, request.number("timeoutMs", 60_000)));
    properties.put("retries", 20);
  }

  static void memberProperties(Map<String, Object> properties, Request request) {
    properties.put("client.id", request.text("clientId", "member"));
    properties.put("session.timeout.ms", (int) request.number("sessionTimeoutMs", 10_000));
    properties.put("heartbeat.interval.ms", (int) request.number("heartbeatMs", 500));
    properties.put("max.poll.interval.ms", (int) request.number("rebalanceTimeoutMs", 30_000));
    if (request.has("strategy")) {
      properties.put("partition.assignment.strategy", request.text("strategy", "").equals("range")
          ? "org.apache.kafka.clients.consumer.RangeAssignor"
          : "org.apache.kafka.clients.consumer.RoundRobinAssignor");
    }
  }

  static ProducerRecord<byte[], byte[]> record(String topic, Request record) {
    return new ProducerRecord<>(
        topic,
        (int) record.number("partition", 0),
        (Long) record.get("timestamp"),
        Produce.bytes(record.get("key")),
        Produce.bytes(record.get("value")));
  }

  static Object headers(ConsumerRecord<byte[], byte[]> record) {
    return Collections.emptyList();
  }

  static Object timestamp(ConsumerRecord<byte[], byte[]> record) {
    return record.timestamp();
  }

  static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long milliseconds) {
    return consumer.poll(milliseconds);
  }

  /** Without waiting for a fetch that is under way, which may be a long one. */
  static void closeAtOnce(KafkaConsumer<byte[], byte[]> consumer) {
    consumer.close(0, TimeUnit.MILLISECONDS);
  }

  static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    return consumer.committed(partition);
  }

  static long[] offset(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, Object at) {
    if ("earliest".equals(at)) {
      return new long[] {consumer.beginningOffsets(Collections.singleton(partition)).get(partition), -1};
    }
    if ("latest".equals(at)) {
      return new long[] {consumer.endOffsets(Collections.singleton(partition)).get(partition), -1};
    }
    OffsetAndTimestamp found = consumer.offsetsForTimes(Collections.singletonMap(partition, (Long) at)).get(partition);
    return found == null ? new long[] {-1, -1} : new long[] {found.offset(), found.timestamp()};
  }

  static Object other(String op, String bootstrap, Request request, long id, Main.Events events) throws Exception {
    return admin(op, bootstrap, request);
  }

  static Object admin(String op, String bootstrap, Request request) {
    throw new UnsupportedOperationException("this client has no command " + op);
  }
}
